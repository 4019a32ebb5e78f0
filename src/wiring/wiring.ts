import type { Call } from '../call.ts';
import type { Deletion, Manifest, ModelConfigRef, Permit, WirableModel, WiringInfo } from '../domain.ts';
import type { Source } from '../live/source.ts';

/** How agents show a backend who they are, where the caller says so. */
export interface ApiKey {
  /** By the token of their own caller. */
  readonly passthrough: boolean;
  /** By a key that is in a Secret. */
  readonly secret?: { readonly name: string; readonly key: string } | undefined;
}

/** Everything that agents know, as of one moment. */
export interface Known {
  readonly refs: readonly ModelConfigRef[];
  /** What agents know a model by: ours, or somebody else's where that counts. */
  of(model: WirableModel): ModelConfigRef | undefined;
}

/** Whether models can be made known to agents, and if not, why. */
export interface WiringState {
  readonly available: boolean;
  readonly reason?: string | undefined;
}

/** What wiring a model would write. */
export interface WiringPlan {
  /** In their order; none when nothing would change. */
  readonly manifests: readonly Manifest[];
  readonly deletes: readonly Deletion[];
  /** What makes it known already, when nothing would change. */
  readonly known?: ModelConfigRef | undefined;
}

/**
 * A place that agents know models from. It turns a `WirableModel` into whatever agents read there, and reads back what is
 * there; who wants it wired, and when, is no business of its.
 */
export interface WiringTarget {
  /** As of now: its version may move. */
  readonly info: WiringInfo;
  readonly state: Source<WiringState>;
  /** Watched while somebody listens. Its error says why nothing can be read. */
  readonly known: Source<Known>;
  /**
   * Makes a model known, or refreshes what is there. Without `apiKey` the model's own way to show a key is written.
   * Throws `conflict` when the name is taken by somebody else's object or by another model's, `invalid_request` for a Secret
   * where agents pass tokens on.
   */
  wire(call: Call, model: WirableModel, apiKey?: ApiKey): Promise<ModelConfigRef>;
  /** What `wire` would write now, by what can be read. Throws as `wire` does. */
  plan(call: Call, model: WirableModel): Promise<WiringPlan>;
  /** Removes what we made of a model, and its Secret; nothing there is no error. */
  unwire(call: Call, backend: string, reference: string): Promise<void>;
  /** What `unwire` would remove now. */
  planUnwire(call: Call, backend: string, reference: string): Promise<readonly Deletion[]>;
  /** Whether the caller has the rights that `wire` would take of a model that is known by `known` now. */
  mayWire(call: Call, model: WirableModel, known: ModelConfigRef | undefined): Promise<Permit>;
  /** Whether the caller has the rights that `unwire` would take of what models are known by; none is nothing to remove. */
  mayUnwire(call: Call, known: readonly ModelConfigRef[]): Promise<Permit>;
  /** References of the models that we have made known of a backend. */
  wiredOn(call: Call, backend: string): Promise<readonly string[]>;
  /** What our objects of a reference name as their backend; undefined for one that names none. */
  backendsOf(call: Call, reference: string): Promise<readonly (string | undefined)[]>;
}
