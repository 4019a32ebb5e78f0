/** Sources that are computed from others and may fail. */

import type { Call } from '../../../call.ts';
import { type GatewayError, unavailable } from '../../../errors.ts';
import { derive } from '../../../live/derive.ts';
import type { Observation, Source } from '../../../live/source.ts';

/** Why something is not known that nothing is wrong with. */
export const unanswered = 'the API server has not answered yet';

/** What was made of observations; without a value there is an error. */
export interface Seen<T> {
  readonly value?: T | undefined;
  readonly error?: GatewayError | undefined;
}

type Observed<T> = { readonly [K in keyof T]: Observation<T[K]> };

/** As `derive`, of what may fail: the error becomes that of the observation. What is computed twice alike is no news. */
export function deriveSeen<T extends readonly unknown[], R>(
  sources: { readonly [K in keyof T]: Source<T[K]> },
  compute: (observations: Observed<T>, previous: R | undefined) => Seen<R>,
): Source<R> {
  const seen = derive<T, Seen<R>>(sources, (observations, before) => {
    const next = compute(observations, before?.value);
    const isSame = before !== undefined && before.value === next.value && before.error?.message === next.error?.message;
    return isSame ? before : next;
  });
  return {
    get current() {
      return seen.current && inside(seen.current);
    },
    read: async call => inside(await seen.read(call)),
    subscribe: seen.subscribe,
  };
}

const inside = <R>({ value, ...observation }: Observation<Seen<R>>): Observation<R> => ({
  ...observation,
  value: value?.value,
  error: value?.error,
});

/** Why a part of the cluster is not known, or may be outdated: `pods: <why>`; nothing when all is well. */
export function problemOf(what: string, { value, error }: Observation<unknown>): string | undefined {
  if (error) return `${what}: ${error.message}`;
  return value === undefined ? `${what}: ${unanswered}` : undefined;
}

/** Why a part is not there at all; nothing when it is, even if it may be outdated. */
export const missingIn = (what: string, { value, error }: Observation<unknown>): GatewayError | undefined =>
  value === undefined ? (error ?? unavailable(`${what}: ${unanswered}`)) : undefined;

/** What is seen of a source. Throws what it failed with, unless it was seen before. */
export async function readValue<T>(source: Source<T>, call: Call): Promise<T> {
  const { value, error } = await source.read(call);
  if (value !== undefined) return value;
  throw error ?? unavailable(unanswered);
}
