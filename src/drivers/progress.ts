import type { Call } from '../call.ts';
import type { PullProgress } from '../domain.ts';

/**
 * The progress of a pull that ends as soon as its reader leaves. A generator that waits hears a `return` only when the wait
 * is over, so leaving aborts the call it runs as.
 */
export function endedByLeaving(
  call: Call,
  start: (call: Call) => AsyncGenerator<PullProgress>,
): AsyncIterable<PullProgress> {
  const left = new AbortController();
  const progress = start({ ...call, signal: AbortSignal.any([call.signal, left.signal]) });
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => progress.next(),
      return: () => {
        left.abort();
        return progress.return(undefined);
      },
    }),
  };
}
