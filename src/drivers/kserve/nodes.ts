/** The nodes models are served on: which they are, which of them a model can be put on and why not on the others. */
import { type FitCode, type NodeCache, type NodeInfo, obstacle, type Target } from '../../domain.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import { budgetOf, type NodeBudget } from './nodes/budgets.ts';
import { type CacheLocation, holdsClaim, isPinned, mayHoldClaim } from './nodes/cacheLocation.ts';
import { freeGpusOf } from './nodes/devices.ts';
import { countIn, matchesSelector, type NodeView, printedSelector, readNode } from './nodes/node.ts';
import { awaitedBy, isYoung, startingUntil } from './nodes/starting.ts';
import { poolToleration, printedTaints, repellingTaints } from './nodes/taints.ts';
import { amountOf } from './quantity.ts';
import type { KserveSettings } from './settings.ts';

/** One thing that stands in the way of a model. */
export interface Obstacle<Code extends FitCode = FitCode> {
  readonly code: Code;
  /** As refusals say it. */
  readonly text: string;
  /** What would take it away. */
  readonly change: string;
}

export type NodeObstacle = Obstacle<
  'unreadable' | 'not-ready' | 'serving-selector' | 'pool-selector' | 'taint' | 'cache-claim'
>;

/** What nodes are judged by. */
export interface NodeRules {
  readonly settings: KserveSettings;
  /** Absent when the cache is off, or nobody knows where its claim lives. */
  readonly location?: CacheLocation | undefined;
  /** The model takes nothing from the claim. */
  readonly ignoresClaim?: boolean | undefined;
  /** Bytes that served models take, by node. */
  readonly reserved?: ReadonlyMap<string, number> | undefined;
}

/** A node that was judged. */
export interface JudgedNode extends NodeBudget {
  readonly node: NodeView;
  /** Why no model can be put on it: all reasons, in the order of the rules. */
  readonly obstacles: readonly NodeObstacle[];
  readonly reservedBytes: number;
  readonly freeBytes: number;
}

const presentLabel = 'nvidia.com/gpu.present';

/** Whether a node has an accelerator, or says so. One that cannot be read is not passed over in silence. */
export function isAcceleratorNode({ labels, capacity, allocatable, problem }: NodeView, gpuResource: string): boolean {
  const present = labels[presentLabel] ?? '';
  return (
    problem !== undefined ||
    (amountOf(capacity[gpuResource]) ?? 0) > 0 ||
    (amountOf(allocatable[gpuResource]) ?? 0) > 0 ||
    (present !== '' && present.toLowerCase() !== 'false') ||
    countIn(labels['nvidia.com/gpu.count']) !== undefined ||
    Boolean(labels['nvidia.com/gpu.product'])
  );
}

/** What makes a node none that models are put on, in words. */
export const noAccelerator = (gpuResource: string) => `no ${gpuResource} resource, no ${presentLabel} label`;

/** Nodes by name. */
export const readNodes = (objects: readonly KubernetesObject[]): NodeView[] =>
  objects.map(readNode).toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));

export function judgeNode(node: NodeView, rules: NodeRules): JudgedNode {
  const budget = budgetOf(node, rules.settings);
  const reservedBytes = rules.reserved?.get(node.name) ?? 0;
  return {
    ...budget,
    node,
    obstacles: obstaclesOn(node, rules),
    reservedBytes,
    freeBytes: Math.max(budget.budgetBytes - reservedBytes, 0),
  };
}

export const reasonsOf = (obstacles: readonly Obstacle[]) => obstacles.map(({ text }) => text).join('; ');

