import type { PullProgress } from '../../domain.ts';
import { backendError } from '../../errors.ts';
import { oneLine } from '../http.ts';
import type { Line } from '../lines.ts';
import { pullRefusal } from './errors.ts';

/**
 * A download as Ollama tells it: one JSON object per line, in a 200 answer whatever happens. Bytes → lines → progress, each
 * a pure step over async iterables.
 */

interface Layer {
  readonly total: number;
  readonly completed: number;
}

/**
 * The progress of one pull. Ends after `success`, which is the only proof of it; throws for an `error` line, a line that is
 * not JSON, and an end before `success`. Bytes are sums over the layers seen so far and never go back, although the
 * counters of a layer do when a chunk has to be fetched again.
 */
export async function* progressOf(lines: AsyncIterable<Line>): AsyncGenerator<PullProgress> {
  const layers = new Map<string, Layer>();
  let bytesCompleted = 0;
  let bytesTotal = 0;
  for await (const line of lines) {
    if (line.text.trim() === '') continue;
    const event = eventIn(line);
    if (event === undefined) {
      if (!line.complete) break;
      throw backendError(`ollama: POST /api/pull: a line that is not a JSON object: ${oneLine(line.text, 200)}`);
    }
    const error = errorIn(event);
    if (error !== undefined) throw pullRefusal(error);
    if (event.status === 'success') {
      yield { status: 'success', bytesCompleted: bytesTotal, bytesTotal };
      return;
    }
    if (typeof event.digest === 'string') layers.set(event.digest, grown(layers.get(event.digest), event));
    const sums = [...layers.values()];
    bytesTotal = Math.max(bytesTotal, sum(sums.map(({ total }) => total)));
    bytesCompleted = Math.max(bytesCompleted, sum(sums.map(({ completed }) => completed)));
    if (typeof event.status === 'string') yield { status: oneLine(event.status), bytesCompleted, bytesTotal };
  }
  const reached = bytesTotal > 0 ? ` after ${bytesCompleted} of ${bytesTotal} bytes` : '';
  throw backendError(`ollama: POST /api/pull: the stream ended without success${reached}; a new pull resumes`);
}

interface Event {
  readonly status?: unknown;
  readonly error?: unknown;
  readonly digest?: unknown;
  readonly total?: unknown;
  readonly completed?: unknown;
}

function eventIn({ text }: Line): Event | undefined {
  try {
    const event: unknown = JSON.parse(text);
    return typeof event === 'object' && event !== null && !Array.isArray(event) ? event : undefined;
  } catch {
    return undefined;
  }
}

function errorIn({ error }: Event): string | undefined {
  if (error === undefined || error === null || error === '' || error === false) return undefined;
  if (typeof error === 'string') return error;
  const { message } = error as { message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(error);
}

/** `total` and `completed` are left out while they are 0, and a layer on disk may be reported without growing. */
function grown(before: Layer = { total: 0, completed: 0 }, event: Event): Layer {
  const completed = Math.max(before.completed, count(event.completed));
  return { total: Math.max(count(event.total) || before.total, completed), completed };
}

const count = (value: unknown) => (Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0);
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
