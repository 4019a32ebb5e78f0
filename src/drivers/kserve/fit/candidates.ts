/** The nodes a model could be put on, whatever it weighs. */
import { obstacle } from '../../../domain.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { holdsClaim, isPinned } from '../nodes/cacheLocation.ts';
import { matchesSelector, type NodeView, printedSelector } from '../nodes/node.ts';
import {
  isAcceleratorNode,
  type JudgedNode,
  judgeNode,
  type NodeObstacle,
  type NodeRules,
  noAccelerator,
  type Obstacle,
  readNodes,
  reasonsOf,
} from '../nodes.ts';
import { isCpuPreset, isModelImage, type ServingPreset } from '../presets.ts';
import { type KserveSettings, withoutGpus } from '../settings.ts';
import type { FitQuestion } from './question.ts';

/** What nodes are judged by for one model: one that needs no GPU knows no pool, one that is an image no claim. */
export const rulesFor = (preset: ServingPreset | undefined, rules: NodeRules): NodeRules => ({
  ...rules,
  settings: settingsFor(preset, rules.settings),
  ignoresClaim: isModelImage(preset),
});

const settingsFor = (preset: ServingPreset | undefined, settings: KserveSettings) =>
  isCpuPreset(preset) ? withoutGpus(settings) : settings;

/** Whether a node comes into question at all: every one for a model that needs no GPU. */
export const isListed = (node: NodeView, preset: ServingPreset | undefined, { gpuResource }: KserveSettings) =>
  isCpuPreset(preset) || isAcceleratorNode(node, gpuResource);

/** The nodes that come into question, judged. */
export const listedNodes = (
  objects: readonly KubernetesObject[],
  preset: ServingPreset | undefined,
  rules: NodeRules,
): JudgedNode[] =>
  readNodes(objects)
    .filter(node => isListed(node, preset, rules.settings))
    .map(node => judgeNode(node, rules));

/** That a preset wants other nodes than this one. */
export function presetObstacle(
  { labels }: NodeView,
  preset: ServingPreset | undefined,
): Obstacle<'preset-selector'> | undefined {
  if (!preset || matchesSelector(labels, preset.nodeSelector)) return undefined;
  return obstacle('preset-selector', 'labels', { selector: printedSelector(preset.nodeSelector) });
}

/** That a node does not come into question. */
export const unlistedObstacle = (gpuResource: string): Obstacle<'no-accelerator'> =>
  obstacle('no-accelerator', 'signs', { signs: noAccelerator(gpuResource) });

/** A refusal tells the reasons of so many nodes; it is a sentence, not a list. */
const mostTold = 20;

/** Where the model could be put, the best first; or why nowhere. */
export type Candidates = { readonly nodes: readonly JudgedNode[] } | { readonly why: string };

export function candidatesAmong(
  listed: readonly JudgedNode[],
  { node: wanted, preset }: FitQuestion,
  { settings, location }: NodeRules,
): Candidates {
  const { gpuResource } = settings;
  if (wanted !== undefined) {
    const found = listed.find(({ node }) => node.name === wanted);
    if (found && found.obstacles.length === 0) return { nodes: [found] };
    if (found) return { why: `node ${wanted} is not a serving target: ${reasonsOf(found.obstacles)}` };
    return {
      why: isCpuPreset(preset)
        ? `node "${wanted}" not found`
        : `node "${wanted}" not found: it does not exist or is not an accelerator node (${noAccelerator(gpuResource)})`,
    };
  }
  if (listed.length === 0) {
    return {
      why: isCpuPreset(preset)
        ? 'no node: the cluster reports none'
        : `no accelerator node: no node advertises ${gpuResource} or carries the nvidia.com/gpu.present label`,
    };
  }
  const obstacles = new Map(listed.map(judged => [judged, standingIn(judged, preset)]));
  const eligible = listed.filter(judged => obstacles.get(judged)?.length === 0);
  if (eligible.length === 0) {
    const told = listed.slice(0, mostTold);
    const reasons = told.map(judged => `${judged.node.name}: ${reasonsOf(obstacles.get(judged) ?? [])}`);
    const more = listed.length > told.length ? `; and ${listed.length - told.length} more nodes` : '';
    return { why: `no eligible node: ${reasons.join('; ')}${more}` };
  }
  const holders = claimHolders(eligible, preset, { settings, location });
  const nodes = holders.length > 0 ? holders : eligible;
  // Of equals the first by name: sorting keeps their order.
  return { nodes: nodes.toSorted((a, b) => b.freeBytes - a.freeBytes) };
}

/** Of nodes, those that hold the claim where only some can: they go before all others. */
export const claimHolders = (
  nodes: readonly JudgedNode[],
  preset: ServingPreset | undefined,
  { settings, location }: NodeRules,
): JudgedNode[] =>
  settings.cache.enabled && isPinned(location) && !isModelImage(preset)
    ? nodes.filter(({ node }) => holdsClaim(location, node))
    : [];

/** Why a model cannot be put on a node: first what keeps all models away, and only then what its own preset says. */
function standingIn(
  { node, obstacles }: JudgedNode,
  preset: ServingPreset | undefined,
): readonly (NodeObstacle | Obstacle<'preset-selector'>)[] {
  const own = obstacles.length === 0 && presetObstacle(node, preset);
  return own ? [own] : obstacles;
}
