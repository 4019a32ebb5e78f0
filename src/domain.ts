/**
 * The things the gateway talks about, as plain data.
 *
 * Sizes are bytes, contexts are tokens, times are `Date`s. A field that is absent is unknown or does not
 * apply; it is never 0, '' or [] to say so. Everything here is immutable: a change is a new object.
 */

import type { FitResult } from './domain/hub.ts';
import type { GpuPool, Target } from './domain/pool.ts';
import type { ServingPhase, Step } from './domain/step.ts';
import type { ModelConfigRef, WiringResult } from './domain/wiring.ts';

export type * from './domain/hub.ts';
export * from './domain/permit.ts';
export type * from './domain/plan.ts';
export * from './domain/pool.ts';
export * from './domain/reasons.ts';
export * from './domain/step.ts';
export * from './domain/wiring.ts';

export const backendKinds = ['ollama', 'lemonade', 'lmstudio', 'kserve'] as const;
export type BackendKind = (typeof backendKinds)[number];

/** What a backend can do. Resolvers answer `unsupported` from these flags; a driver never has to. */
export interface Capabilities {
  readonly pull: boolean;
  readonly pullProgress: boolean;
  readonly delete: boolean;
  readonly load: boolean;
  readonly unload: boolean;
  readonly loadedModels: boolean;
  readonly nodeInventory: boolean;
  readonly presets: boolean;
  readonly fitCheck: boolean;
  readonly search: boolean;
}

/** How a backend brings models into memory and lets go of them. */
export interface Loading {
  /** A request for a model that is not loaded loads it. */
  readonly onDemand: boolean;
  /** Unused models are evicted by the backend. */
  readonly idleEviction: boolean;
  /** Configured keep-alive, such as `5m`. */
  readonly keepAliveDefault?: string | undefined;
  /** Whose setting a keep-alive is: of each `request`, or of the `server`. */
  readonly keepAliveScope?: 'request' | 'server' | undefined;
}

/** The state of a backend's server, as its driver last saw it. */
export interface BackendStatus {
  readonly healthy: boolean;
  /** Why it is not healthy, or a note. */
  readonly message?: string | undefined;
  readonly version?: string | undefined;
  /** Where its models are scheduled, on backends that schedule. */
  readonly gpuPool?: GpuPool | undefined;
  /** It did not answer in time: it may be down, or too busy to say. */
  readonly timedOut?: boolean | undefined;
}

/** A model the backend has, loaded or not. */
export interface Model {
  /** Name of the backend that has it. */
  readonly backend: string;
  readonly target?: Target | undefined;
  /** The backend's own spelling. */
  readonly name: string;
  readonly sizeBytes?: number | undefined;
  readonly digest?: string | undefined;
  readonly modifiedAt?: Date | undefined;
  readonly format?: string | undefined;
  readonly family?: string | undefined;
  /** Free text of the backend, such as `7.6B`. */
  readonly parameterSize?: string | undefined;
  readonly quantization?: string | undefined;
  readonly contextLength?: number | undefined;
  /** What runs it, such as `llamacpp`. */
  readonly runtime?: string | undefined;
  /** `completion`, `tools`, `vision`, `embedding`…, in the backend's order. */
  readonly capabilities?: readonly string[] | undefined;
  readonly node?: string | undefined;
  readonly path?: string | undefined;
  readonly preset?: string | undefined;
  /** Whether the weights are there; absent where the backend lists downloads only. */
  readonly downloaded?: boolean | undefined;
  /** The loaded entry of the same model, when there is one. */
  readonly running?: LoadedModel | undefined;
  /** What makes it known to agents. */
  readonly modelConfig?: ModelConfigRef | undefined;
  /** What its load was allowed by; in the answer of a load only. */
  readonly fit?: FitResult | undefined;
  /** How its load wired it; in the answer of a load only. */
  readonly wiring?: WiringResult | undefined;
}

/**
 * What tells the listed models of one backend apart: the name, and where the weights are, on backends that may list a model
 * at several places. What is only served moves from node to node, and is the same.
 */
export function modelKey({ name, path, node, downloaded }: Model): string {
  const place = path === undefined ? '' : `#${path}`;
  return downloaded && path !== undefined && node !== undefined ? `${name}${place}@${node}` : `${name}${place}`;
}

