import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWTHeaderParameters,
} from 'jose';
import type { Logger } from 'pino';
import { GatewayError, messageOf } from '../errors.ts';

export interface KeysOptions {
  /** Reads the published keys. */
  load(): Promise<JSONWebKeySet>;
  readonly log: Logger;
  readonly now?: () => number;
}

export interface KeysState {
  /** Whether they could be read when that was last tried; undefined before it was. */
  readonly up: boolean | undefined;
  /** Milliseconds since they were read; undefined when they never were. */
  readonly age: number | undefined;
}

/** The keys of an identity provider, as new as they have to be. */
export interface Keys {
  /**
   * The key that a token says it was signed with. Rejects with `unavailable` where none could be read, and with jose's error
   * when there is no such key.
   */
  find(header?: JWTHeaderParameters, token?: FlattenedJWSInput): Promise<CryptoKey>;
  /** Why no token can be checked at present; undefined when they can. */
  problem(): string | undefined;
  /** How they are: for metrics. */
  state(): KeysState;
  /** Nothing is read any more. */
  stop(): void;
}

/** Older keys are read again before they are used, in milliseconds: as long as a key that was withdrawn is still taken. */
const maxAgeMs = 10 * 60_000;
/** While they cannot be read, older keys are good this long, in milliseconds. */
const staleMs = 60 * 60_000;
/** A key that is not known makes us look for new ones this often at most, in milliseconds. */
const cooldownMs = 30_000;
/** Until a failed read is tried again: doubled from the first to the second, in milliseconds. */
const [firstRetryMs, lastRetryMs] = [1_000, 30_000];

/** Begins to read them at once, and tries until it succeeds. */
export function createKeys({ load, log, now = Date.now }: KeysOptions): Keys {
  let held: { readonly select: ReturnType<typeof createLocalJWKSet>; readonly at: number } | undefined;
  let failure: string | undefined;
  let failures = 0;
  let attemptedAt = 0;
  let reading: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let stopped = false;

  const isOlderThan = (ms: number) => held !== undefined && now() - held.at >= ms;

  /** Never rejects. Those who want it at the same time share it. */
  function refresh(): Promise<void> {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function read(): Promise<void> {
    clearTimeout(retry);
    attemptedAt = now();
    try {
      const published = await load();
      if (published.keys.length === 0) throw new Error('it publishes no key');
      held = { select: createLocalJWKSet(published), at: now() };
      if (failures > 0) log.info('the keys of the identity provider can be read again');
      failure = undefined;
      failures = 0;
    } catch (error) {
      failure = messageOf(error);
      const pause = Math.min(firstRetryMs * 2 ** failures, lastRetryMs);
      failures++;
      log.warn({ err: error, nextTryMs: pause }, 'the keys of the identity provider cannot be read');
      if (!stopped) retry = setTimeout(refresh, pause).unref();
    }
  }

  void refresh();
  return {
    async find(header, token) {
      // While it fails, the retries look after it: nobody who has a good token waits for them.
      if (isOlderThan(maxAgeMs) && failure === undefined) await refresh();
      if (held === undefined || isOlderThan(staleMs)) throw unavailable();
      try {
        return await held.select(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        if (reading === undefined && now() - attemptedAt < cooldownMs) throw error;
        await refresh();
        return held.select(header, token);
      }
    },
    problem() {
      if (held === undefined) return failure ?? 'the keys of the identity provider are not read yet';
      return isOlderThan(staleMs) ? failure : undefined;
    },
    state: () => ({
      up: held === undefined && failure === undefined ? undefined : failure === undefined,
      age: held && now() - held.at,
    }),
    stop() {
      stopped = true;
      clearTimeout(retry);
    },
  };
}

export const unavailable = () =>
  new GatewayError('unavailable', 'tokens cannot be checked: the identity provider does not answer; try again soon');
