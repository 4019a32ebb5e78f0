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
  return computed(sources as readonly Source<unknown>[], Number.POSITIVE_INFINITY, (seen, previous: R | undefined) =>
    compute(seen as unknown as Observations<T>, previous),
  );
}

/**
 * The same of many sources of one kind, without waiting for stragglers: who has shown nothing `patienceMs` after somebody
 * began to listen is missing from what is computed until it does.
 */
export function combine<T, R>(
  sources: readonly Source<T>[],
  patienceMs: number,
  compute: (observations: readonly (Observation<T> | undefined)[], previous: R | undefined) => R,
): Source<R> {
  return computed(sources, patienceMs, compute);
}

function computed<T, R>(
  inputs: readonly Source<T>[],
  patienceMs: number,
  compute: (observations: readonly (Observation<T> | undefined)[], previous: R | undefined) => R,
): Source<R> {
  const listeners = createListeners(begin, end);
  let stop: Array<() => void> = [];
  let computedFrom: readonly number[] = [];
  let current: Observation<R> | undefined;
  /** The revision that listeners know of: somebody may have looked at a newer one before they are told. */
  let told: number | undefined;
  let patience: NodeJS.Timeout | undefined;
  let patienceIsOver = false;

  function refresh(): Observation<R> | undefined {
    const seen = inputs.map(input => input.current);
    const there = seen.filter(observation => observation !== undefined);
    if (there.length < inputs.length && !patienceIsOver) return current;
    const revisions = seen.map(observation => observation?.revision ?? 0);
    const observedAt = new Date(Math.min(...there.map(observation => observation.observedAt.getTime()), Date.now()));
    if (current && revisions.every((revision, index) => revision === computedFrom[index])) {
      if (observedAt > current.observedAt) current = { ...current, observedAt };
      return current;
    }
    computedFrom = revisions;
    const value = compute(seen, current?.value);
    if (current && value === current.value) current = { ...current, observedAt };
    else {
      // Of nothing there is no revision to begin with.
      const newest = revisions.length > 0 ? Math.max(...revisions) : Date.now();
      const revision = nextRevision(current?.revision ?? 0, newest);
      current = { revision, observedAt, value, error: undefined };
    }
    return current;
  }

  function onInput() {
    const newest = refresh()?.revision;
    if (newest === told) return;
    told = newest;
    listeners.notify();
  }

  function begin() {
    stop = inputs.map(input => input.subscribe(onInput));
    told = refresh()?.revision;
    if (patienceMs === Number.POSITIVE_INFINITY) return;
    patience = setTimeout(() => {
      patienceIsOver = true;
      onInput();
    }, patienceMs);
  }

  function end() {
    for (const each of stop) each();
    stop = [];
    clearTimeout(patience);
    patienceIsOver = false;
  }

  return {
    get current() {
      return refresh();
    },
    async read(call) {
      await Promise.all(inputs.map(input => input.read(call)));
      return refresh() as Observation<R>;
    },
    subscribe: listeners.add,
  };
}
