/** An identity provider that others wrote and people use (oidc-provider), on loopback; and somebody who signs in there. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import Provider from 'oidc-provider';

export interface OidcProvider extends AsyncDisposable {
  readonly url: string;
  /** Paths that were asked for, in order. */
  readonly asked: string[];
  /** What it was about to ask of others: nothing may. */
  readonly went: string[];
  /** Seconds that the tokens it issues from now on are good for. */
  lifetime: number;
  /** Signs with a new key from now on, and publishes no other. */
  rotate(): Promise<void>;
}

/** Where clients want to be sent back to; nobody listens there, for who signs in reads it from the redirect. */
export const redirectUri = 'http://127.0.0.1/callback';

type Stored = Record<string, unknown>;

/** What it remembers outlives its keys, as a database does. */
function createAdapters() {
  const stored = new Map<string, Stored>();
  const all = (matches: (value: Stored) => boolean) => [...stored].filter(([, value]) => matches(value));
  return (model: string) => {
    const keyOf = (id: string) => `${model}:${id}`;
    return {
      upsert: async (id: string, payload: Stored) => void stored.set(keyOf(id), payload),
      find: async (id: string) => stored.get(keyOf(id)),
      findByUid: async (uid: string) => all(value => value.uid === uid)[0]?.[1],
      findByUserCode: async (userCode: string) => all(value => value.userCode === userCode)[0]?.[1],
      destroy: async (id: string) => void stored.delete(keyOf(id)),
      consume: async (id: string) => void Object.assign(stored.get(keyOf(id)) ?? {}, { consumed: Date.now() / 1000 }),
      revokeByGrantId: async (grantId: string) => {
        for (const [key] of all(value => value.grantId === grantId)) stored.delete(key);
      },
    };
  };
}

let keys = 0;

async function createSigningKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: `key-${++keys}`, alg: 'RS256', use: 'sig' };
}

/** Its clients are known by these names, and may be public as those of command lines are; others register themselves. */
export async function startProvider(clients: readonly string[]): Promise<OidcProvider> {
  const asked: string[] = [];
  const went: string[] = [];
  const adapter = createAdapters();
  const cookieKey = randomBytes(16).toString('hex');
  let serve: RequestListener;
  const server = createServer((req, res) => {
    asked.push((req.url ?? '').split('?')[0] as string);
    serve(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const provider: OidcProvider = {
    url,
    asked,
    went,
    lifetime: 600,
    async rotate() {
      serve = new Provider(url, configured(await createSigningKey())).callback();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };

  const lifetime = () => provider.lifetime;
  const configured = (key: JWK) => ({
    adapter,
    jwks: { keys: [key] },
    cookies: { keys: [cookieKey] },
    clients: clients.map(client_id => ({
      client_id,
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [redirectUri],
    })),
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    claims: { openid: ['sub'], email: ['email'], profile: ['name'] },
    // Dex and Google write the email into the id_token itself; so does this one.
    conformIdTokenClaims: false,
    findAccount: (_ctx: unknown, accountId: string) => ({
      accountId,
      claims: async () => ({ sub: accountId, email: `${accountId}@example.com` }),
    }),
    issueRefreshToken: async () => true,
    rotateRefreshToken: false,
    ttl: {
      AccessToken: lifetime,
      IdToken: lifetime,
      RefreshToken: 3_600,
      Session: 3_600,
      Grant: 3_600,
      Interaction: 600,
    },
    fetch: (target: URL | string) => {
      went.push(String(target));
      return Promise.reject(new Error(`${target} is not on this machine`));
    },
    features: {
      // Its own pages to sign in and agree, which take any name and password.
      devInteractions: { enabled: true },
      registration: { enabled: true },
      // The access token of a client that names a resource (RFC 8707), as MCP clients have to, is a signed JWT for that
      // resource (RFC 9068): the gateway checks it as it checks an id_token, where it trusts the resource as an audience.
      resourceIndicators: {
        enabled: true,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (_ctx: unknown, resource: string) => ({
          scope: 'openid profile email',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: provider.lifetime,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  await provider.rotate();
  return provider;
}

/** Follows an authorization request as the browser of somebody does who signs in and agrees. Gives where it leads in the end. */
export async function signInAt(start: URL, login: string): Promise<URL> {
  const cookies = new Map<string, string>();
  const ask = async (target: URL, form?: Record<string, string>) => {
    assert.equal(target.host, start.host, 'nobody leaves the provider before the end');
    const response = await fetch(target, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    return { text: await response.text(), location: response.headers.get('location'), status: response.status };
  };
  let place = start;
  for (let steps = 0; steps < 12; steps++) {
    let answer = await ask(place);
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(answer.text) ?? [];
    if (prompt) answer = await ask(place, { prompt, login, password: 'any' });
    assert.ok(answer.location, `${place.pathname} answers ${answer.status}: ${answer.text.slice(0, 500)}`);
    place = new URL(answer.location, place);
    if (place.host !== start.host) return place;
  }
  throw new Error('signing in comes to no end');
}

/** What the token endpoint answers. */
export interface Tokens {
  readonly id_token: string;
  readonly access_token: string;
  readonly refresh_token: string;
}

async function tokensFor({ url }: OidcProvider, asks: Readonly<Record<string, string>>): Promise<Tokens> {
  const response = await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams(asks) });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer as Tokens;
}

/** Signs somebody in for a client: authorization code with PKCE. */
export async function signIn(provider: OidcProvider, client: string, login: string): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url');
  const start = new URL(`${provider.url}/auth`);
  start.search = new URLSearchParams({
    client_id: client,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid email',
    state: 'state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  const { searchParams } = await signInAt(start, login);
  return tokensFor(provider, {
    grant_type: 'authorization_code',
    client_id: client,
    code: searchParams.get('code') ?? '',
    code_verifier: verifier,
    redirect_uri: redirectUri,
  });
}

/** Newer tokens for somebody who has signed in. */
export const refreshed = (provider: OidcProvider, client: string, { refresh_token }: Tokens): Promise<Tokens> =>
  tokensFor(provider, { grant_type: 'refresh_token', client_id: client, refresh_token });
