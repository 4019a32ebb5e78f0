/** Pauses between attempts that fail: the first and the longest, in milliseconds. */
const firstMs = 500;
const lastMs = 30_000;

export interface Backoff {
  /** The pause before the next attempt, in milliseconds: twice the one before. */
  next(): number;
  /** Things went well: the next pause is the first again. */
  reset(): void;
}

/** Doubling pauses, each up to a quarter shorter by chance, so that many who failed together do not come back together. */
export function createBackoff(): Backoff {
  let doublings = 0;
  return {
    next() {
      const pause = Math.min(lastMs, firstMs * 2 ** doublings);
      if (pause < lastMs) doublings++;
      return pause * (1 - Math.random() / 4);
    },
    reset() {
      doublings = 0;
    },
  };
}
