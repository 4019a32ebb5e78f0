/** Why what is cached is not being counted now, or is counted later. */
import type { ReasonEntry } from './entry.ts';

export const inventoryReasons = {
  'claim-missing': {
    where: ['inventory'],
    texts: { missing: 'cache claim {claim} does not exist' },
    meaning: 'There is no volume claim of that name where models are served, so nothing is cached.',
    remedy: 'Create the claim, or name the right one with `--kserve-cache-claim` or in the discovery ConfigMap.',
  },
  'claim-unbound': {
    where: ['inventory'],
    texts: { unbound: 'cache claim {claim} is not bound yet; the first predictor binds it' },
    meaning: 'The cache has no volume yet, so nothing is cached.',
    remedy: 'Nothing: loading the first model brings the volume.',
  },
  'no-claim': {
    where: ['inventory'],
    texts: { none: 'no cache claim is configured; there is no inventory to rescan' },
    meaning: 'Models are served without a cache.',
    remedy: 'Nothing, unless there is to be one: switch the cache on in the discovery ConfigMap.',
  },
  'claim-unlocated': {
    where: ['inventory'],
    texts: { unlocated: 'cannot locate the cache claim: {problem}' },
    meaning: 'The claim of the cache could not be read, so nobody knows where it is.',
    remedy: 'See what the message says stood against it; most often a permission is missing.',
  },
  'pool-unread': {
    where: ['inventory'],
    texts: { unread: 'cannot tell whether a node of the GPU pool exists: {problem}' },
    meaning: 'A scan pod needs a node of the pool, and the nodes could not be read.',
    remedy: 'Let the gateway list nodes; the message has what refused it.',
  },
  'pool-empty': {
    where: ['inventory'],
    texts: { empty: 'no node of the GPU pool ({selector}) exists; a predictor brings the first' },
    meaning: 'The pool is at zero, and the gateway starts no machine only to look at the cache.',
    remedy: 'Nothing: the last count stands, and the next load brings a node.',
  },
  'scan-later': {
    where: ['inventory'],
    texts: {
      background: "the caller's deadline leaves less than {duration} for a scan pod; scanning in the background",
    },
    meaning: 'A scan pod takes longer than the request may, so this answer has the last count.',
    remedy:
      'Nothing: ask again in a minute, or run the agent, which answers at once (`--kserve-inventory-mode daemonset`).',
  },
  'agent-slow': {
    where: ['inventory'],
    texts: { slow: 'the agent has not answered yet; asking in the background' },
    meaning: 'The cache agent on the node did not answer within the time of this request.',
    remedy: 'Ask again in a minute. If it stays so, look at the cache agent pod on that node.',
  },
} as const satisfies Record<string, ReasonEntry>;
