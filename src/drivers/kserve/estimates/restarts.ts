import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { speakingPod } from '../timeline/pod.ts';

/** How often containers of the pod that speaks for an object were started again; 0 without a pod. */
export function restartsOf(pods: readonly KubernetesObject[], object: string): number {
  const pod = speakingPod(pods, object);
  return pod ? [...pod.initContainers, ...pod.containers].reduce((sum, { restarts }) => sum + restarts, 0) : 0;
}
