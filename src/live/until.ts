import type { Source } from './source.ts';

/** Whether `holds` comes true of a source within `ms` milliseconds. Rejects when the signal aborts before. */
export function until<T>(
  source: Source<T>,
  holds: (value: T) => boolean,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const stop = source.subscribe(look);
    const timer = setTimeout(() => end(() => resolve(false)), ms);
    const onAbort = () => end(() => reject(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });

    function end(settle: () => void) {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      stop();
      settle();
    }
    function look() {
      const value = source.current?.value;
      if (value !== undefined && holds(value)) end(() => resolve(true));
    }
    if (signal.aborted) onAbort();
    else look();
  });
}
