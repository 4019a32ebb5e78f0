/** How long a writer waits to see what it wrote, in milliseconds. */
const patienceMs = 1_000;

/** Those who wait to see what they wrote. */
export interface Echoes {
  /** Resolves when `isSo`, after `patienceMs` at the latest. Rejects when the signal aborts. */
  until(isSo: () => boolean, signal: AbortSignal): Promise<void>;
  /** Something may have become so. */
  look(): void;
}

export function createEchoes(): Echoes {
  const waiting = new Set<() => void>();
  return {
    look() {
      for (const each of [...waiting]) each();
    },
    until(isSo, signal) {
      if (signal.aborted) return Promise.reject(signal.reason);
      if (isSo()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(done, patienceMs).unref();
        waiting.add(look);
        signal.addEventListener('abort', left, { once: true });

        function look() {
          if (isSo()) done();
        }
        function done() {
          forget();
          resolve();
        }
        function left() {
          forget();
          reject(signal.reason);
        }
        function forget() {
          clearTimeout(timer);
          waiting.delete(look);
          signal.removeEventListener('abort', left);
        }
      });
    },
  };
}
