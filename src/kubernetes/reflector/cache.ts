import type { ObjectList, WatchEvent } from '../client.ts';
import type { KubernetesObject } from '../resource.ts';
import { isObject } from '../transport/objects.ts';
import { isLater, listed, withObject, withoutObject } from './objects.ts';

export interface Cache<T extends KubernetesObject> {
  /** Sorted by namespace and name; undefined until the first list. */
  readonly objects: readonly T[] | undefined;
  /** Where a watch goes on. */
  readonly version: string;
  /** Objects that were left out because nothing could be made of them. */
  readonly malformed: number;
  replace(list: ObjectList<T>): void;
  /** In any order, and more than once: what is known already changes nothing. */
  take(event: WatchEvent<T>): void;
  /** Whether what was written is in here, or something later. */
  shows(written: KubernetesObject): boolean;
  has(uid: string | undefined): boolean;
  /** As before the first list. */
  clear(): void;
}

/** The objects that a list and the events after it make up. `onMalformed` is told of the first that is left out. */
export function createCache<T extends KubernetesObject>(onMalformed: (object: unknown) => void): Cache<T> {
  let objects: readonly T[] | undefined;
  let version = '';
  let malformed = 0;

  function isUsable(object: T): boolean {
    if (isObject(object)) return true;
    if (malformed++ === 0) onMalformed(object);
    return false;
  }

  function advance(to: string | undefined) {
    if (to !== undefined && isLater(to, version)) version = to;
  }

  return {
    get objects() {
      return objects;
    },
    get version() {
      return version;
    },
    get malformed() {
      return malformed;
    },
    replace({ items, resourceVersion }) {
      objects = listed(objects ?? [], items.filter(isUsable));
      version = resourceVersion;
    },
    take(event) {
      if (event.type === 'BOOKMARK') return advance(event.resourceVersion);
      if (!isUsable(event.object)) return;
      const { resourceVersion } = event.object.metadata;
      if (resourceVersion !== undefined && !isLater(resourceVersion, version)) return;
      const change = event.type === 'DELETED' ? withoutObject : withObject;
      objects = change(objects ?? [], event.object);
      advance(resourceVersion);
    },
    shows: ({ metadata: { resourceVersion } }) => resourceVersion === undefined || !isLater(resourceVersion, version),
    clear() {
      objects = undefined;
      version = '';
    },
    has: uid => objects?.some(object => object.metadata.uid === uid) ?? false,
  };
}
