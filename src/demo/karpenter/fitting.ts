/** Which pods a pool gets a node for, and which nodes those can be. */
import type { KubernetesObject } from '../cluster/store/object.ts';
import type { Toleration } from '../kubelet/pods.ts';
import { covers, type Taint } from '../kubelet/scheduling.ts';

/** A machine that the cloud has. */
export interface Shape {
  /** Such as `g6.2xlarge`. */
  readonly type: string;
  /** What pods can have of it, as quantities. */
  readonly cpu: string;
  readonly memory: string;
  readonly gpus: number;
  /** Such as `NVIDIA-L4`. */
  readonly gpuProduct: string;
  /** Of one GPU. */
  readonly gpuMemoryMiB: number;
}

export interface WaitingPod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
    readonly containers: readonly { readonly resources?: Resources }[];
  };
  readonly status?: { readonly phase?: string; readonly conditions?: readonly Condition[] };
}

interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

export interface NodePool extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec: {
        readonly nodeClassRef: { readonly group: string; readonly kind: string; readonly name: string };
        readonly taints?: readonly Taint[];
        readonly requirements?: readonly Requirement[];
      };
    };
  };
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface NodeClass extends KubernetesObject {
  readonly status?: {
    readonly subnets?: readonly { readonly zone: string }[];
    readonly conditions?: readonly Condition[];
  };
}

export const gpuResource = 'nvidia.com/gpu';

export const gpusOf = ({ spec }: WaitingPod): number =>
  spec.containers
    .map(({ resources }) => Number(resources?.requests?.[gpuResource] ?? resources?.limits?.[gpuResource] ?? 0))
    .reduce((sum, gpus) => sum + gpus, 0);

/** Whether the scheduler has found no node for a pod with GPUs. */
export const isWaiting = (pod: WaitingPod): boolean =>
  pod.metadata.deletionTimestamp === undefined &&
  pod.spec.nodeName === undefined &&
  pod.status?.phase === 'Pending' &&
  (pod.status.conditions ?? []).some(
    ({ type, status, reason }) => type === 'PodScheduled' && status === 'False' && reason === 'Unschedulable',
  ) &&
  gpusOf(pod) > 0;

export const zonesOf = ({ status }: NodeClass): readonly string[] => [
  ...new Set((status?.subnets ?? []).map(({ zone }) => zone)),
];

/** What a pool has for a pod; of both there is at least one. */
export interface Offer {
  readonly pool: NodePool;
  readonly nodeClass: NodeClass;
  /** The smallest first, as they were given. */
  readonly shapes: readonly Shape[];
  readonly zones: readonly string[];
}

/** Undefined when no node of the pool would take the pod. */
export function offerFor(
  pod: WaitingPod,
  pool: NodePool,
  nodeClass: NodeClass,
  machines: readonly Shape[],
): Offer | undefined {
  const { metadata, spec } = pool.spec.template;
  const { nodeSelector = {}, tolerations = [] } = pod.spec;
  const isHeld = (spec.taints ?? []).some(
    taint => taint.effect !== 'PreferNoSchedule' && !tolerations.some(each => covers(each, taint)),
  );
  if (isHeld) return undefined;
  const asks = (key: string, value: string) =>
    (nodeSelector[key] ?? value) === value &&
    (spec.requirements ?? []).every(each => each.key !== key || each.operator !== 'In' || each.values?.includes(value));
  const shapes = machines.filter(({ type, gpus }) => asks(typeLabel, type) && gpus >= gpusOf(pod));
  const zones = zonesOf(nodeClass).filter(zone => asks(zoneLabel, zone));
  const labels: Readonly<Record<string, string>> = {
    ...common,
    ...metadata?.labels,
    [poolLabel]: pool.metadata.name,
  };
  const isLabelled = Object.entries(nodeSelector).every(
    ([key, value]) => key === typeLabel || key === zoneLabel || labels[key] === value,
  );
  return isLabelled && shapes.length > 0 && zones.length > 0 ? { pool, nodeClass, shapes, zones } : undefined;
}

export const typeLabel = 'node.kubernetes.io/instance-type';
export const zoneLabel = 'topology.kubernetes.io/zone';
export const poolLabel = 'karpenter.sh/nodepool';
/** Of all nodes that are made. */
export const common = {
  'kubernetes.io/arch': 'amd64',
  'kubernetes.io/os': 'linux',
  'karpenter.sh/capacity-type': 'on-demand',
};
