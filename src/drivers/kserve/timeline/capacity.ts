/** What to tell of a cloud without machines: which, where, and the way out. */
import type { Step } from '../../../domain.ts';
import { type Asked, askedFor } from './asked.ts';
import type { ServeFacts } from './facts.ts';
import { distinct } from './fields.ts';
import type { Refusal } from './refusals.ts';
import { clipped, listed } from './words.ts';

type Fields = Pick<Step, 'refusedInstanceTypes' | 'requestedZones' | 'availableZones' | 'pinnedByCache'>;
interface Capacity extends Fields {
  readonly message: string;
  /** What could not be read to know it better. */
  readonly unread: readonly string[];
}

const longestQuote = 320;
const retries = '; Karpenter retries while the pod waits';

/** @param refusals at least one, by time */
export function capacityStage(claim: string, refusals: readonly Refusal[], facts: ServeFacts): Capacity {
  const last = refusals.at(-1) as Refusal;
  const claims = distinct(refusals.map(each => each.claim)).length;
  const at = new Date(last.at).toISOString().replace(/\.\d+Z$/, 'Z');
  const refused = `${claims} NodeClaim${claims === 1 ? '' : 's'} refused, the last (${last.claim}) at ${at}`;
  const intro = `Karpenter could not launch a node: ${refused} — ${last.reason}: `;
  const texts = refusals.map(({ text }) => text);
  const named = mentions(texts, /do not have sufficient (\S+) capacity/g);
  const asked = askedFor(claim, facts);
  const { cache } = facts;
  const unread = [
    ...asked.unread,
    ...('problem' in cache ? [`where the cache claim lives could not be read (${cache.problem})`] : []),
  ];
  if (named.length === 0) return { message: `${intro}${clipped(last.text, longestQuote)}${retries}`, unread };
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
    message: `${intro}the cloud has no ${listed(types, 'or')} capacity${whereWords(place)}${wayOut(place)}`,
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

function whereWords({ asked, zones, available, pinned, facts: { cache } }: Place): string {
  if (zones.length === 0) return '';
  const all = listed(zones, 'and');
  const elsewhere = available.length > 0 ? `; it has capacity in ${listed(available, 'and')}` : '';
  if (asked.unpinned && asked.zones.length > 0) return ` in any zone the pool allows (${all})${elsewhere}`;
  if (asked.unpinned) return ` in ${all} at least — the claim was constrained to no zone${elsewhere}`;
  const owner =
    pinned && 'value' in cache
      ? `the pool is pinned to by the cache claim ${cache.value.claim} (its volume lives there)`
      : asked.byPool
        ? 'the pool constrains its nodes to'
        : 'the claim was constrained to';
  return ` in ${all}, the zone${zones.length === 1 ? '' : 's'} ${owner}${elsewhere}`;
}

function wayOut({ asked, zones, available, pinned }: Place): string {
  if (asked.unpinned && asked.zones.length > 0) {
    const wider =
      'wider sizes or another accelerator (a re-run of create_node_pool) give Karpenter more to choose from';
    return `. No zone is left to move to; ${wider}, and it retries while the pod waits`;
  }
  if (asked.unpinned || zones.length === 0) return retries;
  const better = available.length > 0 ? listed(available, 'or') : 'another zone';
  const how = pinned
    ? ' (create_node_pool with zones naming it and cache: false), or removing the cache claim so the next pool is not pinned'
    : ' (create_node_pool with zones naming it)';
  return `. The way out is a pool in ${better}${how}${retries}`;
}
