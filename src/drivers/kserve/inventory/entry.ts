/** What is in the cache: a directory for each model, and beside it what its download left. */
import { type Field, isFields, wholeNumber } from '../jobs/fields.ts';

export interface CacheEntry {
  /** Its name, with `?` for what cannot be printed. */
  readonly dir: string;
  /** Of its files, however deep. */
  readonly bytes: number;
  readonly files: number;
  readonly mtime?: Date | undefined;
  /** At its top is what models are made of. */
  readonly hasModel: boolean;
  readonly marker?: Marker | undefined;
}

/** What a download writes when it is complete. */
export interface Marker {
  /** Repository. */
  readonly model: string;
  readonly revision?: string | undefined;
  readonly dir?: string | undefined;
  readonly bytesExpected?: number | undefined;
  readonly completedAt?: Date | undefined;
  readonly job?: string | undefined;
}

/** All entries, and what could not be read, in words. */
export interface Count {
  /** By name. */
  readonly entries: readonly CacheEntry[];
  readonly warnings: readonly string[];
}

/** What the files of models end with. */
export const modelEndings = ['safetensors', 'gguf', 'bin', 'pt', 'pth', 'onnx'] as const;
const modelFile = new RegExp(`^[^.].*\\.(${modelEndings.join('|')})$`, 's');

/** Whether a file of this name, at the top of a directory, makes it a model. */
export const isModelFile = (name: string) => name === 'config.json' || modelFile.test(name);

/** Where markers are, below the root of the cache. */
export const markerFolder = '.model-manager';

/** Whether an entry is a model, or will be said to be one. */
export const holdsModel = ({ hasModel, marker }: CacheEntry) => hasModel || marker !== undefined;

/** The name of a directory as it may stand in a message and in a name. */
export const printable = (name: string) => name.replace(/\p{Cc}/gu, '?');

export const sortedEntries = (entries: Iterable<CacheEntry>): CacheEntry[] =>
  [...entries].sort((a, b) => (a.dir < b.dir ? -1 : a.dir > b.dir ? 1 : 0));

/** A marker as it was read; undefined when it names no model. */
export function readMarker(data: unknown): Marker | undefined {
  if (!isFields(data)) return undefined;
  const { model, bytesExpected, completedAt, ...rest } = data;
  const name = shortText(model);
  if (name === undefined) return undefined;
  return {
    model: name,
    revision: shortText(rest.revision),
    dir: shortText(rest.dir),
    bytesExpected: wholeNumber(bytesExpected),
    completedAt: typeof completedAt === 'string' ? dateOf(Date.parse(completedAt)) : undefined,
    job: shortText(rest.job),
  };
}

/** Longer texts name nothing. */
const longestText = 512;

function shortText(value: Field): string | undefined {
  if (typeof value !== 'string' || value.length > longestText || /\p{Cc}/u.test(value)) return undefined;
  return value.trim() || undefined;
}

/** The moment of milliseconds since the epoch; undefined when there is none. */
export function dateOf(ms: number): Date | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
