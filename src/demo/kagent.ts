/**
 * An emulated kagent over an emulated cluster: its definition of ModelConfigs, and its controller, as far as the two say
 * whether agents can use a model. There are no agents.
 */

import type { Change, ClusterObjects, KubernetesObject } from './cluster.ts';
import { type Clock, realClock } from './host/clock.ts';
import { findingsOf, type KeyReference, type Status, statusOf } from './kagent/conditions.ts';

export { type KagentDefinitionOptions, kagentDefinition } from './kagent/definition.ts';

export interface KagentOptions {
  readonly clock?: Clock;
  /** How long it takes to notice what happened, in milliseconds; 0 when absent. */
  readonly delayMs?: number;
}

interface ModelConfig extends KubernetesObject {
  readonly spec?: KeyReference;
  readonly status?: Status;
}

const modelConfigs = 'modelconfigs.kagent.dev';

/**
 * Says of each ModelConfig whether it is accepted, and whether the Secret it refers to is there: when it is new, when its
 * generation is, and when its Secret comes, changes or goes. Works with every version of the definition, and without any.
 */
export function startKagent(cluster: ClusterObjects, { clock = realClock, delayMs = 0 }: KagentOptions = {}) {
  const life = new AbortController();
  /** By namespace and name: those that are looked at soon. */
  const due = new Set<string>();

  function noticed({ type, resource, object }: Change) {
    if (resource === modelConfigs && type !== 'DELETED' && isNew(object as ModelConfig)) schedule(object);
    if (resource !== 'secrets') return;
    const { name, namespace } = object.metadata;
    for (const each of all(namespace)) if (each.spec?.apiKeySecret === name) schedule(each);
  }

  const all = (namespace?: string) =>
    cluster.get('customresourcedefinitions.apiextensions.k8s.io', modelConfigs)
      ? cluster.list<ModelConfig>(modelConfigs, namespace)
      : [];

  function schedule({ metadata: { name, namespace = '' } }: KubernetesObject) {
    const key = `${namespace}/${name}`;
    if (due.has(key)) return;
    due.add(key);
    void clock.sleep(delayMs, life.signal).then(
      () => {
        due.delete(key);
        reconcile(name, namespace);
      },
      () => {}, // It is stopped meanwhile: that is all a sleep rejects for.
    );
  }

  function reconcile(name: string, namespace: string) {
    const found = all(namespace).find(({ metadata }) => metadata.name === name);
    if (!found || found.metadata.deletionTimestamp) return;
    const { metadata, status } = found;
    const spec = found.spec ?? {};
    const secret = spec.apiKeySecret ? cluster.get('secrets', spec.apiKeySecret, namespace) : undefined;
    const findings = findingsOf(spec, namespace, secret && Object.keys(secret.data ?? {}));
    const next = statusOf(findings, metadata.generation ?? 0, status, clock.now());
    cluster.update<{ status?: Status }>(modelConfigs, name, namespace, object => {
      object.status = next;
    });
  }

  const unwatch = cluster.watch(noticed);
  for (const object of all()) schedule(object);

  return {
    stop() {
      unwatch();
      life.abort();
    },
  };
}

const isNew = ({ metadata, status }: ModelConfig) => status?.observedGeneration !== metadata.generation;
