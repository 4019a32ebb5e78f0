/**
 * Computes something of each of many things, and again only of those that changed: what was made of the same as before is
 * what it was. What is not asked for any more is forgotten.
 */
export function createKept<T, R>(options: {
  readonly key: (thing: T) => string;
  /** All that the result depends on, compared one by one. */
  readonly from: (thing: T) => readonly unknown[];
  readonly make: (thing: T, previous: R | undefined) => R;
}): (things: readonly T[]) => readonly R[] {
  const { key, from, make } = options;
  let before = new Map<string, { readonly from: readonly unknown[]; readonly value: R }>();
  return things => {
    const after: typeof before = new Map();
    const values = things.map(thing => {
      const known = before.get(key(thing));
      const parts = from(thing);
      const value = known && isSame(known.from, parts) ? known.value : make(thing, known?.value);
      after.set(key(thing), { from: parts, value });
      return value;
    });
    before = after;
    return values;
  };
}

const isSame = (a: readonly unknown[], b: readonly unknown[]) =>
  a.length === b.length && a.every((each, at) => Object.is(each, b[at]));
