/**
 * What makes the cluster of the demo one that serves models: nodes of one GPU pool, which can grow, and none of a larger one,
 * nodes without GPUs, a cache that all of them share, presets, and two models that are served.
 */
import { stringify } from 'yaml';
import { recordOf } from '../cluster/store/object.ts';
import type { ClusterObjects, KubernetesObject } from '../cluster.ts';
import { library } from '../hub.ts';
import type { Shape } from '../karpenter.ts';
import { kserveDefinitions, type ServedModel } from '../kserve.ts';
import type { Directory } from '../kubelet.ts';
import {
  cacheClaim,
  cacheVolume,
  controllerNamespace,
  gatewayEndpoint,
  poolTaint,
  presetNamespace,
  servingNamespace,
  servingPool,
  since,
  tokenSecret,
} from './places.ts';
import { presetObjects } from './presets.ts';
import { fourL4, oneL4, scalingObjects } from './scaling.ts';
import { GB } from './units.ts';

export { cacheVolume, presetNamespace, servingNamespace, tokenSecret } from './places.ts';

/** The token that the cluster has for the Hub; it opens one private repository, and no gated one. */
const token = 'hf_made_up';
export const openedByToken = ['acme/support-assistant-8b'];
export const hubTokens = { [token]: openedByToken };

/** How fast the nodes are: a pod takes a moment, and a large model a while. */
export const pace = { startMs: 1_500, workMs: 500, bytesPerSecond: 0.6 * GB, progressMs: 2_000 };

/** Where its cache is, which all nodes share. */
export const cachePlace = { namespace: servingNamespace, claim: cacheClaim, volume: cacheVolume };

/** Pulled in every round, and deleted again at its end. */
export const pulled = 'support-assistant-8b';

/** Not ready for a while in every round. */
export const awayNode = 'gpu-l4-a';

const instance = (size: string, vcpu: number, memoryGiB: number, gpus: number, usable: readonly [number, number]) => ({
  instanceType: `g6.${size}`,
  size,
  vcpu,
  memoryGiB,
  gpus,
  gpuMemoryGiB: 24,
  usableVcpu: usable[0],
  usableMemoryGiB: usable[1],
});

const discovery = {
  apiVersion: 'agent-platform.giantswarm.io/v1alpha1',
  kind: 'ModelServingConfig',
  spec: {
    namespace: servingNamespace,
    gpuResourceName: 'nvidia.com/gpu',
    runtimeClassName: 'nvidia',
    gpuPool: {
      taint: poolTaint,
      nodeSelector: servingPool,
      instances: [instance('2xlarge', 8, 32, 1, [7, 27.1]), instance('12xlarge', 48, 192, 4, [46, 176.5])],
    },
    cache: { enabled: true, claimName: cacheClaim, mountPath: '/mnt/models', redirectPolicy: true },
    presets: {
      namespace: presetNamespace,
      labelSelector: 'agent-platform.giantswarm.io/serving-preset=true',
    },
    gateway: { enabled: true, endpoint: gatewayEndpoint },
  },
};

interface Machine {
  readonly name: string;
  readonly shape: Shape;
  readonly taints?: readonly object[];
}

const worker: Shape = { ...oneL4, type: 'm6i.2xlarge', gpus: 0 };
const dedicated = { key: 'dedicated', value: 'research', effect: 'NoSchedule' };

const machines: readonly Machine[] = [
  { name: 'gpu-l4-a', shape: oneL4 },
  { name: 'gpu-l4-b', shape: oneL4 },
  { name: 'gpu-l4-x4', shape: fourL4 },
  { name: 'gpu-l4-z', shape: oneL4, taints: [dedicated] },
  { name: 'worker-a', shape: worker },
  { name: 'worker-b', shape: worker },
];

const readyCondition = (isReady: boolean, reason: string) => ({
  type: 'Ready',
  status: isReady ? 'True' : 'False',
  reason,
  lastTransitionTime: since,
});

function nodeOf({ name, shape, taints = [] }: Machine) {
  const { type, cpu, memory, gpus, gpuProduct, gpuMemoryMiB } = shape;
  const amounts = { cpu, memory, pods: '110', ...(gpus > 0 && { 'nvidia.com/gpu': String(gpus) }) };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': type,
        'topology.kubernetes.io/zone': 'eu-central-1a',
        ...(gpus > 0 && {
          ...servingPool,
          'nvidia.com/gpu.present': 'true',
          'nvidia.com/gpu.count': String(gpus),
          'nvidia.com/gpu.memory': String(gpuMemoryMiB),
          'nvidia.com/gpu.product': gpuProduct,
        }),
      },
    },
    spec: { taints: gpus > 0 ? [poolTaint, ...taints] : taints },
    status: {
      capacity: amounts,
      allocatable: amounts,
      nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', kubeletVersion: 'v1.33.4' },
      conditions: [readyCondition(true, 'KubeletReady')],
    },
  };
}

