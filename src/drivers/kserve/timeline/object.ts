/** What an LLMInferenceService says of itself. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { fieldsOf, textOf } from '../jobs/fields.ts';
import { conditionOf, createdAt, statusOf } from './fields.ts';
import type { Reason } from './pod.ts';
import { joined } from './words.ts';

/** Its message repeats the reason. */
export interface ObjectView extends Reason {
  readonly name: string;
  readonly createdAt: number | undefined;
  readonly deleting: boolean;
  readonly status: 'Ready' | 'NotReady' | 'Pending';
  /** Since when it is ready. */
  readonly readyAt: number | undefined;
  /** It gave up by its own account. */
  readonly failed: boolean;
}

export function objectView(object: KubernetesObject): ObjectView {
  const { name, deletionTimestamp } = object.metadata;
  const account = accountOf(object);
  const message = joined(account.reason, account.message);
  return { name, createdAt: createdAt(object), deleting: deletionTimestamp !== undefined, ...account, message };
}

function accountOf(object: KubernetesObject): Omit<ObjectView, 'name' | 'createdAt' | 'deleting'> {
  const status = statusOf(object);
  const ready = conditionOf(status, 'Ready');
  const { lastFailureInfo, transitionStatus } = fieldsOf(status.modelStatus);
  const { reason, message } = fieldsOf(lastFailureInfo);
  const base = { failed: false, readyAt: undefined } as const;
  if (ready?.status === 'True') return { ...base, status: 'Ready', readyAt: ready.at };
  if (Object.keys(fieldsOf(lastFailureInfo)).length > 0) {
    return { ...base, failed: true, status: 'NotReady', reason: textOf(reason), message: textOf(message) };
  }
  if (ready) {
    const word = ready.status === 'False' ? 'NotReady' : 'Pending';
    return { ...base, status: word, reason: ready.reason, message: ready.message };
  }
  const transition = textOf(transitionStatus);
  if (transition && !['UpToDate', 'InProgress'].includes(transition)) {
    return { ...base, status: 'NotReady', reason: transition };
  }
  return { ...base, status: 'Pending' };
}
