import type { IncomingMessage, ServerResponse } from 'node:http';

/** Whether an address is this machine's own: `127.0.0.0/8`, `::1`, or IPv4 written as IPv6. */
export function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && /^(?:::1|(?:::ffff:)?127\.\d+\.\d+\.\d+)$/.test(address);
}

/** Whether a `Host` header or the host of an origin means this machine, whatever the port. */
export function isLoopbackHost(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').toLowerCase();
  return name === 'localhost' || name === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(name ?? '');
}

/**
 * A page elsewhere can point a name of its own at 127.0.0.1 and have a browser of this machine ask us (DNS rebinding). A
 * server that only listens here is only ever asked by local names.
 */
export function isForeignHost(req: IncomingMessage): boolean {
  return !isLoopbackHost(req.headers.host);
}

/** Whether a page of another site makes a browser ask this without being able to say so, as an image does. */
export const isCrossSite = ({ headers }: IncomingMessage) => headers['sec-fetch-site'] === 'cross-site';

/**
 * Whether a browser sent this from a page of another origin that is not one of those allowed. Clients that are no browsers
 * send no `Origin`.
 */
export function isForeignOrigin({ headers }: IncomingMessage, allowed: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined || allowed.includes(origin)) return false;
  try {
    return new URL(origin).host !== host;
  } catch {
    return true;
  }
}

/**
 * Whether a page of another origin can have sent this without being allowed to: browsers send a POST with a body of the old
 * form types at once, and ask first before they send JSON or use another method.
 */
export function isForgeable(req: IncomingMessage, allowed: readonly string[]): boolean {
  if (req.method !== 'POST' || !isForeignOrigin(req, allowed)) return false;
  return !/^application\/json\b/i.test(req.headers['content-type'] ?? '');
}

/** How long a browser may remember what it may ask, in seconds. */
const preflightAge = '600';

/**
 * Tells a browser that a page of an allowed origin may read the answer. True when all it asked was whether it may ask.
 * Credentials that browsers send by themselves are not among what is allowed: a token is sent by the page.
 */
export function allowOrigin(req: IncomingMessage, res: ServerResponse, allowed: readonly string[]): boolean {
  if (allowed.length === 0) return false;
  res.setHeader('vary', 'Origin');
  const { origin } = req.headers;
  if (origin === undefined || !allowed.includes(origin)) return false;
  res.setHeader('access-control-allow-origin', origin);
  res.setHeader('access-control-expose-headers', 'etag, retry-after, www-authenticate, x-request-id');
  if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return false;
  res.writeHead(204, {
    'access-control-allow-methods': 'GET, POST, DELETE',
    'access-control-allow-headers':
      'accept, authorization, content-type, if-none-match, mcp-protocol-version, x-request-id',
    'access-control-max-age': preflightAge,
  });
  res.end();
  return true;
}

/**
 * Whose requests count together while nobody has signed in: an IPv4 address, or the 64 bits of an IPv6 address that are
 * a network's, since its hosts choose the rest.
 */
export function networkOf(address = ''): string {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [before = '', after = ''] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = before === '' ? [] : before.split(':');
  const last = after === '' ? [] : after.split(':');
  const all = [...groups, ...Array<string>(Math.max(0, 8 - groups.length - last.length)).fill('0'), ...last];
  return `${all.slice(0, 4).join(':')}::/64`;
}
