/** Whether a pool that has no node yet would get one that a model fits on. */

import type { Read } from '../../../config/values.ts';
import { type GpuPool, type InstanceShape, obstacle } from '../../../domain.ts';
import { invalidRequest, quoted } from '../../../errors.ts';
import { matchesSelector, printedSelector } from '../nodes/node.ts';
import type { JudgedNode, Obstacle } from '../nodes.ts';
import type { ServingPreset } from '../presets.ts';
import { parseQuantity } from '../quantity.ts';
import { bytesOfGib, formatAmount, formatBytes, gib } from '../units.ts';
import { declarationClause, type Need } from './need.ts';
import type { FitQuestion } from './question.ts';

/** What the pod of a model asks its node for. */
interface Requests {
  /** Cores. */
  readonly cpu: number;
  readonly memoryGiB: number;
  readonly gpus: number;
}

/** What a pod is given that asks for nothing. */
const usualRequests = { cpu: '2', memory: '8Gi' } as const;

/** Undefined without a preset: nobody says what its pod will ask for. */
export function readRequests(preset: ServingPreset | undefined): Read<Requests | undefined> {
  if (!preset) return { value: undefined };
  const amounts = { cpu: 0, memory: 0 };
  for (const resource of ['cpu', 'memory'] as const) {
    const text = preset.requests[resource] ?? usualRequests[resource];
    const read = parseQuantity(text);
    const problem = 'problem' in read ? read.problem : read.value < 0 ? 'must not be below 0' : undefined;
    if (problem) {
      return { problem: `preset ${preset.name}: resources.requests.${resource} ${quoted(text)}: ${problem}` };
    }
    if ('value' in read) amounts[resource] = read.value;
  }
  return { value: { cpu: amounts.cpu, memoryGiB: amounts.memory / gib, gpus: preset.gpus } };
}

/** Why a pool does not count by the sizes it could grow to; nothing when it does: it is known, and has no node. */
export function growthObstacle(
  pool: GpuPool | undefined,
  listed: readonly JudgedNode[],
): Obstacle<'pool-unknown' | 'pool-has-nodes'> | undefined {
  const selector = pool?.nodeSelector;
  if (!selector) return obstacle('pool-unknown', 'selector');
  const there = listed.filter(({ node }) => matchesSelector(node.labels, selector));
  if (there.length === 0) return undefined;
  const key = there.length === 1 ? 'one' : 'several';
  return obstacle('pool-has-nodes', key, { selector: printedSelector(selector) });
}

export type SizeObstacle = Obstacle<'cpu' | 'memory' | 'gpus' | 'gpu-memory'>;

/** The sizes of a pool, the smallest first. */
export const sizesOf = (pool: GpuPool | undefined): readonly InstanceShape[] =>
  (pool?.instances ?? []).toSorted((a, b) => a.vcpu - b.vcpu || a.memoryGiB - b.memoryGiB);

export const sizeName = ({ size, instanceType }: InstanceShape) => size ?? instanceType;

/** Why a size does not host a model: all reasons. The memory is that of the GPUs its pod asks for. */
export function sizeObstacles(size: InstanceShape, need: Need, requests: Requests | undefined): SizeObstacle[] {
  const found: SizeObstacle[] = [];
  if (requests && requests.cpu > size.usableVcpu) {
    const cores = (amount: number) => `${formatAmount(amount)} vCPU`;
    found.push(obstacle('cpu', 'size', { asked: cores(requests.cpu), left: cores(size.usableVcpu) }));
  }
  if (requests && requests.memoryGiB > size.usableMemoryGiB) {
    const memory = (amount: number) => `${formatAmount(amount)} GiB`;
    const asked = memory(requests.memoryGiB);
    found.push(obstacle('memory', 'size', { asked, left: memory(size.usableMemoryGiB) }));
  }
  const gpus = gpusOf(requests);
  if (gpus > size.gpus) {
    found.push(obstacle('gpus', 'size', { gpus, has: size.gpus }));
  }
  const memory = gpuBudget(size, requests);
  if (need.requiredBytes > memory) {
    found.push(
      obstacle('gpu-memory', 'size', {
        need: need.text,
        memory: formatBytes(memory),
        gpus,
        each: formatBytes(Math.ceil(need.requiredBytes / gpus)),
      }),
    );
  }
  return found;
}

const gpusOf = (requests: Requests | undefined) => Math.max(requests?.gpus ?? 1, 1);
const gpuBudget = ({ gpuMemoryGiB }: InstanceShape, requests: Requests | undefined) =>
  bytesOfGib(gpuMemoryGiB * gpusOf(requests));

/** What a pool at zero says to a model. */
export interface PoolVerdict {
  readonly fits: boolean;
  readonly reason: string;
  readonly instanceType?: string | undefined;
  readonly budgetBytes?: number | undefined;
  readonly freeBytes?: number | undefined;
}

/** The pool has a selector and no node. Throws `invalid_request` for a preset whose requests are no quantities. */
export function poolVerdict(pool: GpuPool, { preset, repository }: FitQuestion, need: Need): PoolVerdict {
  const where = `no node in the GPU pool yet (${printedSelector(pool.nodeSelector ?? {})}): the pool scales from zero`;
  const sizes = sizesOf(pool);
  const largest = sizes.at(-1);
  if (!largest) {
    const reason = `${where} — the predictor waits for its node; the fit of ${need.text} against the pool's accelerator is unverified`;
    return { fits: true, reason: reason + declarationClause(need, true) };
  }
  const read = readRequests(preset);
  if ('problem' in read) throw invalidRequest(read.problem);
  const requests = read.value;
  const gpus = gpusOf(requests);
  const needs = needsInWords(need, requests);
  const hosting = sizes.find(size => sizeObstacles(size, need, requests).length === 0);
  const shape = hosting ?? largest;
  const name = sizeName(shape);
  const budgetBytes = gpuBudget(shape, requests);
  const budget = `${formatBytes(budgetBytes)} on the ${gpus} GPU the predictor requests`;
  const left = `${formatAmount(shape.usableVcpu)} vCPU / ${formatAmount(shape.usableMemoryGiB)} GiB`;
  const cards = `${shape.gpus} × ${shape.gpuMemoryGiB} GiB GPU`;
  const clause = declarationClause(need, hosting !== undefined);
  if (hosting) {
    const reason = `${where} — the node comes as ${name} (${shape.instanceType}: ${left} for the predictor, ${cards}); ${need.text} fit within ${budget}, and ${name} hosts ${needs}${clause}`;
    return { fits: true, reason, instanceType: shape.instanceType, budgetBytes, freeBytes: budgetBytes };
  }
  const asked = preset ? `preset ${preset.name}` : repository;
  const reason = `${where} — no size of the pool (${sizes.map(sizeName).join(', ')}) hosts ${asked}: ${needs}; ${name}, the largest, leaves a predictor ${left} after the node's kubelet reservations and daemonsets and carries ${cards}, ${budget} (${need.text} needed); widen the pool's sizes or pick a smaller preset${clause}`;
  return { fits: false, reason, budgetBytes };
}

function needsInWords({ requiredBytes }: Need, requests: Requests | undefined): string {
  const memory = `${formatAmount(requiredBytes / gib)} GiB of GPU memory`;
  return requests
    ? `${formatAmount(requests.cpu)} vCPU / ${formatAmount(requests.memoryGiB)} GiB requested, ${requests.gpus} GPU, ${memory}`
    : `${memory} on 1 GPU (no preset: weights and default overhead only)`;
}
