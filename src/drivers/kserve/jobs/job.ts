/** A Job as this backend looks at it. */

import { componentLabel, managedByLabel, manager } from '../../../kubernetes/ownership.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { fieldsOf, listOf, textOf } from './fields.ts';

export interface JobView {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** It is one of ours. */
  readonly managed: boolean;
  readonly component: string | undefined;
  readonly annotations: Readonly<Record<string, unknown>>;
  /** It is on its way out. */
  readonly deleting: boolean;
  /** How it ended; absent while it goes on. */
  readonly end: JobEnd | undefined;
}

export interface JobEnd {
  readonly succeeded: boolean;
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

/** Whatever of it is not as it should be is as good as not there. */
export function readJob({ metadata, ...object }: KubernetesObject): JobView {
  const labels = fieldsOf(metadata.labels);
  return {
    name: metadata.name,
    namespace: textOf(metadata.namespace) ?? '',
    uid: textOf(metadata.uid) ?? '',
    managed: labels[managedByLabel] === manager,
    component: textOf(labels[componentLabel]),
    annotations: fieldsOf(metadata.annotations),
    deleting: textOf(metadata.deletionTimestamp) !== undefined,
    end: endIn((object as { status?: unknown }).status),
  };
}

function endIn(status: unknown): JobEnd | undefined {
  for (const condition of listOf(fieldsOf(status).conditions).map(fieldsOf)) {
    const { type, reason, message } = condition;
    if (condition.status === 'True' && (type === 'Complete' || type === 'Failed'))
      return { succeeded: type === 'Complete', reason: textOf(reason), message: textOf(message) };
  }
  return undefined;
}
