import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

/** One source per key of `T`. */
type Sources<T> = { readonly [K in keyof T]: Source<T[K]> };
type Observations<T> = { readonly [K in keyof T]: Observation<T[K]> };

/**
 * A source computed from others: a pure function of their newest observations, computed once per change. It is watched
 * while somebody listens to it, through the sources below.
 */
export function derive<T extends readonly unknown[], R>(
  sources: Sources<T>,
  compute: (observations: Observations<T>, previous: R | undefined) => R,
): Source<R> {
  const inputs = sources as readonly Source<unknown>[];
  const listeners = createListeners();
  let stop: Array<() => void> = [];
  let computedFrom: readonly number[] = [];
  let current: Observation<R> | undefined;

  function refresh(): Observation<R> | undefined {
    const seen = inputs.map(input => input.current);
    if (seen.some(observation => observation === undefined)) return current;
    const observations = seen as Observation<unknown>[];
    const revisions = observations.map(observation => observation.revision);
    const observedAt = new Date(Math.min(...observations.map(observation => observation.observedAt.getTime())));
    if (current && revisions.every((revision, index) => revision === computedFrom[index])) {
      if (observedAt > current.observedAt) current = { ...current, observedAt };
      return current;
    }
    computedFrom = revisions;
    const value = compute(observations as Observations<T>, current?.value);
    if (current && value === current.value) current = { ...current, observedAt };
    else {
      const revision = nextRevision(current?.revision ?? 0, Math.max(0, ...revisions));
      current = { revision, observedAt, value, error: undefined };
    }
    return current;
  }

  function onInput() {
    const before = current?.revision;
    if (refresh()?.revision !== before) listeners.notify();
  }

  return {
    get current() {
      return refresh();
    },
    async read(call) {
      await Promise.all(inputs.map(input => input.read(call)));
      return refresh() as Observation<R>;
    },
    subscribe(listener) {
      const remove = listeners.add(listener);
      if (listeners.size === 1) stop = inputs.map(input => input.subscribe(onInput));
      return () => {
        if (!remove() || listeners.size > 0) return;
        for (const end of stop) end();
        stop = [];
      };
    },
  };
}
