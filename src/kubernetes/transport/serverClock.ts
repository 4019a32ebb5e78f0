/** What time it is at the API server. Its objects have times of its clock, and ours may be another. */
export interface ServerClock {
  /** Milliseconds since the epoch, there; ours until it has answered. */
  now(): number;
  /** To be told the `date` of each answer. */
  seen(date: string | readonly string[] | undefined): void;
}

/** Clocks that differ by no more are taken to be the same, in milliseconds: dates are of whole seconds, and late. */
const sameMs = 5_000;

export function createServerClock(): ServerClock {
  let aheadMs = 0;
  return {
    now: () => Date.now() + aheadMs,
    seen(date) {
      const at = typeof date === 'string' ? Date.parse(date) : Number.NaN;
      if (Number.isNaN(at)) return;
      const ahead = at + 500 - Date.now();
      aheadMs = Math.abs(ahead) <= sameMs ? 0 : ahead;
    },
  };
}
