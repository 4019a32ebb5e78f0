/** What is on record of the cache: which model was served from which directory, kept when the directory cannot be seen. */
import { parsedOrUndefined } from '../../../kubernetes/errors.ts';
import type { ConfigMap } from '../../../kubernetes/resource.ts';
import { isHubUri, parseReference } from '../hub/reference.ts';
import { fieldsOf, textOf } from '../jobs/fields.ts';
import type { CacheLocation } from '../nodes/cacheLocation.ts';
import type { ServedModel } from '../serving/served.ts';
import type { KserveSettings } from '../settings.ts';

/** One directory. */
export interface CacheRecord {
  /** Repository. */
  readonly model: string;
  /** '' when none was asked for. */
  readonly revision: string;
  readonly dir: string;
  /** Only of an object that names its preset. */
  readonly preset?: string | undefined;
  /** Of the object that served it. */
  readonly inferenceService: string;
  readonly claim: string;
  readonly volume?: string | undefined;
  /** RFC 3339. */
  readonly recordedAt: string;
}

/** By directory. */
export type CacheRecords = ReadonlyMap<string, CacheRecord>;

/** The records in the index; what is none is passed over. */
export function recordsIn(index: ConfigMap | undefined): CacheRecords {
  const records = new Map<string, CacheRecord>();
  for (const [dir, text] of Object.entries(fieldsOf(index?.data))) {
    const { model, ...data } = fieldsOf(parsedOrUndefined(textOf(text) ?? ''));
    const name = textOf(model);
    if (name === undefined) continue;
    records.set(dir, {
      model: name,
      revision: textOf(data.revision) ?? '',
      dir,
      preset: textOf(data.preset),
      inferenceService: textOf(data.inferenceService) ?? '',
      claim: textOf(data.claim) ?? '',
      volume: textOf(data.volume),
      recordedAt: textOf(data.recordedAt) ?? '',
    });
  }
  return records;
}

/** Whether a record is of the claim and the volume there are now: with others its directory went, too. */
export const isBound = ({ claim, volume }: CacheRecord, location: CacheLocation | undefined) =>
  location?.state === 'bound' && claim === location.claim && (volume ?? '') === (location.volume ?? '');

/** What the index has to say of what is served now, and does not say yet. */
export function recordsToWrite(
  known: CacheRecords,
  served: readonly ServedModel[],
  { cache }: Pick<KserveSettings, 'cache'>,
  location: CacheLocation | undefined,
  now: Date,
): CacheRecord[] {
  if (!cache.enabled || location?.state !== 'bound') return [];
  const recordedAt = `${now.toISOString().slice(0, 19)}Z`;
  return served
    .filter(({ uri, deleting }) => isHubUri(uri ?? '') && !deleting)
    .map(object => recordOf(object, location, recordedAt))
    .filter(record => !isEqual(record, known.get(record.dir)));
}

function recordOf(served: ServedModel, { claim, volume }: CacheLocation, recordedAt: string): CacheRecord {
  return {
    model: served.model,
    revision: parseReference(served.uri ?? '').revision ?? '',
    dir: served.directory,
    preset: served.labelledPreset,
    inferenceService: served.name,
    claim,
    volume,
    recordedAt,
  };
}

/** When it was recorded does not count. */
function isEqual(one: CacheRecord, other: CacheRecord | undefined): boolean {
  const facts = ({ model, revision, dir, preset, inferenceService, claim, volume }: CacheRecord) =>
    JSON.stringify([model, revision, dir, preset, inferenceService, claim, volume]);
  return other !== undefined && facts(one) === facts(other);
}

/**
 * The directory whose record goes with an object that is unloaded: its own, unless what it says still lies in the claim
 * there is now.
 */
export function recordToForget(
  known: CacheRecords,
  { name, directory }: Pick<ServedModel, 'name' | 'directory'>,
  { cache }: Pick<KserveSettings, 'cache'>,
  location: CacheLocation | undefined,
): string | undefined {
  const record = known.get(directory);
  if (!record || record.inferenceService !== name) return undefined;
  return cache.enabled && isBound(record, location) ? undefined : directory;
}
