/**
 * Who is calling, by the token they send. A token is an id_token that an identity provider issued. It is checked here, and
 * neither kept nor passed on, unless work at Kubernetes is done as the caller: then it is kept for that, in memory.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Caller } from '../call.ts';
import type { OauthSettings } from '../config/oauth.ts';
import { ConfigError } from '../config/settings.ts';
import { messageOf } from '../errors.ts';
import { createKeys, type KeysState, unavailable } from './keys.ts';
import { createPeople, keyOf } from './people.ts';
import { keyReader } from './provider.ts';
import { type Claims, expired, type Refusal, verify } from './token.ts';

/** A caller whose token was taken. */
export interface Person {
  readonly caller: Caller;
  /** When the token expires, and with it what it opened; milliseconds since the epoch. */
  readonly expiresAt: number;
}

export type Verdict = { readonly person: Person } | { readonly refusal: Refusal };

export interface Identity {
  readonly settings: OauthSettings;
  /** Who sends a token, or why nobody does; undefined when none was sent. Rejects for nothing a client can do. */
  check(token: string | undefined): Promise<Verdict>;
  /** Why no token can be checked at present; undefined when they can. */
  waiting(): string | undefined;
  /** How the keys of the provider are: for metrics. */
  keys(): KeysState;
  stop(): void;
}

/** How long a token that was checked is taken without another check, in milliseconds, and how many of them at most. */
const keptMs = 60_000;
const maxKept = 1_000;

/** Begins to read the keys of the provider at once. Throws a `ConfigError` when a file of the settings cannot be read. */
export function createIdentity(settings: OauthSettings, log: Logger, now: () => number = Date.now): Identity {
  const keys = createKeys({ load: keyReader(settings, certificatesOf(settings.caFile)), log, now });
  const people = settings.downstream ? createPeople(now) : undefined;
  /** By the hash of their tokens. The oldest come first. */
  const kept = new Map<string, { readonly person: Person; readonly until: number }>();

  function keep(hash: string, person: Person): void {
    kept.delete(hash);
    kept.set(hash, { person, until: Math.min(person.expiresAt, now() + keptMs) });
    for (const oldest of kept.keys()) {
      if (kept.size <= maxKept) break;
      kept.delete(oldest);
    }
  }

  return {
    settings,
    async check(token) {
      if (token === undefined) {
        return {
          refusal: keys.problem() === undefined ? missing : { reason: 'unavailable', message: unavailable().message },
        };
      }
      const hash = createHash('sha256').update(token).digest('base64');
      const known = kept.get(hash);
      if (known && known.until > now()) return known;
      const claims = await verify(token, keys, settings, now());
      if ('reason' in claims) return { refusal: claims };
      // The API server gives no time beyond the expiry.
      if (people && claims.expiresAt <= now()) return { refusal: expired };
      const { expiresAt } = claims;
      const person = { caller: people?.callerOf(claims, token) ?? callerOf(claims), expiresAt };
      keep(hash, person);
      return { person };
    },
    waiting: () => keys.problem(),
    keys: keys.state,
    stop: () => keys.stop(),
  };
}

/** What everybody asks for is done with the identity of the gateway, so all may see the same. */
const callerOf = ({ issuer, subject, name }: Claims): Caller => ({
  name,
  anonymous: false,
  subject: keyOf({ issuer, subject }),
  scope: '',
});

const missing: Refusal = { reason: 'missing', message: 'sign in: send a token as Authorization: Bearer TOKEN' };

function certificatesOf(file: string): string {
  if (file === '') return '';
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`--dex-ca-file cannot be read: ${messageOf(error)}`]);
  }
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new ConfigError([`--dex-ca-file ${file} has no certificate`]);
  return text;
}

/** The token of an `Authorization` value: undefined when there is none, '' (which is no token) when it is not a bearer's. */
export function bearerOf(value: string | undefined): string | undefined {
  if (value === undefined || value.trim() === '') return undefined;
  return /^Bearer +(\S+) *$/i.exec(value)?.[1] ?? '';
}