/** All rules are tested: who mends one is to know of the others. */
function obstaclesOn(node: NodeView, { settings, location, ignoresClaim }: NodeRules): NodeObstacle[] {
  const { nodeSelector, gpuPool, cache } = settings;
  if (node.problem) {
    return [obstacle('unreadable', 'problem', { problem: node.problem, node: node.name })];
  }
  const found: NodeObstacle[] = [];
  if (!node.ready) {
    found.push(obstacle('not-ready', 'condition'));
  }
  if (!matchesSelector(node.labels, nodeSelector)) {
    found.push(obstacle('serving-selector', 'labels', { selector: printedSelector(nodeSelector) }));
  }
  const poolSelector = gpuPool?.nodeSelector ?? {};
  if (!matchesSelector(node.labels, poolSelector)) {
    found.push(obstacle('pool-selector', 'labels', { selector: printedSelector(poolSelector) }));
  }
  const repelling = repellingTaints(node.taints, poolToleration(gpuPool?.taint));
  if (repelling.length > 0) {
    // A pool has one taint, and what runs without GPUs tolerates none.
    const canBePools = gpuPool && !gpuPool.taint?.key && repelling.length === 1;
    found.push(obstacle('taint', canBePools ? 'offOrPools' : 'off', { taints: printedTaints(repelling) }));
  }
  if (!ignoresClaim && cache.enabled && cache.redirectPolicy && isPinned(location) && !holdsClaim(location, node)) {
    found.push(obstacle('cache-claim', 'pinned', { claim: location.claim, nodes: location.nodes.join(', ') }));
  }
  return found;
}

/** What is known of the cache by looking into it. */
export type CacheCount = Pick<NodeCache, 'models' | 'bytesUsed' | 'scannedAt' | 'error'>;

export interface NodeListing extends NodeRules {
  readonly backend: string;
  readonly target?: Target | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Devices that pods have, by node; absent when nobody knows. */
  readonly gpusTaken?: ReadonlyMap<string, number> | undefined;
  /** Of the claim as this node has it mounted; absent when nobody looked. */
  countOn?(node: string): CacheCount | undefined;
}

/** The accelerator nodes, by name. */
export const nodeInfos = (objects: readonly KubernetesObject[], listing: NodeListing): NodeInfo[] =>
  readNodes(objects)
    .filter(node => isAcceleratorNode(node, listing.settings.gpuResource))
    .map(node => nodeInfo(judgeNode(node, listing), listing));

/** The moments at which the listing of nodes is another one though no node has changed, in milliseconds since the epoch. */
export const momentsOf = (objects: readonly KubernetesObject[]): number[] =>
  objects.map(object => startingUntil(object.metadata.creationTimestamp));

/** What a node waits for that is coming up and that nothing else keeps models off. */
function awaitedOn({ node, obstacles, gpuCount }: JudgedNode, { settings, now }: NodeListing): string | undefined {
  const passes = obstacles.every(({ code }) => code === 'not-ready' || code === 'taint');
  if (!passes || !isYoung(node.createdAt, now)) return undefined;
  const { gpuPool, gpuResource } = settings;
  const taints = repellingTaints(node.taints, poolToleration(gpuPool?.taint));
  return awaitedBy(node, { taints, gpuCount, gpuResource });
}

function nodeInfo(judged: JudgedNode, listing: NodeListing): NodeInfo {
  const { node, obstacles, budgetBytes } = judged;
  const { backend, target, settings, location, countOn } = listing;
  const startingReason = awaitedOn(judged, listing);
  const eligible = obstacles.length === 0;
  const { claim, mountPath, enabled } = settings.cache;
  const count = countOn?.(node.name);
  return {
    backend,
    target,
    name: node.name,
    ready: node.ready,
    eligible,
    eligibilityReason: eligible ? undefined : reasonsOf(obstacles),
    startingSince: startingReason === undefined ? undefined : node.createdAt,
    startingReason,
    architecture: node.architecture,
    allocatableMemoryBytes: judged.allocatableMemoryBytes,
    gpuCount: judged.gpuCount,
    freeGpus: freeGpusOf(node, settings.gpuResource, listing.gpusTaken),
    gpuProduct: judged.gpuProduct,
    gpuMemoryBytes: judged.gpuMemoryBytes,
    budgetBytes: budgetBytes || undefined,
    budgetSource: judged.source,
    reservedBytes: judged.reservedBytes,
    freeBytes: budgetBytes ? judged.freeBytes : undefined,
    message: judged.message,
    cache:
      enabled && location && mayHoldClaim(location, node)
        ? {
            claim,
            mountPath,
            models: 0,
            bytesUsed: 0,
            ...count,
            shared: location.shared,
            inventory: count && settings.inventory.mode,
          }
        : undefined,
  };
}
