import { createListeners, nextRevision, type Observation, type Source } from './source.ts';

/**
 * A source that holds nobody up. While the one within has nothing to show, it shows that nothing is known: at the latest
 * `patienceMs` after somebody began to wait, and for who has little time when half of it is over. From then on it shows
 * what there is; errors are those of the one within.
 */
export function optional<T>(source: Source<T>, patienceMs: number): Source<T> {
  const listeners = createListeners(begin, end);
  let shown: Observation<T> | undefined;
  let shownFrom: Observation<T> | undefined;
  let isOverdue = false;
  /** Reads that have taken longer than that: who comes now is not made to wait for the same. */
  let lateReads = 0;
  let patience: NodeJS.Timeout | undefined;
  let stop = () => {};

  function refresh(): Observation<T> | undefined {
    const inner = source.current;
    if (inner) isOverdue = false;
    else if (!isOverdue) return undefined;
    if (shown && inner === shownFrom) return shown;
    const isSame = inner !== undefined && inner.revision === shownFrom?.revision;
    const before = shown?.revision ?? 0;
    const revision = isSame ? before : nextRevision(before, inner?.revision ?? Date.now());
    shownFrom = inner;
    shown = { ...(inner ?? { observedAt: new Date(), value: undefined, error: undefined }), revision };
    return shown;
  }

  function lapse() {
    if (isOverdue || source.current) return;
    isOverdue = true;
    listeners.notify();
  }

  function begin() {
    stop = source.subscribe(listeners.notify);
    patience = setTimeout(lapse, patienceMs).unref();
  }

  function end() {
    stop();
    clearTimeout(patience);
  }

  return {
    get current() {
      return refresh();
    },
    async read(call) {
      const reading = source.read(call);
      const patience = Math.min(patienceMs, Math.max(0, call.deadline - Date.now()) / 2);
      if (!(await isThereWithin(reading, lateReads > 0 ? 0 : patience))) {
        lateReads++;
        const settled = () => lateReads--;
        reading.then(settled, settled);
        lapse();
      }
      return refresh() as Observation<T>;
    },
    subscribe: listeners.add,
  };
}

/** Whether work is done within that time, in milliseconds. Rejects when the work fails within it. */
function isThereWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    work.then(() => resolve(true), reject).finally(() => clearTimeout(timer));
  });
}
