import { errors, type JWTPayload, jwtVerify } from 'jose';
import { GatewayError } from '../errors.ts';
import type { Keys } from './keys.ts';

/** Why a token is not taken. */
export const tokenProblems = [
  'missing',
  'malformed',
  'signature',
  'issuer',
  'audience',
  'claims',
  'expired',
  'early',
  'unavailable',
] as const;

export type TokenProblem = (typeof tokenProblems)[number];

export interface Refusal {
  readonly reason: TokenProblem;
  /** A sentence for who sent it. */
  readonly message: string;
  /** The audience of a token that is good but meant for somebody else, and who sent it. */
  readonly audience?: readonly string[];
  readonly sender?: string;
}

/** What is known of a person by their token. */
export interface Claims {
  readonly issuer: string;
  readonly subject: string;
  /** Email, else subject. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface Expected {
  readonly issuer: string;
  readonly audiences: readonly string[];
}

/** Signatures that are taken; none with a shared secret, and never none at all. */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** Seconds that the clocks of the provider and of this machine may differ. */
const clockTolerance = 30;
/** Bytes of a token at most; looked at before anything else of it. */
const maxBytes = 16 * 1024;

/**
 * What a token says, if the provider has signed it, it is meant for us and it is the time for it. The keys are those that
 * the provider publishes: headers that name others (`jku`, `x5u`, `jwk`) are not looked at.
 */
export async function verify(
  token: string,
  keys: Pick<Keys, 'find'>,
  { issuer, audiences }: Expected,
  now: number,
): Promise<Claims | Refusal> {
  if (token.length > maxBytes) return { reason: 'malformed', message: `the token is larger than ${maxBytes} bytes` };
  let payload: JWTPayload;
  try {
    ({ payload } = await jwtVerify(token, (header, jws) => keys.find(header, jws), {
      algorithms,
      issuer,
      requiredClaims: ['exp', 'iat', 'sub', 'aud'],
      clockTolerance,
      currentDate: new Date(now),
    }));
  } catch (error) {
    return refusalOf(error, issuer);
  }
  const { sub, email, exp, aud } = payload;
  const names = [email, sub].filter(isName);
  const [name] = names;
  if (!isName(sub) || name === undefined) return { reason: 'claims', message: 'the token has no usable sub claim' };
  const meantFor = [aud].flat().filter(each => typeof each === 'string');
  if (!meantFor.some(each => audiences.includes(each))) {
    const lists = `[${shown(meantFor)}], which matches none of the trusted audiences [${shown(audiences)}]`;
    return {
      reason: 'audience',
      message: `the bearer is an id_token for audience ${lists}: ask for a token for one of these, or have its audience trusted`,
      audience: meantFor,
      sender: name,
    };
  }
  return { issuer, subject: sub, name, expiresAt: (exp as number) * 1000 };
}

/** A list as a sentence shows it: never endless. */
function shown(list: readonly string[]): string {
  const first = list.slice(0, 8).map(each => (each.length > 64 ? `${each.slice(0, 64)}…` : each));
  return [...first, ...(list.length > 8 ? ['…'] : [])].join(', ');
}

/** What can stand in one line of a log, and as somebody's name. */
const isName = (claim: unknown): claim is string =>
  typeof claim === 'string' && claim.trim() !== '' && /^[^\p{Cc}\p{Zl}\p{Zp}]{1,512}$/u.test(claim);

export const expired: Refusal = { reason: 'expired', message: 'the token has expired; sign in again' };

function refusalOf(error: unknown, issuer: string): Refusal {
  if (error instanceof GatewayError) return { reason: 'unavailable', message: error.message };
  if (error instanceof errors.JWTExpired) return expired;
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'iss') return { reason: 'issuer', message: `the token was not issued by ${issuer}` };
    if (error.claim === 'nbf' && error.reason === 'check_failed') {
      return { reason: 'early', message: 'the token is not valid yet' };
    }
    return { reason: 'claims', message: `the token has no usable ${error.claim} claim` };
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return { reason: 'signature', message: `the token is not signed with one of ${algorithms.join(', ')}` };
  }
  const isUnsigned =
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys;
  if (isUnsigned) return { reason: 'signature', message: `the token is not signed with a key of ${issuer}` };
  if (error instanceof errors.JOSEError)
    return { reason: 'malformed', message: 'the bearer is no id_token (a signed JWT)' };
  throw error;
}
