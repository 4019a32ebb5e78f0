import { completedAt, endsAt, type Transfer } from '../../host/transfer.ts';
import { type Entry, fileKey } from '../models.ts';
import { type PullEvent, progress } from './progress.ts';
import type { Job, Puller } from './pulls.ts';

/** Fetches a model's files one after the other; returns the words it ends with when it fails. */
export async function* fetchFiles(
  puller: Puller,
  job: Job,
  entry: Entry,
  life: AbortSignal,
): AsyncGenerator<PullEvent, string | undefined> {
  const { state, features } = puller;
  const pending = [...entry.interruptions];
  let offset = 0;
  for (const [place, file] of entry.files.entries()) {
    const key = fileKey(entry, file);
    const where = { file: file.name, index: place + 1, files: entry.files.length, size: entry.bytes };
    const say = (done: number, total: number, previous: number) => progress(features, where, { done, total, previous });

    job.completedBytes = offset;
    yield say(0, file.bytes, 0);
    if (state.files.has(key)) {
      yield say(file.bytes, file.bytes, file.bytes);
    } else if (fails(entry, 'missing')) {
      // The registry's page counts as the file.
      yield say(28, 28, 0);
      return failing(entry, downloadFailed(entry, file.name, 'HTTP error 404'));
    } else {
      const failed = yield* fetchFile(
        puller,
        { entry, key, name: file.name, bytes: file.bytes, offset, pending, say },
        life,
      );
      if (failed !== undefined) return failed;
    }
    offset += file.bytes;
  }
  if (!fails(entry, 'validation')) return undefined;
  for (const file of entry.files) state.files.delete(fileKey(entry, file));
  return failing(entry, 'Download validation failed. The downloaded file is not a valid GGUF file.');
}

/** One file on its way. */
interface Fetch {
  readonly entry: Entry;
  readonly key: string;
  readonly name: string;
  readonly bytes: number;
  /** Bytes of the files before it. */
  readonly offset: number;
  /** Interruptions that are still to come. */
  readonly pending: number[];
  readonly say: (done: number, total: number, previous: number) => PullEvent;
}

async function* fetchFile(
  puller: Puller,
  fetch: Fetch,
  life: AbortSignal,
): AsyncGenerator<PullEvent, string | undefined> {
  const { state, clock, timings } = puller;
  const { entry, key, bytes, say } = fetch;
  let from = state.partials.get(key) ?? 0;
  let previous = from;
  let mismatches = 0;
  for (;;) {
    // The length is not known until the registry has answered.
    yield say(from, 0, previous);
    if (from > 0 || mismatches > 0) yield say(from, bytes, previous);
    const { to, why } = nextSpan(fetch, from);
    for await (const done of transferred(puller, transferOf(puller, fetch, from, to), life)) {
      state.partials.set(key, done);
      yield say(done, bytes, previous);
    }
    state.partials.set(key, to);
    yield say(to, bytes, previous);
    from = to;
    if (why === 'interruption') continue;
    if (why === 'failure') return failing(entry, downloadFailed(entry, fetch.name, 'connection reset'));

    await clock.sleep(timings.verifyMs, life);
    if (!fails(entry, 'checksum')) break;
    if (++mismatches > retries) return failing(entry, downloadFailed(entry, fetch.name, 'checksum mismatch'));
    entry.failed++;
    await clock.sleep(Math.min(timings.retryMs * 2 ** (mismatches - 1), longestRetryMs), life);
    state.partials.delete(key);
    from = 0;
    previous = 0;
  }
  state.partials.delete(key);
  state.files.add(key);
  return undefined;
}

const retries = 10;
const longestRetryMs = 120_000;

/** Bytes that are there, from tick to tick; ends with the transfer. */
export async function* transferred(puller: Puller, transfer: Transfer, life: AbortSignal): AsyncGenerator<number> {
  const { clock, timings } = puller;
  for (;;) {
    await clock.sleep(Math.min(endsAt(transfer) - clock.now(), timings.tickMs), life);
    if (clock.now() >= endsAt(transfer)) return;
    yield completedAt(transfer, clock.now());
  }
}

/** How far a download gets in one go, and what stops it there. */
function nextSpan({ entry, bytes, offset, pending }: Fetch, from: number) {
  const interruption = pending.findIndex(at => at - offset > from && at - offset < bytes);
  const failAt = typeof entry.failure?.at === 'number' && isDue(entry) ? entry.failure.at - offset : undefined;
  const failure = failAt !== undefined && failAt >= 0 && failAt < bytes ? Math.max(failAt, from) : undefined;
  if (interruption >= 0) {
    const to = (pending[interruption] ?? 0) - offset;
    if (failure === undefined || to < failure) {
      pending.splice(interruption, 1);
      return { to, why: 'interruption' as const };
    }
  }
  return failure === undefined ? { to: bytes, why: 'end' as const } : { to: failure, why: 'failure' as const };
}

function transferOf({ clock, timings }: Puller, { entry, bytes, offset }: Fetch, from: number, to: number): Transfer {
  const { pullMs = timings.pullMs, stall } = entry;
  const stallAt = stall === undefined ? -1 : stall.at - offset;
  return {
    bytes,
    from,
    startedAt: clock.now(),
    firstByteMs: timings.firstByteMs,
    msPerByte: entry.bytes > 0 ? pullMs / entry.bytes : 0,
    stall: stall && stallAt > from && stallAt < to ? { at: stallAt, ms: stall.ms } : undefined,
    endsEarly: to,
  };
}

const isDue = ({ failure, failed }: Entry) => failed < (failure?.times ?? Number.POSITIVE_INFINITY);

export const fails = (entry: Entry, at: string) => entry.failure?.at === at && isDue(entry);

/** The words of a failure, which is counted. */
export function failing(entry: Entry, error: string): string {
  entry.failed++;
  return entry.failure?.error ?? error;
}

function downloadFailed({ id }: Entry, file: string, last: string): string {
  const url = `https://huggingface.co/emulated/${id}/resolve/main/${file}`;
  return [
    `Failed to download file: ${file}`,
    `URL: ${url}`,
    'Download failed after 11 attempts.',
    `Last error: ${last} for URL: ${url}`,
  ].join('\n');
}
