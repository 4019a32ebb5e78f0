import { createHash } from 'node:crypto';

/** A file of a model: with its words, or with so many bytes that are made when somebody reads them. */
export type ModelFile =
  | { readonly path: string; readonly text: string }
  | { readonly path: string; readonly bytes: number };

/** A file as a repository holds it. */
export interface StoredFile {
  readonly path: string;
  readonly bytes: number;
  /** Id of the blob in Git: of the content, or of the pointer to it. */
  readonly oid: string;
  /** SHA-256 of the content of a large file, which is kept elsewhere. */
  readonly sha256?: string | undefined;
  /** Bytes from `start` up to `end`. */
  read(start: number, end: number): Buffer;
}

/** What Git holds in place of a large file. */
export const pointerBytes = 135;
/** A file is large by its name, as `.gitattributes` says, or from this size on. */
const largeNames = /\.(?:safetensors|bin|pt|pth|gguf|ckpt|msgpack|h5|onnx)$/i;
const largeBytes = 10_000_000;
/** The content of large files repeats itself. */
const blockBytes = 64 * 1024;
/** Up to here a hash is the one of the content; that of a large one would take longer than its download. */
const hashedBytes = 4_000_000;

export function storedFile(repository: string, file: ModelFile): StoredFile {
  const { path } = file;
  const name = `${repository}/${path}`;
  if ('text' in file) {
    const content = Buffer.from(file.text);
    const read = (start: number, end: number) => content.subarray(start, end);
    return { path, bytes: content.length, oid: blobId(content), read };
  }
  const { bytes } = file;
  const read = (start: number, end: number) => contentOf(name, start, Math.min(end, bytes));
  const whole = bytes <= hashedBytes ? read(0, bytes) : undefined;
  const hash = (kind: string) => createHash(kind).update(whole ?? `${name} ${bytes}`);
  if (!largeNames.test(path) && bytes < largeBytes)
    return { path, bytes, oid: whole ? blobId(whole) : hash('sha1').digest('hex'), read };
  const sha256 = hash('sha256').digest('hex');
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${bytes}\n`;
  return { path, bytes, oid: blobId(Buffer.from(pointer)), sha256, read };
}

const blobId = (content: Buffer) => createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');

/** The id of a commit: it follows from what is in it. */
export const commitId = (repository: string, files: readonly StoredFile[]): string =>
  createHash('sha1')
    .update(JSON.stringify([repository, files.map(({ path, oid }) => [path, oid])]))
    .digest('hex');

const blocks = new Map<string, Buffer>();

function contentOf(name: string, start: number, end: number): Buffer {
  const block = blocks.get(name) ?? blockOf(name);
  blocks.set(name, block);
  const content = Buffer.allocUnsafe(Math.max(0, end - start));
  for (let at = 0; at < content.length; ) {
    const from = (start + at) % blockBytes;
    at += block.copy(content, at, from, Math.min(blockBytes, from + content.length - at));
  }
  return content;
}

/** Bytes that look like noise and depend on the name alone. */
function blockOf(name: string): Buffer {
  let seed = createHash('sha256').update(name).digest().readUInt32LE() || 1;
  const block = Buffer.allocUnsafe(blockBytes);
  for (let at = 0; at < blockBytes; at += 4) {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    block.writeInt32LE(seed, at);
  }
  return block;
}
