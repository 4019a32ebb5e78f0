/** What the gateway says to clients about signing in: RFC 9728 metadata, and the answer to who is not signed in (RFC 6750). */
import type { OauthSettings } from '../config/oauth.ts';
import type { Refusal } from './token.ts';

const wellKnown = '/.well-known/oauth-protected-resource';

/** An answer without what only HTTP knows. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The metadata documents by their path: one of the whole server, and one of its MCP endpoint, which clients look for below
 * its path.
 */
export function metadataDocuments(
  { baseUrl, issuer }: Pick<OauthSettings, 'baseUrl' | 'issuer'>,
  mcpPath: string | undefined,
): ReadonlyMap<string, string> {
  const document = (resource: string) =>
    `${JSON.stringify({
      resource,
      resource_name: 'model-manager',
      authorization_servers: [issuer],
      scopes_supported: ['openid', 'profile', 'email'],
      bearer_methods_supported: ['header'],
    })}\n`;
  return new Map([
    [wellKnown, document(baseUrl)],
    ...(mcpPath === undefined ? [] : [[`${wellKnown}${mcpPath}`, document(`${baseUrl}${mcpPath}`)] as const]),
  ]);
}

/** The answer to a request that is refused; `resource` is '' or the path of the MCP endpoint. */
export function refusalAnswer({ reason, message }: Refusal, baseUrl: string, resource: string): Answer {
  const isUnavailable = reason === 'unavailable';
  const error = isUnavailable ? 'temporarily_unavailable' : 'invalid_token';
  const json = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  const body = `${JSON.stringify({ error, error_description: message })}\n`;
  if (isUnavailable) return { status: 503, headers: { ...json, 'retry-after': '5' }, body };
  const url = `${baseUrl}${wellKnown}${resource}`;
  const parts = { resource_metadata: url, error, error_description: message };
  const header = Object.entries(parts).map(([name, value]) => `${name}="${inQuotes(value)}"`);
  return { status: 401, headers: { ...json, 'www-authenticate': `Bearer ${header.join(', ')}` }, body };
}

/** What can stand in a quoted string of a header: one line of ASCII, and no endless one. */
const inQuotes = (text: string): string =>
  (text.length > 1_024 ? `${text.slice(0, 1_024)}...` : text)
    .replace(/[\r\n\t]+/g, ' ')
    .replace(/[^\x20-\x7e]/g, '?')
    .replace(/["\\]/g, '\\$&');
