import type { Clock } from '../../host/clock.ts';
import type { Features } from '../features.ts';
import { checkpointOf, type Entry, findEntry, recipeOf, type State } from '../models.ts';
import { failing, fails, fetchFiles } from './files.ts';
import { fetchFlm } from './flm.ts';
import { type Progress, type PullEvent, progressAt } from './progress.ts';

export interface PullTimings {
  /** Between two progress events. */
  readonly tickMs: number;
  /** Until the first byte of a file moves. */
  readonly firstByteMs: number;
  /** Until the registry has said which files there are. */
  readonly manifestMs: number;
  /** All files, where the model does not say. */
  readonly pullMs: number;
  /** For each file, after its last byte; nothing is sent meanwhile. */
  readonly verifyMs: number;
  /** Before a file with a wrong checksum is downloaded again; doubled each time, to two minutes. */
  readonly retryMs: number;
  /** How long a download that is over stays listed. */
  readonly listedMs: number;
}

export interface Puller {
  readonly state: State;
  readonly clock: Clock;
  readonly features: Features;
  readonly timings: PullTimings;
  /** What makes every other request wait until it is done. */
  readonly blocks: readonly ('load' | 'pull')[];
}

/** One download, which the server owns and lists. */
export interface Job {
  readonly entry: Entry;
  status: 'downloading' | 'paused' | 'cancelled' | 'completed' | 'error';
  running: boolean;
  last: Progress;
  /** Of the files before the current one. */
  completedBytes: number;
  error: string | undefined;
  /** When it stopped running. */
  endedAt: number | undefined;
}

/**
 * The events of one pull, in their time. When its reader has gone it stops at its next event, and the bytes so far stay.
 * Whoever pulls a model that is being pulled waits for the end of that, without an event.
 */
export async function* pull(puller: Puller, entry: Entry, life: AbortSignal): AsyncGenerator<PullEvent> {
  const release = await entry.download.take(life);
  yield* run(puller, listed(puller, entry), release, life);
}

/** A pull that goes on when whoever asked for it has gone; the one that runs already, if there is one. */
export function pullUnattended(puller: Puller, entry: Entry, life: AbortSignal): Job {
  const current = puller.state.jobs.get(entry.id);
  if (current?.running) return current;
  const job = listed(puller, entry);
  void exhaust(run(puller, job, entry.download.hold(), life), life);
  return job;
}

async function exhaust(events: AsyncIterable<PullEvent>, life: AbortSignal): Promise<void> {
  try {
    for await (const _ of events);
  } catch (error) {
    if (!life.aborted) throw error;
  }
}

async function* run(puller: Puller, job: Job, release: () => void, life: AbortSignal): AsyncGenerator<PullEvent> {
  const { state, clock, blocks } = puller;
  const open = blocks.includes('pull') ? state.door.hold() : undefined;
  try {
    for await (const event of steps(puller, job, life)) {
      // Somebody told it to stop: it ends without a word.
      if (job.status !== 'downloading') return;
      note(job, event);
      yield event;
    }
  } finally {
    if (job.status === 'downloading') job.status = 'cancelled';
    job.running = false;
    job.endedAt = clock.now();
    open?.();
    release();
  }
}

async function* steps(puller: Puller, job: Job, life: AbortSignal): AsyncGenerator<PullEvent> {
  const { state, clock, timings } = puller;
  const { entry } = job;
  const error = (text: string): PullEvent => ({ event: 'error', data: { error: text } });

  await clock.sleep(timings.manifestMs, life);
  if (entry.facts.supported === false) return yield error(unsupported(entry.id));
  if (fails(entry, 'manifest')) return yield error(failing(entry, missingRepository(entry)));

  const { components } = entry.facts;
  for (const part of components ? components.map(name => findEntry(state, name)) : [entry]) {
    // Components that are there are skipped without an event; a model alone reports each of its files.
    if (!part || (components && part.downloaded)) continue;
    const failed = yield* recipeOf(part) === 'flm' ? fetchFlm(puller, part, life) : fetchFiles(puller, job, part, life);
    if (failed !== undefined) return yield error(failed);
    part.downloaded = true;
    part.pulled = true;
  }
  entry.downloaded = true;
  const files = components ? 0 : entry.files.length;
  yield { event: 'complete', data: nothing(puller, files, files, 100) };
}

/** What is reported when no file is: before the first one, and at the very end. */
const nothing = ({ features }: Puller, index: number, files: number, percent: number) =>
  progressAt(features, { file: '', index, files, size: 0 }, { done: 0, total: 0, percent });

function listed(puller: Puller, entry: Entry): Job {
  const job: Job = {
    entry,
    status: 'downloading',
    running: true,
    last: nothing(puller, 0, entry.files.length, 0),
    completedBytes: 0,
    error: undefined,
    endedAt: undefined,
  };
  puller.state.jobs.set(entry.id, job);
  return job;
}

function note(job: Job, { event, data }: PullEvent): void {
  if (event === 'error') {
    job.status = 'error';
    job.error = data.error;
    return;
  }
  job.last = data;
  if (event === 'complete') job.status = 'completed';
}

/** Downloads that are listed: those that run, and for a while those that do not. */
export function jobsOf({ state, clock, timings }: Puller): Job[] {
  for (const [id, { endedAt }] of state.jobs) {
    if (endedAt !== undefined && clock.now() >= endedAt + timings.listedMs) state.jobs.delete(id);
  }
  return [...state.jobs.values()];
}

export const unsupported = (name: string) => `Model '${name}' is not available on this system.`;

const missingRepository = (entry: Entry) =>
  `Hugging Face repository not found or not accessible: ${checkpointOf(entry).replace(/:.*/s, '')}`;
