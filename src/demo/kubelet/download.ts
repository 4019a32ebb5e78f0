/** A download into a volume, as its script tells it: how much there is, and at the end that it is all. */

import { timestamp } from '../cluster/store/object.ts';
import { completedAt, endsAt, type Transfer } from '../host/transfer.ts';
import { filesOf, type RemoteFile } from './hub.ts';
import type { Directory, Program, Work } from './work.ts';

export const download: Program = async work => {
  const { env, content, now, sleep, print, progressMs } = work;
  const { MM_DIRNAME: dir = '', MM_MODEL: model, MM_REVISION: revision, MM_JOB: job } = env;
  const before = content.get(dir);
  content.set(dir, { ...(before ?? empty(dir, now())), marker: undefined });
  print(`PROGRESS ${before?.bytes ?? 0}`);
  const found = await filesOf(env, work.signal);
  if ('problem' in found) return failed(work, found.problem);
  const bytes = found.files.reduce((sum, file) => sum + file.bytes, 0);
  const transfer: Transfer = {
    bytes,
    from: Math.min(before?.bytes ?? 0, bytes),
    startedAt: now(),
    firstByteMs: 0,
    msPerByte: 1000 / work.bytesPerSecond,
  };
  for (;;) {
    await sleep(Math.min(endsAt(transfer) - now(), progressMs));
    if (now() >= endsAt(transfer)) break;
    const there = directoryOf(dir, found.files, completedAt(transfer, now()), now());
    content.set(dir, there);
    print(`PROGRESS ${there.bytes}`);
  }
  print(`PROGRESS ${bytes}`);
  const marker = {
    model,
    revision,
    dir,
    bytesExpected: Number(env.MM_BYTES || 0),
    completedAt: timestamp(now()),
    job,
  };
  content.set(dir, { ...directoryOf(dir, found.files, bytes, now()), marker });
  print('DONE');
  return 0;
};

function failed({ print }: Work, problem: string): number {
  print(problem);
  print('DOWNLOAD FAILED rc=1');
  return 1;
}

const empty = (dir: string, mtime: number): Directory => ({ dir, bytes: 0, files: 0, mtime, hasModel: false });

/** The directory when this much of its files is there, which come one after the other. */
export function directoryOf(dir: string, files: readonly RemoteFile[], bytes: number, mtime: number): Directory {
  let start = 0;
  const there = files.filter(file => {
    const isThere = start < bytes;
    start += file.bytes;
    return isThere;
  });
  return { dir, bytes, files: there.length, mtime, hasModel: there.some(({ path }) => isOfModel(path)) };
}

const isOfModel = (path: string) => path === 'config.json' || /^[^/]+\.(safetensors|gguf|bin|pt|pth|onnx)$/.test(path);
