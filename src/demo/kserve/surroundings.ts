/** What is around the pods that serve models. */
import type { EmulatedCluster, KubernetesObject } from '../cluster.ts';
import type { Clock } from '../host/clock.ts';
import type { RemoteFile } from '../kubelet/hub.ts';
import type { Pod } from '../kubelet/pods.ts';
import type { EmulatedKubelet } from '../kubelet.ts';
import type { Recorder } from './events.ts';
import type { ServingFault, ServingPace } from './faults.ts';
import type { ContainerState, ContainerStatus, PodStatus } from './podStatus.ts';

/** Answers with the files of a repository, or why there are none for this cluster. */
export type Repositories = (id: string) => { readonly files: readonly RemoteFile[] } | { readonly problem: string };

export type ServingCluster = Pick<EmulatedCluster, 'get' | 'list' | 'put' | 'update' | 'remove' | 'watch' | 'logs'>;

export interface Surroundings {
  readonly cluster: ServingCluster;
  readonly clock: Clock;
  readonly pace: ServingPace;
  readonly events: Recorder;
  readonly volumes: Pick<EmulatedKubelet, 'content' | 'write'>;
  readonly repositories: Repositories;
  /** Of the object with that name. */
  fault(name: string): ServingFault | undefined;
  /** Whether a registry has that image. */
  exists(image: string): boolean;
  /** Images that nodes have, as `<node> <image>`. */
  readonly images: Set<string>;
  /** The node and the volume of a pod, once there are both; `say` is told why not. */
  place(pod: Pod, say: (why: string) => void, signal: AbortSignal): Promise<{ node: string; volume: string }>;
  /** An address that no pod has had. */
  address(): string;
}

/** A pod, for what brings it up. */
export interface LivePod {
  readonly pod: Pod;
  /** Of the object that it serves. */
  readonly served: string;
  readonly node: string;
  readonly volume: string;
  readonly address: string;
  /** In RFC 3339. */
  now(): string;
  /** Resolves after that time; rejects as soon as the pod is asked to end. */
  pause(ms: number): Promise<void>;
  say(container: string, state: ContainerState, more?: Partial<ContainerStatus>): void;
  told(container: string, reason: string, message: string, type?: 'Normal' | 'Warning'): void;
  /** What a container writes, whole lines. */
  print(container: string, lines: string): void;
}

export const statusOf = ({ status }: KubernetesObject) => status as PodStatus | undefined;

/** Tells that a container that ended is begun again only after a while. */
export function tellBackOff({ pod, told }: Pick<LivePod, 'pod' | 'told'>, container: string): void {
  const { uid, namespace, name } = pod.metadata;
  const message = `Back-off restarting failed container ${container} in pod ${name}_${namespace}(${uid})`;
  told(container, 'BackOff', message, 'Warning');
}
