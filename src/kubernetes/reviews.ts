/** What callers may do at an API server, asked of it before they try. */
import { type Call, outliving } from '../call.ts';
import { type Permit, permitted, together } from '../domain.ts';
import { asGatewayError } from '../errors.ts';
import { unlessAborted } from '../live/source.ts';
import type { KubernetesClient, Review } from './client.ts';
import { needsOf, type Use } from './permissions.ts';

/** Something a caller may want to do, and where. */
interface Wanted {
  readonly use: Use;
  readonly namespace: string;
  /** The object, where rights may be bound to its name. */
  readonly name?: string | undefined;
}

/**
 * Whether callers may do something, by the API server's own word: the one whom the request itself would go to, asked as the
 * one it would go as. Each right is asked about once, however many things it is wanted for, and the answer stands for 30 s
 * for everybody of the same scope.
 */
export interface Reviews {
  /** Whether the caller has all rights for it. Nobody can tell while the server does not answer. Rejects when the call's signal aborts. */
  permit(call: Call, wanted: readonly Wanted[]): Promise<Permit>;
}

/** For so long an answer stands, in milliseconds. */
const keptMs = 30_000;
/** After so long it is tried again where there was none, in milliseconds. */
const retryMs = 2_000;
/** No answer waits longer for one, in milliseconds. */
const reviewMs = 2_000;
/** Answers that are kept at most; the oldest is forgotten first. */
const mostKept = 10_000;

interface Kept {
  readonly permit: Promise<Permit>;
  /** In milliseconds of the clock. */
  until: number;
}

export function createReviews(client: Pick<KubernetesClient, 'review'>, now: () => number = Date.now): Reviews {
  const kept = new Map<string, Kept>();

  function permitOf(call: Call, review: Review): Promise<Permit> {
    const { verb, group, resource, namespace, name } = review;
    const key = JSON.stringify([call.caller.scope, verb, group, resource, namespace, name]);
    const known = kept.get(key);
    if (known && now() < known.until) return known.permit;
    // Who waits for it may leave: the others of the scope want it all the same.
    const entry: Kept = { permit: look(outliving(call, reviewMs), review), until: Number.POSITIVE_INFINITY };
    void entry.permit.then(({ allowed }) => {
      entry.until = now() + (allowed === undefined ? retryMs : keptMs);
    });
    kept.delete(key);
    kept.set(key, entry);
    for (const oldest of kept.keys()) {
      if (kept.size <= mostKept) break;
      kept.delete(oldest);
    }
    return entry.permit;
  }

  async function look(call: Call, review: Review): Promise<Permit> {
    try {
      const refusal = await client.review(call, review);
      return refusal ? { allowed: false, reason: refusal.message } : permitted;
    } catch (error) {
      return { allowed: undefined, reason: `nobody can tell now: ${asGatewayError(error, call.requestId).message}` };
    }
  }

  return {
    async permit(call, wanted) {
      const reviews = wanted.flatMap(({ use, namespace, name }) =>
        needsOf(use).map(need => ({ ...need, namespace, name })),
      );
      const permits = Promise.all(reviews.map(review => permitOf(call, review)));
      return together(await unlessAborted(permits, call.signal));
    },
  };
}
