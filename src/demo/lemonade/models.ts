import { createLatch, type Latch } from '../host/latch.ts';
import type { Job } from './downloads/pulls.ts';
import type { Resident } from './memory.ts';

/** What a model is and how it behaves in memory. */
interface ModelFacts {
  /** `org/repo:variant`; made from the name when absent, '' for a collection. */
  readonly checkpoint?: string;
  /** What runs it; `llamacpp` when absent. */
  readonly recipe?: string;
  /** `['chat']` when absent. */
  readonly labels?: readonly string[];
  /** `gpu` when absent; several are joined with `|`. */
  readonly device?: string;
  /** Tokens it was trained for, as the newest releases list them. */
  readonly contextLength?: number;
  /** The same, as some models have it since 10.4. */
  readonly maxContextWindow?: number;
  /** Makes it a collection of these models. */
  readonly components?: readonly string[];
  /** False for one that this machine cannot run. */
  readonly supported?: boolean;
  readonly loadMs?: number;
  /** The backend's words when loading it fails. */
  readonly loadError?: string;
  /** Fields of its row in the list that are not as usual; undefined leaves one out. */
  readonly row?: Readonly<Record<string, unknown>>;
}

interface ModelFile {
  readonly name: string;
  readonly bytes: number;
}

/** A model on disk. */
export interface EmulatedModel extends ModelFacts {
  /** As the catalog has it; models that were registered by hand are in the namespace `user.`. */
  readonly name: string;
  /** Size on disk, when its files do not matter. */
  readonly bytes?: number;
  readonly files?: readonly ModelFile[];
}

/** A model of the catalog that can be pulled. */
export interface RegistryModel extends ModelFacts {
  readonly name: string;
  /** In the order of the download; none for a collection. */
  readonly files?: readonly ModelFile[];
  /** How long all its bytes take. */
  readonly pullMs?: number;
  /** Where the download stops moving, counted over all files, and for how long; a resumed one gets past it. */
  readonly stall?: { readonly at: number; readonly ms: number };
  /** Where the connection to the registry breaks, counted over all files; the server connects anew and goes on. */
  readonly interruptions?: readonly number[];
  readonly failure?: PullFailure;
}

interface PullFailure {
  /**
   * When the registry is asked for the files; when its answer for the first of them is a page; when so many bytes of all
   * files are there; when a file's checksum is wrong, which the server mends by downloading it again, ten times; or
   * when all files are there and are no model.
   */
  readonly at: 'manifest' | 'missing' | 'checksum' | 'validation' | number;
  /** Of the `error` event; worded like the server's when absent. */
  readonly error?: string;
  /** How many attempts fail before one succeeds; all when absent. */
  readonly times?: number;
}

/** A model of the catalog. */
export interface Entry {
  /** With its namespace. */
  readonly id: string;
  readonly facts: ModelFacts;
  readonly files: readonly ModelFile[];
  readonly bytes: number;
  readonly pullMs?: number | undefined;
  readonly stall?: RegistryModel['stall'];
  readonly interruptions: readonly number[];
  readonly failure?: PullFailure | undefined;
  downloaded: boolean;
  /** Whether this server has downloaded it, and so knows its size on disk. */
  pulled: boolean;
  /** Attempts that failed so far. */
  failed: number;
  /** Held by the one download that runs. */
  readonly download: Latch;
}

/** Everything the server remembers: catalog, disk, downloads, memory. */
export interface State {
  readonly catalog: Map<string, Entry>;
  /** Files that are whole, by their key. */
  readonly files: Set<string>;
  /** Bytes of files whose download was interrupted, by their key; a restart keeps them. */
  readonly partials: Map<string, number>;
  readonly jobs: Map<string, Job>;
  readonly residents: Map<string, Resident>;
  /** The model that is being loaded. */
  coming: Entry | undefined;
  /** Models whose backend process died by itself; they are listed no more, and can still be unloaded. */
  readonly crashed: Set<string>;
  /** Held by the one load that runs. */
  readonly loads: Latch;
  /** Held by what makes every other request wait, on a server that does so. */
  readonly door: Latch;
  /** Whether the devices of the machine were looked for; the first time takes long. */
  probed: boolean;
}

export const emptyState = (): State => ({
  catalog: new Map(),
  files: new Set(),
  partials: new Map(),
  jobs: new Map(),
  residents: new Map(),
  coming: undefined,
  crashed: new Set(),
  loads: createLatch(),
  door: createLatch(),
  probed: false,
});

export const fileKey = (entry: Entry, file: ModelFile) => `${entry.id}/${file.name}`;

/** Puts a model into the catalog, in place of one of its name. */
export function publish(state: State, model: RegistryModel): Entry {
  const { name, files = [], pullMs, stall, interruptions = [], failure, ...facts } = model;
  const before = state.catalog.get(name);
  const entry: Entry = {
    id: name,
    facts,
    files,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    pullMs,
    stall,
    interruptions,
    failure,
    downloaded: before?.downloaded ?? false,
    pulled: before?.pulled ?? false,
    failed: 0,
    download: before?.download ?? createLatch(),
  };
  state.catalog.set(name, entry);
  return entry;
}

/** Puts a model on disk. */
export function store(state: State, { bytes, files, ...model }: EmulatedModel): void {
  const whole = bytes === undefined ? [] : [{ name: `${model.name}.gguf`, bytes }];
  const entry = publish(state, { ...model, files: files ?? whole });
  for (const file of entry.files) state.files.add(fileKey(entry, file));
  entry.downloaded = true;
}

/** Takes a model off the disk; one that was registered by hand is unknown from then on. */
export function remove(state: State, entry: Entry): void {
  for (const file of entry.files) {
    state.files.delete(fileKey(entry, file));
    state.partials.delete(fileKey(entry, file));
  }
  entry.downloaded = false;
  if (namespaceOf(entry.id) === 'user.') state.catalog.delete(entry.id);
}

const namespaces = ['user.', 'extra.'] as const;
export const namespaceOf = (id: string) => namespaces.find(prefix => id.startsWith(prefix));

/** What answers call a model: without its namespace, unless that is another model's name. */
export function publicName(state: State, { id }: Entry): string {
  const bare = id.slice(namespaceOf(id)?.length ?? 0);
  return state.catalog.has(bare) ? id : bare;
}

/** The model that a name means, in either spelling. Names differ by case. */
export const findEntry = (state: State, name: string): Entry | undefined =>
  ['', ...namespaces].map(prefix => state.catalog.get(prefix + name)).find(entry => entry !== undefined);

export const recipeOf = ({ facts }: Entry) => facts.recipe ?? 'llamacpp';
export const labelsOf = ({ facts }: Entry) => facts.labels ?? ['chat'];
export const checkpointOf = ({ id, facts }: Entry) =>
  facts.checkpoint ?? (facts.components ? '' : `emulated/${id.slice(namespaceOf(id)?.length ?? 0)}-GGUF:Q4_K_M`);

export const slotTypes = ['llm', 'embedding', 'reranking', 'transcription', 'image', 'tts', 'classification'] as const;
export type SlotType = (typeof slotTypes)[number];

const labelled: Record<string, SlotType> = {
  embeddings: 'embedding',
  embedding: 'embedding',
  reranking: 'reranking',
  transcription: 'transcription',
  image: 'image',
  tts: 'tts',
  classification: 'classification',
};

/** The kind of slot that it takes in memory. */
export const typeOf = (entry: Entry): SlotType =>
  labelsOf(entry)
    .map(label => labelled[label])
    .find(type => type !== undefined) ?? 'llm';
