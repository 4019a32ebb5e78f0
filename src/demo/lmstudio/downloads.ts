import type { Clock } from '../host/clock.ts';
import { completedAt, endsAt, type Transfer } from '../host/transfer.ts';
import { type DownloadFailure, type Published, type State, store } from './models.ts';

/** One download; what it has come to is a function of the time. */
export interface Job {
  readonly id: string;
  readonly published: Published;
  readonly startedAt: number;
  /** What ends it, if it is to fail. */
  readonly failure: DownloadFailure | undefined;
  /** Since it was started or resumed. */
  transfer: Transfer;
  paused: boolean;
  /** Whether its model is in the library. */
  stored: boolean;
}

export interface Downloader {
  readonly state: State;
  readonly clock: Clock;
  readonly timings: DownloadTimings;
}

export interface DownloadTimings {
  /** Until the first byte moves. */
  readonly firstByteMs: number;
  /** All bytes, where the model does not say. */
  readonly pullMs: number;
  /** After the last byte, where the model does not say. */
  readonly finalizeMs: number;
}

/** Where a download stands. */
export interface Standing {
  readonly status: string;
  readonly bytes: number;
  /** While bytes move. */
  readonly bytesPerSecond?: number;
  readonly estimatedCompletion?: number;
  readonly completedAt?: number;
  readonly error?: unknown;
}

export function standingOf(downloader: Downloader, job: Job): Standing {
  const now = downloader.clock.now();
  const { transfer, failure, published } = job;
  const bytes = completedAt(transfer, now);
  if (job.paused) return { status: 'paused', bytes };
  const failed = { status: 'failed', bytes, ...(failure?.error === undefined ? {} : { error: failure.error }) };
  if (now < endsAt(transfer)) {
    const { msPerByte, firstByteMs, startedAt } = transfer;
    const moves = msPerByte > 0 && now > startedAt + firstByteMs;
    return {
      status: 'downloading',
      bytes,
      ...(moves && { bytesPerSecond: 1000 / msPerByte, estimatedCompletion: finalizedAt(downloader, job) }),
    };
  }
  if (typeof failure?.at === 'number') return failed;
  if (now < finalizedAt(downloader, job)) {
    return { status: published.model.finalize?.status ?? 'downloading', bytes, bytesPerSecond: 0 };
  }
  return failure ? failed : { status: 'completed', bytes, completedAt: finalizedAt(downloader, job) };
}

const finalizedAt = ({ timings }: Downloader, { transfer, published }: Job) =>
  endsAt(transfer) + (published.model.finalize?.ms ?? timings.finalizeMs);

const isOver = ({ status }: Standing) => status === 'completed' || status === 'failed';

/** Lets the past take effect: what is downloaded by now is in the library. */
export function settle(downloader: Downloader): void {
  const { state } = downloader;
  for (const job of state.jobs.values()) {
    if (job.stored || standingOf(downloader, job).status !== 'completed') continue;
    job.stored = true;
    store(state, job.published.model);
  }
}

/** The download of a model that is under way, or a new one. */
export function start(downloader: Downloader, published: Published): Job {
  const { state } = downloader;
  const current = [...state.jobs.values()].find(
    job => job.published === published && !isOver(standingOf(downloader, job)),
  );
  if (current) return current;
  const { failure } = published.model;
  const fails = failure !== undefined && published.failed < (failure.times ?? Number.POSITIVE_INFINITY);
  if (fails) published.failed++;
  state.jobsStarted++;
  const job: Job = {
    id: `job_${String(state.jobsStarted).padStart(10, '0')}`,
    published,
    startedAt: downloader.clock.now(),
    failure: fails ? failure : undefined,
    transfer: transferFrom(downloader, published, fails ? failure : undefined, 0),
    paused: false,
    stored: false,
  };
  state.jobs.set(job.id, job);
  return job;
}

function transferFrom(
  { clock, timings }: Downloader,
  { model }: Published,
  failure: DownloadFailure | undefined,
  from: number,
): Transfer {
  const { bytes, pullMs = timings.pullMs, stall } = model;
  return {
    bytes,
    from,
    startedAt: clock.now(),
    firstByteMs: timings.firstByteMs,
    msPerByte: bytes > 0 ? pullMs / bytes : 0,
    stall: stall && stall.at > from ? stall : undefined,
    endsEarly: typeof failure?.at === 'number' ? Math.max(failure.at, from) : undefined,
  };
}

/** What a person does in the app. */
export function pause({ clock }: Downloader, job: Job): void {
  const from = completedAt(job.transfer, clock.now());
  job.paused = true;
  job.transfer = { ...job.transfer, from, startedAt: Number.POSITIVE_INFINITY };
}

/** Goes on; a part of which some bytes are lost is downloaded again. */
export function resume(downloader: Downloader, job: Job, lostBytes: number): void {
  if (!job.paused) return;
  job.paused = false;
  job.transfer = transferFrom(downloader, job.published, job.failure, Math.max(0, job.transfer.from - lostBytes));
}
