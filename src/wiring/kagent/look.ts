import type { Call } from '../../call.ts';
import { GatewayError, unlessMissing } from '../../errors.ts';
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

/**
 * One list of the namespace: ours, what takes our names, and what leads to the same models. Undefined where ModelConfigs
 * are not installed.
 */
export async function look(place: Place, call: Call): Promise<Seen | undefined> {
  const { versions } = place;
  const resource = await versions.find(call);
  const seen = await list(place, call, resource);
  if (seen) return seen;
  versions.outdated();
  const other = await versions.find(call);
  return other.version === resource.version ? undefined : list(place, call, other);
}

async function list({ client, namespace }: Place, call: Call, resource: Resource<ModelConfig>) {
  const items = await unlessMissing(client.list(call, resource, { namespace }).then(each => each.items));
  if (!items) return undefined;
  const index = indexOf(items.map(object => rowOf(object, resource, namespace)));
  return { resource, index, objects: new Map(items.map(object => [object.metadata.name, object])) };
}

export const codeOf = (error: unknown) => (error instanceof GatewayError ? error.code : undefined);
