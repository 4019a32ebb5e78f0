/**
 * What stands in the way of a model on every node and every size of the pool, and what would take it away: the rules of the
 * fit, told in full where a fit says as much as decides it.
 */
import { obstacle } from '../../domain.ts';
import {
  candidatesAmong,
  claimHolders,
  isListed,
  presetObstacle,
  rulesFor,
  unlistedObstacle,
} from './fit/candidates.ts';
import { memoryObstacle } from './fit/memory.ts';
import { needOf } from './fit/need.ts';
import { growthObstacle, readRequests, sizeName, sizeObstacles, sizesOf } from './fit/poolSizes.ts';
import type { FitFacts, FitQuestion } from './fit.ts';
import { type JudgedNode, judgeNode, type Obstacle, readNodes } from './nodes.ts';

export interface Explanation {
  /** What concerns no node or size of its own. */
  readonly obstacles: readonly Obstacle[];
  /** By name; all of the cluster, or the one that was asked for. */
  readonly nodes: readonly (Place & { readonly node: string })[];
  /** The smallest first; empty when they are not known, and when a node was asked for. */
  readonly sizes: readonly (Place & { readonly size: string; readonly instanceType: string })[];
}

interface Place {
  /** Nothing stands in the way. */
  readonly fits: boolean;
  /** All of it, in the order of the rules. */
  readonly obstacles: readonly Obstacle[];
}

/** Throws where the fit does for want of a weight. */
export function whyNot(question: FitQuestion, facts: FitFacts): Explanation {
  const { preset, node: wanted } = question;
  const { against, hub, tokenConfigured, withoutDocument } = facts;
  const need = needOf(question, hub, facts.settings.defaultOverheadBytes);
  const rules = rulesFor(preset, facts);
  const { gpuPool, gpuResource } = rules.settings;
  const all = readNodes(facts.nodes);
  const listed = all.filter(node => isListed(node, preset, rules.settings)).map(node => judgeNode(node, rules));

  const own = (judged: JudgedNode) => (wanted === undefined ? presetObstacle(judged.node, preset) : undefined);
  const eligible = listed.filter(judged => judged.obstacles.length === 0 && !own(judged));
  const holders = claimHolders(eligible, preset, rules);
  const passedOver = (judged: JudgedNode) =>
    wanted === undefined && holders.length > 0 && eligible.includes(judged) && !holders.includes(judged)
      ? holderObstacle(holders, rules.settings.cache.claim)
      : undefined;
  const judged = new Map(listed.map(each => [each.node, each]));
  const nodes = all
    .filter(({ name }) => wanted === undefined || name === wanted)
    .map(node => {
      const each = judged.get(node);
      const obstacles = each
        ? [...each.obstacles, own(each), passedOver(each), memoryObstacle(need, each, against)]
        : [unlistedObstacle(gpuResource)];
      return { node: node.name, ...placeWith(obstacles) };
    });

  const requests = readRequests(preset);
  const growth = growthObstacle(gpuPool, listed);
  const sizes = sizesOf(gpuPool).map(size => {
    const own =
      'problem' in requests
        ? [obstacle('requests', 'problem', { problem: requests.problem })]
        : sizeObstacles(size, need, requests.value);
    return { size: sizeName(size), instanceType: size.instanceType, ...placeWith([growth, ...own]) };
  });

  const candidates = candidatesAmong(listed, question, rules);
  const why = 'why' in candidates ? candidates.why : undefined;
  const { obstacles } = placeWith([
    why !== undefined && wanted === undefined && withoutDocument !== undefined
      ? obstacle('no-document', 'problem', { problem: withoutDocument })
      : undefined,
    why !== undefined && nodes.length === 0 ? obstacle('no-node', 'problem', { problem: why }) : undefined,
    need.gated && !tokenConfigured ? obstacle('gated', 'token') : undefined,
  ]);
  return { obstacles, nodes, sizes: wanted === undefined ? sizes : [] };
}

function placeWith(found: readonly (Obstacle | undefined)[]): Place {
  const obstacles = found.filter(each => each !== undefined);
  return { fits: obstacles.length === 0, obstacles };
}

const holderObstacle = (holders: readonly JudgedNode[], claim: string): Obstacle =>
  obstacle('claim-elsewhere', 'nodes', { nodes: holders.map(({ node }) => node.name).join(', '), claim });
