import { lookup as resolve } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { isLinkLocal } from '../endpoint.ts';

/** Addresses that are not of the public internet: of this machine, of private networks, and of none. */
const privateRanges = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 127],
  ['fc00::', 7],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  privateRanges.addSubnet(network, prefix, 'ipv6');
}

/** Which addresses may be connected to. */
export interface AddressRule {
  readonly allowPrivate: boolean;
  /** Only private ones: what is sent there is not encrypted. */
  readonly onlyPrivate: boolean;
}

/** Why an address may not be connected to; undefined when it may. */
export function addressProblem(address: string, { allowPrivate, onlyPrivate }: AddressRule): string | undefined {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (isLinkLocal(address)) return `${address} is a link-local address`;
  const isPrivate = privateRanges.check(address, family);
  if (isPrivate) return allowPrivate ? undefined : `${address} is a private address, which nothing allows`;
  return onlyPrivate ? `${address} is a public address; it is spoken to by https only` : undefined;
}

/** Resolves names as connections do, and fails when one of the addresses may not be connected to. */
export const lookupUnder = (rule: AddressRule): LookupFunction => {
  return (hostname, options, callback) =>
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const problem = error ? undefined : addresses.map(({ address }) => addressProblem(address, rule)).find(Boolean);
      const failure = error ?? (problem === undefined ? null : new Error(`${hostname}: ${problem}`));
      const [first] = failure ? [] : addresses;
      if (failure || !first) callback(failure ?? new Error(`${hostname} has no address`), '');
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
};

/** The literal address that a URL names instead of a host; undefined when it names one. */
export function literalAddress({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? undefined : bare;
}
