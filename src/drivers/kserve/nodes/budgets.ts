/** How much memory models may take on a node, and what says so. */
import { quoted } from '../../../errors.ts';
import { amountOf } from '../quantity.ts';
import type { KserveSettings } from '../settings.ts';
import { gib } from '../units.ts';
import { countIn, type NodeView } from './node.ts';

export interface NodeBudget {
  readonly gpuCount: number;
  /** Of one GPU; absent when no label says. */
  readonly gpuMemoryBytes: number | undefined;
  readonly gpuProduct: string | undefined;
  readonly allocatableMemoryBytes: number | undefined;
  /** 0 when nothing says. */
  readonly budgetBytes: number;
  readonly source: 'gpu-labels' | 'allocatable' | 'annotation';
  readonly message: string | undefined;
}

export const budgetAnnotation = 'model-manager.giantswarm.io/memory-budget-gib';
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

export function budgetOf(
  node: NodeView,
  { gpuResource, budgetSource }: Pick<KserveSettings, 'gpuResource' | 'budgetSource'>,
): NodeBudget {
  const gpuCount = gpuCountOf(node, gpuResource);
  const gpuMemoryBytes = countable((countIn(node.labels['nvidia.com/gpu.memory']) ?? 0) * 2 ** 20);
  const allocatable = amountOf(node.allocatable.memory);
  const allocatableMemoryBytes = allocatable && countable(Math.floor(allocatable));
  const gpuBudget = gpuMemoryBytes && countable(gpuMemoryBytes * Math.max(gpuCount, 1));
  const byLabels = budgetSource === 'gpu-labels' || (budgetSource === 'auto' && gpuBudget !== undefined);
  const measured = byLabels
    ? ({ budgetBytes: gpuBudget ?? 0, source: 'gpu-labels' } as const)
    : ({ budgetBytes: allocatableMemoryBytes ?? 0, source: 'allocatable' } as const);
  return {
    gpuCount,
    gpuMemoryBytes,
    gpuProduct: node.labels['nvidia.com/gpu.product'] || undefined,
    allocatableMemoryBytes,
    message: undefined,
    ...measured,
    ...annotated(node.annotations[budgetAnnotation], measured.source),
  };
}

/** The operator's word goes before everything that is measured. */
function annotated(
  raw: string | undefined,
  source: NodeBudget['source'],
): Partial<Pick<NodeBudget, 'budgetBytes' | 'source' | 'message'>> {
  if (raw === undefined) return {};
  const text = raw.trim();
  const bytes = decimal.test(text) ? countable(Math.round(Number(text) * gib)) : undefined;
  if (bytes) return { budgetBytes: bytes, source: 'annotation' };
  return {
    message: `ignoring annotation ${budgetAnnotation}=${quoted(raw)}: want a positive number of GiB; budget taken from ${source}`,
  };
}

/** What a label counts goes before what can be allocated, and that before what is built in. */
function gpuCountOf({ labels, allocatable, capacity }: NodeView, gpuResource: string): number {
  const advertised = (amount: string | undefined) => countable(Math.floor(amountOf(amount) ?? 0));
  return (
    countIn(labels['nvidia.com/gpu.count']) ??
    advertised(allocatable[gpuResource]) ??
    advertised(capacity[gpuResource]) ??
    0
  );
}

/** Nothing for 0, less, and what is too much to count with. */
const countable = (amount: number) => (amount > 0 && Number.isSafeInteger(amount) ? amount : undefined);
