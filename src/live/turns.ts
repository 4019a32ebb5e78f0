import { unlessAborted } from './source.ts';

/** Runs work one after the other for each key. Rejects with the signal's reason for who leaves before it is their turn. */
export type Turns = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return (key, signal, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = unlessAborted(before, signal).then(work);
    // Who leaves the queue does not let the next one overtake those before.
    const turn = Promise.allSettled([before, mine]).then(() => {
      if (last.get(key) === turn) last.delete(key);
    });
    last.set(key, turn);
    return mine;
  };
}
