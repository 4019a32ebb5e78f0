import type { Call } from '../call.ts';
import type { GatewayError } from '../errors.ts';

/** What was seen of something at one moment. */
export interface Observation<T> {
  /** Grows with every change, across restarts of the process too; equal revisions of one source mean equal content. */
  readonly revision: number;
  /** When this content was last confirmed. */
  readonly observedAt: Date;
  /** The last content that could be seen; undefined when there never was any. */
  readonly value: T | undefined;
  /** Why the newest look failed. The value beside it is the last known one. */
  readonly error: GatewayError | undefined;
  /** Why the newest look saw nothing, where that is no failure: the thing is busy, and the value what it last was. */
  readonly busy?: GatewayError | undefined;
}

/**
 * Something observed on behalf of everyone who wants to know: looked at once however many ask, watched only while
 * somebody listens, and always described by its newest state.
 */
export interface Source<T> {
  /** The newest observation, without looking. */
  readonly current: Observation<T> | undefined;
  /** The state now. Rejects when `call.signal` aborts, never because the look failed: that is in the observation. */
  read(call: Call): Promise<Observation<T>>;
  /** Calls `listener` after each change until the returned function is called. Listening keeps the source watched. */
  subscribe(listener: () => void): () => void;
}

/** A revision later than `previous`. Starting from the clock keeps it growing over a restart. */
export function nextRevision(previous: number, now: number): number {
  return Math.max(previous + 1, now);
}

/** Rejects when the signal aborts, so that a shared look never holds a reader who has left. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/**
 * A set of listeners in which one that throws does not silence the others; its error surfaces on its own. `begin` is called
 * when the first comes, `end` when the last has left.
 */
export function createListeners(begin = () => {}, end = () => {}) {
  const listeners = new Set<() => void>();
  return {
    get size() {
      return listeners.size;
    },
    add(listener: () => void) {
      // A wrapper of its own, so that adding one function twice means two subscriptions.
      const entry = () => listener();
      listeners.add(entry);
      if (listeners.size === 1) begin();
      return () => {
        if (listeners.delete(entry) && listeners.size === 0) end();
      };
    },
    notify() {
      for (const listener of [...listeners]) {
        try {
          listener();
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
}
