import type { LoadedModel, NodeInfo } from '../../domain.ts';
import { hostNameOf } from '../address.ts';

/** Bytes, or why they are not known. */
export type HostMemory = { readonly bytes: number } | { readonly unknown: string };

/** `MemTotal` of the text of `/proc/meminfo`. */
export function memTotalOf(meminfo: string): HostMemory {
  const line = meminfo.split('\n').find(each => each.startsWith('MemTotal:'));
  if (line === undefined) return { unknown: 'no MemTotal in /proc/meminfo' };
  const [amount = '', unit, ...more] = line.slice('MemTotal:'.length).trim().split(/\s+/);
  const factor = unit === undefined ? 1 : unit.toLowerCase() === 'kb' ? 1024 : undefined;
  const bytes = /^\d+$/.test(amount) && factor ? Number(amount) * factor : 0;
  if (more.length > 0 || bytes === 0 || !Number.isSafeInteger(bytes))
    return { unknown: `malformed ${JSON.stringify(line.trim().slice(0, 80))} in /proc/meminfo` };
  return { bytes };
}

/** The operator's budget: bytes, nothing (empty or zero), or text that is no budget. */
export function budgetOverrideOf(gib: string | undefined): { readonly bytes?: number; readonly ignored?: string } {
  const raw = gib?.trim() ?? '';
  const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(raw);
  if (raw === '' || (decimal && Number(raw) === 0)) return {};
  const bytes = decimal ? Math.round(Number(raw) * 2 ** 30) : Number.NaN;
  return Number.isSafeInteger(bytes) && bytes > 0 ? { bytes } : { ignored: raw };
}

export interface HostFacts {
  readonly backend: string;
  /** As agents dial it; names the node. */
  readonly agentHost: string;
  readonly loaded: readonly LoadedModel[];
  readonly memory: HostMemory;
  /** GiB as the operator wrote it. */
  readonly memoryBudgetGiB?: string | undefined;
  /** Node's spelling: `x64`. */
  readonly architecture: string;
}

/** The one node of a host: its memory is the budget, and what is loaded takes from it. */
export function nodeOf({ backend, agentHost, loaded, memory, memoryBudgetGiB, architecture }: HostFacts): NodeInfo {
  const override = budgetOverrideOf(memoryBudgetGiB);
  const total = 'bytes' in memory ? memory.bytes : undefined;
  const budgetBytes = override.bytes ?? total;
  const reservedBytes = loaded.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0);
  return {
    backend,
    name: hostNameOf(agentHost),
    ready: true,
    eligible: true,
    architecture: kubernetesArchitecture(architecture),
    allocatableMemoryBytes: total,
    gpuCount: 0,
    accelerated: loaded.some(({ vramBytes = 0 }) => vramBytes > 0),
    budgetBytes,
    budgetSource: override.bytes === undefined ? 'host-meminfo' : 'override',
    reservedBytes,
    freeBytes: budgetBytes === undefined ? undefined : Math.max(0, budgetBytes - reservedBytes),
    message: messageFor(memory, override),
  };
}

function messageFor(memory: HostMemory, override: { bytes?: number; ignored?: string }): string {
  const ignored =
    override.ignored === undefined
      ? ''
      : `ignoring memory budget override ${JSON.stringify(override.ignored.slice(0, 80))} (want a positive number of GiB); `;
  const unknown = 'unknown' in memory ? `host memory unknown (${memory.unknown}); ` : '';
  const source =
    override.bytes === undefined
      ? 'memory as seen from the pod'
      : 'budget set by the operator (chart value ollama.memoryBudgetGiB, flag --ollama-memory-budget-gib)';
  return `${ignored}${unknown}${source}; per-model share on accelerators in running.vramBytes`;
}

const spellings: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
export const kubernetesArchitecture = (arch: string) => spellings[arch] ?? arch;
