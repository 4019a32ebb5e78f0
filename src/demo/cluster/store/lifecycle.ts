import type { Clock } from '../../host/clock.ts';
import { definitions } from './catalogue.ts';
import { tableOf } from './kinds.ts';
import type { KubernetesObject } from './object.ts';
import { type Change, keyOf } from './store.ts';
import { type Registry, remove } from './writes.ts';

/**
 * What ends in its own time: a namespace when its content is gone, a pod on a node after its grace period, the objects of
 * a kind with its definition. Until the signal aborts.
 */
export function endThingsInTime(registry: Registry, clock: Clock, life: AbortSignal): void {
  const { store, catalogue } = registry;

  const contentOf = (namespace: string) =>
    catalogue
      .kinds()
      .filter(kind => kind.namespaced && !kind.keptAs)
      .flatMap(kind => store.list(tableOf(kind)).map(object => ({ kind, object })))
      .filter(({ object }) => object.metadata.namespace === namespace);

  function endNamespace(namespace: string) {
    const key = keyOf(namespace, undefined);
    if (!store.get('namespaces', key)?.metadata.deletionTimestamp) return;
    if (contentOf(namespace).length === 0) store.remove('namespaces', key);
  }

  async function endPod({ metadata }: KubernetesObject) {
    try {
      await clock.sleep((metadata.deletionGracePeriodSeconds ?? 0) * 1000, life);
    } catch {
      return; // The cluster is closed meanwhile.
    }
    const key = keyOf(metadata.name, metadata.namespace);
    const current = store.get('pods', key);
    if (!current || current.metadata.uid !== metadata.uid) return;
    if (!current.metadata.finalizers?.length) return void store.remove('pods', key);
    store.put('pods', { ...current, metadata: { ...current.metadata, deletionGracePeriodSeconds: 0 } });
  }

  function seen({ type, resource, object, previous }: Change) {
    const { name, namespace, deletionTimestamp } = object.metadata;
    const isMarked = type === 'MODIFIED' && deletionTimestamp && !previous?.metadata.deletionTimestamp;
    if (resource === 'namespaces' && isMarked) {
      for (const { kind, object } of contentOf(name)) {
        remove(registry, kind, object.metadata.name, name, { gracePeriodSeconds: 0 });
      }
      endNamespace(name);
    }
    if (resource === 'pods' && isMarked) void endPod(object);
    if (type !== 'DELETED') return;
    if (namespace) endNamespace(namespace);
    if (resource !== definitions) return;
    // A definition is named like the table of its objects.
    for (const { metadata } of store.list(name)) store.remove(name, keyOf(metadata.name, metadata.namespace));
  }

  const stop = store.listen(seen);
  life.addEventListener('abort', stop, { once: true });
}
