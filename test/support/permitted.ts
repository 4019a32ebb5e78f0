/** Whether what an emulated cluster was asked for is what the table of permissions says. */
import type { RecordedRequest, Rule } from '../../src/demo/cluster.ts';
import { type Permission, permissionFor, permissions } from '../../src/kubernetes/permissions.ts';

/** Where each scope of the table is; a scope that is left out is no place at all. */
export type Places = Partial<Record<Exclude<Permission['scope'], 'cluster'>, string>>;

/** The requests that no row of the table allows, as `delete configmaps x in own`. Discovery and reviews need no row. */
export function requestsBeyond(requests: readonly RecordedRequest[], places: Places): string[] {
  return requests
    .filter(({ verb, resource }) => verb !== 'discovery' && !resource.startsWith('selfsubjectaccessreviews.'))
    .filter(request => rowsOf(request, places).length === 0)
    .map(({ verb, resource, name, namespace }) => `${verb} ${resource} ${name} in ${namespace}`);
}

/**
 * The verbs of the table that none of the requests needed, as `delete configmaps`; only of the scopes that are given, and of the whole
 * cluster where models are served.
 */
export function verbsUnused(requests: readonly RecordedRequest[], places: Places): string[] {
  const used = new Set(
    requests.flatMap(request => rowsOf(request, places).map(row => `${permissions.indexOf(row)} ${request.verb}`)),
  );
  return permissions.flatMap((row, index) =>
    row.only || places[row.scope === 'cluster' ? 'serving' : row.scope] === undefined
      ? []
      : row.verbs.filter(verb => !used.has(`${index} ${verb}`)).map(verb => `${verb} ${row.resource}`),
  );
}

function rowsOf({ verb, resource: named, namespace, name }: RecordedRequest, places: Places): Permission[] {
  const [qualified = '', part] = named.split('/');
  const [plural = '', ...group] = qualified.split('.');
  const resource = part === undefined ? plural : `${plural}/${part}`;
  const scopes = [...Object.keys(places), 'cluster'] as Permission['scope'][];
  return scopes.flatMap(scope => {
    if (scope !== 'cluster' && places[scope] !== namespace) return [];
    // Of an object that is to be created, the name is not known to who permits it.
    const known = verb === 'create' || name === '' ? undefined : name;
    return permissionFor({ verb, group: group.join('.'), resource, scope, name: known }) ?? [];
  });
}

/** The rights of the table, as an emulated cluster gives them to a user; those of a setting too, where it is in force. */
export const rulesOf = (places: Places, setting?: Permission['only']): Rule[] =>
  permissions.flatMap(({ scope, group, resource, verbs, resourceNames, only }) => {
    if (only && only !== setting) return [];
    const place = scope === 'cluster' ? undefined : places[scope];
    if (scope !== 'cluster' && place === undefined) return [];
    return [
      {
        verbs,
        apiGroups: [group],
        resources: [resource],
        ...(place !== undefined && { namespaces: [place] }),
        ...(resourceNames && { resourceNames }),
      },
    ];
  });
