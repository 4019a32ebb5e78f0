/** A cluster with a pool that has no node; pods of it are a test's, and so is who puts them on nodes. */
import type { TestContext } from 'node:test';
import { type KubernetesObject, manualClock, startCluster } from '../../src/demo/cluster.ts';
import {
  type KarpenterOptions,
  type KarpenterPace,
  karpenterDefinitions,
  nodeClass,
  nodePool,
  startKarpenter,
} from '../../src/demo/karpenter.ts';

export const zones = ['eu-central-1a', 'eu-central-1b'] as const;
export const labels = { 'giantswarm.io/machine-pool': 'gpu-l4' };
export const taint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
const l4 = { gpuProduct: 'NVIDIA-L4', gpuMemoryMiB: 23_034 };
const machines = [
  { type: 'g6.2xlarge', cpu: '7910m', memory: '31482348Ki', gpus: 1, ...l4 },
  { type: 'g6.12xlarge', cpu: '47610m', memory: '190482348Ki', gpus: 4, ...l4 },
];
const since = '2026-08-20T06:00:00Z';

/** Each stage takes another time: 2, 3, 4, 5, 7, 2, 1, 3, 4 and 60 seconds. */
export const pace: KarpenterPace = {
  batchMs: 2_000,
  refusalMs: 3_000,
  terminationMs: 4_000,
  retryMs: 5_000,
  launchMs: 7_000,
  joinMs: 2_000,
  registerMs: 1_000,
  readyMs: 3_000,
  gpuMs: 4_000,
  consolidateMs: 60_000,
};
/** From a claim to its GPUs. */
export const startMs = 17_000;

export interface Conditions {
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly [field: string]: string }[];
}
export interface Claim extends KubernetesObject {
  readonly spec: { readonly requirements: readonly { readonly key: string; readonly values: readonly string[] }[] };
  readonly status: Conditions & { readonly nodeName?: string };
}
export interface Node extends KubernetesObject {
  readonly spec: { readonly taints: readonly { readonly key: string; readonly effect: string }[] };
  readonly status: Conditions & { readonly allocatable: Readonly<Record<string, string>> };
}
export interface Said extends KubernetesObject {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid: string };
  readonly source: { readonly component: string };
}

interface PodParts {
  readonly gpus?: number;
  readonly nodeSelector?: object;
  readonly tolerations?: readonly object[];
  /** Why it has no node. */
  readonly reason?: string;
}

const servingPod = (name: string, { gpus = 1, nodeSelector = labels, tolerations, reason }: PodParts) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `${name}-kserve-7c9d5f6b8d-x2x4z`,
    namespace: 'default',
    labels: { 'app.kubernetes.io/part-of': 'llminferenceservice', 'app.kubernetes.io/name': name },
  },
  spec: {
    nodeSelector,
    tolerations: tolerations ?? [{ key: taint.key, operator: 'Exists', effect: 'NoSchedule' }],
    containers: [
      { name: 'main', ...(gpus > 0 && { resources: { requests: { cpu: '4', 'nvidia.com/gpu': String(gpus) } } }) },
    ],
  },
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: reason ?? 'Unschedulable' }],
  },
});

interface Start extends Omit<KarpenterOptions, 'machines' | 'clock' | 'pace'> {
  /** Of the pool itself. */
  readonly zones?: readonly string[];
  readonly class?: object;
}

export async function start(t: TestContext, { zones: poolZones, class: ofPool, ...options }: Start = {}) {
  const clock = manualClock();
  const plan = { name: 'gpu-l4', nodeClass: 'gpu', labels, taints: [taint], since };
  const pool = nodePool({
    ...plan,
    instanceTypes: machines.map(({ type }) => type),
    ...(poolZones && { zones: poolZones }),
  });
  const objects = [...karpenterDefinitions(), ofPool ?? nodeClass('gpu', zones, since), pool];
  const cluster = await startCluster({ objects, clock });
  let timers = 0;
  const counted = {
    now: clock.now,
    async sleep(ms: number, signal?: AbortSignal) {
      timers++;
      await clock.sleep(ms, signal).finally(() => timers--);
    },
  };
  const karpenter = startKarpenter(cluster, { machines, clock: counted, pace, ...options });
  t.after(async () => {
    karpenter.stop();
    await cluster.close();
  });
  const nodes = () => cluster.list<Node>('nodes');
  return {
    clock,
    cluster,
    karpenter,
    /** How many timers of it run. */
    timers: () => timers,
    claims: () => cluster.list<Claim>('nodeclaims.karpenter.sh'),
    nodes,
    /** In their order in time. */
    events: (reason: string) => cluster.list<Said>('events').filter(each => each.reason === reason),
    /** A pod that the scheduler has found no node for. */
    wait: (name: string, parts: PodParts = {}) => cluster.put(servingPod(name, parts)) as KubernetesObject,
    bind: ({ metadata }: KubernetesObject, node = nodes().at(-1)?.metadata.name) =>
      cluster.update<{ spec: object; status: object }>('pods', metadata.name, metadata.namespace, object => {
        object.spec = { ...object.spec, nodeName: node };
        const lastTransitionTime = new Date(clock.now()).toISOString();
        const conditions = [{ type: 'PodScheduled', status: 'True', lastTransitionTime }];
        object.status = { phase: 'Running', conditions };
      }),
    remove: ({ metadata }: KubernetesObject) => cluster.remove('pods', metadata.name, metadata.namespace),
  };
}

export const conditionOf = ({ status }: { readonly status: Conditions }, type: string) =>
  status.conditions?.find(each => each.type === type);
export const asked = ({ spec }: Claim, key: string) => spec.requirements.find(each => each.key === key)?.values;
