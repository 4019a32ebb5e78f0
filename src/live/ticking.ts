import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

/** A source whose listeners are told the same anew every `ms` milliseconds while `holds`: for what counts the time since. */
export function ticking<T>(source: Source<T>, ms: number, holds: (value: T) => boolean): Source<T> {
  const listeners = createListeners(begin, end);
  let shown: Observation<T> | undefined;
  let shownFrom: Observation<T> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stop = () => {};

  function refresh(): Observation<T> | undefined {
    const newest = source.current;
    if (!newest || newest === shownFrom) return shown;
    const isNews = newest.revision !== shownFrom?.revision;
    shownFrom = newest;
    const before = shown?.revision ?? 0;
    shown = { ...newest, revision: isNews ? nextRevision(before, newest.revision) : before };
    return shown;
  }

  function wait(): void {
    clearTimeout(timer);
    const value = refresh()?.value;
    if (value !== undefined && holds(value)) timer = setTimeout(tick, ms).unref();
  }

  function tick(): void {
    const now = new Date();
    const newest = refresh();
    if (newest) shown = { ...newest, revision: nextRevision(newest.revision, now.getTime()), observedAt: now };
    listeners.notify();
    wait();
  }

  function begin(): void {
    stop = source.subscribe(() => {
      wait();
      listeners.notify();
    });
    wait();
  }

  function end(): void {
    stop();
    clearTimeout(timer);
  }

  return {
    get current() {
      return refresh();
    },
    async read(call) {
      await source.read(call);
      return refresh() as Observation<T>;
    },
    subscribe: listeners.add,
  };
}
