import type { PullProgress } from '../../domain.ts';
import { backendError } from '../../errors.ts';
import { oneLine } from '../http.ts';
import { isObject, pullRefusal, refusedIn } from './errors.ts';
import type { ServerEvent } from './events.ts';

/**
 * A download as Lemonade tells it: server-sent events `progress`, `complete` and `error`, in a 200 answer whatever happens.
 * Bytes → lines → events → progress, each a pure step over async iterables.
 *
 * The figures of an event are those of one file, and they go back: to 0 for the length while a connection is made anew, to 0
 * for everything when a checksum did not match, and with the last event. What is passed on are sums that never do.
 */
interface Tally {
  /** Bytes of the components of a collection that are done. */
  readonly base: number;
  /** The component that is being downloaded; most models have just one. */
  readonly component: {
    /** Of all its files; 0 = unknown. */
    readonly total: number;
    /** The most bytes seen of each file. */
    readonly files: ReadonlyMap<number | string, number>;
    readonly index: number;
    readonly file: string;
  };
  /** Of the whole, where only that is told; 0 = not told. */
  readonly percent: number;
  readonly bytesCompleted: number;
  /** 0 = unknown. */
  readonly bytesTotal: number;
}

const nothingYet: Tally = {
  base: 0,
  component: { total: 0, files: new Map(), index: 0, file: '' },
  percent: 0,
  bytesCompleted: 0,
  bytesTotal: 0,
};

/** The data of an event; any of it may be missing or odd. */
type Data = Readonly<Record<string, unknown>>;

/** FLM reports the whole between its files, as a file of this name. */
const wholeOfFlm = 'Overall progress';

/** The tally with one more event. */
function counted(before: Tally, data: Data): Tally {
  const index = count(data.file_index);
  const file = fileIn(data);
  const size = count(data.total_download_size);
  const next = isNextComponent(before.component, { index, file, size });
  const base = next ? before.base + Math.max(before.component.total, sum(before.component.files)) : before.base;
  const files = new Map(next ? [] : before.component.files);
  const key = index || file;
  files.set(key, Math.max(files.get(key) ?? 0, count(data.bytes_downloaded)));
  const total = size || (next ? 0 : before.component.total);

  const done = base + (cumulative(data) ?? sum(files));
  const only = count(data.total_files) === 1 ? count(data.bytes_total) : 0;
  // A component of unknown size after others: what is there so far is the least that the whole can be.
  const known = total || only ? base + (total || only) : base > 0 ? done : 0;
  const bytesTotal = known > 0 ? Math.max(known, before.bytesTotal, before.bytesCompleted) : before.bytesTotal;
  return {
    base,
    component: { total, files, index, file },
    percent: Math.max(before.percent, file === wholeOfFlm ? Math.min(100, count(data.percent)) : 0),
    bytesCompleted: Math.max(before.bytesCompleted, bytesTotal > 0 ? Math.min(done, bytesTotal) : done),
    bytesTotal,
  };
}

/** Whether an event begins another component of a collection: files are counted from the first again, to another total. */
function isNextComponent(
  component: Tally['component'],
  { index, file, size }: { readonly index: number; readonly file: string; readonly size: number },
): boolean {
  if (index === 0 || size === component.total) return false;
  const another = size > 0 && component.total > 0 && file !== component.file;
  return index < component.index || (index === component.index && another);
}

/** Bytes of the whole where the server counts them itself, which no release does in a stream so far. */
function cumulative(data: Data): number | undefined {
  if (typeof data.cumulative_bytes_downloaded === 'number') return count(data.cumulative_bytes_downloaded);
  if (typeof data.completed_files_bytes !== 'number') return undefined;
  return count(data.completed_files_bytes) + count(data.bytes_downloaded);
}

/** What is going on, in words: `downloading Qwen3-0.6B-Q4_0.gguf (1/2)`. */
function statusOf(data: Data, { component, percent, bytesTotal }: Tally): string {
  const file = fileIn(data);
  const [index, files, size] = [count(data.file_index), count(data.total_files), count(data.bytes_total)];
  // The server says nothing while it checks a file that has come, which takes minutes for a large one.
  const isThere = component.total > 0 && size > 0 && count(data.bytes_downloaded) >= size;
  const parts = [isThere ? 'verifying' : 'downloading'];
  if (file !== '' && file !== wholeOfFlm) parts.push(oneLine(file, 200));
  if (index > 0 && files > 0) parts.push(`(${index}/${files})`);
  const whole = bytesTotal === 0 && percent > 0 ? `, ${percent} % of all` : '';
  return parts.join(' ') + whole;
}

/**
 * The progress of one pull. Ends after `complete`, which is the only proof of it; throws for an `error`, for what is no event
 * of Lemonade's, and for an end before `complete`.
 */
export async function* progressOf(events: AsyncIterable<ServerEvent>, model: string): AsyncGenerator<PullProgress> {
  let tally = nothingYet;
  for await (const event of events) {
    const data = objectIn(event.data);
    if (data === undefined && !event.complete) break;
    const refused = data ? refusedIn(data) : undefined;
    if (refused) throw pullRefusal(model, refused);
    if (event.name === 'error') throw pullRefusal(model, { text: event.data });
    // Events of tomorrow are no failure of today's.
    if (!['', 'progress', 'complete'].includes(event.name)) continue;
    if (data === undefined)
      throw backendError(
        `lemonade: POST /api/v1/pull: an event that is not a JSON object: ${oneLine(event.data, 200)}`,
      );
    if (event.name === 'complete') {
      const { bytesCompleted, bytesTotal } = tally;
      yield { status: 'success', bytesCompleted: bytesTotal || bytesCompleted, bytesTotal };
      return;
    }
    tally = counted(tally, data);
    yield { status: statusOf(data, tally), bytesCompleted: tally.bytesCompleted, bytesTotal: tally.bytesTotal };
  }
  throw backendError(
    `lemonade: POST /api/v1/pull: the stream ended without completing${reached(tally)}; a new pull resumes`,
  );
}

function reached({ bytesCompleted, bytesTotal }: Tally): string {
  if (bytesTotal > 0) return ` after ${bytesCompleted} of ${bytesTotal} bytes`;
  return bytesCompleted > 0 ? ` after ${bytesCompleted} bytes` : '';
}

/**
 * Fewer steps: an event comes with every block that the server receives, up to thousands a second. A step passes when its
 * words are new, which those of every end are, or `everyMs` after the last one.
 */
export async function* thinned(
  steps: AsyncIterable<PullProgress>,
  now: () => number,
  everyMs = 250,
): AsyncGenerator<PullProgress> {
  let last: { readonly status: string; readonly at: number } | undefined;
  for await (const step of steps) {
    const at = now();
    if (last && step.status === last.status && at - last.at < everyMs && at >= last.at) continue;
    last = { status: step.status, at };
    yield step;
  }
}

function objectIn(text: string): Data | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const fileIn = ({ file }: Data) => (typeof file === 'string' ? file : '');
const count = (value: unknown) => (Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0);
const sum = (files: ReadonlyMap<unknown, number>) => [...files.values()].reduce((a, b) => a + b, 0);
