/** Pods of Jobs: what they are made of, and what is said of them while they live. */
import type { KubernetesObject } from '../cluster/store/object.ts';

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly env?: readonly EnvVariable[];
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
}

/** By resource: `cpu`, `nvidia.com/gpu`. */
type Quantities = Readonly<Record<string, string>>;

interface EnvVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName: string } }[];
  readonly initContainers?: readonly Container[];
  readonly containers: readonly [Container, ...Container[]];
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface Pod extends KubernetesObject {
  readonly spec: PodSpec;
  readonly status?: { readonly phase?: string };
}

const condition = (type: string, isTrue: boolean, at: string, more: object = {}) => ({
  type,
  status: isTrue ? 'True' : 'False',
  lastTransitionTime: at,
  ...more,
});

function statuses(containers: readonly Container[] | undefined, state: object, ready: boolean) {
  const of = ({ name, image }: Container) => ({ name, image, ready, started: ready, restartCount: 0, state });
  return (containers ?? []).map(of);
}

/** The status of a pod, stage by stage; times in RFC 3339. */
export const status = {
  unschedulable: (message: string, at: string) => ({
    phase: 'Pending',
    conditions: [condition('PodScheduled', false, at, { reason: 'Unschedulable', message })],
  }),

  starting: ({ spec }: Pod, at: string) => ({
    phase: 'Pending',
    startTime: at,
    conditions: [condition('PodScheduled', true, at), condition('Ready', false, at, { reason: 'ContainersNotReady' })],
    initContainerStatuses: statuses(spec.initContainers, { waiting: { reason: 'PodInitializing' } }, false),
    containerStatuses: statuses(spec.containers, { waiting: { reason: 'ContainerCreating' } }, false),
  }),

  running: ({ spec }: Pod, at: string) => ({
    phase: 'Running',
    conditions: [condition('PodScheduled', true, at), condition('Ready', true, at)],
    initContainerStatuses: statuses(spec.initContainers, over(0, at, at), true),
    containerStatuses: statuses(spec.containers, { running: { startedAt: at } }, true),
  }),

  ended: ({ spec }: Pod, exitCode: number, startedAt: string, at: string) => ({
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    conditions: [condition('PodScheduled', true, startedAt), condition('Ready', false, at, { reason: 'PodCompleted' })],
    containerStatuses: statuses(spec.containers, over(exitCode, startedAt, at), false),
  }),
};

const over = (exitCode: number, startedAt: string, finishedAt: string) => ({
  terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', startedAt, finishedAt },
});
