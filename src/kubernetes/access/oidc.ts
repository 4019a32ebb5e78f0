import { Agent, request } from 'undici';
import { guardedConnector } from '../../egress.ts';
import { messageOf } from '../../errors.ts';
import { oneLine, parsedOrUndefined } from '../errors.ts';
import { wholeText } from '../transport/bodies.ts';
import { isToken } from './file.ts';
import { endOfToken, type Made, type Maker } from './made.ts';

/** A login at an OpenID provider, as a kubeconfig keeps it. */
export interface Login {
  /** Of the kubeconfig's user, for messages. */
  readonly name: string;
  readonly idToken: string | undefined;
  /** Without these three the token cannot be renewed. */
  readonly refreshToken: string | undefined;
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** PEM, of the provider's certificate; the authorities of the system when undefined. */
  readonly ca: (() => Promise<string>) | undefined;
}

/** A token is renewed this long before it ends, in milliseconds. */
const earlyMs = 10_000;
/** Milliseconds for each of the two requests that renew a token. */
const providerMs = 8_000;
/** Bytes of an answer. */
const documentLimit = 256 * 1024;

/**
 * The id token of a login, renewed at its provider when it ends. What is renewed is not written back into the kubeconfig,
 * which belongs to who runs the gateway.
 */
export function createOidc(login: Login, now = Date.now): Maker {
  const whose = `the login of the kubeconfig's user ${JSON.stringify(login.name)}`;
  let { idToken, refreshToken } = login;

  return {
    async make(): Promise<Made> {
      let until = idToken === undefined ? 0 : untilOf(idToken);
      if (idToken === undefined || until <= now()) {
        const { issuer, clientId, clientSecret } = login;
        if (refreshToken === undefined || issuer === undefined || clientId === undefined)
          throw new Error(`${whose} has ended, and it cannot be renewed: log in again`);
        try {
          const renewed = await renew({ issuer, clientId, clientSecret, refreshToken, ca: await login.ca?.() });
          ({ idToken, refreshToken = refreshToken } = renewed);
        } catch (error) {
          throw new Error(`${whose} cannot be renewed: ${oneLine(messageOf(error), 300)}`, { cause: error });
        }
        until = untilOf(idToken);
      }
      return { identity: { headers: { authorization: `Bearer ${idToken}` } }, until };
    },
    forget() {
      idToken = undefined;
    },
  };
}

/** A token that does not say when it ends is used until it is refused. */
const untilOf = (token: string) => (endOfToken(token) ?? Number.POSITIVE_INFINITY) - earlyMs;

interface Renewal {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly refreshToken: string;
  readonly ca: string | undefined;
}

async function renew({ issuer, clientId, clientSecret, refreshToken, ca }: Renewal) {
  // Without TLS, who answers could have the refresh token sent to itself.
  if (!issuer.startsWith('https://')) throw new Error(`${issuer} is no issuer with https://`);
  const dispatcher = new Agent({ connect: guardedConnector(ca === undefined ? {} : { ca }) });
  try {
    const base = issuer.replace(/\/+$/, '');
    const discovered = await documentOf(`${base}/.well-known/openid-configuration`, { dispatcher });
    const { issuer: named, token_endpoint: endpoint } = discovered;
    if (typeof named !== 'string' || named.replace(/\/+$/, '') !== base)
      throw new Error(`${base} calls itself ${oneLine(String(named), 100)}`);
    if (typeof endpoint !== 'string' || !endpoint.startsWith('https://'))
      throw new Error(`${base} names no token endpoint with https://`);
    const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId });
    if (clientSecret) form.set('client_secret', clientSecret);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await documentOf(endpoint, { dispatcher, method: 'POST', headers, body: form.toString() });
    const { id_token: idToken, refresh_token: next } = answer;
    if (typeof idToken !== 'string' || !isToken(idToken)) throw new Error(`${endpoint} answered no id token`);
    return { idToken, refreshToken: typeof next === 'string' ? next : undefined };
  } finally {
    await dispatcher.close();
  }
}

/** The JSON document of an answer. Of a refusal only the standard's own words are said: what else is in it is secret. */
async function documentOf(url: string, options: NonNullable<Parameters<typeof request>[1]>) {
  const { statusCode, body } = await request(url, { ...options, signal: AbortSignal.timeout(providerMs) });
  const text = await wholeText(body, documentLimit);
  if (text === undefined) throw new Error(`${url} answered more than ${documentLimit} bytes`);
  const document = (parsedOrUndefined(text) ?? {}) as Readonly<Record<string, unknown>>;
  if (statusCode === 200) return document;
  const said = [document.error, document.error_description].filter(each => typeof each === 'string').join(': ');
  throw new Error(`${url} answered ${statusCode}${said === '' ? '' : ` (${said})`}`);
}
