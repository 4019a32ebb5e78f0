import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

export interface Cell<T> extends Source<T> {
  /** Replaces the state. Readers see it at once; listeners are told at most every `minIntervalMs`, the newest state last. */
  set(value: T): void;
}

/** A source that is told its state instead of looking for it. */
export function createCell<T>(initial: T, { minIntervalMs = 0, now = Date.now } = {}): Cell<T> {
  const listeners = createListeners();
  let current: Observation<T> = { revision: now(), observedAt: new Date(now()), value: initial, error: undefined };
  let toldAt = Number.NEGATIVE_INFINITY;
  let pending = false;

  function tell() {
    pending = false;
    toldAt = now();
    listeners.notify();
  }

  return {
    get current() {
      // Nothing is between us and the state: it is as true now as when it was set.
      return { ...current, observedAt: new Date(now()) };
    },
    read: async () => ({ ...current, observedAt: new Date(now()) }),
    subscribe: listeners.add,
    set(value) {
      current = { ...current, revision: nextRevision(current.revision, now()), value };
      const wait = toldAt + minIntervalMs - now();
      if (pending) return;
      if (wait <= 0) return tell();
      pending = true;
      // Never longer than that, also when the clock was set back.
      setTimeout(tell, Math.min(wait, minIntervalMs));
    },
  };
}
