/**
 * A serve on record: one YAML file with everything that its timeline is told from, instant by instant. What it looks like is
 * in `docs/recordings.md`.
 */
import type { KubernetesObject } from '../../kubernetes/resource.ts';

export { changesBetween, type State, stateAt } from './recording/changes.ts';
export { factsAt } from './recording/facts.ts';
export { parseRecording } from './recording/parse.ts';
export { printRecording } from './recording/print.ts';

export interface Recording {
  readonly about?: string | undefined;
  /** Name of the LLMInferenceService. */
  readonly object: string;
  readonly namespace: string;
  readonly settings: RecordedSettings;
  /** By time; at least one, and the object is there in each. */
  readonly instants: readonly Instant[];
}

/** What the timeline goes by besides objects. */
interface RecordedSettings {
  /** Such as `nvidia.com/gpu`. */
  readonly gpuResource: string;
  /** Milliseconds; 0 = for ever. */
  readonly scaleUpTimeout: number;
  /** Absent: weights are not cached. */
  readonly cacheClaim?: string | undefined;
  /** The nodes that have the claim, where its volume was not to say. */
  readonly cacheNodes?: readonly string[] | undefined;
  readonly gatewayEndpoint?: string | undefined;
  readonly weightsBytes?: number | undefined;
}

/** What became different at a moment. What an instant does not say is as it was before. */
export interface Instant {
  readonly name?: string | undefined;
  readonly about?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whole, those that came or changed. */
  readonly objects: readonly KubernetesObject[];
  /** Those that are no longer there, by `keyOf`. */
  readonly gone: readonly string[];
  /** All reads that are refused from now on. */
  readonly denied?: readonly Denied[] | undefined;
  /** What the runtime that died wrote; null = that of another run, which nobody read. */
  readonly log?: ContainerLog | null | undefined;
  /** What the timeline is to say; for tests. */
  readonly expect?: unknown;
}

/** A read that was refused. */
export interface Denied {
  /** Plural: `nodes`, `pods/log`. */
  readonly resource: string;
  /** Only there; everywhere when absent. */
  readonly namespace?: string | undefined;
  /** Why, in the words of who refused. */
  readonly message: string;
}

export interface ContainerLog {
  readonly pod?: string | undefined;
  readonly container: string;
  /** Of the run before this one. */
  readonly previous: boolean;
  /** Its last lines. */
  readonly text: string;
}

/** `Pod model-serving/nova-4b-x2p4v`, `Node gpu-1` */
export const keyOf = ({ kind, metadata: { namespace, name } }: KubernetesObject) =>
  `${kind} ${namespace ? `${namespace}/` : ''}${name}`;
