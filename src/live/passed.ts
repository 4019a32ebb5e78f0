import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

/** Timers take no more milliseconds than this. */
const longestMs = 2 ** 31 - 1;

/**
 * The last moment that has passed of those that the state of a source names, in milliseconds since the epoch; 0 before the
 * first. It changes when one passes, so that what is computed from it and the source is computed anew then. `clock` is the one
 * that the moments are of.
 */
export function passed<T>(
  source: Source<T>,
  momentsIn: (value: T) => readonly number[],
  clock: () => number = Date.now,
): Source<number> {
  const listeners = createListeners(begin, end);
  let moments: readonly number[] = [];
  let momentsOf: T | undefined;
  let current: Observation<number> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stop: (() => void) | undefined;

  function refresh(): Observation<number> | undefined {
    const seen = source.current;
    if (!seen) return current;
    if (seen.value !== undefined && seen.value !== momentsOf) {
      momentsOf = seen.value;
      moments = momentsIn(seen.value);
    }
    const now = clock();
    const value = moments.reduce((last, moment) => (moment <= now && moment > last ? moment : last), 0);
    const before = current?.revision ?? 0;
    const revision = value === current?.value ? before : nextRevision(before, now);
    current = { revision, observedAt: new Date(), value, error: undefined };
    return current;
  }

  function look() {
    const before = current?.revision;
    wait();
    if (current?.revision !== before) listeners.notify();
  }

  function wait() {
    refresh();
    clearTimeout(timer);
    const now = clock();
    const next = moments.reduce((first, moment) => (moment > now && moment < first ? moment : first), Infinity);
    if (next < Infinity) timer = setTimeout(look, Math.min(next - now, longestMs)).unref();
  }

  function begin() {
    stop = source.subscribe(look);
    // What is seen first is no change.
    wait();
  }

  function end() {
    stop?.();
    stop = undefined;
    clearTimeout(timer);
  }

  return {
    get current() {
      // For who listens time goes on when they are told, or it would go on behind their backs.
      return stop && current ? current : refresh();
    },
    async read(call) {
      await source.read(call);
      return refresh() as Observation<number>;
    },
    subscribe: listeners.add,
  };
}
