/** What the timeline of a serve needs to know besides its objects, and when it says something else of the same ones. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { hasCrashed } from './image.ts';
import { podView } from './pod.ts';
import { initializerOf, stalledAfter } from './weights.ts';

/** No node is known that it is on: then Karpenter may know of one to come. */
export function isUnplaced(pod: KubernetesObject): boolean {
  const { node, scheduled } = podView(pod);
  return node === undefined && scheduled?.status !== 'True';
}

export interface LogQuestion {
  readonly pod: string;
  readonly namespace: string;
  readonly container: string;
  /** Of the container before the one that runs now. */
  readonly previous: boolean;
  /** Lines from its end. */
  readonly tailLines: number;
}

/** The log of a runtime that died, and a key that changes when it dies again; undefined when it did not, or came back. */
export function deathOf(pod: KubernetesObject): { readonly key: string; readonly log: LogQuestion } | undefined {
  const [runtime] = podView(pod).containers;
  if (!runtime || runtime.ready || !hasCrashed(runtime)) return undefined;
  const { name: container, restarts, terminated, lastTerminated } = runtime;
  const { name, namespace = '', uid } = pod.metadata;
  const previous = terminated === undefined;
  const key = JSON.stringify([uid, container, restarts, previous, terminated ?? lastTerminated]);
  return { key, log: { pod: name, namespace, container, previous, tailLines: 200 } };
}

/** The node that weights are being downloaded on; undefined while nothing is. */
export function downloadsOn(pod: KubernetesObject): string | undefined {
  const view = podView(pod);
  return initializerOf(view)?.running ? view.node : undefined;
}

/** When the passing of time alone changes what is told of a pod, in milliseconds since the epoch. */
export function momentsOf(pod: KubernetesObject, scaleUpTimeout: number): readonly number[] {
  const view = podView(pod);
  const started = initializerOf(view)?.running?.startedAt;
  const budget = scaleUpTimeout > 0 && isUnplaced(pod) ? view.createdAt : undefined;
  return [
    ...(budget === undefined ? [] : [budget + scaleUpTimeout + 1]),
    ...(started === undefined ? [] : [started + stalledAfter + 1]),
  ];
}
