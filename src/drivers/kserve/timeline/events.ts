/** What is written of a pod. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { type Fields, fieldsOf, textOf, timeOf } from '../jobs/fields.ts';

export interface EventView {
  readonly reason: string | undefined;
  readonly type: string | undefined;
  readonly message: string;
  /** What it is about. */
  readonly kind: string | undefined;
  readonly name: string | undefined;
  readonly uid: string | undefined;
  /** Of the part of it, such as `spec.containers{main}`. */
  readonly fieldPath: string | undefined;
  /** When it happened first and last; -Infinity = nobody wrote when. */
  readonly first: number;
  readonly last: number;
}

export function eventView(event: KubernetesObject): EventView {
  const fields: Fields = fieldsOf(event);
  const about = fieldsOf(fields.involvedObject);
  const [first, last, once] = [timeOf(fields.firstTimestamp), timeOf(fields.lastTimestamp), timeOf(fields.eventTime)];
  const latest = last ?? once ?? first ?? timeOf(event.metadata.creationTimestamp) ?? Number.NEGATIVE_INFINITY;
  return {
    reason: textOf(fields.reason),
    type: textOf(fields.type),
    message: textOf(fields.message) ?? '',
    kind: textOf(about.kind),
    name: textOf(about.name),
    uid: textOf(about.uid),
    fieldPath: textOf(about.fieldPath),
    first: first ?? latest,
    last: latest,
  };
}

/** The one that happened last; of equals the later in the list. */
export const latestOf = (events: readonly EventView[], reason: string): EventView | undefined =>
  events
    .filter(each => each.reason === reason)
    .toSorted((a, b) => a.last - b.last)
    .at(-1);

/** The one of a container that happened first. */
export const earliestOf = (events: readonly EventView[], reason: string, container: string): EventView | undefined =>
  ofContainer(events, container)
    .filter(each => each.reason === reason)
    .toSorted((a, b) => a.first - b.first)
    .at(0);

export const ofContainer = (events: readonly EventView[], container: string) =>
  events.filter(({ fieldPath }) => fieldPath === `spec.containers{${container}}`);
