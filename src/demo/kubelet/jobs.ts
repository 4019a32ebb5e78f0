/** Jobs, as far as pods are made for them and they end with them. */
import type { KubernetesObject, Metadata } from '../cluster/store/object.ts';
import type { PodSpec } from './pods.ts';

export interface Job extends KubernetesObject {
  readonly spec: {
    readonly backoffLimit: number;
    readonly ttlSecondsAfterFinished?: number;
    readonly podFailurePolicy?: { readonly rules: readonly FailureRule[] };
    readonly template: { readonly metadata?: Partial<Metadata>; readonly spec: PodSpec };
  };
  readonly status?: { readonly conditions?: readonly object[] };
}

interface FailureRule {
  readonly action: string;
  readonly onExitCodes?: {
    readonly containerName?: string;
    readonly operator: string;
    readonly values: readonly number[];
  };
}

/** How a pod ended: 0 is success. */
export interface Exit {
  readonly code: number;
  readonly pod: string;
  readonly container: string;
}

interface Verdict {
  readonly type: 'Complete' | 'Failed';
  readonly reason: string;
  readonly message: string;
}

const letters = 'bcdfghjklmnpqrstvwxz2456789';

/** Five letters by which pods of one maker differ, by their place among all that were made. */
export const endingOf = (place: number): string =>
  [4, 3, 2, 1, 0].map(at => letters[Math.floor(place / letters.length ** at) % letters.length]).join('');

/** A pod for a Job, named after it and by its place among all that were made. */
export function podFor({ metadata: { name, namespace, uid }, spec: { template } }: Job, place: number) {
  const own = { 'job-name': name, 'batch.kubernetes.io/job-name': name, 'batch.kubernetes.io/controller-uid': uid };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...template.metadata,
      name: `${name.slice(0, 57)}-${endingOf(place)}`,
      namespace,
      labels: { ...template.metadata?.labels, ...own },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: template.spec,
  };
}

/** How the Job ends with a pod that ended; undefined when it gets another one. `failed` counts this one, too. */
export function verdictOn(
  { metadata, spec }: Job,
  { code, pod, container }: Exit,
  failed: number,
): Verdict | undefined {
  if (code === 0)
    return { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' };
  const rules = spec.podFailurePolicy?.rules ?? [];
  const rule = rules.findIndex(
    ({ action, onExitCodes: codes }) => action === 'FailJob' && codes && applies(codes, code, container),
  );
  if (rule >= 0) {
    const message = `Container ${container} for pod ${metadata.namespace}/${pod} failed with exit code ${code} matching FailJob rule at index ${rule}`;
    return { type: 'Failed', reason: 'PodFailurePolicy', message };
  }
  if (failed <= spec.backoffLimit) return undefined;
  return { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' };
}

function applies(
  { containerName, operator, values }: NonNullable<FailureRule['onExitCodes']>,
  code: number,
  container: string,
) {
  return (containerName ?? container) === container && values.includes(code) === (operator === 'In');
}
