import { createListeners, type Observation, type Source } from './source.ts';

/**
 * A source for those who watch it: after a change it shows the next one no sooner than `ms` later, and then the newest
 * state. Who reads it is told what is.
 */
export function steady<T>(source: Source<T>, ms: number, now: () => number = Date.now): Source<T> {
  const listeners = createListeners(begin, end);
  let shown: Observation<T> | undefined;
  let changedAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let stop = () => {};

  function show() {
    const newest = source.current;
    clearTimeout(timer);
    if (!newest || (shown && saysSame(newest, shown))) return;
    const wait = changedAt + ms - now();
    // Never longer than that, also when the clock was set back.
    if (wait > 0) timer = setTimeout(show, Math.min(wait, ms)).unref();
    else {
      // What is seen first is no change.
      if (shown) changedAt = now();
      shown = newest;
      listeners.notify();
    }
  }

  function begin() {
    shown = source.current;
    stop = source.subscribe(show);
  }

  function end() {
    stop();
    clearTimeout(timer);
    shown = undefined;
    changedAt = Number.NEGATIVE_INFINITY;
  }

  return {
    get current() {
      const newest = source.current;
      return shown && newest && !saysSame(newest, shown) ? shown : newest;
    },
    read: call => source.read(call),
    subscribe: listeners.add,
  };
}

/** Whether two observations say the same: then only their times differ. */
const saysSame = <T>(a: Observation<T>, b: Observation<T>) =>
  a.value === b.value && a.error?.message === b.error?.message;
