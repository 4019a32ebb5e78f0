/** A pod as this backend looks at it. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { type Field, fieldsOf, listOf, textOf, timeOf } from './fields.ts';

export interface PodView {
  readonly name: string;
  /** `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`; '' when it does not say. */
  readonly phase: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly node: string | undefined;
  readonly ip: string | undefined;
  readonly ready: boolean;
  readonly deleting: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** In the order in which they run: first those that prepare. */
  readonly containers: readonly ContainerView[];
  /** Why the scheduler has no node for it. */
  readonly unschedulable: string | undefined;
}

interface ContainerView {
  readonly name: string;
  readonly waiting: { readonly reason: string; readonly message: string | undefined } | undefined;
  readonly running: boolean;
  readonly terminated: Terminated | undefined;
}

interface Terminated {
  readonly exitCode: number;
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

/** Whatever of it is not as it should be is as good as not there. */
export function readPod(object: KubernetesObject): PodView {
  const { metadata, spec, status: state } = object as KubernetesObject & { spec?: unknown; status?: unknown };
  const status = fieldsOf(state);
  const conditions = listOf(status.conditions).map(fieldsOf);
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  const isUnschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  return {
    name: metadata.name,
    phase: textOf(status.phase) ?? '',
    reason: textOf(status.reason),
    message: textOf(status.message),
    node: textOf(fieldsOf(spec).nodeName),
    ip: textOf(status.podIP),
    ready: conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
    deleting: textOf(metadata.deletionTimestamp) !== undefined,
    createdAt: timeOf(metadata.creationTimestamp) ?? 0,
    containers: [...listOf(status.initContainerStatuses), ...listOf(status.containerStatuses)].map(readContainer),
    unschedulable: isUnschedulable ? (textOf(scheduled.message) ?? 'Unschedulable') : undefined,
  };
}

function readContainer(status: Field): ContainerView {
  const { name, state } = fieldsOf(status);
  const { waiting, running, terminated } = fieldsOf(state);
  const { reason, message } = fieldsOf(waiting);
  return {
    name: textOf(name) ?? '',
    waiting: waiting ? { reason: textOf(reason) ?? '', message: textOf(message) } : undefined,
    running: Boolean(running),
    terminated: terminated ? readTerminated(fieldsOf(terminated)) : undefined,
  };
}

const readTerminated = ({ exitCode, reason, message }: ReturnType<typeof fieldsOf>): Terminated => ({
  exitCode: typeof exitCode === 'number' ? exitCode : 1,
  reason: textOf(reason),
  message: textOf(message),
});

const hopeless = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CreateContainerError',
]);

/** Why a pod will not start however long one waits; undefined while it may. */
export function cannotStart({ containers, unschedulable, phase }: PodView): string | undefined {
  if (phase !== 'Pending' && phase !== '') return undefined;
  const waiting = containers.find(container => hopeless.has(container.waiting?.reason ?? ''))?.waiting;
  if (waiting) return wordsOf(waiting.reason, waiting.message);
  const isClaimMissing = /\bpersistentvolumeclaim\b.*\bnot found\b/is.test(unschedulable ?? '');
  return isClaimMissing ? unschedulable : undefined;
}

/** What a pod is doing that is neither running nor over. */
export function waitingWords({ containers, unschedulable, phase }: PodView): string {
  const waiting = containers.find(container => container.waiting)?.waiting;
  const why = unschedulable ?? (waiting && wordsOf(waiting.reason, waiting.message));
  return [phase || 'without a phase', why].filter(Boolean).join(', ');
}

/** What ended the pod: the container that failed first. */
export const failedContainer = ({ containers }: PodView) =>
  containers.find(({ terminated }) => terminated && terminated.exitCode !== 0);

const wordsOf = (reason: string, message: string | undefined) => [reason, message].filter(Boolean).join(': ');

/** The pods of a Job, the newest first. Those that belonged to another Job of its name do not count. */
export function podsOf(pods: readonly KubernetesObject[], job: { readonly name: string; readonly uid: string }) {
  return pods
    .filter(({ metadata }) => isOf(metadata, job))
    .map(readPod)
    .sort((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1));
}

function isOf({ labels, ownerReferences }: KubernetesObject['metadata'], { name, uid }: { name: string; uid: string }) {
  const { 'job-name': old, 'batch.kubernetes.io/job-name': known = old } = fieldsOf(labels);
  if (known !== name) return false;
  const owners = listOf(ownerReferences)
    .map(fieldsOf)
    .filter(({ kind }) => kind === 'Job');
  return owners.length === 0 || owners.some(owner => owner.uid === uid);
}
