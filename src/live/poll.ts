import type { Call } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { createListeners, nextRevision, type Observation, type Source, unlessAborted } from './source.ts';

export interface PollOptions<T> {
  /** One look at the thing. Throws a `GatewayError` when it cannot be seen. */
  look(call: Call): Promise<T>;
  /**
   * The call a look runs as: a look serves everybody, so it belongs to nobody's request. It is a part of the trace of whoever
   * asked first, when somebody did.
   */
  callFor(signal: AbortSignal, asking?: Call): Call;
  /** Returns `previous` when `next` says the same, so that an unchanged state keeps its identity. */
  merge(previous: T | undefined, next: T): T;
  /** Milliseconds until the value may differ by itself; undefined when nothing moves. */
  movesIn?(value: T, now: number): number | undefined;
  /** Milliseconds between looks while something moves; 2,000 when absent. */
  readonly activeMs?: number;
  /** Whether a failure is excused by what the thing is known to be doing: then the last value stands. */
  excuses?(error: GatewayError): boolean;
  now?(): number;
}

/** Readers within this time share one look, in milliseconds. */
const freshMs = 1_000;
/** A busy thing is left alone for this long after a look that it did not answer, in milliseconds. */
const busyMs = 5_000;
/** Between looks while something moves, and while nothing does, in milliseconds; only while somebody listens. */
const usualActiveMs = 2_000;
const idleMs = 30_000;

export interface PolledSource<T> extends Source<T> {
  /** What was seen is known to be outdated: the next reader looks again, and so does a standing watch. */
  invalidate(): void;
}

/** A look is nobody's request, so there is no id to find it by; the same words each time, so that they are news once. */
const unexpected = (cause: unknown) =>
  new GatewayError('internal_error', 'unexpected error while looking; the log has it', { cause });

interface Look {
  readonly done: Promise<void>;
  readonly abort: AbortController;
  readonly generation: number;
  waiting: number;
}

/**
 * Watches by looking again and again: fast while something moves, slow when idle, not at all while nobody listens. There
 * is never more than one look under way.
 */
export function poll<T>(options: PollOptions<T>): PolledSource<T> {
  const now = options.now ?? Date.now;
  const activeMs = options.activeMs ?? usualActiveMs;
  const listeners = createListeners(begin, end);
  let current: Observation<T> | undefined;
  /** Counts invalidations: a look that began before the newest one may have missed what happened. */
  let generation = 0;
  let freshUntil = 0;
  let fastUntil = 0;
  let look: Look | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** Also false when the clock was set back: what was seen is no fresher for it. */
  function isFresh(): boolean {
    const left = freshUntil - now();
    return left > 0 && left <= Math.max(freshMs, busyMs);
  }

  function settle(value: T | undefined, error: GatewayError | undefined, began: number) {
    const before = current;
    if (error && before?.value !== undefined && options.excuses?.(error)) {
      current = { ...before, busy: error };
      freshUntil = now() + busyMs;
      return;
    }
    const kept = value === undefined ? before?.value : options.merge(before?.value, value);
    const sameError = error?.message === before?.error?.message;
    const changed = before === undefined || kept !== before.value || !sameError;
    current = {
      revision: changed ? nextRevision(before?.revision ?? 0, now()) : before.revision,
      observedAt: error && before ? before.observedAt : new Date(now()),
      value: kept,
      error: sameError ? before?.error : error,
    };
    freshUntil = began === generation ? now() + freshMs : 0;
    if (changed && before) fastUntil = now() + idleMs;
    if (changed) listeners.notify();
  }

  function start(asking?: Call): Look {
    const abort = new AbortController();
    const began = generation;
    const done = options
      .look(options.callFor(abort.signal, asking))
      .then(
        value => settle(value, undefined, began),
        error => {
          // Everybody left before the answer came: nothing was learnt.
          if (abort.signal.aborted) return;
          settle(undefined, error instanceof GatewayError ? error : unexpected(error), began);
        },
      )
      .finally(() => {
        look = undefined;
        // Whoever came while a look was being given up still waits for one.
        if (abort.signal.aborted && listeners.size > 0) start();
        else schedule();
      });
    look = { done, abort, generation: began, waiting: 0 };
    return look;
  }

  function schedule() {
    clearTimeout(timer);
    timer = undefined;
    if (listeners.size === 0 || look) return;
    const outdated = current !== undefined && freshUntil === 0;
    timer = setTimeout(() => start(), outdated ? 0 : delay()).unref();
  }

  function delay(): number {
    const moves = current?.value === undefined ? undefined : options.movesIn?.(current.value, now());
    const pace = now() < fastUntil ? activeMs : idleMs;
    const base = Math.max(activeMs, Math.min(pace, moves ?? idleMs));
    // A tenth of jitter, so that many gateways started together do not knock together.
    return base * (0.95 + Math.random() * 0.1);
  }

  async function read(call: Call): Promise<Observation<T>> {
    for (;;) {
      if (current && isFresh()) return current;
      const wanted = generation;
      const joined = look ?? start(call);
      joined.waiting++;
      try {
        await unlessAborted(joined.done, call.signal);
      } finally {
        joined.waiting--;
        if (joined === look && joined.waiting === 0 && listeners.size === 0) joined.abort.abort();
      }
      // Neither a look that was given up nor one that began before the last invalidation is an answer.
      if (current && !joined.abort.signal.aborted && joined.generation >= wanted) return current;
    }
  }

  function begin() {
    if (current && isFresh()) schedule();
    else if (!look) start();
  }

  function end() {
    clearTimeout(timer);
    timer = undefined;
    if (look && look.waiting === 0) look.abort.abort();
  }

  return {
    get current() {
      return current;
    },
    read,
    subscribe: listeners.add,
    invalidate() {
      generation++;
      freshUntil = 0;
      schedule();
    },
  };
}
