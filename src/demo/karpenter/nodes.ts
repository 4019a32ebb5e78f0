/** Nodes that come up, stage by stage. */
import type { KubernetesObject } from '../cluster/store/object.ts';
import type { Taint } from '../kubelet/scheduling.ts';
import { common, gpuResource, type NodePool, poolLabel, type Shape, typeLabel, zoneLabel } from './fitting.ts';

export interface Instance {
  readonly pool: NodePool;
  readonly shape: Shape;
  readonly zone: string;
  /** Name of its node. */
  readonly name: string;
  readonly providerID: string;
}

export interface Node extends KubernetesObject {
  metadata: KubernetesObject['metadata'];
  spec: { readonly providerID: string; readonly taints: readonly Taint[] };
  status: Readonly<Record<string, unknown>>;
}

const unregistered: Taint = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' };
const notReady: readonly Taint[] = [
  { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
];

/** It has joined the cluster, and no more. */
export function joined({ pool, shape, zone, name, providerID }: Instance, at: string): Node {
  const { metadata, spec } = pool.spec.template;
  const amounts = amountsOf(shape, 0);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        ...common,
        'kubernetes.io/hostname': name,
        [typeLabel]: shape.type,
        [zoneLabel]: zone,
        'topology.kubernetes.io/region': zone.slice(0, -1),
        [poolLabel]: pool.metadata.name,
        ...metadata?.labels,
      },
    },
    spec: { providerID, taints: [...(spec.taints ?? []), unregistered, ...notReady] },
    status: {
      capacity: amounts,
      allocatable: amounts,
      nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', kubeletVersion: 'v1.33.4' },
      conditions: [readyCondition(false, at)],
    },
  };
}

/** Karpenter knows it, and that it is one with GPUs was seen. */
export function register(node: Node): void {
  takeOff(node, [unregistered]);
  addLabels(node, { 'karpenter.sh/registered': 'true', 'nvidia.com/gpu.present': 'true' });
}

/** Its network works, and which GPUs it has was found out. */
export function makeReady(node: Node, shape: Shape, at: string): void {
  takeOff(node, notReady);
  node.status = { ...node.status, conditions: [readyCondition(true, at)] };
  addLabels(node, {
    'nvidia.com/gpu.count': String(shape.gpus),
    'nvidia.com/gpu.memory': String(shape.gpuMemoryMiB),
    'nvidia.com/gpu.product': shape.gpuProduct,
  });
}

/** Its GPUs can be had. */
export function initialize(node: Node, shape: Shape): void {
  const amounts = amountsOf(shape, shape.gpus);
  node.status = { ...node.status, capacity: amounts, allocatable: amounts };
  addLabels(node, { 'karpenter.sh/initialized': 'true' });
}

const amountsOf = ({ cpu, memory }: Shape, gpus: number) => ({ cpu, memory, pods: '110', [gpuResource]: String(gpus) });

const readyCondition = (isReady: boolean, at: string) => ({
  type: 'Ready',
  status: isReady ? 'True' : 'False',
  lastTransitionTime: at,
  ...(isReady
    ? { reason: 'KubeletReady' }
    : { reason: 'KubeletNotReady', message: 'container runtime network not ready' }),
});

function takeOff(node: Node, gone: readonly Taint[]): void {
  const keys = gone.map(({ key }) => key);
  node.spec = { ...node.spec, taints: node.spec.taints.filter(({ key }) => !keys.includes(key)) };
}

function addLabels(node: Node, labels: Readonly<Record<string, string>>): void {
  node.metadata = { ...node.metadata, labels: { ...node.metadata.labels, ...labels } };
}
