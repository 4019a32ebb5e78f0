import type { Call } from '../../call.ts';
import { GatewayError, unavailable } from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import type { Resource } from '../../kubernetes/resource.ts';
import { type Index, indexOf } from './match.ts';
import { type ModelConfig, rowOf } from './modelConfig.ts';
import type { Versions } from './versions.ts';

/** Where ModelConfigs are, and what they are named with. */
export interface Place {
  readonly client: KubernetesClient;
  readonly versions: Versions;
  readonly namespace: string;
  readonly prefix: string;
}

/** What the API server has at the moment of a write, which no watch can promise. */
export interface Seen {
  readonly resource: Resource<ModelConfig>;
  readonly index: Index;
  readonly objects: ReadonlyMap<string, ModelConfig>;
}

export const notInstalled = () =>
  unavailable(
    "kagent's ModelConfig CRD is not installed in the cluster; install kagent to make models known to agents",
  );

/** One list of the namespace: ours, what takes our names, and what leads to the same models. Throws `notInstalled`. */
export async function look(place: Place, call: Call): Promise<Seen> {
  const { versions } = place;
  const resource = await versions.find(call);
  try {
    return await list(place, call, resource);
  } catch (error) {
    if (codeOf(error) !== 'not_found') throw error;
  }
  versions.outdated();
  const other = await versions.find(call);
  if (other.version === resource.version) throw notInstalled();
  return list(place, call, other);
}

async function list({ client, namespace }: Place, call: Call, resource: Resource<ModelConfig>): Promise<Seen> {
  const { items } = await client.list(call, resource, { namespace });
  const index = indexOf(items.map(object => rowOf(object, resource, namespace)));
  return { resource, index, objects: new Map(items.map(object => [object.metadata.name, object])) };
}

export const codeOf = (error: unknown) => (error instanceof GatewayError ? error.code : undefined);
