import { isDeepStrictEqual } from 'node:util';

/**
 * Keeps the identity of what did not change: an equal row is the previous object, an equal list the previous list. What
 * follows (diffs, caches, kept bodies) then compares by reference.
 */
export function keepRows<R extends object>(key: (row: R) => string) {
  return (previous: readonly R[] | undefined, next: readonly R[]): readonly R[] => {
    if (!previous) return next;
    const known = new Map(previous.map(row => [key(row), row]));
    const rows = next.map(row => {
      const old = known.get(key(row));
      return old !== undefined && isDeepStrictEqual(old, row) ? old : row;
    });
    const same = rows.length === previous.length && rows.every((row, index) => row === previous[index]);
    return same ? previous : rows;
  };
}

/** The same for a single thing. */
export function keepValue<T>(previous: T | undefined, next: T): T {
  return previous !== undefined && isDeepStrictEqual(previous, next) ? previous : next;
}

/** The same for what is known by its key, where what did not change is the same already. */
export function keepEntries<K, V>(previous: ReadonlyMap<K, V> | undefined, next: ReadonlyMap<K, V>): ReadonlyMap<K, V> {
  const isSame = previous?.size === next.size && [...next].every(([key, value]) => previous.get(key) === value);
  return previous && isSame ? previous : next;
}
