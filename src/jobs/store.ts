import type { Call } from '../call.ts';
import type { Job } from '../domain.ts';
import { jobNotFound } from '../errors.ts';
import { createCell } from '../live/cell.ts';
import type { Rows } from '../live/events.ts';
import type { Source } from '../live/source.ts';

/** Where jobs are kept, and who works on which. */
export interface JobStore {
  /** Newest first: by `createdAt` falling, equal times by id. */
  list(): readonly Job[];
  get(id: string): Job | undefined;
  /** The same, and also of a job that another process has begun just now. */
  find(call: Call, id: string): Promise<Job | undefined>;
  /** The job that does the work of this key, while it does. */
  working(key: string): Job | undefined;
  /** The list as it changes. */
  readonly source: Source<Rows<Job>>;
  /** Takes work on, unless a job does the work of that key: then that one is the answer, and there is nothing to do. */
  begin(key: string, job: Job): Promise<{ readonly job: Job; readonly claim?: Claim }>;
  /** Asks whoever works on it to stop. One that has ended, or that there is not, stays as it is. */
  cancel(id: string): Promise<void>;
  /**
   * Takes on, from now on, what others have left undone, where `isWanted`; `alone` is for how long nobody has worked on it,
   * in milliseconds. Returns how to stop.
   */
  takeOver(isWanted: (job: Job, alone: number) => boolean, take: (claim: Claim) => void): () => void;
  /** Whether it is known which jobs there are. */
  isRead(): boolean;
  /** Resolves when all is on record that there is, and stops. */
  close(): Promise<void>;
}

/** A job that this process works on, until it has ended or is given back. */
export interface Claim {
  /** As it was on record. */
  readonly job: Job;
  /** Aborts when the work is to stop: with `cancelled`, or with `lost` when another process works on it by now. */
  readonly signal: AbortSignal;
  /** The job as it now is. */
  put(job: Job): void;
  /** Gives it back undone, for another process to take over; absent where there can be none. */
  giveBack?(): Promise<void>;
}

/** Why work stops whose job another process has taken over. */
export const lost = new Error('another replica works on it by now');

/** Finished jobs kept at most, however young. */
const maxFinished = 200;
/** Progress reaches subscribers at most this often, in milliseconds. */
const minIntervalMs = 250;

export function isFinished(job: Job): boolean {
  return job.phase !== 'pending' && job.phase !== 'running';
}

/** Throws `not_found` for an unknown id. */
export function jobIn(store: Pick<JobStore, 'get'>, id: string): Job {
  return known(store.get(id), id);
}

/** The job that was looked for by this id. Throws `not_found` when there is none. */
export function known(job: Job | undefined, id: string): Job {
  if (!job) throw jobNotFound(id.slice(0, 80));
  return job;
}

const endOf = (job: Job) => (job.finishedAt ?? job.createdAt).getTime();

function newestFirst(a: Job, b: Job): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? -1 : 1);
}

export interface RetentionOptions {
  /** How long a finished job is kept, in milliseconds. */
  readonly retentionMs: number;
  readonly now?: (() => number) | undefined;
}

/** Jobs as they are listed. */
export interface JobList extends Pick<JobStore, 'list' | 'get' | 'source'> {
  /** Adds a job, or replaces the one of the same id. */
  put(job: Job): void;
  /** Takes these for all there are. */
  replace(jobs: readonly Job[]): void;
}

/** Those that have ended stay for their time, and of them the newest 200. */
export function createJobList({ retentionMs, now = Date.now }: RetentionOptions): JobList {
  const cell = createCell<Rows<Job>>({ rows: [], errors: [] }, { minIntervalMs, now });

  function kept(jobs: readonly Job[]): readonly Job[] {
    // Those that ended last stay, however long ago they began.
    const ended = jobs.filter(isFinished).sort((a, b) => endOf(b) - endOf(a));
    const gone = new Set(ended.filter((job, place) => place >= maxFinished || now() - endOf(job) >= retentionMs));
    return gone.size === 0 ? jobs : jobs.filter(job => !gone.has(job));
  }

  const rows = () => cell.current?.value?.rows ?? [];

  function replace(jobs: readonly Job[]) {
    const next = kept([...jobs].sort(newestFirst));
    const before = rows();
    if (next.length === before.length && next.every((job, place) => job === before[place])) return;
    cell.set({ rows: next, errors: [] });
  }

  function list(): readonly Job[] {
    replace(rows());
    return rows();
  }

  return {
    list,
    get: id => list().find(job => job.id === id),
    put: job => replace([...rows().filter(other => other.id !== job.id), job]),
    replace,
    source: cell,
  };
}
