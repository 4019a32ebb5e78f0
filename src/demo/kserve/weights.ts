/** The init container that brings the weights of a model into the cache. */
import { completedAt, endsAt, type Transfer } from '../host/transfer.ts';
import { directoryOf } from '../kubelet/download.ts';
import type { RemoteFile } from '../kubelet/hub.ts';
import { backoffAfter } from './faults.ts';
import { type LivePod, type Surroundings, tellBackOff } from './surroundings.ts';

const name = 'storage-initializer';

interface Failure {
  readonly message: string;
}

/** Resolves when the weights are there: it is tried until they are. */
export async function downloadWeights(live: LivePod, around: Surroundings, uri: string): Promise<void> {
  for (let restartCount = 0; ; restartCount++) {
    const startedAt = live.now();
    live.say(name, { running: { startedAt } }, { restartCount, started: true });
    live.told(name, 'Started', `Started container ${name}`);
    live.print(name, `Initializing, args: src_uri [${uri}] dest_path [/mnt/models]\n`);
    const failure = await fetched(live, around, uri);
    const finishedAt = live.now();
    if (!failure) {
      live.print(name, `Successfully copied ${uri} to /mnt/models\n`);
      const terminated = { exitCode: 0, reason: 'Completed', startedAt, finishedAt };
      live.say(name, { terminated }, { ready: true, started: false });
      return;
    }
    live.print(name, `${failure.message}\n`);
    const terminated = { exitCode: 1, reason: 'Error', message: failure.message, startedAt, finishedAt };
    live.say(name, { terminated }, { started: false });
    const wait = backoffAfter(restartCount + 1, around.pace.backoffMs);
    tellBackOff(live, name);
    await live.pause(wait);
    live.say(name, { waiting: { reason: 'PodInitializing' } }, { lastState: { terminated } });
  }
}

/** Undefined when all of it is there. */
async function fetched(live: LivePod, around: Surroundings, uri: string): Promise<Failure | undefined> {
  const { pace, volumes, repositories } = around;
  const [, id = ''] = /^hf:\/\/([^:]+)/.exec(uri) ?? [];
  const found = repositories(id);
  if ('problem' in found) return { message: found.problem };
  const bytes = found.files.reduce((sum, file) => sum + file.bytes, 0);
  const there = volumes.content(live.volume).find(({ dir }) => dir === live.served)?.bytes ?? 0;
  if (there >= bytes) {
    await live.pause(pace.cachedMs);
    return undefined;
  }
  return await transferred(live, around, found.files, { bytes, from: there });
}

async function transferred(
  live: LivePod,
  around: Surroundings,
  files: readonly RemoteFile[],
  { bytes, from }: Pick<Transfer, 'bytes' | 'from'>,
): Promise<Failure | undefined> {
  const { clock, pace, volumes, fault } = around;
  const stall = stallOf(fault(live.served), bytes);
  const transfer: Transfer = {
    bytes,
    from,
    startedAt: clock.now(),
    firstByteMs: 0,
    msPerByte: 1000 / pace.bytesPerSecond,
    ...(stall && { endsEarly: Math.max(from, stall.at) }),
  };
  const write = (count: number) => {
    if (live.volume !== '') volumes.write(live.volume, directoryOf(live.served, files, count, clock.now()));
  };
  while (clock.now() < endsAt(transfer)) {
    await live.pause(Math.min(endsAt(transfer) - clock.now(), pace.progressMs));
    write(completedAt(transfer, clock.now()));
  }
  if (!stall) {
    write(bytes);
    return undefined;
  }
  await live.pause(stall.afterMs);
  return { message: `requests.exceptions.ReadTimeout: no byte came for ${stall.afterMs / 1000} s` };
}

function stallOf(fault: ReturnType<Surroundings['fault']>, bytes: number) {
  return fault?.kind === 'stall' ? { at: Math.floor(bytes * fault.at), afterMs: fault.afterMs } : undefined;
}
