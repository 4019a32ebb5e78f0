/** Models that are served from the beginning, as if the controllers had worked long ago. */
import type { ClusterObjects, KubernetesObject } from '../cluster.ts';
import { objectStatus } from './conditions.ts';
import { apiVersion, runtimeImage } from './definitions.ts';

export interface ServedModel {
  /** Of the object, its preset and its directory in the cache. */
  readonly name: string;
  readonly namespace: string;
  /** Repository. */
  readonly model: string;
  readonly uri: string;
  readonly node: string;
  readonly gpus: number;
  readonly url: string;
  /** When it became ready, in RFC 3339. */
  readonly since: string;
}

/** Serves a model: its object, that is ready, and its pod, that goes with it. */
export function serveModel(cluster: Pick<ClusterObjects, 'put'>, served: ServedModel): void {
  const { name, namespace, model, uri, node, gpus, url, since } = served;
  const counts = { 'nvidia.com/gpu': String(gpus) };
  const resources = gpus > 0 ? { resources: { requests: counts, limits: counts } } : {};
  const containers = [{ name: 'main', image: runtimeImage, ...resources }];
  const isTrue = (type: string) => ({ type, status: 'True', lastTransitionTime: since });
  const owner: KubernetesObject = cluster.put({
    apiVersion,
    kind: 'LLMInferenceService',
    metadata: {
      name,
      namespace,
      labels: {
        'app.kubernetes.io/managed-by': 'model-manager',
        'agent-platform.giantswarm.io/preset': name,
        'model-manager.giantswarm.io/backend': 'kserve',
        'model-manager.giantswarm.io/model-dir': name,
      },
      annotations: { 'model-manager.giantswarm.io/model': model },
    },
    spec: { model: { uri, name: model }, replicas: 1, router: { route: {} }, template: { containers } },
    status: objectStatus('ready', { url, generation: 1, at: since }),
  });
  cluster.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-kserve-7c9d5f6b8d-x2x4z`,
      namespace,
      labels: { 'app.kubernetes.io/part-of': 'llminferenceservice', 'app.kubernetes.io/name': name },
      ownerReferences: [
        { apiVersion, kind: owner.kind, name, uid: owner.metadata.uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: { nodeName: node, containers },
    status: {
      phase: 'Running',
      startTime: since,
      conditions: [isTrue('PodScheduled'), isTrue('Ready')],
      containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: { startedAt: since } } }],
    },
  });
}
