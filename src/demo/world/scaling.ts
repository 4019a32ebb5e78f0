/**
 * The pool that models are served on can grow: a pod that finds no GPUs gets a node, after half a minute. The pool is tied to
 * one zone, which has no machine at first; another one would have some.
 */
import { type KarpenterOptions, karpenterDefinitions, nodeClass, nodePool, type Shape } from '../karpenter.ts';
import { poolTaint, servingPool, since } from './places.ts';

const l4 = { gpuProduct: 'NVIDIA-L4', gpuMemoryMiB: 23_034 };

/** What nodes with GPUs are made of, grown or not. */
export const oneL4: Shape = { type: 'g6.2xlarge', cpu: '7910m', memory: '31482348Ki', gpus: 1, ...l4 };
export const fourL4: Shape = { type: 'g6.12xlarge', cpu: '47610m', memory: '190482348Ki', gpus: 4, ...l4 };

const zones = ['eu-central-1a', 'eu-central-1b'] as const;
const machines = [oneL4, fourL4];

export const scaling: KarpenterOptions = {
  machines,
  refusals: [{ zone: zones[0], times: 1 }],
  // 25 s until there are GPUs.
  pace: {
    batchMs: 2_000,
    refusalMs: 2_000,
    terminationMs: 3_500,
    retryMs: 500,
    launchMs: 7_000,
    joinMs: 2_000,
    registerMs: 1_000,
    readyMs: 3_000,
    gpuMs: 4_000,
    consolidateMs: 30_000,
  },
};

export const scalingObjects = (): readonly object[] => [
  ...karpenterDefinitions(),
  nodeClass('gpu', zones, since),
  nodePool({
    name: 'gpu-l4',
    nodeClass: 'gpu',
    labels: servingPool,
    taints: [poolTaint],
    instanceTypes: machines.map(({ type }) => type),
    zones: [zones[0]],
    since,
  }),
];
