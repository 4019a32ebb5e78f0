import { expired } from '../status.ts';
import { frozen, type KubernetesObject, withFields } from './object.ts';

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** The table: `pods`, `modelconfigs.kagent.dev`. */
  readonly resource: string;
  /** As it is now; when deleted, as it was last, with the version of the deletion. */
  readonly object: KubernetesObject;
  readonly previous: KubernetesObject | undefined;
  readonly version: number;
}

/** All objects, in tables by resource; each change has a version, and the last changes are remembered. */
export interface Store {
  /** Of the last change. */
  readonly version: number;
  get(resource: string, key: string): KubernetesObject | undefined;
  /** Sorted by key; as they are now, or as they were at a version. Throws `Expired` when that is forgotten. */
  list(resource: string, at?: number): readonly KubernetesObject[];
  /** Writes an object as it is, but for its version; or removes it. */
  put(resource: string, object: KubernetesObject): KubernetesObject;
  remove(resource: string, key: string): KubernetesObject | undefined;
  /** The changes of a table after a version, oldest first. Throws `Expired` when they are forgotten. */
  since(resource: string, version: number): readonly Change[];
  /** Forgets all changes so far: what is asked from before now is `Expired`. */
  compact(): void;
  /** Tells each change, in order, after it was made; returns what ends it. A listener may change the store. */
  listen(listener: (change: Change) => void): () => void;
}

export const keyOf = (name: string, namespace: string | undefined) => `${namespace ?? ''}/${name}`;
const keyOfObject = ({ metadata }: KubernetesObject) => keyOf(metadata.name, metadata.namespace);

/** Changes that are remembered; a server forgets them after minutes. */
const remembered = 2_000;

export function createStore(): Store {
  const tables = new Map<string, Map<string, KubernetesObject>>();
  const listeners = new Set<(change: Change) => void>();
  const untold: Change[] = [];
  let history: Change[] = [];
  let forgotten = 0;
  let version = 1;
  let telling = false;

  const tableOf = (resource: string) => {
    const found = tables.get(resource) ?? new Map<string, KubernetesObject>();
    tables.set(resource, found);
    return found;
  };

  function changed(change: Change) {
    history.push(change);
    if (history.length > 2 * remembered) {
      history = history.slice(-remembered);
      forgotten = (history[0]?.version ?? version) - 1;
    }
    untold.push(change);
    // What a listener changes is told when everybody knows what came before it.
    if (telling) return;
    telling = true;
    for (let next = untold.shift(); next; next = untold.shift())
      for (const listener of [...listeners]) tell(listener, next);
    telling = false;
  }

  function remember(at: number) {
    if (at < forgotten) throw expired(`too old resource version: ${at} (${forgotten})`);
  }

  const versioned = (object: KubernetesObject) => {
    version++;
    return frozen(withFields(object, { metadata: withFields(object.metadata, { resourceVersion: String(version) }) }));
  };

  return {
    get version() {
      return version;
    },
    get: (resource, key) => tables.get(resource)?.get(key),

    list(resource, at = version) {
      remember(at);
      const table = new Map(tables.get(resource));
      for (let place = history.length - 1; place >= 0; place--) {
        const change = history[place] as Change;
        if (change.version <= at) break;
        if (change.resource !== resource) continue;
        if (change.previous) table.set(keyOfObject(change.object), change.previous);
        else table.delete(keyOfObject(change.object));
      }
      return [...table].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
    },

    put(resource, object) {
      const previous = tableOf(resource).get(keyOfObject(object));
      const next = versioned(object);
      tableOf(resource).set(keyOfObject(object), next);
      changed({ type: previous ? 'MODIFIED' : 'ADDED', resource, object: next, previous, version });
      return next;
    },

    remove(resource, key) {
      const previous = tables.get(resource)?.get(key);
      if (!previous) return undefined;
      tableOf(resource).delete(key);
      const object = versioned(previous);
      changed({ type: 'DELETED', resource, object, previous, version });
      return object;
    },

    since(resource, from) {
      remember(from);
      return history.filter(change => change.version > from && change.resource === resource);
    },

    compact() {
      history = [];
      forgotten = version;
    },

    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** A listener that fails takes neither the change nor the other listeners with it, and is not silent either. */
function tell(listener: (change: Change) => void, change: Change) {
  try {
    listener(change);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
