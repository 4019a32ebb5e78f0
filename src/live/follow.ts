import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

/**
 * The source that another one chooses, as one source: when `outer` says something else, listeners go on with what is chosen
 * then. Until that has shown anything, the last state stands.
 */
export function follow<T, R>(outer: Source<T>, choose: (value: T) => Source<R>): Source<R> {
  const listeners = createListeners(begin, end);
  let chosenBy: T | undefined;
  let inner: Source<R> | undefined;
  let shown: Observation<R> | undefined;
  let current: Observation<R> | undefined;
  /** The revision that listeners know of: somebody may have looked at a newer one before they are told. */
  let told: number | undefined;
  let stopOuter = () => {};
  let stopInner: (() => void) | undefined;

  function settle(): void {
    const value = outer.current?.value;
    if (value === undefined || value === chosenBy) return;
    chosenBy = value;
    const next = choose(value);
    if (next === inner) return;
    inner = next;
    shown = undefined;
    if (!stopInner) return;
    // In this order what both have below stays watched.
    const leave = stopInner;
    stopInner = inner.subscribe(onChange);
    leave();
  }

  function refresh(): Observation<R> | undefined {
    settle();
    const newest = inner?.current;
    if (!newest) return current;
    const changed = newest.revision !== shown?.revision;
    const before = current?.revision ?? 0;
    shown = newest;
    current = { ...newest, revision: changed ? nextRevision(before, newest.revision) : before };
    return current;
  }

  function onChange() {
    const newest = refresh()?.revision;
    if (newest === told) return;
    told = newest;
    listeners.notify();
  }

  function begin() {
    settle();
    stopOuter = outer.subscribe(onChange);
    stopInner = inner?.subscribe(onChange) ?? (() => {});
    told = refresh()?.revision;
  }

  function end() {
    stopOuter();
    stopInner?.();
    stopInner = undefined;
  }

  return {
    get current() {
      return refresh();
    },
    async read(call) {
      await outer.read(call);
      settle();
      await inner?.read(call);
      return refresh() as Observation<R>;
    },
    subscribe: listeners.add,
  };
}
