import { noSuchResource } from '../status.ts';
import { byStability } from '../store/catalogue.ts';
import { apiVersionOf, type Kind } from '../store/kinds.ts';

/** What the emulated server says it is. */
export const serverVersion = {
  major: '1',
  minor: '33',
  gitVersion: 'v1.33.4',
  gitCommit: '0000000000000000000000000000000000000000',
  gitTreeState: 'clean',
  buildDate: '2026-01-01T00:00:00Z',
  goVersion: 'go1.24.5',
  compiler: 'gc',
  platform: 'linux/amd64',
} as const;

/** A document, and what it says it is when that is not plain JSON. */
export interface Discovered {
  readonly document: object;
  readonly contentType?: string;
}

/** What there is at `/api` and `/apis`, and below. Throws `NotFound`. */
export function discovered(path: string, accept: string, kinds: readonly Kind[]): Discovered {
  const [root, ...parts] = path.split('/').filter(part => part !== '');
  const own = kinds.filter(kind => (root === 'api') === (kind.group === ''));
  if (parts.length === 0)
    return aggregatedFor(accept, own) ?? { document: root === 'api' ? coreVersions : groupList(own) };
  const [group = '', version] = root === 'api' ? ['', ...parts] : parts;
  const found = groupsOf(own).find(each => each.name === group);
  if (!found || (version !== undefined && !found.versions.includes(version))) throw noSuchResource();
  return { document: version === undefined ? groupDocument(found) : resourceList(found, version) };
}

interface Group {
  readonly name: string;
  readonly versions: readonly string[];
  readonly kinds: readonly Kind[];
}

function groupsOf(kinds: readonly Kind[]): readonly Group[] {
  const byName = Map.groupBy(kinds, kind => kind.group);
  return [...byName].map(([name, members]) => ({
    name,
    versions: [...new Set(members.flatMap(kind => kind.versions))].sort(byStability),
    kinds: members,
  }));
}

const coreVersions = { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };

function groupBody({ name, versions }: Group) {
  const named = versions.map(version => ({ groupVersion: apiVersionOf(name, version), version }));
  return { name, versions: named, preferredVersion: named[0] };
}

const groupDocument = (group: Group) => ({ kind: 'APIGroup', apiVersion: 'v1', ...groupBody(group) });

const groupList = (kinds: readonly Kind[]) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupsOf(kinds).map(groupBody),
});

const servedIn = (group: Group, version: string) => group.kinds.filter(kind => kind.versions.includes(version));

function resourceList(group: Group, version: string) {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf(group.name, version),
    resources: servedIn(group, version).flatMap(kind => [
      {
        name: kind.plural,
        singularName: kind.singular,
        namespaced: kind.namespaced,
        kind: kind.kind,
        verbs: kind.verbs,
        ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
        ...(kind.categories.length > 0 && { categories: kind.categories }),
      },
      ...kind.subresources.map(subresource => ({
        name: `${kind.plural}/${subresource}`,
        singularName: '',
        namespaced: kind.namespaced,
        kind: kind.kind,
        verbs: verbsOf(subresource),
      })),
    ]),
  };
}

const verbsOf = (subresource: string): readonly string[] => {
  if (subresource === 'status') return ['get', 'patch', 'update'];
  return subresource === 'log' ? ['get'] : ['create', 'delete', 'get', 'patch', 'update'];
};

/** All groups with all their resources in one document, when the client asks for a version of that which is known. */
function aggregatedFor(accept: string, kinds: readonly Kind[]): Discovered | undefined {
  const wanted = accept.split(',').find(type => type.includes('as=APIGroupDiscoveryList'));
  const version = /v=(v2(?:beta1)?)(?:;|$)/.exec(wanted?.trim() ?? '')?.[1];
  if (version === undefined) return undefined;
  return {
    contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    document: {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groupsOf(kinds).map(group => ({
        metadata: { ...(group.name && { name: group.name }), creationTimestamp: null },
        versions: group.versions.map(each => ({
          version: each,
          freshness: 'Current',
          resources: servedIn(group, each).map(kind => aggregatedResource(kind, each)),
        })),
      })),
    },
  };
}

function aggregatedResource(kind: Kind, version: string) {
  const responseKind = { group: kind.group, version, kind: kind.kind };
  return {
    resource: kind.plural,
    responseKind,
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
    ...(kind.categories.length > 0 && { categories: kind.categories }),
    ...(kind.subresources.length > 0 && {
      subresources: kind.subresources.map(subresource => ({ subresource, responseKind, verbs: verbsOf(subresource) })),
    }),
  };
}
