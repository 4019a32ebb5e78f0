/** Whether the memory of a node is enough. */
import { obstacle } from '../../../domain.ts';
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
    return obstacle('no-budget', 'source', { node: node.name, source, annotation: budgetAnnotation });
  }
  const limit = limitOf(judged, against);
  if (need.requiredBytes <= limit) return undefined;
  const numbers = {
    need: need.text,
    limit: formatBytes(limit),
    node: node.name,
    source,
    budget: formatBytes(budgetBytes),
    clause: reservedClause(judged, against),
  };
  return need.requiredBytes <= budgetBytes
    ? obstacle('memory', 'reserved', { ...numbers, reserved: formatBytes(reservedBytes) })
    : obstacle('memory', 'tooLarge', { ...numbers, required: formatBytes(need.requiredBytes) });
}

export const fitsOn = (need: Need, judged: JudgedNode, against: Limit) =>
  `${need.text} fit within ${formatBytes(limitOf(judged, against))} on ${judged.node.name} (${judged.source}${reservedClause(judged, against)})`;

const limitOf = ({ budgetBytes, freeBytes }: JudgedNode, against: Limit) =>
  against === 'free' ? freeBytes : budgetBytes;

const reservedClause = ({ reservedBytes }: JudgedNode, against: Limit) =>
  against === 'free' && reservedBytes > 0 ? `, ${formatBytes(reservedBytes)} reserved by running models` : '';
