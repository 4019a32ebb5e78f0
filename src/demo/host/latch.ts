/** Something that can be held; who must not come in between waits until nobody holds it. */
export interface Latch {
  /** How many hold it. */
  readonly held: number;
  /** Holds it, whoever else does; returns what lets go. */
  hold(): () => void;
  /** Resolves when nobody holds it; rejects as soon as the signal aborts. */
  free(signal: AbortSignal): Promise<void>;
  /** Holds it alone, once nobody else does. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createLatch(): Latch {
  let held = 0;
  let opening = Promise.withResolvers<void>();

  function hold() {
    held++;
    let holding = true;
    return () => {
      if (!holding) return;
      holding = false;
      held--;
      if (held > 0) return;
      opening.resolve();
      opening = Promise.withResolvers();
    };
  }

  // Whoever was faster holds it again by the time the next one looks.
  async function free(signal: AbortSignal) {
    while (held > 0) await unlessAborted(opening.promise, signal);
  }

  return {
    get held() {
      return held;
    },
    hold,
    free,
    async take(signal) {
      while (held > 0) await unlessAborted(opening.promise, signal);
      return hold();
    },
  };
}

/** The items, and then, or as soon as nobody wants more of them, the release. */
export async function* holding<T>(release: () => void, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } finally {
    release();
  }
}

export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort));
}
