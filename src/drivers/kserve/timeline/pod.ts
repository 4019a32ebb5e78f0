/** The pod that speaks for a served model, and its containers. */
import { oneOf, type ReasonCode } from '../../../domain.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { type Fields, fieldsOf, listOf, textOf, timeOf, wholeNumber } from '../jobs/fields.ts';
import { amountOf } from '../quantity.ts';
import { type Condition, conditionOf, createdAt, specOf, statusOf } from './fields.ts';

export interface Termination extends Reason {
  readonly exitCode: number | undefined;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
}

export interface Container {
  readonly name: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly waiting: Reason | undefined;
  readonly running: { readonly startedAt: number | undefined } | undefined;
  readonly terminated: Termination | undefined;
  readonly lastTerminated: Termination | undefined;
}

/** One word and what it means. */
export interface Reason {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export interface PodView {
  readonly uid: string | undefined;
  readonly createdAt: number | undefined;
  readonly phase: string | undefined;
  readonly node: string | undefined;
  readonly nominatedNode: string | undefined;
  readonly scheduled: Condition | undefined;
  readonly containersReadyAt: number | undefined;
  /** It initializes at all. */
  readonly initializes: boolean;
  readonly initContainers: readonly Container[];
  /** The runtime is the first: kubelets sort them by name. */
  readonly containers: readonly Container[];
  readonly restartPolicy: string | undefined;
  /** Of its own, such as `Evicted`. */
  readonly own: Reason;
  readonly requests: (resource: string) => boolean;
}

/**
 * The pod that speaks for each object, by the object's name: one that stays before one that ends, one with a node before one
 * without, then the later.
 */
export function speakingPods(pods: readonly KubernetesObject[]): ReadonlyMap<string, KubernetesObject> {
  const best = new Map<string, { readonly rank: number; readonly pod: KubernetesObject }>();
  for (const pod of pods) {
    const { deletionTimestamp } = pod.metadata;
    const object = servedBy(pod);
    if (object === undefined) continue;
    const rank = (deletionTimestamp === undefined ? 2 : 0) + (nodeOf(pod) ? 1 : 0);
    if (rank >= (best.get(object)?.rank ?? 0)) best.set(object, { rank, pod });
  }
  return new Map([...best].map(([object, { pod }]) => [object, pod]));
}

/** The object that a pod serves. */
export function servedBy({ metadata: { labels } }: KubernetesObject): string | undefined {
  const isServing = labels?.['app.kubernetes.io/part-of'] === 'llminferenceservice';
  return isServing ? labels['app.kubernetes.io/name'] : undefined;
}

/** Where a pod is. */
export const nodeOf = (pod: KubernetesObject | undefined): string | undefined => textOf(specOf(pod).nodeName);

/** How often its containers were started again. */
export function restartsOf(pod: KubernetesObject): number {
  const { initContainers, containers } = podView(pod);
  return [...initContainers, ...containers].reduce((sum, { restarts }) => sum + restarts, 0);
}

/** How often those of its containers died that are at work: the ones that initialize it, until others have been started. */
export function deathsOf(pod: KubernetesObject): number {
  const { initContainers, containers } = podView(pod);
  const atWork = containers.some(isStarted) ? containers : initContainers;
  return atWork.reduce((sum, each) => sum + each.restarts + (isDead(each) ? 1 : 0), 0);
}

const isStarted = ({ restarts, running, terminated, lastTerminated }: Container) =>
  restarts > 0 || running !== undefined || terminated !== undefined || lastTerminated !== undefined;

/** It died and was not started again since. One that initializes ends well. */
const isDead = ({ running, terminated, lastTerminated }: Container) =>
  terminated ? terminated.exitCode !== 0 : lastTerminated !== undefined && running === undefined;

/** Whether its node has not yet said anything of the containers that initialize it. */
export function isUnreported(pod: KubernetesObject): boolean {
  const { node, initializes, initContainers } = podView(pod);
  return node !== undefined && initializes && initContainers.length === 0;
}

/** Read once: pods are looked at for many questions, and never change. */
const views = new WeakMap<KubernetesObject, PodView>();

export function podView(pod: KubernetesObject): PodView {
  const view = views.get(pod) ?? readPod(pod);
  views.set(pod, view);
  return view;
}

function readPod(pod: KubernetesObject): PodView {
  const [spec, status] = [specOf(pod), statusOf(pod)];
  const ready = conditionOf(status, 'ContainersReady');
  return {
    uid: pod.metadata.uid,
    createdAt: createdAt(pod),
    phase: textOf(status.phase),
    node: nodeOf(pod),
    nominatedNode: textOf(status.nominatedNodeName),
    scheduled: conditionOf(status, 'PodScheduled'),
    containersReadyAt: ready?.status === 'True' ? ready.at : undefined,
    initializes: listOf(spec.initContainers).length > 0,
    initContainers: listOf(status.initContainerStatuses).map(containerView),
    containers: listOf(status.containerStatuses).map(containerView),
    restartPolicy: textOf(spec.restartPolicy),
    own: { reason: textOf(status.reason), message: textOf(status.message) },
    requests: resource => listOf(spec.containers).some(each => wants(fieldsOf(each), resource)),
  };
}

function wants(container: Fields, resource: string): boolean {
  const { requests, limits } = fieldsOf(container.resources);
  return [requests, limits].some(each => (amountOf(String(fieldsOf(each)[resource] ?? '')) ?? 0) > 0);
}

function containerView(status: unknown): Container {
  const fields = fieldsOf(status);
  const state = fieldsOf(fields.state);
  return {
    name: textOf(fields.name) ?? '',
    ready: fields.ready === true,
    restarts: wholeNumber(fields.restartCount) ?? 0,
    waiting: state.waiting ? reasonOf(fieldsOf(state.waiting)) : undefined,
    running: state.running ? { startedAt: timeOf(fieldsOf(state.running).startedAt) } : undefined,
    terminated: terminationOf(state.terminated),
    lastTerminated: terminationOf(fieldsOf(fields.lastState).terminated),
  };
}

const reasonOf = ({ reason, message }: Fields): Reason => ({ reason: textOf(reason), message: textOf(message) });

function terminationOf(state: unknown): Termination | undefined {
  if (!state) return undefined;
  const fields = fieldsOf(state);
  return {
    exitCode: wholeNumber(fields.exitCode),
    ...reasonOf(fields),
    startedAt: timeOf(fields.startedAt),
    finishedAt: timeOf(fields.finishedAt),
  };
}

/** Waiting for one of them, a container waits for its image. */
const isOfImage = oneOf(
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
);
export const lacksImage = (waiting: Reason) => isOfImage(waiting.reason);

/** What a pod itself says of why it is not there yet; nothing = {}. */
export function podWords(pod: PodView): Reason {
  const stuck = [...pod.initContainers, ...pod.containers].find(
    ({ waiting }) => waiting?.reason && waiting.reason !== ('PodInitializing' satisfies ReasonCode),
  );
  if (stuck?.waiting) return stuck.waiting;
  if (pod.scheduled?.status === 'False') return { reason: pod.scheduled.reason, message: pod.scheduled.message };
  return pod.own;
}

export const saysNothing = ({ reason, message }: Reason) => !(reason || message);
