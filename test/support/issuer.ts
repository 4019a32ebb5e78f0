/** A small identity provider on loopback: it publishes keys, and signs what a test wants signed. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  exportJWK,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly pair: GenerateKeyPairResult;
  readonly jwk: JWK;
}

export async function createKey(kid: string, alg = 'RS256'): Promise<SigningKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, pair, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' } };
}

export interface Issuer extends AsyncDisposable {
  readonly url: string;
  /** Those it signs with and publishes; the first signs. A test changes the list. */
  readonly keys: SigningKey[];
  /** What a path answers from now on instead of its own; delete the entry to have that back. */
  readonly script: Partial<Record<'discovery' | 'keys', RequestListener>>;
  /** Paths that were asked for, in order. */
  readonly asked: string[];
  /** Signs claims over the usual ones; `undefined` takes one of them away. */
  token(claims?: Readonly<Record<string, unknown>>, options?: SigningOptions): Promise<string>;
}

export interface SigningOptions {
  readonly key?: SigningKey;
  readonly header?: Partial<JWTHeaderParameters>;
}

/** The audience of its tokens unless a test says otherwise. */
export const platform = 'platform';

export async function startIssuer(now: () => number = Date.now): Promise<Issuer> {
  const keys = [await createKey('first')];
  const script: Issuer['script'] = {};
  const asked: string[] = [];
  const server = createServer((req, res) => {
    const path = req.url ?? '';
    asked.push(path);
    const json = (body: object) => res.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (path === '/.well-known/openid-configuration') {
      if (script.discovery) return void script.discovery(req, res);
      return void json({ issuer: url, jwks_uri: `${url}/keys` });
    }
    if (path !== '/keys') return void res.writeHead(404).end();
    if (script.keys) return void script.keys(req, res);
    json({ keys: keys.map(({ jwk }) => jwk) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    keys,
    script,
    asked,
    token(claims = {}, { key = keys[0] as SigningKey, header = {} } = {}) {
      const seconds = Math.floor(now() / 1000);
      const usual = {
        iss: url,
        sub: 'jane',
        email: 'jane@example.com',
        aud: platform,
        iat: seconds,
        exp: seconds + 3_600,
      };
      const payload = JSON.parse(JSON.stringify({ ...usual, ...claims }));
      return new SignJWT(payload)
        .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
        .sign(key.pair.privateKey);
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
