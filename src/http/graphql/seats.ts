/** How many sockets each caller has. */
export interface Seats {
  /** Takes one more, and gives how to give it back; undefined when the caller has as many as may be. */
  take(subject: string | undefined): (() => void) | undefined;
}

export function createSeats(limit: number): Seats {
  const taken = new Map<string | undefined, number>();
  return {
    take(subject) {
      const count = taken.get(subject) ?? 0;
      if (count >= limit) return undefined;
      taken.set(subject, count + 1);
      return () => {
        const left = (taken.get(subject) as number) - 1;
        if (left > 0) taken.set(subject, left);
        else taken.delete(subject);
      };
    },
  };
}
