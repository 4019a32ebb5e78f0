import { unlessAborted } from '../../live/source.ts';
import type { Access, Identity } from '../access.ts';
import { parsedOrUndefined } from '../errors.ts';

/** Makes credentials, one at a time. */
export interface Maker {
  /** Throws an `Error` that says why there are none. */
  make(): Promise<Made>;
  /** What was made is not accepted: nothing of it is to be used again. */
  forget(): void;
}

export interface Made {
  readonly identity: Identity;
  /** Milliseconds since the epoch until which it can be used without making it again. */
  readonly until: number;
}

/** Milliseconds for which refused credentials are not made anew again: a server may accept none. */
const remakeMs = 30_000;

/** Credentials that are made when they are needed: once for all who wait, and again when they have ended. */
export function createMade(maker: Maker, now = Date.now): Pick<Access, 'identity' | 'refused'> {
  let making: Promise<Made> | undefined;
  let kept: Made | undefined;
  let remadeAt = Number.NEGATIVE_INFINITY;

  async function make(): Promise<Made> {
    try {
      kept = await maker.make();
      return kept;
    } finally {
      making = undefined;
    }
  }

  return {
    async identity(signal) {
      // Nobody would hear how the work ends that is begun for someone who has left.
      signal.throwIfAborted();
      if (kept && now() < kept.until) return kept.identity;
      making ??= make();
      return (await unlessAborted(making, signal)).identity;
    },
    refused() {
      if (now() - remadeAt < remakeMs) return;
      remadeAt = now();
      kept = undefined;
      maker.forget();
    },
  };
}

/** When a token ends, in milliseconds since the epoch; undefined when it does not say so. */
export function endOfToken(token: string): number | undefined {
  const [, payload] = token.split('.');
  if (payload === undefined) return undefined;
  const claims = parsedOrUndefined(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown } | undefined;
  return typeof claims?.exp === 'number' ? claims.exp * 1000 : undefined;
}
