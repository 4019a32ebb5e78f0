import { isObject, type Json, type JsonObject } from './json.ts';

/**
 * How a list or map is merged: as one value, as a set of values, or member by member; the members of a list are told apart
 * by the values of their keys.
 */
export type Merging =
  | { readonly kind: 'atomic' | 'set' | 'members' }
  | { readonly kind: 'keyed'; readonly keys: readonly [string, ...string[]]; readonly defaults?: JsonObject };

/** How the list or map at a path of field names is merged; an item of a list has the path of its list. */
export type Structure = (path: readonly string[], value: readonly Json[] | JsonObject) => Merging;

const atomic: Merging = { kind: 'atomic' };
const members: Merging = { kind: 'members' };
const set: Merging = { kind: 'set' };
const keyed = (...keys: [string, ...string[]]): Merging => ({ kind: 'keyed', keys });
const ports = (key: string): Merging => ({ kind: 'keyed', keys: [key, 'protocol'], defaults: { protocol: 'TCP' } });

/** Lists of Kubernetes' own kinds, by field; the others are atomic. The first key is that of strategic merge patches. */
const lists: Readonly<Record<string, Merging>> = {
  addresses: keyed('type'),
  claims: keyed('name'),
  conditions: keyed('type'),
  containers: keyed('name'),
  env: keyed('name'),
  ephemeralContainers: keyed('name'),
  finalizers: set,
  hostAliases: keyed('ip'),
  imagePullSecrets: keyed('name'),
  initContainers: keyed('name'),
  ownerReferences: keyed('uid'),
  podIPs: keyed('ip'),
  schedulingGates: keyed('name'),
  secrets: keyed('name'),
  topologySpreadConstraints: keyed('topologyKey', 'whenUnsatisfiable'),
  volumeDevices: keyed('devicePath'),
  volumeMounts: keyed('mountPath'),
  volumes: keyed('name'),
};

/** Maps of Kubernetes' own kinds, and of items of its lists, that are one value for server-side apply. */
const atomicMaps = new Set([
  'configMapKeyRef',
  'fieldRef',
  'imagePullSecrets',
  'labelSelector',
  'nodeSelector',
  'ownerReferences',
  'resourceFieldRef',
  'secretKeyRef',
  'secrets',
  'selector',
  'targetRef',
]);

/** Of Kubernetes' own kinds. */
export const builtInStructure: Structure = (path, value) => {
  const field = path.at(-1) ?? '';
  if (isObject(value)) return atomicMaps.has(field) ? atomic : members;
  if (field === 'ports') return portsOf(path.at(-2));
  return lists[field] ?? atomic;
};

function portsOf(parent: string | undefined): Merging {
  if (parent === 'spec') return ports('port');
  return parent !== undefined && /containers$/i.test(parent) ? ports('containerPort') : atomic;
}

/** Of a custom kind, as its schema says; metadata is everybody's. */
export const customStructure =
  (schema: JsonObject | undefined): Structure =>
  (path, value) => {
    if (path[0] === 'metadata') return builtInStructure(path, value);
    const found = schemaAt(schema, path);
    const said = isObject(value) && isObject(found?.items) ? found.items : found;
    if (isObject(value)) return said?.['x-kubernetes-map-type'] === 'atomic' ? atomic : members;
    const keys = said?.['x-kubernetes-list-map-keys'];
    if (said?.['x-kubernetes-list-type'] === 'set') return set;
    if (said?.['x-kubernetes-list-type'] !== 'map' || !Array.isArray(keys)) return atomic;
    return { kind: 'keyed', keys: keys as [string, ...string[]], defaults: defaultsOf(said, keys) };
  };

function schemaAt(schema: JsonObject | undefined, path: readonly string[]): JsonObject | undefined {
  let at: Json | undefined = schema;
  for (const name of path) {
    while (isObject(at) && isObject(at.items)) at = at.items;
    if (!isObject(at)) return undefined;
    at = isObject(at.properties) && isObject(at.properties[name]) ? at.properties[name] : at.additionalProperties;
  }
  return isObject(at) ? at : undefined;
}

function defaultsOf(list: JsonObject, keys: readonly string[]): JsonObject {
  const fields = isObject(list.items) && isObject(list.items.properties) ? list.items.properties : {};
  return Object.fromEntries(
    keys.flatMap(key => {
      const field = fields[key];
      return isObject(field) && field.default !== undefined ? [[key, field.default]] : [];
    }),
  );
}

/** The values of an item's keys; undefined where it lacks one. */
export function keyOf(item: Json | undefined, merging: Merging & { kind: 'keyed' }): JsonObject | undefined {
  if (!isObject(item)) return undefined;
  const entries = merging.keys.flatMap(key => {
    const value = item[key] ?? merging.defaults?.[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
