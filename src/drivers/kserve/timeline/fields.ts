/** Looking into objects of which only the name is known. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { type Fields, fieldsOf, listOf, textOf, timeOf } from '../jobs/fields.ts';

export interface Condition {
  readonly status: string | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly at: number | undefined;
}

/** The condition of a type in a `status`; undefined when it has none. */
export function conditionOf(status: Fields, type: string): Condition | undefined {
  const found = listOf(status.conditions)
    .map(fieldsOf)
    .find(each => each.type === type);
  if (!found) return undefined;
  return {
    status: textOf(found.status),
    reason: textOf(found.reason),
    message: textOf(found.message),
    at: timeOf(found.lastTransitionTime),
  };
}

export const specOf = (object: KubernetesObject | undefined): Fields => fieldsOf(fieldsOf(object).spec);
export const statusOf = (object: KubernetesObject | undefined): Fields => fieldsOf(fieldsOf(object).status);
export const createdAt = (object: KubernetesObject): number | undefined => timeOf(object.metadata.creationTimestamp);
export const namedIn = (objects: readonly KubernetesObject[], name: string | undefined) =>
  objects.find(({ metadata }) => metadata.name === name);
export const distinct = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];
export const dateOf = (ms: number | undefined): Date | undefined => (ms === undefined ? undefined : new Date(ms));
