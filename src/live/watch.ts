import type { Observation, Source } from './source.ts';

/** An async iterator by hand: `return()` settles at once, which a parked async generator cannot promise. */
export interface Watch<T> extends AsyncIterableIterator<T, undefined> {
  next(): Promise<IteratorResult<T, undefined>>;
  return(): Promise<IteratorReturnResult<undefined>>;
}

/**
 * The states of a source, newest first and none twice: the current one at once, then each change. A reader that is slow
 * misses states, never the newest; what it costs is one number. The iterator ends when `return()` is called, at once and
 * also while a `next()` is waiting.
 */
export function watch<T>(source: Source<T>): Watch<Observation<T>> {
  let seen = Number.NEGATIVE_INFINITY;
  let waiting: PromiseWithResolvers<IteratorResult<Observation<T>, undefined>> | undefined;
  let ended = false;
  const stop = source.subscribe(deliver);

  function deliver() {
    const newest = source.current;
    if (!waiting || !newest || newest.revision <= seen) return;
    seen = newest.revision;
    waiting.resolve({ done: false, value: newest });
    waiting = undefined;
  }

  function end(): IteratorReturnResult<undefined> {
    if (!ended) {
      ended = true;
      stop();
      waiting?.resolve({ done: true, value: undefined });
      waiting = undefined;
    }
    return { done: true, value: undefined };
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (ended) return Promise.resolve(end());
      waiting ??= Promise.withResolvers();
      const { promise } = waiting;
      deliver();
      return promise;
    },
    return: () => Promise.resolve(end()),
  };
}
