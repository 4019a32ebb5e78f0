import { isIgnored } from './glob.ts';

/** A file of a repository. */
export interface HubFile {
  readonly path: string;
  /** Absent when the Hub gives no number that can be one: a sum with it in it is unknown. */
  readonly bytes?: number | undefined;
}

/** What `model.safetensors.index.json` says. */
export interface ShardIndex {
  /** Of all tensors, by whoever wrote the file. Absent when it is no number above 0. */
  readonly totalBytes?: number | undefined;
  /** The files that hold tensors, each once. */
  readonly shards: readonly string[];
}

/** What the weights of a model take, and what says so. */
export interface Weights {
  readonly bytes: number;
  readonly source: 'safetensors-index' | 'safetensors-shards' | 'tree';
}

export const indexFile = 'model.safetensors.index.json';

const otherWeights = /\.(?:bin|pt|pth|gguf|ckpt|msgpack|h5|onnx)$/i;

/**
 * The weights by the index, or by the files where there is none that says anything. Undefined when nothing weighs
 * anything, or when the sizes are not known.
 */
export function weigh(files: readonly HubFile[], index?: ShardIndex | undefined): Weights | undefined {
  return (index && weighIndex(files, index)) ?? weighFiles(files);
}

/**
 * The index counts tensors, the files what is downloaded and mapped. An index that was copied from the model before its
 * quantization is off by factors, so it counts only where it agrees with its own files to one percent.
 */
function weighIndex(files: readonly HubFile[], { totalBytes, shards }: ShardIndex): Weights | undefined {
  const named = new Set(shards);
  const shardBytes = sum(files.filter(({ path }) => named.has(path)));
  // Shards of unknown sizes say nothing against the total.
  const unknown = shardBytes === undefined || shardBytes === 0;
  if (totalBytes !== undefined && (unknown || Math.abs(totalBytes - shardBytes) * 100 <= shardBytes))
    return { bytes: totalBytes, source: 'safetensors-index' };
  return unknown ? undefined : { bytes: shardBytes, source: 'safetensors-shards' };
}

function weighFiles(files: readonly HubFile[]): Weights | undefined {
  const safetensors = files.filter(({ path }) => /\.safetensors$/i.test(path));
  const weighing = safetensors.length > 0 ? safetensors : files.filter(({ path }) => otherWeights.test(path));
  const bytes = sum(weighing);
  return bytes ? { bytes, source: 'tree' } : undefined;
}

/** Bytes of all files that no pattern leaves out; undefined when one of them has no size. */
export const downloadBytesOf = (files: readonly HubFile[], ignore: readonly string[]): number | undefined =>
  sum(files.filter(({ path }) => !isIgnored(path, ignore)));

function sum(files: readonly HubFile[]): number | undefined {
  let total = 0;
  for (const { bytes } of files) {
    if (bytes === undefined) return undefined;
    total += bytes;
  }
  return Number.isSafeInteger(total) ? total : undefined;
}
