import type { KubernetesObject } from '../resource.ts';

/** A list that holds each object once, sorted by namespace and name. */
type Objects<T> = readonly T[];

/** A listed state. Objects that are what they were keep their identity, and so does a list of which all did. */
export function listed<T extends KubernetesObject>(previous: Objects<T>, items: readonly T[]): Objects<T> {
  const next: T[] = [];
  for (const item of items.toSorted(compare)) {
    const { before } = find(previous, item);
    const twin = next.at(-1);
    if (twin && compare(twin, item) === 0) next.pop();
    next.push(before && isSame(before, item) ? before : item);
  }
  const isUnchanged = next.length === previous.length && next.every((object, index) => object === previous[index]);
  return isUnchanged ? previous : next;
}

/** With this object in its place. */
export function withObject<T extends KubernetesObject>(objects: Objects<T>, object: T): Objects<T> {
  const { index, before } = find(objects, object);
  if (before && isSame(before, object)) return objects;
  return objects.toSpliced(index, before ? 1 : 0, object);
}

/** Without this object; another one of its name stays. */
export function withoutObject<T extends KubernetesObject>(objects: Objects<T>, object: T): Objects<T> {
  const { index, before } = find(objects, object);
  return before && before.metadata.uid === object.metadata.uid ? objects.toSpliced(index, 1) : objects;
}

/** Whether a version comes after another of the same resource: versions are decimal numbers that grow. */
export function isLater(version: string, than: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(than)) return version !== than;
  return BigInt(version) > BigInt(than);
}

/** Where an object of that name is, or belongs. */
function find<T extends KubernetesObject>(objects: Objects<T>, wanted: T): { index: number; before: T | undefined } {
  let low = 0;
  let high = objects.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(objects[middle] as T, wanted) < 0) low = middle + 1;
    else high = middle;
  }
  const there = objects[low];
  return { index: low, before: there && compare(there, wanted) === 0 ? there : undefined };
}

function compare(a: KubernetesObject, b: KubernetesObject): number {
  return order(placeOf(a), placeOf(b)) || order(a.metadata.name, b.metadata.name);
}

// Whatever a server sends for it.
const placeOf = ({ metadata }: KubernetesObject) => `${metadata.namespace ?? ''}`;
// Not by locale: every replica is to have the same order, and it is to be fast.
const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Also false when the resource has moved to another version of its group: then the same object reads differently. Lists
 * of some resources leave the version out.
 */
function isSame(a: KubernetesObject, b: KubernetesObject): boolean {
  const { uid, resourceVersion } = a.metadata;
  return (
    resourceVersion !== undefined &&
    resourceVersion === b.metadata.resourceVersion &&
    uid === b.metadata.uid &&
    (a.apiVersion ?? b.apiVersion) === (b.apiVersion ?? a.apiVersion)
  );
}
