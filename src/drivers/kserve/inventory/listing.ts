/** The models of the cache: what its directories, what is on record, presets and served objects say together. */
import type { Model, Target } from '../../../domain.ts';
import { conflict, modelNotFound } from '../../../errors.ts';
import { detailsOf, onlyPresetServing, type ServingPreset } from '../presets.ts';
import { type ServedModel, servedAsModel } from '../serving/served.ts';
import { type CacheEntry, holdsModel } from './entry.ts';
import type { CacheRecord, CacheRecords } from './records.ts';
import { checkRemovable } from './toolJobs.ts';

export interface CacheFacts {
  readonly backend: string;
  readonly target: Target | undefined;
  /** What lies in the cache, by where it was seen; one place without a node where all see the same. */
  readonly places: readonly CachePlace[];
  readonly records: CacheRecords;
  readonly presets: readonly ServingPreset[];
  readonly served: readonly ServedModel[];
}

interface CachePlace {
  readonly node?: string | undefined;
  readonly entries: readonly CacheEntry[];
}

/** By name, then node. */
export function cachedModels(facts: CacheFacts): Model[] {
  const cached = facts.places.flatMap(({ node, entries }) =>
    entries.filter(holdsModel).map(entry => modelIn(entry, node, facts)),
  );
  const missing = facts.served.filter(each => !cached.some(model => isOf(model, each)));
  return [...cached, ...missing.map(each => servedAsModel(each, facts))].sort(byNameAndNode);
}

function modelIn(entry: CacheEntry, node: string | undefined, facts: CacheFacts): Model {
  const { dir, marker } = entry;
  const record = facts.records.get(dir);
  const byName = facts.presets.find(({ name }) => name === dir);
  const name = marker?.model ?? recordedModel(record, facts) ?? byName?.model ?? servedAs(dir, facts) ?? dir;
  const preset = byName ?? recordedPreset(record, name, facts) ?? onlyPresetServing(facts.presets, name);
  return {
    backend: facts.backend,
    target: facts.target,
    name,
    sizeBytes: entry.bytes,
    digest: marker?.revision || record?.revision || undefined,
    modifiedAt: entry.mtime,
    node,
    path: dir,
    downloaded: entry.files > 0,
    ...detailsOf(preset),
  };
}

/** What is served from a directory now goes before what was. */
function recordedModel(record: CacheRecord | undefined, { served }: CacheFacts): string | undefined {
  return record && (served.find(({ directory }) => directory === record.dir)?.model ?? record.model);
}

function recordedPreset(record: CacheRecord | undefined, model: string, { presets }: CacheFacts) {
  const preset = record && presets.find(({ name }) => name === record.preset);
  return preset?.model.toLowerCase() === model.toLowerCase() ? preset : undefined;
}

const servedAs = (dir: string, { served }: CacheFacts) => served.find(({ name }) => name === dir)?.model;

/** Whether a listed directory is that of a served object; on its node, where both are known. */
const isOf = ({ node, path }: Model, { directory, node: servedOn }: ServedModel) =>
  path === directory && (node === undefined || servedOn === undefined || node === servedOn);

function byNameAndNode(a: Model, b: Model): number {
  const keys = [
    [a.name, b.name],
    [a.node ?? '', b.node ?? ''],
    [a.path ?? '', b.path ?? ''],
  ] as const;
  for (const [one, other] of keys) if (one !== other) return one < other ? -1 : 1;
  return 0;
}

/** The listed model of a reference: by repository whatever the case of its letters, by directory, or by preset. */
export function findListed(models: readonly Model[], reference: string): Model | undefined {
  const wanted = reference.toLowerCase();
  return (
    models.find(({ name }) => name.toLowerCase() === wanted) ??
    models.find(({ path }) => path === reference) ??
    models.find(({ preset }) => preset === reference)
  );
}

/** The model that a preset would bring. */
export const modelOfPreset = (
  preset: ServingPreset,
  { backend, target }: Pick<CacheFacts, 'backend' | 'target'>,
): Model => ({
  backend,
  target,
  name: preset.model,
  sizeBytes: preset.weightsBytes,
  downloaded: false,
  ...detailsOf(preset),
});

/**
 * The directory that goes when a model is deleted. Throws `not_found` for one that is not in the cache, `conflict` for one
 * that is served, and `invalid_request` for a directory that must not be removed.
 */
export function removableDirectory(model: Pick<Model, 'name' | 'path'>, served: readonly ServedModel[]): string {
  const server = served.find(
    ({ directory, name, model: id }) =>
      directory === model.path || name === model.path || id.toLowerCase() === model.name.toLowerCase(),
  );
  if (server) {
    throw conflict(`${model.name} is served by LLMInferenceService ${server.name}; unload it first`);
  }
  if (model.path === undefined) throw modelNotFound(`${model.name} is not in the cache`);
  checkRemovable(model.path);
  return model.path;
}
