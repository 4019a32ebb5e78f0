/** Whether the weights of a model are in the cache, and what says so. */
import type { CacheLocation } from '../nodes/cacheLocation.ts';
import { isModelImage } from '../presets.ts';
import type { KserveSettings } from '../settings.ts';
import type { FitQuestion } from './question.ts';

/** What is known of the content of the claim. */
export interface CacheContent {
  /** Its directories, by whoever looked; absent when nobody could. */
  readonly entries?: readonly CacheEntry[] | undefined;
  /** What is on record of it. */
  readonly records?: readonly CacheRecord[] | undefined;
}

interface CacheEntry {
  readonly dir: string;
  readonly files: number;
  /** Of its files. */
  readonly bytes?: number | undefined;
  /** What a download left beside it. */
  readonly marker?: { readonly model?: string | undefined; readonly revision?: string | undefined } | undefined;
}

interface CacheRecord {
  readonly dir: string;
  readonly model: string;
  readonly claim: string;
  readonly volume?: string | undefined;
}

export interface Cached {
  readonly cached: boolean;
  readonly cacheSource: 'oci-image' | 'scan' | 'index' | 'unknown';
}

/** A record counts only if it is of the claim and the volume there are now: the directories went with the old ones. */
export function cachedIn(
  question: FitQuestion,
  { cache }: KserveSettings,
  location: CacheLocation | undefined,
  { entries, records = [] }: CacheContent,
): Cached {
  if (isModelImage(question.preset)) return { cached: false, cacheSource: 'oci-image' };
  if (!cache.enabled || location?.state !== 'bound') return { cached: false, cacheSource: 'unknown' };
  const isAsked = isNamedBy(question);
  if (entries) {
    const cached = entries.some(
      ({ dir, files, marker }) => (dir === question.directory && files > 0) || isAsked(marker?.model),
    );
    return { cached, cacheSource: 'scan' };
  }
  const recorded = records.some(
    ({ dir, model, claim, volume }) =>
      dir === question.directory &&
      isAsked(model) &&
      claim === location.claim &&
      (volume ?? '') === (location.volume ?? ''),
  );
  return recorded ? { cached: true, cacheSource: 'index' } : { cached: false, cacheSource: 'unknown' };
}

/**
 * Whether nothing is missing of what is in the cache: a download that was broken off leaves files, but no marker, and one of
 * another revision a marker of its own. `expected`: bytes of a download, absent while nobody knows. What nobody looked at is
 * as good as whole.
 */
export function isWhole(question: FitQuestion, { entries }: CacheContent, expected: number | undefined): boolean {
  if (!entries) return true;
  const isAsked = isNamedBy(question);
  return entries.some(({ dir, marker, bytes = 0 }) => {
    if (marker) return isAsked(marker.model) && (marker.revision || 'main') === question.revision;
    const isSame = dir === question.directory && question.revision === 'main';
    return isSame && expected !== undefined && bytes >= expected;
  });
}

const isNamedBy = (question: FitQuestion) => (model: string | undefined) =>
  [question.model, question.repository].some(name => name.toLowerCase() === model?.toLowerCase());