/** Says of a node whether it is ready, as its kubelet would. */
export function setReady(cluster: Pick<ClusterObjects, 'update'>, name: string, isReady: boolean): void {
  cluster.update<KubernetesObject>('nodes', name, undefined, node => {
    const why = isReady ? 'KubeletReady' : 'KubeletNotReady';
    Object.assign(node, { status: { ...recordOf(node.status), conditions: [readyCondition(isReady, why)] } });
  });
}

const volume = {
  accessModes: ['ReadWriteMany'],
  storageClassName: 'cephfs',
};

const researchNamespace = 'research';

/** Takes three of the GPUs of the large node: models that need two of them wait for another one. */
const somebodysTraining = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'fine-tuning-0', namespace: researchNamespace },
  spec: {
    nodeName: 'gpu-l4-x4',
    containers: [
      {
        name: 'trainer',
        image: 'registry.example.com/research/trainer:1.4',
        resources: { requests: { 'nvidia.com/gpu': '3' }, limits: { 'nvidia.com/gpu': '3' } },
      },
    ],
    tolerations: [{ key: poolTaint.key, operator: 'Exists', effect: poolTaint.effect }],
  },
  status: {
    phase: 'Running',
    startTime: since,
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: since }],
    containerStatuses: [{ name: 'trainer', ready: true, restartCount: 0, state: { running: { startedAt: since } } }],
  },
};

export const servingObjects = (): readonly object[] => [
  ...[servingNamespace, presetNamespace, controllerNamespace, researchNamespace].map(name => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  })),
  ...kserveDefinitions(controllerNamespace),
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'agent-platform-model-serving',
      namespace: presetNamespace,
      labels: { 'agent-platform.giantswarm.io/model-serving-config': 'true' },
    },
    data: { 'config.yaml': stringify(discovery) },
  },
  ...scalingObjects(),
  ...machines.map(nodeOf),
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: cacheVolume },
    spec: {
      ...volume,
      capacity: { storage: '500Gi' },
      persistentVolumeReclaimPolicy: 'Retain',
      claimRef: { kind: 'PersistentVolumeClaim', namespace: servingNamespace, name: cacheClaim },
      csi: { driver: 'cephfs.csi.ceph.com', volumeHandle: 'vol-0a1b2c3d' },
    },
    status: { phase: 'Bound' },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: cacheClaim, namespace: servingNamespace },
    spec: { ...volume, resources: { requests: { storage: '500Gi' } }, volumeName: cacheVolume },
    status: { phase: 'Bound' },
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: tokenSecret, namespace: servingNamespace },
    stringData: { token },
  },
  ...presetObjects(),
  somebodysTraining,
];

const serves = (name: string, model: string, node: string, gpus: number): ServedModel => ({
  name,
  model,
  node,
  gpus,
  namespace: servingNamespace,
  uri: `hf://${model}`,
  url: `${gatewayEndpoint}/${servingNamespace}/${name}`,
  since,
});

/** One of them has a GPU of the node with four: a model that wants all four of them needs another node. */
export const servedModels: readonly ServedModel[] = [
  serves('qwen3-0-6b-cpu', 'Qwen/Qwen3-0.6B', 'worker-a', 0),
  serves('qwen3-8b-l4', 'Qwen/Qwen3-8B', 'gpu-l4-x4', 1),
];

const mtime = Date.parse(since);

/** A directory with all that a repository of the Hub has. */
function directoryWith(dir: string, id: string): Directory {
  const model = library.find(each => each.id === id);
  if (!model) throw new Error(`the emulated Hub has no ${id}`);
  const { files } = model;
  const sizes = files.map(file => ('bytes' in file ? file.bytes : Buffer.byteLength(file.text)));
  return { dir, bytes: sizes.reduce((sum, bytes) => sum + bytes, 0), files: files.length, mtime, hasModel: true };
}

/** In the cache: a model that was downloaded, one that came when it was first served, and what is none. */
export const cached: readonly Directory[] = [
  {
    ...directoryWith('gemma-3-4b-gguf', 'ggml-org/gemma-3-4b-it-GGUF'),
    marker: { model: 'ggml-org/gemma-3-4b-it-GGUF', revision: '', dir: 'gemma-3-4b-gguf', completedAt: since },
  },
  directoryWith('qwen3-0-6b-cpu', 'Qwen/Qwen3-0.6B'),
  directoryWith('qwen3-8b-l4', 'Qwen/Qwen3-8B'),
  { dir: 'lost-and-found', bytes: 0, files: 0, mtime, hasModel: false },
];
