/** The GPU pool as discovery and backend documents write it: its fields, what is wrong with it, and it completed. */
import { z } from 'zod';
import { type GpuPool, type InstanceShape, type Taint, taintEffects } from '../../../domain.ts';
import { quoted } from '../../../errors.ts';

const text = z.string().nullish();
const count = z.int().nullish();
const amount = z.number().nullish();

export const taintFields = { key: text, value: text, effect: text };
export const instanceFields = {
  instanceType: text,
  size: text,
  vcpu: count,
  memoryGiB: count,
  gpus: count,
  gpuMemoryGiB: count,
  usableVcpu: amount,
  usableMemoryGiB: amount,
};

type WrittenTaint = z.infer<z.ZodObject<typeof taintFields>>;
type WrittenInstance = z.infer<z.ZodObject<typeof instanceFields>>;

interface WrittenPool {
  readonly taint?: WrittenTaint | null | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>> | null | undefined;
  readonly instances?: readonly WrittenInstance[] | null | undefined;
}

/** A text without white space around it; undefined when that is nothing. */
export const trimmed = (text: string | null | undefined) => text?.trim() || undefined;

/** `instances[1].vcpu: must be positive, got 0`, or nothing when all is well. */
export const problemOfPool = ({ taint, instances }: WrittenPool) =>
  problemOfTaint(taint) ?? problemOfInstances(instances);

export function problemOfTaint(taint: WrittenTaint | null | undefined): string | undefined {
  if (taint && !trimmed(taint.key)) return 'taint.key: required';
  const effect = trimmed(taint?.effect);
  if (effect && !(taintEffects as readonly string[]).includes(effect)) {
    return `taint.effect: must be NoSchedule, PreferNoSchedule or NoExecute, got ${quoted(effect)}`;
  }
  return undefined;
}

const instanceNumbers = ['vcpu', 'memoryGiB', 'gpus', 'gpuMemoryGiB', 'usableVcpu', 'usableMemoryGiB'] as const;

export function problemOfInstances(instances: WrittenPool['instances']): string | undefined {
  for (const [index, instance] of (instances ?? []).entries()) {
    if (!trimmed(instance.instanceType)) return `instances[${index}].instanceType: required`;
    for (const field of instanceNumbers) {
      const value = instance[field] ?? 0;
      if (value <= 0) return `instances[${index}].${field}: must be positive, got ${value}`;
    }
  }
  return undefined;
}

/** A pool that nothing is wrong with. */
export const completedPool = ({ taint, nodeSelector, instances }: WrittenPool): GpuPool => ({
  taint: taint ? completedTaint(taint) : undefined,
  nodeSelector: nodeSelector ?? undefined,
  instances: instances?.map(completedInstance),
});

const completedTaint = (taint: WrittenTaint): Taint => ({
  key: trimmed(taint.key) as string,
  value: trimmed(taint.value),
  effect: taintEffects.find(effect => effect === trimmed(taint.effect)),
});

function completedInstance(instance: WrittenInstance): InstanceShape {
  const instanceType = trimmed(instance.instanceType) as string;
  const afterDot = instanceType.includes('.') ? instanceType.slice(instanceType.indexOf('.') + 1) : undefined;
  // Every number was found to be there.
  const { vcpu, memoryGiB, gpus, gpuMemoryGiB, usableVcpu, usableMemoryGiB } = instance as Record<
    (typeof instanceNumbers)[number],
    number
  >;
  const size = trimmed(instance.size) ?? trimmed(afterDot);
  return { instanceType, size, vcpu, memoryGiB, gpus, gpuMemoryGiB, usableVcpu, usableMemoryGiB };
}
