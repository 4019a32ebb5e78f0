/** What to tell of a cloud without machines: which, where, and the way out. */
import { phrase, type ReasonCode, type Step } from '../../../../domain.ts';
import type { ServeFacts } from '../facts.ts';
import { distinct } from '../fields.ts';
import { clipped, listed } from '../words.ts';
import { type Asked, askedFor } from './asked.ts';
import type { Refusal } from './refusals.ts';

type Fields = Pick<Step, 'refusedInstanceTypes' | 'requestedZones' | 'availableZones' | 'pinnedByCache'>;
interface Capacity extends Fields {
  readonly reason: ReasonCode;
  readonly message: string;
  /** What could not be read to know it better. */
  readonly unread: readonly string[];
}

const longestQuote = 320;
const reason = 'CapacityUnavailable';

/** @param refusals at least one, by time */
export function capacityStage(claim: string, refusals: readonly Refusal[], facts: ServeFacts): Capacity {
  const last = refusals.at(-1) as Refusal;
  const count = distinct(refusals.map(each => each.claim)).length;
  const intro = phrase(reason, 'refused', {
    claims: `${count} NodeClaim${count === 1 ? '' : 's'}`,
    claim: last.claim,
    time: new Date(last.at).toISOString().replace(/\.\d+Z$/, 'Z'),
    reason: last.reason,
  });
  const texts = refusals.map(({ text }) => text);
  const named = mentions(texts, /do not have sufficient (\S+) capacity/g);
  const asked = askedFor(claim, facts);
  const { cache } = facts;
  const unread = [
    ...asked.unread,
    ...('problem' in cache ? [phrase(reason, 'cacheUnread', { problem: cache.problem })] : []),
  ];
  if (named.length === 0) {
    return { reason, message: intro + phrase(reason, 'quoted', { text: clipped(last.text, longestQuote) }), unread };
  }
  const types = distinct([...asked.types, ...named]);
  const zones = distinct([...asked.zones, ...mentions(texts, /Availability Zone you requested \(([^)\s]+)\)/g)]);
  const available = mentions(texts, /choosing ([a-z0-9-]+(?:, [a-z0-9-]+)*)\.(?!\.)/g)
    .flatMap(each => each.split(', '))
    .filter(zone => !zones.includes(zone));
  const place: Place = {
    asked,
    zones,
    available: distinct(available),
    pinned: pinnedByCache(zones, asked, facts),
    facts,
  };
  return {
    reason,
    message: intro + phrase(reason, 'capacity', { types: listed(types, 'or') }) + whereWords(place) + wayOut(place),
    unread,
    refusedInstanceTypes: types,
    requestedZones: zones.length > 0 ? zones : undefined,
    availableZones: place.available.length > 0 ? place.available : undefined,
    pinnedByCache: place.pinned,
  };
}

const mentions = (texts: readonly string[], pattern: RegExp) =>
  texts.flatMap(text => [...text.matchAll(pattern)].map(([, word]) => word as string));

/** Whether the zone is the one of the volume of the weights; undefined = unknown. */
function pinnedByCache(zones: readonly string[], asked: Asked, { cache }: ServeFacts): boolean | undefined {
  if ('problem' in cache || zones.length === 0) return undefined;
  const { state, volumeRead, zones: volumeZones } = cache.value;
  if (state !== 'bound' || asked.unpinned) return false;
  return volumeRead ? volumeZones.some(zone => zones.includes(zone)) : undefined;
}

interface Place {
  readonly asked: Asked;
  readonly zones: readonly string[];
  readonly available: readonly string[];
  readonly pinned: boolean | undefined;
  readonly facts: ServeFacts;
}

function whereWords(place: Place): string {
  const { asked, available } = place;
  if (place.zones.length === 0) return '';
  const zones = listed(place.zones, 'and');
  const elsewhere = available.length > 0 ? phrase(reason, 'elsewhere', { zones: listed(available, 'and') }) : '';
  if (asked.unpinned) return phrase(reason, asked.zones.length > 0 ? 'inAnyZone' : 'inSomeZone', { zones }) + elsewhere;
  return phrase(reason, place.zones.length === 1 ? 'inZone' : 'inZones', { zones, owner: ownerOf(place) }) + elsewhere;
}

/** What ties it to its zones. */
function ownerOf({ asked, pinned, facts: { cache } }: Place): string {
  if (pinned && 'value' in cache) return phrase(reason, 'byCache', { claim: cache.value.claim });
  return asked.byPool ? phrase(reason, 'byPool') : phrase(reason, 'byClaim');
}

function wayOut({ asked, zones, available, pinned }: Place): string {
  if (asked.unpinned && asked.zones.length > 0) return phrase(reason, 'noZoneLeft');
  if (asked.unpinned || zones.length === 0) return phrase(reason, 'retries');
  const better = available.length > 0 ? listed(available, 'or') : 'another zone';
  return phrase(reason, pinned ? 'otherZoneUncached' : 'otherZone', { zones: better });
}
