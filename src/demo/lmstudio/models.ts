import type { Job } from './downloads.ts';
import type { Instance } from './instances.ts';

/** What a model is and how it behaves in memory. */
interface ModelFacts {
  /** The part before the slash of its name when absent. */
  readonly publisher?: string;
  readonly displayName?: string;
  /** The architecture. */
  readonly family?: string | null;
  readonly parameterSize?: string | null;
  readonly quantization?: string | null;
  /** 4 when absent; fractions occur on real servers. */
  readonly bitsPerWeight?: number | null;
  /** Tokens it was trained for. */
  readonly contextLength?: number;
  /** Of `completion`, `tools`, `vision`, `thinking`, or `embedding` alone; `completion` when absent. */
  readonly capabilities?: readonly string[];
  readonly format?: 'gguf' | 'mlx' | null;
  /** `key@quantization` of the files behind one key; the first is the selected one. */
  readonly variants?: readonly string[];
  readonly loadMs?: number;
  /** The app's words when loading it fails. */
  readonly loadError?: string;
  /** Fields of its row in the list that are not as usual; undefined leaves one out. */
  readonly row?: Readonly<Record<string, unknown>>;
}

/** A model on disk. */
export interface EmulatedModel extends ModelFacts {
  /** Its key in the library. */
  readonly name: string;
  readonly bytes: number;
}

/** A model that can be downloaded. */
export interface RegistryModel extends EmulatedModel {
  /** What it is asked for as: an id of the catalog, or a link to Hugging Face; its name when absent. */
  readonly reference?: string;
  /** How long all its bytes take. */
  readonly pullMs?: number;
  /** What follows the last byte. */
  readonly finalize?: {
    readonly ms: number;
    /** `downloading` when absent. */
    readonly status?: string;
  };
  /** Where the download stops moving, and for how long; a resumed one gets past it. */
  readonly stall?: { readonly at: number; readonly ms: number };
  readonly failure?: DownloadFailure;
  /** The app says that it has it already, and is wrong. */
  readonly mistakenForDownloaded?: boolean;
}

export interface DownloadFailure {
  /** When so many bytes are there, or when all are and it is finalized. */
  readonly at: 'finalize' | number;
  /** Text or a document; none is told when absent. */
  readonly error?: unknown;
  /** How many downloads fail before one succeeds; all when absent. */
  readonly times?: number;
}

export interface Published {
  readonly model: RegistryModel;
  /** Downloads that were to fail so far. */
  failed: number;
}

/** Everything the app remembers: library, downloads, memory; and the catalog it downloads from. */
export interface State {
  readonly library: Map<string, EmulatedModel>;
  readonly catalog: Map<string, Published>;
  readonly jobs: Map<string, Job>;
  readonly instances: Map<string, Instance>;
  /** Ever started, for their ids. */
  jobsStarted: number;
}

export const emptyState = (): State => ({
  library: new Map(),
  catalog: new Map(),
  jobs: new Map(),
  instances: new Map(),
  jobsStarted: 0,
});

export const store = ({ library }: State, model: EmulatedModel) => void library.set(model.name, model);

export const publish = ({ catalog }: State, model: RegistryModel) => void catalog.set(model.name, { model, failed: 0 });

export const isEmbedding = ({ capabilities }: EmulatedModel) => capabilities?.includes('embedding') ?? false;

/** The model of the library with that key, or with that variant. */
export function findModel({ library }: State, key: string, variantKeys: boolean): EmulatedModel | undefined {
  const exact = library.get(key);
  if (exact || !variantKeys) return exact;
  return [...library.values()].find(({ variants }) => variants?.includes(key));
}
