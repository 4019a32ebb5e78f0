import { setTimeout as timer, setImmediate as turn } from 'node:timers/promises';

/** Where an emulator gets its time from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, at once when there is nothing to wait for; rejects as soon as the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Moves time, waking each sleeper at its own instant and letting it act before the next one. */
  advance(ms: number): Promise<void>;
  /** Resolves once `count` sleepers wait: the moment from which `advance` cannot come too early. */
  sleeping(count?: number): Promise<void>;
}

// A longer timer would overflow and fire at once.
const longestTimer = 2 ** 31 - 1;

export const realClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    if (ms > 0) await timer(Math.min(ms, longestTimer), undefined, signal ? { signal } : {});
    else signal?.throwIfAborted();
  },
};

export function manualClock(start = Date.parse('2026-08-22T08:00:00Z')): ManualClock {
  let time = start;
  const sleepers = new Set<{ due: number; wake: () => void }>();
  const watchers = new Set<() => void>();

  const earliest = () => [...sleepers].sort((a, b) => a.due - b.due)[0];

  return {
    now: () => time,

    sleep(ms, signal) {
      signal?.throwIfAborted();
      if (ms <= 0) return Promise.resolve();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const sleeper = { due: time + ms, wake: resolve };
      const abort = () => reject(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      sleepers.add(sleeper);
      for (const look of watchers) look();
      return promise.finally(() => {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', abort);
      });
    },

    async advance(ms) {
      const end = time + ms;
      for (;;) {
        // What a woken sleeper does, and where it lies down again, happens within one turn of the event loop.
        await turn();
        const next = earliest();
        if (!next || next.due > end) break;
        time = next.due;
        sleepers.delete(next);
        next.wake();
      }
      time = end;
    },

    sleeping(count = 1) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => {
        if (sleepers.size < count) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
      return promise;
    },
  };
}
