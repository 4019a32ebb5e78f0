import { createListeners } from '../../live/source.ts';

/** How long a reader's wish outlasts the read, in milliseconds. */
const lingerMs = 30_000;

export interface Demand {
  /** Calls `listener` at each `notify` until the returned function is called. */
  add(listener: () => void): () => void;
  notify(): void;
  /** Runs a read; it counts as demand until `lingerMs` after its end. */
  reading<T>(read: () => Promise<T>): Promise<T>;
}

/**
 * Whether somebody wants something: while anybody listens or reads, and a little longer after a read, so that one who
 * reads again and again finds it running. `begin` is called when the first comes, `end` when it is over.
 */
export function createDemand(begin: () => void, end: () => void): Demand {
  const listeners = createListeners(beginOnce, endIfOver);
  let isThere = false;
  let readers = 0;
  let timer: NodeJS.Timeout | undefined;

  function beginOnce() {
    if (isThere) return;
    isThere = true;
    begin();
  }

  function endIfOver() {
    if (!isThere || listeners.size > 0 || readers > 0 || timer) return;
    isThere = false;
    end();
  }

  function linger() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      endIfOver();
    }, lingerMs).unref();
  }

  return {
    add: listeners.add,
    notify: listeners.notify,
    async reading(read) {
      readers++;
      try {
        beginOnce();
        return await read();
      } finally {
        readers--;
        linger();
      }
    },
  };
}
