import type { PullProgress } from '../../domain.ts';
import { backendError, type GatewayError, modelNotFound } from '../../errors.ts';
import { oneLine } from '../http.ts';
import { resolvePulled } from './names.ts';
import type { Download, Entry } from './wire.ts';

/**
 * A download as LM Studio does it: a job of the server that goes on by itself. Following it is asking again and again, and
 * to stop following does not stop the job.
 */

/** What a pull does to the outside. Each throws a `GatewayError`, which ends the pull. */
export interface PullServer {
  library(): Promise<readonly Entry[]>;
  start(): Promise<Download>;
  /** Where the job stands; `lost` when LM Studio could not be heard this time. */
  status(id: string): Promise<Download | Lost>;
  /** Waits until it is time for the next question, or throws because the caller left. */
  pause(): Promise<void>;
  /** Whether the caller left. */
  isAbandoned(): boolean;
}

export interface Lost {
  readonly lost: GatewayError;
}

/** Questions in a row without progress, without the end, or without an answer, that are no failure yet. */
const patience = 30;
/** How often the library is read for what was downloaded; it may learn of new files a moment after they are complete. */
const looks = 3;

interface Bytes {
  readonly bytesCompleted: number;
  /** 0 until known. */
  readonly bytesTotal: number;
}
const none: Bytes = { bytesCompleted: 0, bytesTotal: 0 };

/**
 * The progress of one pull. Ends when the server says that the download is complete and lists what it became, under a key
 * that the last status names where it is another; throws `not_found` when it lists no such thing, and `backend_error` when
 * the download failed, is forgotten, or stands still for too long.
 */
export async function* progressOf(reference: string, server: PullServer): AsyncGenerator<PullProgress> {
  const before = new Set((await server.library()).map(({ key }) => key));
  const first = await server.start();
  const hadIt = first.state === 'already_downloaded';
  const bytes = hadIt ? none : yield* following(first, server);
  const { key, size_bytes = 0 } = await listed(reference, server, hadIt ? undefined : before);
  const size = bytes.bytesTotal || size_bytes || bytes.bytesCompleted;
  const status = key === reference ? 'completed' : `completed as ${key}`;
  yield { status, bytesCompleted: size, bytesTotal: size };
}

/** Follows a download to its end. */
async function* following(first: Download, server: PullServer): AsyncGenerator<PullProgress, Bytes> {
  let bytes = grown(none, first);
  if (isComplete(first)) return bytes;
  const { id } = first;
  if (id === undefined)
    throw backendError(
      `lmstudio: the answer to the download names no job to follow (its status is "${oneLine(first.state, 100)}")`,
    );
  yield { status: statusOf(first), ...bytes };
  try {
    for (let still = 0; ; ) {
      await server.pause();
      // Under the first id: later answers may leave it out.
      const heard = await server.status(id);
      if (!('lost' in heard)) {
        bytes = grown(bytes, heard);
        if (isComplete(heard)) return bytes;
      }
      still = 'lost' in heard || heard.state !== 'downloading' ? still + 1 : 0;
      if (still > patience) throw stuck(heard);
      yield { status: 'lost' in heard ? 'no answer from LM Studio; asking again' : statusOf(heard), ...bytes };
    }
  } catch (error) {
    // There is no call that would end the job of the server, so its last status says what became of it.
    if (server.isAbandoned()) yield { status: 'no longer followed; LM Studio goes on with the download', ...bytes };
    throw error;
  }
}

/** Whether a download has ended well. Throws when it has not ended well. */
function isComplete({ state, error }: Download): boolean {
  if (state === 'failed') throw backendError(`lmstudio: ${error ? oneLine(error) : 'download failed'}`);
  return state === 'completed' || state === 'already_downloaded';
}

/** Byte counts never go back here, although those of the server do when it fetches a part again. */
function grown(before: Bytes, { bytesCompleted = 0, bytesTotal = 0 }: Download): Bytes {
  const completed = Math.max(before.bytesCompleted, bytesCompleted);
  const total = Math.max(before.bytesTotal, bytesTotal);
  return { bytesCompleted: completed, bytesTotal: total > 0 ? Math.max(total, completed) : 0 };
}

function statusOf({ state, bytesCompleted = 0, bytesTotal = 0, bytesPerSecond = 0 }: Download): string {
  if (state !== 'downloading') return oneLine(state, 100);
  // It still says so while it puts the files in their place, which takes minutes.
  if (bytesTotal > 0 && bytesCompleted >= bytesTotal) return 'finalizing';
  return bytesPerSecond > 0 ? `downloading (${speedOf(bytesPerSecond)})` : state;
}

function speedOf(bytesPerSecond: number): string {
  const units = ['kB/s', 'MB/s', 'GB/s'];
  if (bytesPerSecond < 1000) return `${bytesPerSecond} B/s`;
  const power = Math.min(units.length, Math.floor(Math.log10(bytesPerSecond) / 3));
  return `${(bytesPerSecond / 1000 ** power).toFixed(1)} ${units[power - 1]}`;
}

function stuck(heard: Download | Lost): GatewayError {
  if ('lost' in heard)
    return backendError(
      `${heard.lost.message}; no answer for ${patience + 1} questions in a row, so the download is no longer followed; ` +
        'it may go on in LM Studio, and a new pull finds it there',
      { cause: heard.lost },
    );
  if (heard.state === 'paused')
    return backendError(
      'lmstudio: the download is paused; resume or cancel it in LM Studio, then pull the model again',
    );
  return backendError(`lmstudio: the download stays at "${oneLine(heard.state, 100)}"; look at it in LM Studio`);
}

/** The entry of the library that the download became. */
async function listed(reference: string, server: PullServer, before: ReadonlySet<string> | undefined): Promise<Entry> {
  for (let look = 1; ; look++) {
    try {
      const resolved = resolvePulled(await server.library(), reference, before);
      if ('entry' in resolved) return resolved.entry;
      throw unlisted(reference, before === undefined, resolved.candidates);
    } catch (error) {
      if (look === looks || server.isAbandoned()) throw error;
    }
    await server.pause();
  }
}

function unlisted(reference: string, hadIt: boolean, candidates: readonly string[]): GatewayError {
  const what = hadIt ? 'has it already by its own account' : 'downloaded it';
  const why = hadIt ? ', or an older download of it has not ended, or its files were removed by hand' : '';
  const keys = candidates.slice(0, 5).map(key => oneLine(key, 100));
  const hint = keys.length > 0 ? `; it may be ${keys.join(' or ')}` : '';
  return modelNotFound(
    `lmstudio: LM Studio ${what}, but its library has no single model for ${oneLine(reference, 200)}: it keeps the model ` +
      `under another key${why}${hint}`,
  );
}
