/**
 * A program in the place of the one in the download image: fetches `hf://owner/name[:revision]` from the Hub at `HF_ENDPOINT`
 * into a folder, and goes on where an earlier run was ended.
 */
import { createWriteStream } from 'node:fs';
import { mkdir, rename, stat } from 'node:fs/promises';
import { dirname, join, matchesGlob } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const [, , source = '', folder = ''] = process.argv;
const { HF_ENDPOINT, HF_TOKEN, STORAGE_IGNORE_PATTERNS = '[]' } = process.env;
const [, repository, revision = 'main'] = /^hf:\/\/([^:]+)(?::(.+))?$/.exec(source) ?? [];
const ignored = JSON.parse(STORAGE_IGNORE_PATTERNS) as string[];

async function ask(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const url = `${HF_ENDPOINT}${path}`;
  const answer = await fetch(url, {
    headers: { ...(HF_TOKEN && { authorization: `Bearer ${HF_TOKEN}` }), ...headers },
  });
  if (!answer.ok) throw new Error(`${answer.status} for ${path}: ${await answer.text()}`);
  return answer;
}

async function download(path: string): Promise<void> {
  const file = join(folder, path);
  const partial = `${file}.incomplete`;
  await mkdir(dirname(file), { recursive: true });
  const has = await stat(partial)
    .then(({ size }) => size)
    .catch(() => 0);
  const answer = await ask(
    `/${repository}/resolve/${encodeURIComponent(revision)}/${path}`,
    has > 0 ? { range: `bytes=${has}-` } : {},
  );
  console.log(`INFO ${path} from byte ${answer.status === 206 ? has : 0}`);
  const flag = answer.status === 206 ? 'a' : 'w';
  await pipeline(Readable.fromWeb(answer.body as never), createWriteStream(partial, { flags: flag }));
  await rename(partial, file);
}

const tree = await ask(`/api/models/${repository}/tree/${encodeURIComponent(revision)}?recursive=true`);
for (const { type, path } of (await tree.json()) as { type: string; path: string }[]) {
  if (type !== 'file' || ignored.some(pattern => matchesGlob(path, pattern))) continue;
  if (
    await stat(join(folder, path)).then(
      () => true,
      () => false,
    )
  )
    continue;
  await download(path);
}
