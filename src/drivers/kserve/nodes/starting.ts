/** Nodes that are coming up: what keeps models off them goes away by itself. */
import { amountOf } from '../quantity.ts';
import type { NodeTaint, NodeView } from './node.ts';
import { printedTaints } from './taints.ts';

/** A node that takes longer than this to come up has a fault, in milliseconds. */
const startingMs = 15 * 60_000;

/** Taints that a node is born with and that go once it is prepared. That it is unreachable is none of them. */
const startupTaints: readonly string[] = [
  'node.kubernetes.io/not-ready',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'karpenter.sh/unregistered',
];

/** Storage and network drivers have one each: `ebs.csi.aws.com/agent-not-ready`. */
const isStartupTaint = ({ key }: NodeTaint) => startupTaints.includes(key) || key.endsWith('/agent-not-ready');

/** When a node is no longer taken as one that comes up, in milliseconds since the epoch; NaN when its age is unknown. */
export const startingUntil = (createdAt: Date | string | undefined): number =>
  new Date(createdAt ?? '').getTime() + startingMs;

/** Whether a node is so young at a moment; of one from a later time nobody knows, but for clocks that differ a little. */
export const isYoung = (createdAt: Date | undefined, now: number): boolean =>
  createdAt !== undefined && Math.abs(now - createdAt.getTime()) < startingMs;

export interface Waits {
  /** Taints that keep models off it. */
  readonly taints: readonly NodeTaint[];
  readonly gpuCount: number;
  readonly gpuResource: string;
}

/** What a young node waits for, in words; nothing when it waits for nothing, or for what does not come by itself. */
export function awaitedBy({ ready, allocatable }: NodeView, { taints, gpuCount, gpuResource }: Waits) {
  if (!taints.every(isStartupTaint)) return undefined;
  const awaited = [
    ready ? undefined : 'not ready',
    taints.length > 0 ? `taint ${printedTaints(taints)}` : undefined,
    gpuCount > 0 && (amountOf(allocatable[gpuResource]) ?? 0) < 1 ? `${gpuResource} not allocatable yet` : undefined,
  ];
  return awaited.filter(each => each !== undefined).join('; ') || undefined;
}
