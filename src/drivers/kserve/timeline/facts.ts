/** What a serve is told from: objects as they were read, and of each read that failed why. */
import type { Read } from '../../../config/values.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import type { CacheLocation } from '../nodes/cacheLocation.ts';

type Objects = Read<readonly KubernetesObject[]>;

export interface ServeFacts {
  /** The LLMInferenceService. */
  readonly object: KubernetesObject;
  /** Those that serve; pods of other objects do no harm. In their order. */
  readonly pods: Objects;
  /** Of the pods. Others do no harm. */
  readonly events: Objects;
  readonly nodes: Objects;
  /** What the runtime wrote before it ended, its last 200 lines; absent = not read yet, or nobody asked. */
  readonly log?: Read<string> | undefined;
  /** The one that the pod was last nominated to at least. Not found = not among them. */
  readonly nodeClaims: Objects;
  /** Events of the namespace `default`, where Karpenter writes what it has to say of NodeClaims. */
  readonly karpenterEvents: Objects;
  readonly nodePools: Objects;
  readonly nodeClasses: Objects;
  /** Where the weights are kept. */
  readonly cache: Read<CacheLocation>;
  readonly settings: TimelineSettings;
  /** Size of its weights as its preset has it. */
  readonly weightsBytes?: number | undefined;
  /** How much of them lies on the node where they are being downloaded. */
  readonly bytesOnNode?: number | undefined;
}

interface TimelineSettings {
  /** Such as `nvidia.com/gpu`. */
  readonly gpuResource: string;
  /** How long a refused pod may wait for a node, in milliseconds; 0 = for ever. */
  readonly scaleUpTimeout: number;
}
