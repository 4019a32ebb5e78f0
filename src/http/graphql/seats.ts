import type { Caller } from '../../call.ts';

/** How many sockets and streams each caller has, both together. */
export interface Seats {
  readonly limit: number;
  /** Takes one more, and gives how to give it back; undefined when the caller has as many as may be. */
  take(caller: Caller): (() => void) | undefined;
}

export function createSeats(limit: number, onRefused?: () => void): Seats {
  const taken = new Map<string | undefined, number>();
  return {
    limit,
    take({ anonymous, subject }) {
      // Nobody in particular may be many people behind one proxy.
      if (anonymous) return () => {};
      const count = taken.get(subject) ?? 0;
      if (count >= limit) {
        onRefused?.();
        return undefined;
      }
      taken.set(subject, count + 1);
      return () => {
        const left = (taken.get(subject) as number) - 1;
        if (left > 0) taken.set(subject, left);
        else taken.delete(subject);
      };
    },
  };
}
