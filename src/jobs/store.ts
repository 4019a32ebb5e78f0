import type { Job } from '../domain.ts';
import { jobNotFound } from '../errors.ts';
import { createCell } from '../live/cell.ts';
import type { Rows } from '../live/events.ts';
import type { Source } from '../live/source.ts';

/** Where jobs are kept. */
export interface JobStore {
  /** Newest first: by `createdAt` falling, equal times by id. */
  list(): readonly Job[];
  get(id: string): Job | undefined;
  /** Adds a job, or replaces the one of the same id. */
  put(job: Job): void;
  /** The list as it changes. */
  readonly source: Source<Rows<Job>>;
}

export interface RetentionOptions {
  /** How long a finished job is kept, in milliseconds. */
  readonly retentionMs: number;
  readonly now?: () => number;
}

/** Finished jobs kept at most, however young. */
const maxFinished = 200;
/** Progress reaches subscribers at most this often, in milliseconds. */
const minIntervalMs = 250;

export function isFinished(job: Job): boolean {
  return job.phase !== 'pending' && job.phase !== 'running';
}

/** Throws `not_found` for an unknown id. */
export function jobIn(store: Pick<JobStore, 'get'>, id: string): Job {
  const job = store.get(id);
  if (!job) throw jobNotFound(id.slice(0, 80));
  return job;
}

const endOf = (job: Job) => (job.finishedAt ?? job.createdAt).getTime();

function newestFirst(a: Job, b: Job): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? -1 : 1);
}

/** Jobs of this process's memory: a restart forgets them, never what they did. */
export function createMemoryStore({ retentionMs, now = Date.now }: RetentionOptions): JobStore {
  const cell = createCell<Rows<Job>>({ rows: [], errors: [] }, { minIntervalMs, now });

  function kept(jobs: readonly Job[]): readonly Job[] {
    // Those that ended last stay, however long ago they began.
    const ended = jobs.filter(isFinished).sort((a, b) => endOf(b) - endOf(a));
    const gone = new Set(ended.filter((job, place) => place >= maxFinished || now() - endOf(job) >= retentionMs));
    return gone.size === 0 ? jobs : jobs.filter(job => !gone.has(job));
  }

  function list(): readonly Job[] {
    const jobs = cell.current?.value?.rows ?? [];
    const remaining = kept(jobs);
    if (remaining.length < jobs.length) cell.set({ rows: remaining, errors: [] });
    return remaining;
  }

  return {
    list,
    get: id => list().find(job => job.id === id),
    put(job) {
      const others = list().filter(other => other.id !== job.id);
      cell.set({ rows: kept([...others, job].sort(newestFirst)), errors: [] });
    },
    source: cell,
  };
}
