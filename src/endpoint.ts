import { BlockList, isIP } from 'node:net';

const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addAddress('fd00:ec2::254', 'ipv6');
// 169.254.0.0/16 as networks without IPv4 write it.
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');

/** Whether a host is an address of that kind, by its number, in brackets or without. Cloud machines find credentials there. */
export function isLinkLocal(host: string): boolean {
  // A zone, as in fe80::1%eth0, says where the link is.
  const address = host.replace(/^\[|\]$/g, '').replace(/%.*$/s, '');
  const family = isIP(address);
  return family > 0 && linkLocal.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * The endpoint as it is dialled (trimmed, no trailing slash), or what is wrong with it in words that follow the name of
 * the setting: `must be an http(s) URL, got "x"`. Link-local addresses are refused.
 */
export function parseEndpoint(value: string): { readonly endpoint: string } | { readonly problem: string } {
  const text = value.trim().replace(/\/+$/, '');
  // A password typed into an endpoint must not come back in a message.
  const shown = JSON.stringify(value.trim().replace(/^(\w+:\/\/)?.*@/s, '$1…@'));
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The URL parser mends `http:host`, `http:///host` and line breaks; whoever wrote that meant something else.
  if (!url?.hostname || !/^https?:\/\/[^/\\\s]\S*$/i.test(text))
    return { problem: `must be an http(s) URL, got ${shown}` };
  if (url.username || url.password) return { problem: `must not carry a user name or password, got ${shown}` };
  if (/[?#]/.test(text)) return { problem: `must not carry a query or a fragment, got ${shown}` };
  if (isLinkLocal(url.hostname)) return { problem: `must not be a link-local or metadata address, got ${shown}` };
  return { endpoint: text };
}
