import { timestamp } from '../cluster/store/object.ts';

/** A condition of a ModelConfig. */
interface Condition {
  readonly type: 'Accepted' | 'ResolvedRefs';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

/** What a ModelConfig says of its key. */
export interface KeyReference {
  readonly apiKeySecret?: string;
  readonly apiKeySecretKey?: string;
}

export interface Status {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

interface Finding {
  readonly type: Condition['type'];
  readonly status: Condition['status'];
  readonly reason: string;
  readonly message: string;
}

const accepted: Finding = {
  type: 'Accepted',
  status: 'True',
  reason: 'Reconciled',
  message: 'the ModelConfig is accepted',
};

/** What is to be said of a ModelConfig in a namespace; `keys` are those of its Secret, undefined when it is not there. */
export function findingsOf(
  { apiKeySecret, apiKeySecretKey }: KeyReference,
  namespace: string,
  keys: readonly string[] | undefined,
): readonly Finding[] {
  const resolved = (status: Condition['status'], reason: string, message: string): Finding[] => [
    accepted,
    { type: 'ResolvedRefs', status, reason, message },
  ];
  if (!apiKeySecret) return resolved('True', 'NothingReferred', 'nothing is referred to');
  const secret = `Secret ${namespace}/${apiKeySecret}`;
  if (!keys) return resolved('False', 'SecretNotFound', `${secret} not found`);
  if (apiKeySecretKey && !keys.includes(apiKeySecretKey)) {
    return resolved('False', 'KeyNotFound', `${secret} has no key ${apiKeySecretKey}`);
  }
  return resolved('True', 'ReferencesResolved', `${secret} was found`);
}

/** The status that says so, as of a time in milliseconds. */
export function statusOf(
  findings: readonly Finding[],
  generation: number,
  before: Status | undefined,
  now: number,
): Status {
  const conditions = findings.map(finding => {
    const known = before?.conditions?.find(({ type }) => type === finding.type);
    const lastTransitionTime = known?.status === finding.status ? known.lastTransitionTime : timestamp(now);
    return { ...finding, observedGeneration: generation, lastTransitionTime };
  });
  return { ...before, observedGeneration: generation, conditions };
}
