/**
 * An emulated DaemonSet of cache agents over an emulated cluster: a pod on each node, those that come later too, which is ready
 * as long as its node is. Every node sees the same volume, and all pods are at the address of this machine: one server
 * answers for all of them.
 */
import { isRecord, recordOf, timestamp } from './cluster/store/object.ts';
import type { Change, EmulatedCluster, KubernetesObject } from './cluster.ts';
import type { Clock } from './host/clock.ts';
import { document, text } from './host/reply.ts';
import { type Host, startHost } from './host/server.ts';
import { endingOf } from './kubelet/jobs.ts';
import type { Directory, EmulatedKubelet } from './kubelet.ts';

export interface CacheAgentOptions {
  readonly clock: Clock;
  readonly kubelet: Pick<EmulatedKubelet, 'content'>;
  /** Where the pods are. */
  readonly namespace: string;
  /** The claim that they mount, and its volume. */
  readonly claim: string;
  readonly volume: string;
}

export interface EmulatedCacheAgents extends Pick<Host, 'requests' | 'fault' | 'close'> {
  /** On which the pods answer. */
  readonly port: number;
}

type Cluster = Pick<EmulatedCluster, 'get' | 'list' | 'put' | 'update' | 'remove' | 'watch'>;

const name = 'model-manager-cache-agent';
const labels = { 'model-manager.giantswarm.io/component': 'cache-agent' };
const root = '/cache';

export async function startCacheAgents(cluster: Cluster, options: CacheAgentOptions): Promise<EmulatedCacheAgents> {
  const { clock, kubelet, namespace, claim, volume } = options;
  const host = await startHost({
    clock,
    answer({ path }) {
      if (path === '/healthz') return text('ok');
      if (path !== '/inventory') return text('there is /inventory and /healthz', 404);
      const scannedAt = timestamp(clock.now());
      const entries = kubelet.content(volume).map(entryOf);
      return document({ root, scannedAt, entries, warnings: [] }, 200, 'application/json');
    },
    forget() {},
    become() {},
  });
  const template = { metadata: { labels }, spec: specOf(claim) };
  const owner: KubernetesObject = cluster.put({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace, labels },
    spec: { selector: { matchLabels: labels }, template },
  });
  /** The pods, by node. */
  const pods = new Map<string, string>();
  let made = 0;

  function noticed({ type, resource, object }: Change) {
    if (resource === 'nodes') settle(object, type === 'DELETED');
  }

  function settle(node: KubernetesObject, isGone: boolean) {
    const on = node.metadata.name;
    const known = pods.get(on);
    if (isGone) {
      pods.delete(on);
      if (known !== undefined) cluster.remove('pods', known, namespace);
      return;
    }
    const pod = known ?? `${name}-${endingOf(made++)}`;
    pods.set(on, pod);
    const before = cluster.get<KubernetesObject>('pods', pod, namespace);
    const isReady = conditionOf(node)?.status === 'True';
    if (before && isReady === (conditionOf(before)?.status === 'True')) return;
    cluster.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: pod,
        namespace,
        labels,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: owner.kind, name, uid: owner.metadata.uid, controller: true }],
      },
      spec: { nodeName: on, ...template.spec },
      status: statusOf(isReady, timestamp(clock.now())),
    });
  }

  const unwatch = cluster.watch(noticed);
  for (const node of cluster.list<KubernetesObject>('nodes')) settle(node, false);

  return {
    port: Number(new URL(host.url).port),
    requests: host.requests,
    fault: host.fault,
    async close() {
      unwatch();
      await host.close();
    },
  };
}

const entryOf = ({ mtime, ...directory }: Directory) => ({ ...directory, mtime: timestamp(mtime) });

const specOf = (claim: string) => ({
  containers: [
    {
      name: 'cache-agent',
      image: 'gsoci.azurecr.io/giantswarm/model-manager:demo',
      args: ['cache-agent', '--root', root],
      volumeMounts: [{ name: 'cache', mountPath: root, readOnly: true }],
    },
  ],
  volumes: [{ name: 'cache', persistentVolumeClaim: { claimName: claim, readOnly: true } }],
  tolerations: [{ operator: 'Exists' }],
});

const statusOf = (isReady: boolean, at: string) => ({
  phase: 'Running',
  podIP: '127.0.0.1',
  conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: at }],
});

/** Whether a node or a pod is ready. */
function conditionOf({ status }: KubernetesObject) {
  const { conditions } = recordOf(status);
  return Array.isArray(conditions) ? conditions.filter(isRecord).find(({ type }) => type === 'Ready') : undefined;
}
