/** What keeps pods off nodes, and what lets those of this backend on. */
import type { Taint } from '../../../domain.ts';
import type { Toleration } from '../presets/preset.ts';
import type { NodeTaint } from './node.ts';

/** What everything carries that is scheduled onto the pool; nothing without a taint. */
export function poolToleration(taint: Taint | undefined): Toleration | undefined {
  if (!taint?.key) return undefined;
  const { key, value, effect } = taint;
  return { key, ...(value ? { operator: 'Equal', value } : { operator: 'Exists' }), ...(effect && { effect }) };
}

/** The taints of a node that keep pods with this toleration off it. */
export const repellingTaints = (taints: readonly NodeTaint[], toleration: Toleration | undefined): NodeTaint[] =>
  taints
    .filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute')
    .filter(taint => !toleration || !tolerates(toleration, taint));

/** `key[=value]:Effect, …`, sorted. */
export const printedTaints = (taints: readonly NodeTaint[]): string =>
  taints
    .map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`)
    .toSorted()
    .join(', ');

const tolerates = ({ key, operator, value, effect }: Toleration, taint: NodeTaint) =>
  (!effect || effect === taint.effect) &&
  (!key || key === taint.key) &&
  (operator === 'Exists' || (value ?? '') === (taint.value ?? ''));
