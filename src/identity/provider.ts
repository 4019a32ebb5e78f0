import type { JSONWebKeySet } from 'jose';
import * as z from 'zod';
import type { OauthSettings } from '../config/oauth.ts';
import { type Reading, readDocument } from './documents.ts';

const discovery = z.object({ issuer: z.string(), jwks_uri: z.string() });
const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

type Source = Pick<OauthSettings, 'issuer' | 'allowPrivateIssuer' | 'allowPrivateKeys'>;

/**
 * How to read the keys that an identity provider publishes: where they are is asked of it first, and again after a failure.
 * Rejects with an `Error` that names the document.
 */
export function keyReader({ issuer, allowPrivateIssuer, allowPrivateKeys }: Source, ca: string) {
  const reading = (allowPrivate: boolean): Reading => ({ ca, allowPrivate });
  let keysUrl: string | undefined;

  async function discover(): Promise<string> {
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = discovery.safeParse(await readDocument(url, reading(allowPrivateIssuer)));
    if (!found.success) throw new Error(`${url}: is no discovery document with an issuer and a jwks_uri`);
    // A provider that speaks for another one is taken for neither.
    if (found.data.issuer !== issuer) {
      throw new Error(`${url}: names the issuer ${JSON.stringify(found.data.issuer)}, not ${JSON.stringify(issuer)}`);
    }
    return found.data.jwks_uri;
  }

  return async (): Promise<JSONWebKeySet> => {
    const url = keysUrl ?? (await discover());
    keysUrl = undefined;
    const keys = keySet.safeParse(await readDocument(url, reading(allowPrivateKeys)));
    if (!keys.success) throw new Error(`${url}: is no set of keys`);
    keysUrl = url;
    return keys.data;
  };
}
