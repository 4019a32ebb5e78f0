/** The people whose work at Kubernetes is done with their own tokens: each is one caller, whatever token they come with. */
import type { Caller } from '../call.ts';
import { unauthenticated } from '../errors.ts';
import type { Claims } from './token.ts';

export interface People {
  /**
   * Who asks with this token: it is the one that their request is done with. What goes on when it has expired, and all that is
   * no request (`person`), is done with the one of the person that is good for longest.
   */
  callerOf(claims: Claims, token: string): Caller;
}

/** Who is remembered at most; those who came last. */
const most = 1_000;
/** For how long after their token has expired, in milliseconds: who comes back within it goes on as the caller they were. */
const rememberedMs = 10 * 60_000;

interface Known {
  readonly person: Caller & Required<Pick<Caller, 'token' | 'until'>>;
  token: string;
  expiresAt: number;
}

/** The one key of a person: issuer and subject. */
export const keyOf = ({ issuer, subject }: Pick<Claims, 'issuer' | 'subject'>) => JSON.stringify([issuer, subject]);

/** Tokens are in memory only, in closures: nothing that is logged or shown has them. */
export function createPeople(now: () => number): People {
  /** By their key; who came last is last. */
  const people = new Map<string, Known>();

  function meet({ name }: Claims, key: string): Known {
    const known: Known = {
      token: '',
      expiresAt: 0,
      person: {
        name,
        anonymous: false,
        subject: key,
        scope: key,
        token() {
          if (now() >= known.expiresAt) throw unauthenticated(`the token of ${name} has expired; sign in again`);
          return known.token;
        },
        until: () => known.expiresAt,
      },
    };
    forget();
    return known;
  }

  function forget(): void {
    for (const [key, { expiresAt }] of people) {
      if (people.size >= most || now() > expiresAt + rememberedMs) people.delete(key);
    }
  }

  return {
    callerOf(claims, token) {
      const key = keyOf(claims);
      const known = people.get(key) ?? meet(claims, key);
      people.delete(key);
      people.set(key, known);
      if (claims.expiresAt >= known.expiresAt) Object.assign(known, { token, expiresAt: claims.expiresAt });
      const { person } = known;
      return {
        ...person,
        person,
        token: () => (now() < claims.expiresAt ? token : person.token()),
        until: () => Math.max(claims.expiresAt, person.until()),
      };
    },
  };
}
