import { createHash } from 'node:crypto';
import { display, inExistingSpelling, type Name, parseName } from './names.ts';
import type { Download } from './pulls.ts';
import type { Runner } from './runners.ts';

/** What a model is and how it behaves in memory. */
interface ModelFacts {
  /** `gguf`, `safetensors`, or '' for a cloud stub. */
  readonly format?: string;
  readonly family?: string;
  /** `[family]` when absent; `null` occurs on real servers. */
  readonly families?: readonly string[] | null;
  readonly parameterSize?: string;
  readonly quantization?: string;
  /** Tokens it was trained for. */
  readonly contextLength?: number;
  readonly embeddingLength?: number;
  /** `completion` alone when absent. */
  readonly capabilities?: readonly string[];
  /** Makes it the stub of a cloud model. */
  readonly remote?: { readonly model: string; readonly host: string };
  /** Bytes it takes in memory; a little more than its size when absent. */
  readonly memoryBytes?: number;
  /** The part of them on accelerators; all of them when absent. */
  readonly vramBytes?: number;
  readonly loadMs?: number;
  /** The runner's words when loading it fails. */
  readonly loadError?: string;
}

interface Layer {
  readonly bytes: number;
  /** With the `sha256:` prefix; made from the model's name when absent. Models that share weights share digests. */
  readonly digest?: string;
}

/** A model on disk. */
export interface EmulatedModel extends ModelFacts {
  readonly name: string;
  /** Size on disk, when its layers do not matter. */
  readonly bytes?: number;
  /** In manifest order; the first holds the weights. */
  readonly layers?: readonly Layer[];
  /** The manifest's, without prefix; made from the layers when absent. */
  readonly digest?: string;
  /** A text is shown as it is, and may be no date at all. Now when absent. */
  readonly modifiedAt?: Date | string;
}

/** A model that can be pulled. */
export interface RegistryModel extends ModelFacts {
  readonly name: string;
  readonly layers: readonly Layer[];
  /** How long all its bytes take. */
  readonly pullMs?: number;
  /** Where the download stops moving, counted over all layers, and for how long; a resumed one gets past it. */
  readonly stall?: { readonly at: number; readonly ms: number };
  readonly failure?: PullFailure;
}

interface PullFailure {
  /** At the manifest, when so many bytes of all layers are there, or when the digests are verified. */
  readonly at: 'manifest' | 'verify' | number;
  /** Of the `error` line; a digest mismatch is worded by the server. */
  readonly error?: string;
  /** How many pulls fail before one succeeds; all when absent. */
  readonly times?: number;
}

export interface StoredLayer {
  readonly bytes: number;
  readonly digest: string;
}

export interface StoredModel {
  readonly name: Name;
  readonly shown: string;
  readonly facts: ModelFacts;
  readonly layers: readonly StoredLayer[];
  readonly bytes: number;
  readonly digest: string;
  readonly modifiedAt: number | string;
}

export interface Published {
  readonly model: StoredModel;
  readonly pullMs?: number | undefined;
  readonly stall?: RegistryModel['stall'];
  readonly failure?: PullFailure | undefined;
  /** Pulls that failed so far. */
  failed: number;
}

/** Everything the server remembers: disk, downloads under way, memory; and the registry it pulls from. */
export interface State {
  readonly models: Map<string, StoredModel>;
  readonly blobs: Map<string, number>;
  /** Bytes of layers whose pull was interrupted. */
  readonly partials: Map<string, number>;
  readonly downloads: Map<string, Download>;
  /** By digest of the weights: two names over the same file share one runner. */
  readonly runners: Map<string, Runner>;
  readonly registry: Map<string, Published>;
}

export const emptyState = (): State => ({
  models: new Map(),
  blobs: new Map(),
  partials: new Map(),
  downloads: new Map(),
  runners: new Map(),
  registry: new Map(),
});

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

export function toStored(model: EmulatedModel, now: number): StoredModel {
  const { name: reference, bytes, layers: given, digest, modifiedAt, ...facts } = model;
  const name = parseName(reference);
  if (!name) throw new Error(`not a model name: ${reference}`);
  const shown = display(name);
  const layers = (given ?? [{ bytes: bytes ?? 0 }]).map((layer, place) => ({
    bytes: layer.bytes,
    digest: layer.digest ?? `sha256:${sha256(`${shown} layer ${place}`)}`,
  }));
  return {
    name,
    shown,
    facts,
    layers,
    bytes: bytes ?? layers.reduce((sum, layer) => sum + layer.bytes, 0),
    digest: digest ?? sha256(layers.map(layer => layer.digest).join('\n')),
    modifiedAt: modifiedAt instanceof Date ? modifiedAt.getTime() : (modifiedAt ?? now),
  };
}

export function toPublished({ pullMs, stall, failure, ...model }: RegistryModel): Published {
  return { model: toStored(model, 0), pullMs, stall, failure, failed: 0 };
}

/** Weights, by which a runner is known. */
export const weightsOf = (model: StoredModel) => model.layers[0]?.digest ?? model.digest;

export const capabilitiesOf = ({ facts }: StoredModel): readonly string[] => facts.capabilities ?? ['completion'];

export const store = (state: State, model: StoredModel) => {
  state.models.set(model.shown, model);
  for (const { digest, bytes } of model.layers) state.blobs.set(digest, bytes);
};

/** Removes a model and the layers that no other model has. */
export function remove(state: State, shown: string): boolean {
  const existed = state.models.delete(shown);
  pruneBlobs(state);
  return existed;
}

export function pruneBlobs(state: State): void {
  const used = new Set([...state.models.values()].flatMap(model => model.layers.map(layer => layer.digest)));
  for (const digest of state.blobs.keys()) if (!used.has(digest)) state.blobs.delete(digest);
}

/** The name as it is on disk, if it is. */
export const spelledAsStored = (state: State, name: Name): Name =>
  inExistingSpelling(
    name,
    [...state.models.values()].map(model => model.name),
  );

export const findModel = (state: State, name: Name): StoredModel | undefined =>
  state.models.get(display(spelledAsStored(state, name)));

/** What the registry has under a name; what is on disk came from there too. */
export function findPublished(state: State, name: Name): Published | undefined {
  const shown = display(name).toLowerCase();
  const published = [...state.registry.values()].find(({ model }) => model.shown.toLowerCase() === shown);
  const onDisk = state.models.get(display(name));
  return published ?? (onDisk && { model: onDisk, failed: 0 });
}

/** Newest first, as lists show them. */
export function newestFirst(models: Iterable<StoredModel>): StoredModel[] {
  const seconds = ({ modifiedAt }: StoredModel) =>
    Math.floor((typeof modifiedAt === 'number' ? modifiedAt : Date.parse(modifiedAt) || 0) / 1000);
  return [...models].sort((a, b) => seconds(b) - seconds(a));
}
