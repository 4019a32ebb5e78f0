/** Words that other programs have for why something waits or failed. They come with messages of their own. */
import type { ReasonEntry } from './entry.ts';

const goesOn = 'Nothing, it goes on by itself.';
const imageRemedy =
  'Check the name and tag of the image in the preset, that the registry can be reached from the node, and that the pull secret is there and valid. Kubernetes goes on trying.';
const pod = ['downloadingWeights', 'pullingImage', 'status'] as const;

export const passedOnReasons = {
  Unschedulable: {
    from: 'Kubernetes',
    where: ['scheduling', 'status'],
    meaning:
      'No node takes the pod, and no new one is known to come. The message counts the nodes and what each lacks.',
    remedy:
      'Where the pool scales, a node should be on its way within a minute. If not, `explainFit` says what stands in the way node by node: unload a model, add a node, or correct the selectors and taints.',
  },
  FailedScheduling: {
    from: 'Kubernetes',
    where: ['scheduling', 'status'],
    meaning: 'The scheduler tried and found no node. The message says what each lacks.',
    remedy: 'As for Unschedulable: `explainFit` says what stands in the way, node by node.',
  },
  SchedulingGated: {
    from: 'Kubernetes',
    where: ['scheduling', 'status'],
    meaning: 'Another program holds the pod back, such as a queue for quotas.',
    remedy: '`kubectl get pod <pod> -o yaml`: `schedulingGates` names who holds it. Look there.',
  },
  InsufficientCapacityError: {
    from: 'Karpenter',
    where: ['scheduling'],
    meaning: 'The cloud has no machine of the types and in the zones that were asked for.',
    remedy:
      'As for CapacityUnavailable, whose message quotes it: wait, or give Karpenter other zones, sizes or accelerators.',
  },
  NodeClassNotReady: {
    from: 'Karpenter',
    where: ['scheduling'],
    meaning: 'The node class of the pool is not usable: its subnets, security groups, image or role were not found.',
    remedy:
      '`kubectl describe ec2nodeclass`: its conditions name what is missing. Karpenter goes on by itself once it is there.',
  },
  PodInitializing: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The containers that come first are still at work.',
    remedy: goesOn,
  },
  ContainerCreating: {
    from: 'Kubernetes',
    where: [...pod, 'loading'],
    meaning: 'The node prepares the container: it mounts volumes, and pulls the image.',
    remedy:
      'Nothing at first. After a few minutes `kubectl describe pod <pod>`: its events tell of a volume that is mounted elsewhere, or of a Secret that is missing.',
  },
  ImagePullBackOff: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The image could not be pulled, and the node waits before it tries again.',
    remedy: imageRemedy,
  },
  ErrImagePull: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The image could not be pulled.',
    remedy: imageRemedy,
  },
  InvalidImageName: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The name of the image is no name of an image.',
    remedy: 'Correct it in the preset, then unload and load the model.',
  },
  ErrImageNeverPull: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The image is not on the node, and the pod forbids pulling it.',
    remedy: 'Correct `imagePullPolicy`, or put the image on the node.',
  },
  CreateContainerConfigError: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The container names something that is not there, most often a Secret or ConfigMap, or a key in one.',
    remedy: 'The message names it: create it in the namespace of the pod. Kubernetes goes on by itself then.',
  },
  CreateContainerError: {
    from: 'Kubernetes',
    where: pod,
    meaning: 'The node could not create the container.',
    remedy:
      'Read the message, and the events in `kubectl describe pod <pod>`: a wrong command, a mount that fails, or a node with a fault.',
  },
  CrashLoopBackOff: {
    from: 'Kubernetes',
    where: ['downloadingWeights', 'loading', 'status'],
    meaning: 'A container ended again and again, and the node waits before it starts it once more.',
    remedy:
      'At `loading` it is the runtime: do as for CrashLoop, and expect no recovery by itself. Elsewhere read the log of the container, `kubectl logs <pod> -c <container> --previous`.',
  },
  RunContainerError: {
    from: 'Kubernetes',
    where: ['loading', 'status'],
    meaning: 'The container was created and could not be started.',
    remedy: 'Read the message: the command is not in the image, a mount fails, or the GPU driver has a fault.',
  },
  StartError: {
    from: 'Kubernetes',
    where: ['downloadingWeights', 'loading', 'status'],
    meaning: 'The first program of the container could not be started.',
    remedy: 'Correct command and image; if they are right, the node or its GPU driver has a fault: try another node.',
  },
  OOMKilled: {
    from: 'Kubernetes',
    where: ['downloadingWeights', 'loading', 'status'],
    meaning: 'The container took more memory than its limit, and was killed.',
    remedy: 'Raise the memory limit in the preset. This is the memory of the machine, not that of the GPU.',
  },
  Completed: {
    from: 'Kubernetes',
    where: ['loading', 'status'],
    meaning: 'A container ended without an error where it should have gone on.',
    remedy: 'Check the command of the container in the preset: a runtime that serves does not end.',
  },
  Evicted: {
    from: 'Kubernetes',
    where: ['status'],
    meaning: 'The node ran out of memory or disk and sent the pod away.',
    remedy:
      'A new pod comes by itself. If it is evicted as well, the node wants more disk, or the pod larger requests.',
  },
  UnexpectedAdmissionError: {
    from: 'Kubernetes',
    where: ['status'],
    meaning: 'The node refused the pod when it came, most often because its GPU was gone by then.',
    remedy: 'A new pod comes by itself. If it goes on, look at the device plugin and the GPU driver of the node.',
  },
  MinimumReplicasUnavailable: {
    from: 'Kubernetes',
    where: ['routing', 'status'],
    meaning: 'The pods of the model, or of its router, are not ready yet.',
    remedy:
      'The steps say where its pod is. When all before routing are done, it is the router: `kubectl get deployments` in the namespace of the model shows which is short of pods.',
  },
  HTTPRoutesNotReady: {
    from: 'KServe',
    where: ['routing', 'status'],
    meaning: 'The model runs, and the gateway of the cluster has not taken its route yet.',
    remedy:
      'Nothing for a minute. After that look at the conditions of the HTTPRoute and of the Gateway that it names as its parent.',
  },
  Reconciling: {
    from: 'KServe',
    where: ['routing', 'status'],
    meaning: 'KServe is at work on the model.',
    remedy: goesOn,
  },
  AwaitingReconciliation: {
    from: 'KServe',
    where: ['routing', 'status'],
    meaning: 'KServe has not looked at the model yet.',
    remedy: 'Nothing for a minute. After that see whether the KServe controller runs, and read its log.',
  },
  ModelLoadFailed: {
    from: 'KServe',
    where: ['loading', 'routing', 'status'],
    meaning: 'KServe says that the model could not be loaded, and has given up.',
    remedy:
      'Read the message and the log of the runtime, `kubectl logs <pod> -c main`. Mend the preset, then unload and load the model.',
  },
  BlockedByFailedLoad: {
    from: 'KServe',
    where: ['status'],
    meaning: 'KServe does not go on, because a load before failed.',
    remedy: 'As for ModelLoadFailed: mend what failed, then unload and load the model.',
  },
} as const satisfies Record<string, ReasonEntry>;
