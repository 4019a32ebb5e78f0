/** Where a served model answers. */
import type { AgentAccess } from '../../../domain.ts';

export interface ServedAddress {
  /** Of the object that serves it, and its namespace. */
  readonly name: string;
  readonly namespace: string;
  /** `status.url` and the URLs of `status.addresses`, in the order in which they count; others than texts do not. */
  readonly published?: readonly unknown[];
  /** Origin of the models Gateway, where discovery names one. */
  readonly gatewayEndpoint?: string | undefined;
}

/** The published address of a served model, or the one it will have. */
export function addressOf({ name, namespace, published = [], gatewayEndpoint }: ServedAddress): string {
  const found = published.find(
    (each): each is string => typeof each === 'string' && /^https?:\/\/[^/]/i.test(each.trim()),
  );
  if (found) return dialled(found.trim());
  return gatewayEndpoint
    ? dialled(`${gatewayEndpoint}/${namespace}/${name}`)
    : `http://${workloadService(name)}.${namespace}.svc.cluster.local:8000`;
}

const workloadService = (name: string) => `${name}-kserve-workload-svc`;

/** Whether an address is only one inside its cluster. Everything else is routed there by a Gateway. */
export const isClusterLocal = (address: string) => /\.svc(\.|$)/i.test(hostOf(address));

const authority = /^(https?):\/\/([^/?#]*)/i;
const hostOf = (address: string) => (authority.exec(address)?.[2] ?? '').replace(/^.*@/, '').replace(/:\d*$/, '');

/** Without slashes at its end. Nobody inside a cluster has a certificate, so https there is http, unless a port says so. */
function dialled(address: string): string {
  const [, scheme = '', host = ''] = authority.exec(address) ?? [];
  const plain = scheme.toLowerCase() === 'https' && isClusterLocal(address) && !/:\d+$/.test(host);
  return (plain ? `http${address.slice('https'.length)}` : address).replace(/\/+$/, '');
}

/** How agents reach it there. */
export function accessTo(
  served: Omit<ServedAddress, 'gatewayEndpoint'> & { readonly servedName: string },
  { gatewayEndpoint }: Pick<ServedAddress, 'gatewayEndpoint'>,
): AgentAccess {
  const address = addressOf({ ...served, gatewayEndpoint });
  return {
    protocol: 'openai',
    url: `${address}/v1`,
    model: served.servedName,
    key: isClusterLocal(address) ? 'placeholder' : 'passthrough',
    object: served.name,
    shared: true,
  };
}
