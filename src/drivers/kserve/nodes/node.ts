/** A Node as the rules of this backend look at it. */
import { z } from 'zod';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { checkData } from '../../yaml.ts';

export interface NodeView {
  readonly name: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly createdAt: Date | undefined;
  readonly ready: boolean;
  readonly taints: readonly NodeTaint[];
  /** Quantities by resource. */
  readonly capacity: Labels;
  readonly allocatable: Labels;
  readonly architecture: string | undefined;
  /** What is wrong with the object: then nothing but its name is known of it. */
  readonly problem: string | undefined;
}

export type Labels = Readonly<Record<string, string>>;

export interface NodeTaint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

const texts = z.record(z.string(), z.string()).nullish();
const quantities = z
  .record(z.string(), z.union([z.string(), z.number()], 'must be a quantity').transform(String))
  .nullish();

/** Unknown fields pass. */
const node = z.looseObject({
  metadata: z.looseObject({ labels: texts, annotations: texts }),
  spec: z
    .looseObject({
      taints: z.array(z.looseObject({ key: z.string(), value: z.string().optional(), effect: z.string() })).nullish(),
    })
    .nullish(),
  status: z
    .looseObject({
      capacity: quantities,
      allocatable: quantities,
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish(),
      nodeInfo: z.looseObject({ architecture: z.string().optional() }).nullish(),
    })
    .nullish(),
});

export function readNode(object: KubernetesObject): NodeView {
  const read = checkData(object, node);
  const { metadata, spec, status } = 'value' in read ? read.value : { metadata: {}, spec: {}, status: {} };
  const created = new Date(object.metadata.creationTimestamp ?? '');
  return {
    name: object.metadata.name,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    createdAt: Number.isNaN(created.getTime()) ? undefined : created,
    ready: status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
    taints: spec?.taints ?? [],
    capacity: status?.capacity ?? {},
    allocatable: status?.allocatable ?? {},
    architecture: status?.nodeInfo?.architecture || undefined,
    problem: 'problem' in read ? read.problem : undefined,
  };
}

/** Whether labels are all those of a selector. */
export const matchesSelector = (labels: Labels, selector: Labels | undefined) =>
  Object.entries(selector ?? {}).every(([key, value]) => labels[key] === value);

/** `a=1, b=2` */
export const printedSelector = (selector: Labels) =>
  Object.keys(selector)
    .toSorted()
    .map(key => `${key}=${selector[key]}`)
    .join(', ');

/** A label or annotation that counts something; undefined when it is not a whole number above 0 that can be counted with. */
export function countIn(text: string | undefined): number | undefined {
  const count = /^\+?\d+$/.test(text ?? '') ? Number(text) : 0;
  return count > 0 && Number.isSafeInteger(count) ? count : undefined;
}
