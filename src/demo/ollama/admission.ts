import { BlockList, isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';

const localAddresses = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['0.0.0.0', 32],
] as const) {
  localAddresses.addSubnet(network, prefix, 'ipv4');
}
localAddresses.addAddress('::1', 'ipv6');
localAddresses.addAddress('::', 'ipv6');
localAddresses.addSubnet('fc00::', 7, 'ipv6');

/** Whether a server on loopback answers to this `Host`. */
export function isAllowedHost(header: string | undefined): boolean {
  const host = (header ?? '')
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  const family = isIP(host);
  if (family !== 0) return localAddresses.check(host, family === 6 ? 'ipv6' : 'ipv4') || isOwn(host);
  return (
    host === '' ||
    host === 'localhost' ||
    host === hostname().toLowerCase() ||
    /\.(localhost|local|internal)$/.test(host)
  );
}

const isOwn = (address: string) =>
  Object.values(networkInterfaces()).some(addresses => addresses?.some(own => own.address === address));

const localOrigin =
  /^(https?:\/\/(localhost|127\.0\.0\.1|0\.0\.0\.0)(:\d+)?|(app|file|tauri|vscode-webview|vscode-file):\/\/.*)$/;
const extensionOrigin = /^(chrome|safari-web|safari|moz|ms-browser)-extension:\/\//;

/** Whether a browser page from this `Origin` may read the answer. */
export function isAllowedOrigin(origin: string, host: string | undefined, more: readonly string[]): boolean {
  if (origin === `http://${host}` || origin === `https://${host}`) return true;
  return localOrigin.test(origin) || extensionOrigin.test(origin) || more.includes('*') || more.includes(origin);
}
