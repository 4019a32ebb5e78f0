/** What is said of a pod while it comes up: pure functions from one status to the next. Times in RFC 3339. */
import type { Container, Pod } from '../kubelet/pods.ts';
import { type Condition, keepingTime } from './conditions.ts';

interface Waiting {
  readonly reason: string;
  readonly message?: string;
}

export interface Termination {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
  readonly startedAt: string;
  readonly finishedAt: string;
}

export interface ContainerState {
  readonly waiting?: Waiting;
  readonly running?: { readonly startedAt: string };
  readonly terminated?: Termination;
}

export interface ContainerStatus {
  readonly name: string;
  readonly image?: string | undefined;
  readonly imageID: string;
  readonly ready: boolean;
  readonly started?: boolean;
  readonly restartCount: number;
  readonly state: ContainerState;
  readonly lastState: { readonly terminated?: Termination };
}

export interface PodStatus {
  readonly phase: string;
  readonly startTime?: string;
  readonly podIP?: string;
  readonly conditions?: readonly Condition[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

const condition = (type: string, lastTransitionTime: string, wrong?: Waiting): Condition => ({
  type,
  status: wrong ? 'False' : 'True',
  lastTransitionTime,
  ...wrong,
});

export const unschedulable = (before: PodStatus | undefined, message: string, at: string): PodStatus => ({
  phase: 'Pending',
  conditions: [keepingTime(before?.conditions, condition('PodScheduled', at, { reason: 'Unschedulable', message }))],
});

export const scheduled = (at: string): PodStatus => ({ phase: 'Pending', conditions: [condition('PodScheduled', at)] });

/** The node has taken it, and nothing of it runs. */
export function taken({ spec }: Pod, before: PodStatus, podIP: string, at: string): PodStatus {
  const { initContainers = [], containers } = spec;
  const reason = initContainers.length > 0 ? 'PodInitializing' : 'ContainerCreating';
  const waits = ({ name, image }: Container): ContainerStatus => ({
    name,
    image,
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { waiting: { reason } },
    lastState: {},
  });
  const statuses = {
    ...(initContainers.length > 0 && { initContainerStatuses: initContainers.map(waits) }),
    // As the kubelet has them: by name.
    containerStatuses: containers.map(waits).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  return concluded({ ...before, startTime: at, podIP, ...statuses }, at);
}

/** One of its containers is otherwise now, and so may be what follows from all of them. */
export function withContainer(
  status: PodStatus,
  name: string,
  change: Partial<ContainerStatus>,
  at: string,
): PodStatus {
  const changed = (all: readonly ContainerStatus[]) =>
    all.map(each => (each.name === name ? { ...each, ...change } : each));
  const { initContainerStatuses: init, containerStatuses = [] } = status;
  const next = { ...status, containerStatuses: changed(containerStatuses) };
  return concluded(init ? { ...next, initContainerStatuses: changed(init) } : next, at);
}

/** Its phase and its conditions, by its containers. */
function concluded(status: PodStatus, at: string): PodStatus {
  const { initContainerStatuses: init = [], containerStatuses: containers = [], conditions } = status;
  const incomplete = init.filter(({ state }) => state.terminated?.exitCode !== 0).map(({ name }) => name);
  const unready = containers.filter(({ ready }) => !ready).map(({ name }) => name);
  const notReady =
    unready.length > 0 ? { reason: 'ContainersNotReady', message: named('unready', unready) } : undefined;
  const notInitialized =
    incomplete.length > 0
      ? { reason: 'ContainersNotInitialized', message: named('incomplete', incomplete) }
      : undefined;
  const isRunning = containers.every(({ state, lastState }) => !state.waiting || lastState.terminated);
  const all = [
    condition('PodReadyToStartContainers', at),
    condition('Initialized', at, notInitialized),
    condition('Ready', at, notReady),
    condition('ContainersReady', at, notReady),
    condition('PodScheduled', at),
  ];
  return {
    ...status,
    phase: isRunning && incomplete.length === 0 ? 'Running' : 'Pending',
    conditions: all.map(each => keepingTime(conditions, each)),
  };
}

const named = (what: string, names: readonly string[]) => `containers with ${what} status: [${names.join(' ')}]`;
