/** What the scripts of the gateway's Jobs do. */
import { download } from './download.ts';
import type { Program } from './work.ts';

/** Prints every directory of the volume, and what a download left beside it. */
const scan: Program = async ({ content, sleep, print, workMs }) => {
  await sleep(workMs);
  for (const { dir, bytes, files, mtime, hasModel, marker } of content.values()) {
    print(['DIR', dir, bytes, files, Math.floor(mtime / 1000), hasModel ? 1 : 0].join('\t'));
    if (marker) print(['MARKER', dir, JSON.stringify(marker)].join('\t'));
  }
  print('END');
  return 0;
};

const remove: Program = async ({ content, env, sleep, print, workMs }) => {
  await sleep(workMs);
  const { MM_DIRNAME: dir = '' } = env;
  if (content.delete(dir)) {
    print('REMOVED');
    return 0;
  }
  print(`there is no directory ${dir} in the cache`);
  return 1;
};

const unknown: Program = async ({ print }) => {
  print('nothing is run here: only the Jobs mm-scan-…, mm-pull-… and mm-rm-… are emulated');
  return 127;
};

const programs: readonly (readonly [prefix: string, Program])[] = [
  ['mm-scan-', scan],
  ['mm-pull-', download],
  ['mm-rm-', remove],
];

export const programOf = (job: string): Program => programs.find(([prefix]) => job.startsWith(prefix))?.[1] ?? unknown;
