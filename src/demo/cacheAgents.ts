/**
 * An emulated DaemonSet of cache agents over an emulated cluster: a pod on each node, those that come later too, which is ready
 * as long as its node is, and comes again when somebody deletes it. Every node sees the same volume, and all pods are at
 * the address of this machine: one server answers for all of them.
 */
import { recordOf, timestamp } from './cluster/store/object.ts';
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

export interface EmulatedCacheAgents extends Pick<Host, 'requests' | 'close'> {
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
  const kind = { apiVersion: 'apps/v1', kind: 'DaemonSet' };
  const daemonSet: KubernetesObject = cluster.put({
    ...kind,
    metadata: { name, namespace, labels },
    spec: { selector: { matchLabels: labels }, template },
  });
  const owner = { ...kind, name, uid: daemonSet.metadata.uid, controller: true };
  /** Names of the pods, by node. */
  const pods = new Map<string, string>();
  let made = 0;

  function noticed({ type, resource, object }: Change) {
    const isGone = type === 'DELETED';
    if (resource === 'nodes' && isGone) leave(object.metadata.name);
    else if (resource === 'nodes') settle(object);
    else if (resource === 'pods' && isGone) {
      const [on] = [...pods].find(([, pod]) => pod === object.metadata.name) ?? [];
      const node = on === undefined ? undefined : cluster.get<KubernetesObject>('nodes', on);
      if (on !== undefined) pods.delete(on);
      if (node) settle(node);
    }
  }

  function leave(node: string) {
    const pod = pods.get(node);
    pods.delete(node);
    if (pod !== undefined) cluster.remove('pods', pod, namespace);
  }

  function settle(node: KubernetesObject) {
    if (!isStanding('namespaces', namespace) || !isStanding('daemonsets.apps', name, namespace)) return;
    const on = node.metadata.name;
    const pod = pods.get(on) ?? `${name}-${endingOf(made++)}`;
    pods.set(on, pod);
    const before = cluster.get<KubernetesObject>('pods', pod, namespace);
    if (before && isReady(before) === isReady(node)) return;
    cluster.put({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: pod, namespace, labels, ownerReferences: [owner] },
      spec: { nodeName: on, ...template.spec },
      status: statusOf(isReady(node), timestamp(clock.now())),
    });
  }

  function isStanding(resource: string, name: string, namespace?: string): boolean {
    const object = cluster.get<KubernetesObject>(resource, name, namespace);
    return object !== undefined && object.metadata.deletionTimestamp === undefined;
  }

  const unwatch = cluster.watch(noticed);
  for (const node of cluster.list<KubernetesObject>('nodes')) settle(node);

  return {
    port: Number(new URL(host.url).port),
    requests: host.requests,
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

/** Of a node or a pod. */
function isReady({ status }: KubernetesObject): boolean {
  const { conditions } = recordOf(status);
  return Array.isArray(conditions) && conditions.some(each => each.type === 'Ready' && each.status === 'True');
}
