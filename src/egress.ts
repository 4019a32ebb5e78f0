/** Where the gateway connects to, whoever named the address: no name may hide one that parseEndpoint would refuse. */
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import { buildConnector } from 'undici';
import { isLinkLocal } from './endpoint.ts';

/** The system's code of a connection that is not made because of where it would go. */
export const refusedAddress = 'ERR_LINK_LOCAL_ADDRESS';

const refusal = (host: string) =>
  Object.assign(new Error(`${host} is a link-local or metadata address, which is not connected to`), {
    code: refusedAddress,
  });

type Resolved = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** `dns.lookup`, failing when any of the addresses is one where machines find their credentials. */
function lookup(hostname: string, options: LookupOptions, callback: Resolved): void {
  dns.lookup(hostname, options, (error, address, family) => {
    const found: readonly LookupAddress[] = Array.isArray(address) ? address : [{ address, family }];
    const isRefused = !error && found.some(each => isLinkLocal(each.address));
    if (isRefused) callback(refusal(hostname), [], 0);
    else callback(error, address, family);
  });
}

/** Makes connections for undici; none to a link-local or metadata address, whether by its number or by a name. */
export function guardedConnector(options: buildConnector.BuildOptions = {}): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup } as buildConnector.BuildOptions);
  return (target, callback) => {
    if (isLinkLocal(target.hostname)) callback(refusal(target.hostname), null);
    else connect(target, callback);
  };
}
