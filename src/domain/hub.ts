import type { Target } from './pool.ts';

/** A way to serve a model that is known to work: its weights, its server's arguments, the memory it takes. */
export interface Preset {
  readonly backend: string;
  readonly target?: Target | undefined;
  readonly name: string;
  readonly displayName: string;
  readonly description?: string | undefined;
  /** Came with the installation, or from its values. */
  readonly source?: 'shipped' | 'values' | undefined;
  /** Repository of its weights. */
  readonly model: string;
  readonly storageUri?: string | undefined;
  readonly format?: string | undefined;
  readonly contextLength?: number | undefined;
  readonly capabilities?: readonly string[] | undefined;
  readonly license?: string | undefined;
  readonly gpus: number;
  readonly weightsBytes: number;
  /** Memory beside the weights: caches, activations, the runtime itself. */
  readonly overheadBytes: number;
  readonly args?: readonly string[] | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly chatTemplate?: string | undefined;
}

/** A repository that a search of the hub found. */
export interface SearchResult {
  /** Name of the backend that searched. */
  readonly backend: string;
  /** The repository: `owner/name`. */
  readonly id: string;
  readonly author?: string | undefined;
  readonly downloads?: number | undefined;
  readonly likes?: number | undefined;
  /** Its terms have to be accepted first. */
  readonly gated: boolean;
  readonly private: boolean;
  readonly pipelineTag?: string | undefined;
  readonly library?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly lastModified?: Date | undefined;
  /** Names of the presets that serve exactly this repository. */
  readonly presets?: readonly string[] | undefined;
}

/** Whether a model can be served, where, and what was compared with what. */
export interface FitResult {
  readonly backend: string;
  /** Repository of the weights. */
  readonly model: string;
  readonly fits: boolean;
  /** Why it does not fit, or what is uncertain. */
  readonly reason?: string | undefined;
  /** It does not fit now, but may later. */
  readonly retryable?: boolean | undefined;
  readonly preset?: string | undefined;
  /** Names of the presets that serve it. */
  readonly presets?: readonly string[] | undefined;
  readonly weightsBytes?: number | undefined;
  /** `safetensors-index`, `safetensors-shards`, `tree`, `preset`: what the weights were counted by. */
  readonly weightsSource?: string | undefined;
  /** What the preset says where it is not what was counted. */
  readonly declaredWeightsBytes?: number | undefined;
  readonly overheadBytes?: number | undefined;
  /** Weights and overhead. */
  readonly requiredBytes?: number | undefined;
  readonly downloadBytes?: number | undefined;
  readonly node?: string | undefined;
  /** Type of the machine that would be started for it. */
  readonly instanceType?: string | undefined;
  readonly budgetBytes?: number | undefined;
  /** `gpu-labels`, `allocatable`, `annotation`, `pool-scale-from-zero`. */
  readonly budgetSource?: string | undefined;
  readonly reservedBytes?: number | undefined;
  readonly freeBytes?: number | undefined;
  readonly gated?: boolean | undefined;
  readonly private?: boolean | undefined;
  /** The backend has a token for the hub. */
  readonly tokenConfigured: boolean;
  /** Whether the weights are there; absent = unknown. */
  readonly cached?: boolean | undefined;
  /** `scan`, `index`, `unknown`, `oci-image`: what says whether they are. */
  readonly cacheSource?: string | undefined;
}

/** One thing that stands in the way of a model. */
export interface FitObstacle {
  /** A word for programs, such as `taint` or `memory`. */
  readonly code: string;
  /** As refusals say it. */
  readonly text: string;
  /** What would take it away. */
  readonly change: string;
}

/** What stands in the way of a model, node by node and size by size, and what would change it. */
export interface FitExplanation {
  readonly backend: string;
  /** Repository of the weights. */
  readonly model: string;
  readonly preset?: string | undefined;
  /** What concerns no node or size of its own. */
  readonly obstacles: readonly FitObstacle[];
  /** By name; all of the cluster, or the one that was asked for. */
  readonly nodes: readonly ExplainedNode[];
  /** What the pool can grow by, the smallest first; empty when that is not known, and when a node was asked for. */
  readonly sizes: readonly ExplainedSize[];
}

interface ExplainedNode {
  readonly node: string;
  /** Nothing stands in the way of the model there. */
  readonly eligible: boolean;
  /** All of it, in the order of the rules. */
  readonly obstacles: readonly FitObstacle[];
}

interface ExplainedSize {
  readonly instanceType: string;
  /** All of it, in the order of the rules; empty when it fits. */
  readonly obstacles: readonly FitObstacle[];
}
