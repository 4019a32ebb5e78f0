import type { IncomingMessage } from 'node:http';

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

/** Whether a browser sent this from a page of another origin. Clients that are no browsers send no `Origin`. */
export function isForeignOrigin({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return false;
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
export function isForgeable(req: IncomingMessage): boolean {
  if (req.method !== 'POST' || !isForeignOrigin(req)) return false;
  return !/^application\/json\b/i.test(req.headers['content-type'] ?? '');
}
