import type { LoadedModel, Model, NodeInfo } from '../../domain.ts';
import { oneLine } from '../http.ts';
import type { SystemInfo } from './wire.ts';

/** Bytes, or why they are not known. */
export type HostMemory = { readonly bytes: number } | { readonly unknown: string };

/** All are powers of 1024, whatever they are called: Linux hosts write GiB as `23.54 GB`. */
const units: Readonly<Record<string, number>> = { b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** The memory of a host as the server writes it: `86.07 GB`, `64 GB`, `32` (GB), or words that say why it cannot. */
export function hostMemoryOf(memory: string | number | undefined): HostMemory {
  if (memory === undefined) return { unknown: 'system-info does not say' };
  const [, amount, unit = 'g'] = /^(\d+(?:\.\d+)?)\s*(?:([bkmgt])i?b?)?$/i.exec(String(memory).trim()) ?? [];
  const bytes = Math.round(Number(amount) * (units[unit.toLowerCase()] ?? Number.NaN));
  return Number.isSafeInteger(bytes) && bytes > 0
    ? { bytes }
    : { unknown: `system-info says "${oneLine(String(memory), 80)}"` };
}

const architectures: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  amd64: 'amd64',
  x64: 'amd64',
  aarch64: 'arm64',
  arm64: 'arm64',
};

/** An architecture in the spelling of Kubernetes. */
function architectureOf(family: string | undefined): string | undefined {
  const word = family?.trim().toLowerCase() ?? '';
  return (architectures[word] ?? word) || undefined;
}

export interface HostFacts {
  readonly backend: string;
  /** Name of the host. */
  readonly name: string;
  readonly system: SystemInfo;
  /** The models on its disk. */
  readonly models: readonly Model[];
  /** The models in its memory. */
  readonly loaded: readonly LoadedModel[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The one node of a host: its memory is the budget, and the weights of what is loaded take from it. */
export function nodeOf({ backend, name, system, models, loaded, now }: HostFacts): NodeInfo {
  const { npu, gpus, modelFolder } = system;
  const memory = hostMemoryOf(system.memory);
  const total = 'bytes' in memory ? memory.bytes : undefined;
  const reservedBytes = sizeOf(loaded);
  return {
    backend,
    name,
    ready: true,
    eligible: true,
    architecture: architectureOf(system.cpuFamily),
    allocatableMemoryBytes: total,
    gpuCount: (npu ? 1 : 0) + gpus.length,
    gpuProduct: npu?.name ?? gpus[0]?.name,
    budgetBytes: total,
    budgetSource: 'system-info',
    reservedBytes,
    freeBytes: total === undefined ? undefined : Math.max(0, total - reservedBytes),
    cache:
      modelFolder === undefined
        ? undefined
        : {
            mountPath: modelFolder,
            models: models.length,
            // What the drive has in use besides is not the models', and the parts of a collection are listed themselves.
            bytesUsed: sizeOf(models.filter(({ runtime }) => !runtime?.startsWith('collection'))),
            // To the minute, so that a look that found nothing new changes nothing.
            scannedAt: new Date(now - (now % 60_000)),
            inventory: 'models',
          },
    message: 'unknown' in memory ? `host memory unknown (${memory.unknown})` : undefined,
  };
}

const sizeOf = (rows: readonly { readonly sizeBytes?: number | undefined }[]) =>
  rows.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0);
