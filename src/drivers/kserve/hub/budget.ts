import type { Call } from '../../../call.ts';
import { boundsOf } from '../../../kubernetes/transport/bounds.ts';

/** How long one look-up may take. `release` must be called when it is over. */
export interface Budget {
  /** Aborts when the time is up, and when the caller leaves. */
  readonly signal: AbortSignal;
  /** When the time is up, in milliseconds since the epoch. */
  readonly until: number;
  /** Milliseconds that all look-ups of the call may take together. */
  readonly allowedMs: number;
  readonly expired: boolean;
  release(): void;
}

/** What is left of a call's deadline for everything that is not the Hub, in milliseconds. */
const reserveMs = 2_000;

interface Purse {
  readonly allowedMs: number;
  spentMs: number;
  /** Look-ups under way, and since when there are any: those at the same time cost once. */
  running: number;
  since: number;
}

/** All look-ups of one call share `timeoutMs`, or less where the deadline of the call is nearer. */
export function createBudgets(timeoutMs: number, now: () => number): (call: Call) => Budget {
  const purses = new WeakMap<Call, Purse>();
  return call => {
    const began = now();
    const beforeDeadline = Math.max(0, call.deadline - reserveMs - began);
    const purse = purses.get(call) ?? {
      allowedMs: Math.min(timeoutMs, beforeDeadline),
      spentMs: 0,
      running: 0,
      since: 0,
    };
    purses.set(call, purse);
    if (purse.running++ === 0) purse.since = began;
    const spent = purse.spentMs + began - purse.since;
    const left = Math.max(0, Math.min(purse.allowedMs - spent, beforeDeadline));
    const bounds = boundsOf(call, left);
    return {
      signal: bounds.signal,
      until: began + left,
      allowedMs: purse.allowedMs,
      get expired() {
        return bounds.expiredMs !== undefined || now() >= began + left;
      },
      release() {
        bounds.release();
        if (--purse.running === 0) purse.spentMs += now() - purse.since;
      },
    };
  };
}
