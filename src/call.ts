import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';

/** Who is calling. `scope` separates what callers may see: answers are shared only within one scope. */
export interface Caller {
  /** Email or subject; `service-account` where identity is off. */
  readonly name: string;
  readonly anonymous: boolean;
  readonly scope: string;
}

export const anonymous: Caller = { name: 'service-account', anonymous: true, scope: '' };

/**
 * One request on its way through the house: who asks, until when, and how to hear that they left.
 * Everything that talks to the outside takes one.
 */
export interface Call {
  readonly caller: Caller;
  readonly requestId: string;
  readonly log: Logger;
  /** Aborts when the client goes away or the deadline passes. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch; Infinity when nothing waits. */
  readonly deadline: number;
}

export interface CallOptions {
  readonly caller?: Caller;
  readonly requestId?: string;
  readonly log: Logger;
  /** Aborts when the client goes away. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the answer is due. */
  readonly timeoutMs?: number;
}

export function createCall({ caller = anonymous, requestId, log, signal, timeoutMs }: CallOptions): Call {
  const id = requestId ?? randomUUID();
  const signals = [signal, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)].filter(
    s => s !== undefined,
  );
  return {
    caller,
    requestId: id,
    log: log.child({ requestId: id, caller: caller.name }),
    signal: signals.length === 1 ? (signals[0] as AbortSignal) : AbortSignal.any(signals),
    deadline: timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs,
  };
}

/** The same caller's work when nobody waits for it any more: a job, a load that outlives its request. */
export function detached(call: Call, signal: AbortSignal, log: Logger = call.log): Call {
  return { ...call, log, signal, deadline: Number.POSITIVE_INFINITY };
}
