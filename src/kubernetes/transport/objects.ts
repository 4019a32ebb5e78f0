import { invalidRequest } from '../../errors.ts';
import { type Attempt, attemptWords } from '../errors.ts';
import type { KubernetesObject, Resource } from '../resource.ts';

/** Whether something has what every object has: a name. */
export function isObject<T extends KubernetesObject>(value: unknown): value is T {
  const { metadata } = (value ?? {}) as Partial<KubernetesObject>;
  return metadata !== null && typeof metadata === 'object' && typeof metadata.name === 'string' && metadata.name !== '';
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Where the objects of a resource are, of one namespace or of all. */
export function collectionPath(resource: Resource, namespace: string | undefined, query: Query = {}): string {
  const within = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${versionPath(resource)}${within}/${resource.plural}${queryText(query)}`;
}

/** Where a new object goes. */
export function placePath(attempt: Attempt & { readonly resource: Resource }, query: Query = {}): string {
  const { resource, namespace } = attempt;
  if (!resource.namespaced) return collectionPath(resource, undefined, query);
  if (namespace === undefined || isNoName(namespace))
    throw invalidRequest(`${attemptWords(attempt)}: it needs the name of a namespace`);
  return collectionPath(resource, namespace, query);
}

/** Where one object is, or a part of it. Throws `invalid_request` for a name that would lead to another place. */
export function objectPath(attempt: Attempt & { readonly resource: Resource }, query: Query = {}): string {
  const { name = '', part } = attempt;
  // Without a name this would be the whole collection, which can be deleted, too; the dots are other directories.
  if (isNoName(name)) throw invalidRequest(`${attemptWords(attempt)}: ${JSON.stringify(name)} is no name of an object`);
  const path = `${placePath(attempt)}/${encodeURIComponent(name)}`;
  return `${path}${part === undefined ? '' : `/${part}`}${queryText(query)}`;
}

const isNoName = (name: string) => name === '' || name === '.' || name === '..';

/** `/api/v1`, `/apis/kagent.dev/v1alpha3` */
export const versionPath = ({ group, version }: Pick<Resource, 'group' | 'version'>) =>
  `${groupPath(group)}/${encodeURIComponent(version)}`;

/** `/api`, `/apis/kagent.dev` */
export const groupPath = (group: string) => (group === '' ? '/api' : `/apis/${encodeURIComponent(group)}`);

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]));
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
