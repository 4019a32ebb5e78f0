import type { KubernetesObject } from './object.ts';

/** A kind of object, and the resource of the API server that holds its objects. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  /** Served ones, the preferred one first. */
  readonly versions: readonly string[];
  /** The version in which objects are kept. */
  readonly storage: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** `status`, `log`, …; one named `status` means that `status` is written through it and through nothing else. */
  readonly subresources: readonly string[];
  /** Whether `metadata.generation` counts the changes of all but `metadata` and `status`. */
  readonly counted: boolean;
  /** Where the objects are kept when they are those of another resource. */
  readonly keptAs?: string;
  /** The CustomResourceDefinition that made it. */
  readonly definition?: KubernetesObject;
}

/** `pods`, `modelconfigs.kagent.dev` */
export const resourceOf = ({ group, plural }: Pick<Kind, 'group' | 'plural'>) =>
  group === '' ? plural : `${plural}.${group}`;

/** The table of the store that holds the objects of a kind. */
export const tableOf = (kind: Kind) => kind.keptAs ?? resourceOf(kind);

/** `v1`, `kagent.dev/v1alpha3` */
export const apiVersionOf = (group: string, version: string) => (group === '' ? version : `${group}/${version}`);

/** `apps/v1` as `['apps', 'v1']`, `v1` as `['', 'v1']` */
export function groupVersionOf(apiVersion: string): [group: string, version: string] {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? ['', apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)];
}

/** `ModelConfig.kagent.dev`, as messages say it. */
export const qualifiedKind = ({ group, kind }: Kind) => (group === '' ? kind : `${kind}.${group}`);

export const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

interface Traits {
  readonly plural?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly cluster?: boolean;
  readonly verbs?: readonly string[];
  readonly subresources?: readonly string[];
  readonly counted?: boolean;
  readonly keptAs?: string;
}

function builtIn(apiVersion: string, kind: string, traits: Traits = {}): Kind {
  const [group, version] = groupVersionOf(apiVersion);
  const singular = kind.toLowerCase();
  return {
    group,
    versions: [version],
    storage: version,
    plural: traits.plural ?? `${singular}s`,
    singular,
    kind,
    listKind: `${kind}List`,
    shortNames: traits.shortNames ?? [],
    categories: traits.categories ?? [],
    namespaced: !traits.cluster,
    verbs: traits.verbs ?? allVerbs,
    subresources: traits.subresources ?? [],
    counted: traits.counted ?? false,
    ...(traits.keptAs && { keptAs: traits.keptAs }),
  };
}

const rbac = 'rbac.authorization.k8s.io/v1';
const all = ['all'];
const status = ['status'];

/** What an API server has before anybody defines more. */
export const builtInKinds: readonly Kind[] = [
  builtIn('v1', 'Namespace', { cluster: true, shortNames: ['ns'], subresources: status }),
  builtIn('v1', 'Node', { cluster: true, shortNames: ['no'], subresources: status }),
  builtIn('v1', 'Pod', { shortNames: ['po'], categories: all, subresources: ['status', 'log', 'proxy'] }),
  builtIn('v1', 'ConfigMap', { shortNames: ['cm'] }),
  builtIn('v1', 'Secret'),
  builtIn('v1', 'Service', { shortNames: ['svc'], categories: all, subresources: ['status', 'proxy'] }),
  builtIn('v1', 'Event', { shortNames: ['ev'] }),
  builtIn('v1', 'PersistentVolume', { cluster: true, shortNames: ['pv'], subresources: status }),
  builtIn('v1', 'PersistentVolumeClaim', { shortNames: ['pvc'], subresources: status }),
  builtIn('v1', 'ServiceAccount', { shortNames: ['sa'] }),
  builtIn('events.k8s.io/v1', 'Event', { shortNames: ['ev'], keptAs: 'events' }),
  builtIn('apps/v1', 'Deployment', { shortNames: ['deploy'], categories: all, subresources: status, counted: true }),
  builtIn('apps/v1', 'DaemonSet', { shortNames: ['ds'], categories: all, subresources: status, counted: true }),
  builtIn('batch/v1', 'Job', { categories: all, subresources: status, counted: true }),
  builtIn('coordination.k8s.io/v1', 'Lease'),
  builtIn(rbac, 'Role'),
  builtIn(rbac, 'RoleBinding'),
  builtIn(rbac, 'ClusterRole', { cluster: true }),
  builtIn(rbac, 'ClusterRoleBinding', { cluster: true }),
  builtIn('authorization.k8s.io/v1', 'SelfSubjectAccessReview', { cluster: true, verbs: ['create'] }),
  builtIn('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {
    cluster: true,
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    subresources: status,
    counted: true,
  }),
];
