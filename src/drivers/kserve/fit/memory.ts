/** Whether the memory of a node is enough. */
import { budgetAnnotation } from '../nodes/budgets.ts';
import type { JudgedNode, Obstacle } from '../nodes.ts';
import { formatBytes } from '../units.ts';
import type { Need } from './need.ts';

/** What a need is compared with: all that models may take on a node, or what served ones leave of it. */
export type Limit = 'budget' | 'free';

type MemoryObstacle = Obstacle<'no-budget' | 'memory'>;

/** Why a need is too much for a node; nothing when it is not. */
export function memoryObstacle(need: Need, judged: JudgedNode, against: Limit): MemoryObstacle | undefined {
  const { node, source, budgetBytes, reservedBytes } = judged;
  if (budgetBytes <= 0) {
    return {
      code: 'no-budget',
      text: `node ${node.name} reports no memory budget (${source})`,
      change: `annotate the node with ${budgetAnnotation}, in GiB`,
    };
  }
  const limit = limitOf(judged, against);
  if (need.requiredBytes <= limit) return undefined;
  return {
    code: 'memory',
    text: `${need.text} exceed the ${formatBytes(limit)} available on ${node.name} (${source} budget ${formatBytes(budgetBytes)}${reservedClause(judged, against)})`,
    change:
      need.requiredBytes <= budgetBytes
        ? `unload models there: they reserve ${formatBytes(reservedBytes)}`
        : `a node with ${formatBytes(need.requiredBytes)} for models, or a smaller model`,
  };
}

export const fitsOn = (need: Need, judged: JudgedNode, against: Limit) =>
  `${need.text} fit within ${formatBytes(limitOf(judged, against))} on ${judged.node.name} (${judged.source}${reservedClause(judged, against)})`;

const limitOf = ({ budgetBytes, freeBytes }: JudgedNode, against: Limit) =>
  against === 'free' ? freeBytes : budgetBytes;

const reservedClause = ({ reservedBytes }: JudgedNode, against: Limit) =>
  against === 'free' && reservedBytes > 0 ? `, ${formatBytes(reservedBytes)} reserved by running models` : '';
