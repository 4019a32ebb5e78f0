import type { Call } from '../../call.ts';
import { unlessAborted } from '../../live/source.ts';

/** How long something may take. `release` must be called when it is over. */
export interface Bounds {
  /** Aborts with the caller's signal, or when the time is up. */
  readonly signal: AbortSignal;
  /** The milliseconds that are over; undefined while they are not. */
  readonly expiredMs: number | undefined;
  /** Milliseconds that are left. */
  left(): number;
  /** From now on only the caller's signal ends it. */
  unlimit(): void;
  release(): void;
}

/** At most `ms` milliseconds, and not past the call's deadline. */
export function boundsOf({ signal: caller, deadline }: Call, ms: number): Bounds {
  const abort = new AbortController();
  const allowed = Math.max(0, Math.min(ms, deadline - Date.now()));
  const end = performance.now() + allowed;
  let expiredMs: number | undefined;
  const follow = () => abort.abort(caller.reason);
  const timer = setTimeout(() => {
    if (abort.signal.aborted) return;
    expiredMs = allowed;
    abort.abort(new Error('time is up'));
  }, allowed);
  if (caller.aborted) follow();
  else caller.addEventListener('abort', follow, { once: true });
  return {
    signal: abort.signal,
    get expiredMs() {
      return expiredMs;
    },
    left: () => end - performance.now(),
    unlimit: () => clearTimeout(timer),
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', follow);
    },
  };
}

/** Waits so many milliseconds. Rejects when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return unlessAborted(promise, signal).finally(() => clearTimeout(timer));
}
