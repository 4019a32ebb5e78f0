/** How many sockets each caller has. */
export interface Seats {
  /** Takes one more, and gives how to give it back; undefined when the caller has as many as may be. */
  take(scope: string): (() => void) | undefined;
}

export function createSeats(limit: number): Seats {
  const taken = new Map<string, number>();
  return {
    take(scope) {
      const count = taken.get(scope) ?? 0;
      if (count >= limit) return undefined;
      taken.set(scope, count + 1);
      return () => {
        const left = (taken.get(scope) as number) - 1;
        if (left > 0) taken.set(scope, left);
        else taken.delete(scope);
      };
    },
  };
}
