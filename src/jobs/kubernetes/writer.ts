import { unlessAborted } from '../../live/source.ts';

export interface Writer<T> {
  /** What is to be written; at once when that is urgent, else when its time has come. Only the newest is written. */
  put(value: T, urgent: boolean): void;
  /** Resolves when the newest is written, or when the writer has ended. */
  settled(): Promise<void>;
  /** Ends it: what is not written by now never is. */
  end(): void;
}

interface WriterOptions<T> {
  /** Writes one; what it rejects with is told to `onFailure`, and the newest is tried again after `retryMs`. */
  readonly write: (value: T) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Between two that are not urgent, in milliseconds. */
  readonly intervalMs: number;
  /** In milliseconds. */
  readonly retryMs: number;
}

/** Writes the newest of what it is given, one at a time and not more often than it has to. */
export function createWriter<T>({ write, onFailure, intervalMs, retryMs }: WriterOptions<T>): Writer<T> {
  const ended = new AbortController();
  let next: { readonly value: T } | undefined;
  let isUrgent = false;
  let isAwaited = false;
  let hurry: (() => void) | undefined;
  let running: Promise<void> | undefined;

  async function run() {
    while (next && !ended.signal.aborted) {
      const { value } = next;
      next = undefined;
      isUrgent = false;
      try {
        await write(value);
        if (!isUrgent && !isAwaited) await pause(intervalMs, true);
      } catch (error) {
        if (ended.signal.aborted) break;
        onFailure(error);
        next ??= { value };
        await pause(retryMs, false);
      }
    }
    running = undefined;
  }

  /** Until it is over or the writer ends; one that may be cut short, when something urgent comes or nothing is left to wait for. */
  function pause(ms: number, isShort: boolean): Promise<void> {
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms).unref();
    if (isShort) hurry = over.resolve;
    return unlessAborted(over.promise, ended.signal)
      .catch(() => {})
      .finally(() => {
        clearTimeout(timer);
        hurry = undefined;
      });
  }

  return {
    put(value, urgent) {
      if (ended.signal.aborted) return;
      next = { value };
      if (urgent) {
        isUrgent = true;
        hurry?.();
      }
      running ??= run();
    },
    async settled() {
      isAwaited = true;
      hurry?.();
      await running;
    },
    end: () => ended.abort(),
  };
}