/** A model in memory, or on its way there. */
export interface LoadedModel {
  readonly backend: string;
  readonly target?: Target | undefined;
  readonly name: string;
  /** Which of several copies of the model this is, on backends that may hold more than one. */
  readonly instance?: string | undefined;
  /** Bytes of memory it takes: weights, caches and buffers. */
  readonly sizeBytes?: number | undefined;
  readonly digest?: string | undefined;
  /** The part of `sizeBytes` that lies on accelerators; 0 when it runs on the CPU. */
  readonly vramBytes?: number | undefined;
  /** Tokens of context it was started with. */
  readonly contextLength?: number | undefined;
  /** When the backend will evict it; absent = never, or unknown. */
  readonly expiresAt?: Date | undefined;
  readonly endpoint?: string | undefined;
  readonly node?: string | undefined;
  /** `loaded`, or the backend's own word for where it stands. */
  readonly status?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** `npu`, `gpu`, `cpu`, or several, where the backend says. */
  readonly device?: string | undefined;
  /** Kept until unloaded. */
  readonly pinned?: boolean | undefined;
  readonly preset?: string | undefined;
  /** The Kubernetes object that serves it, and its kind. */
  readonly resource?: string | undefined;
  readonly kind?: string | undefined;
  /** GPUs it asked for. */
  readonly gpus?: number | undefined;
  /** What made that object. */
  readonly managedBy?: string | undefined;
  readonly phase?: ServingPhase | undefined;
  /** Every step, those to come as `pending`. */
  readonly steps?: readonly Step[] | undefined;
  readonly modelConfig?: ModelConfigRef | undefined;
  /** How reading it wired it. */
  readonly wiring?: WiringResult | undefined;
}

/** A Kubernetes object as it is written. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly [field: string]: unknown;
}

/** Whether what is cached is being counted again, and if not, why. */
export interface InventoryRefresh {
  readonly refreshing: boolean;
  readonly reason?: string | undefined;
}

export const jobPhases = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const;
type JobPhase = (typeof jobPhases)[number];
export type JobType = 'pull' | 'load';

/** Long work that outlives the request that asked for it. */
export interface Job {
  /** 16 lower-case hex digits. */
  readonly id: string;
  readonly backend: string;
  readonly type: JobType;
  /** The reference as requested. */
  readonly model: string;
  readonly phase: JobPhase;
  /** The backend's words for what it is doing. */
  readonly status?: string | undefined;
  /** Never goes back. */
  readonly bytesCompleted: number;
  /** 0 until known; never goes back. */
  readonly bytesTotal: number;
  readonly error?: string | undefined;
  readonly createdAt: Date;
  readonly startedAt?: Date | undefined;
  readonly finishedAt?: Date | undefined;
  /** Whether the model is wired into kagent when the job succeeds. */
  readonly wire: boolean;
  readonly node?: string | undefined;
  readonly preset?: string | undefined;
  /** Email or subject of the person who asked, where identity is known. */
  readonly requestedBy?: string | undefined;
  /** Who alone may see it: the person as whom it is done; absent for everybody. */
  readonly scope?: string | undefined;
  /** The object that a load follows. */
  readonly resource?: string | undefined;
  /** What the model is wired by now. */
  readonly result?: ModelConfigRef | undefined;
}

/** Where a machine keeps its models. */
export interface NodeCache {
  /** The claim of its volume; absent where it is the machine's own disk. */
  readonly claim?: string | undefined;
  /** Folder of the models there. */
  readonly mountPath: string;
  /** How many it holds. */
  readonly models: number;
  /** Bytes they take. */
  readonly bytesUsed: number;
  /** When that was counted; absent = never. */
  readonly scannedAt?: Date | undefined;
  /** Whether several machines use the same one. */
  readonly shared?: boolean | undefined;
  /** What counted it: a `pod`, a `daemonset`, or the backend's list of `models`. */
  readonly inventory?: 'pod' | 'daemonset' | 'models' | undefined;
  readonly error?: string | undefined;
}

/** A machine that models run on. */
export interface NodeInfo {
  readonly backend: string;
  readonly target?: Target | undefined;
  readonly name: string;
  readonly ready: boolean;
  readonly eligible: boolean;
  readonly eligibilityReason?: string | undefined;
  /** When the machine was made, while it is coming up and nothing else keeps models off it. */
  readonly startingSince?: Date | undefined;
  /** What it waits for. */
  readonly startingReason?: string | undefined;
  /** Kubernetes' spelling: `amd64`, `arm64`. */
  readonly architecture?: string | undefined;
  readonly allocatableMemoryBytes?: number | undefined;
  readonly gpuCount: number;
  /** Of those that can be given to pods, those that no served model has; pods of others are not known. */
  readonly freeGpus?: number | undefined;
  readonly gpuProduct?: string | undefined;
  /** Of one GPU. */
  readonly gpuMemoryBytes?: number | undefined;
  /** Whether a loaded model uses an accelerator. */
  readonly accelerated?: boolean | undefined;
  /** Bytes models may take here. */
  readonly budgetBytes?: number | undefined;
  readonly budgetSource?: string | undefined;
  /** Bytes loaded models take. */
  readonly reservedBytes: number;
  /** `budgetBytes - reservedBytes`, never below 0. */
  readonly freeBytes?: number | undefined;
  readonly cache?: NodeCache | undefined;
  readonly message?: string | undefined;
}

/** One step of a download as the backend reports it; byte counts never go back within one pull. */
export interface PullProgress {
  readonly status: string;
  readonly bytesCompleted: number;
  readonly bytesTotal: number;
  /** Where it is downloaded to, and what for, as the backend decided. */
  readonly node?: string | undefined;
  readonly preset?: string | undefined;
}
