import { backendKinds } from '../domain.ts';

/**
 * Everything that the gateway does at a Kubernetes API server, and what for. The roles of an installation are made of this
 * table, and a refusal says from it what the permission is needed for.
 *
 * Discovery is not in it: what it reads is no object, and every account may read it. Nor are reviews of what somebody may
 * do themselves: every account may ask for those, too.
 */
export interface Permission {
  /** Where: the gateway's own namespace, that of kagent, of discovery and presets, of served models, `default`, or everywhere. */
  readonly scope: 'own' | 'kagent' | 'discovery' | 'serving' | 'default' | 'cluster';
  /** Empty for the core group. */
  readonly group: string;
  /** Plural; a part of an object as `pods/log`. */
  readonly resource: string;
  readonly verbs: readonly Verb[];
  /** Only objects of these names; all when absent. */
  readonly resourceNames?: readonly string[];
  /** Only with this setting. */
  readonly only?: 'job-store=kubernetes';
  /** Ends the sentence `this is needed to …`. */
  readonly why: string;
}

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** What is done for a caller with their own rights, where it is known before which of them it takes. */
export type Use =
  | 'load'
  | 'unload'
  | 'pull'
  | 'delete'
  /** Removing a registered backend. */
  | 'unregister'
  /** A ModelConfig that is not there yet, that is refreshed, that goes, that is looked for. */
  | 'wire'
  | 'rewire'
  | 'unwire'
  | 'look'
  /** The Secret that one reads: made with it, looked for, removed with it. */
  | 'makeKey'
  | 'seekKey'
  | 'dropKey';

/** A row of the table as it is written. */
interface Row extends Omit<Permission, 'verbs'> {
  /** Where a use takes a verb, by verb: the uses that take it. */
  readonly verbs: readonly Verb[] | Readonly<Partial<Record<Verb, readonly Use[]>>>;
}

const rows: readonly Row[] = [
  {
    scope: 'own',
    group: '',
    resource: 'configmaps',
    verbs: { get: ['unregister'], list: [], watch: [] },
    why: 'read the documents that register backends',
  },
  {
    scope: 'own',
    group: '',
    resource: 'configmaps',
    // The name of an object is not known to who permits its creation, so this one cannot be bound to names.
    verbs: ['create'],
    why: 'register a backend',
  },
  {
    scope: 'own',
    group: '',
    resource: 'configmaps',
    verbs: { update: [], delete: ['unregister'] },
    resourceNames: backendKinds.map(kind => `model-backend-${kind}`),
    why: 'change or remove a registered backend',
  },
  {
    scope: 'own',
    group: '',
    resource: 'configmaps',
    // Each job has one, so their names are not known beforehand; the row above lets it be created.
    verbs: ['get', 'list', 'watch', 'update', 'delete'],
    only: 'job-store=kubernetes',
    why: 'keep jobs where all replicas see them',
  },
  {
    scope: 'own',
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
    only: 'job-store=kubernetes',
    why: 'say which replica works on a job',
  },
  {
    scope: 'kagent',
    group: 'kagent.dev',
    resource: 'modelconfigs',
    verbs: { list: ['wire', 'rewire', 'unwire', 'look'], watch: [] },
    why: 'see which models agents can use',
  },
  {
    scope: 'kagent',
    group: 'kagent.dev',
    resource: 'modelconfigs',
    verbs: { create: ['wire'], update: ['rewire'], delete: ['unwire'] },
    why: 'wire models to agents and unwire them',
  },
  {
    scope: 'kagent',
    group: '',
    resource: 'secrets',
    verbs: { get: ['makeKey', 'seekKey', 'dropKey'], create: ['makeKey'], delete: ['dropKey'] },
    why: 'keep the API key that a ModelConfig has to name',
  },
  {
    scope: 'discovery',
    group: '',
    resource: 'configmaps',
    verbs: ['get', 'list', 'watch'],
    why: 'read how models are served, and the serving presets',
  },
  {
    scope: 'serving',
    group: 'serving.kserve.io',
    resource: 'llminferenceservices',
    verbs: { list: ['unload'], watch: [] },
    why: 'see which models are served',
  },
  {
    scope: 'serving',
    group: 'serving.kserve.io',
    resource: 'llminferenceservices',
    verbs: { get: ['load'], create: ['load'], delete: ['unload'] },
    why: 'serve models, and stop serving them',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'pods',
    verbs: { list: ['pull', 'delete'], watch: ['pull', 'delete'] },
    why: 'see where models are served',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'persistentvolumeclaims',
    verbs: ['list', 'watch'],
    why: 'see whether weights are cached',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'secrets',
    verbs: ['get'],
    why: 'read the token for the Hub',
  },
  {
    scope: 'serving',
    group: 'batch',
    resource: 'jobs',
    verbs: {
      get: ['delete'],
      list: ['pull', 'delete'],
      watch: ['pull', 'delete'],
      create: ['pull', 'delete'],
      delete: [],
    },
    why: 'download models, and look into the cache',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'pods/log',
    verbs: { get: ['delete'] },
    why: 'follow downloads, read what is in the cache, and say why a model crashed',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'events',
    verbs: ['list', 'watch'],
    why: 'say how far a model is on its way',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'write Events at a served model that say how far it is',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'configmaps',
    verbs: ['get', 'list', 'watch'],
    why: 'read what is on record of the cache',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'configmaps',
    verbs: ['create'],
    why: 'put on record what is cached',
  },
  {
    scope: 'serving',
    group: '',
    resource: 'configmaps',
    verbs: ['update', 'delete'],
    resourceNames: ['model-manager-cache-index'],
    why: 'keep that record up to date',
  },
  {
    scope: 'cluster',
    group: '',
    resource: 'nodes',
    verbs: ['list', 'watch'],
    why: 'see which nodes models can be served on',
  },
  {
    scope: 'default',
    group: '',
    resource: 'events',
    verbs: ['list', 'watch'],
    why: 'say why Karpenter has no node for a model',
  },
  ...(['nodeclaims', 'nodepools'] as const).map(
    (resource): Row => ({
      scope: 'cluster',
      group: 'karpenter.sh',
      resource,
      verbs: ['list', 'watch'],
      why: 'say which node a model waits for',
    }),
  ),
  {
    scope: 'cluster',
    group: 'karpenter.k8s.aws',
    resource: 'ec2nodeclasses',
    verbs: ['list', 'watch'],
    why: 'say in which zones there could be a node',
  },
  {
    scope: 'cluster',
    group: '',
    resource: 'persistentvolumes',
    verbs: ['list', 'watch'],
    why: 'see which nodes the cache is on',
  },
  {
    scope: 'cluster',
    group: 'serving.kserve.io',
    resource: 'llminferenceserviceconfigs',
    verbs: ['list', 'watch'],
    why: 'see whether anything serves models',
  },
];

const verbsOf = ({ verbs }: Row) => (Array.isArray(verbs) ? verbs : Object.keys(verbs)) as readonly Verb[];

export const permissions: readonly Permission[] = rows.map(row => ({ ...row, verbs: verbsOf(row) }));

/** The rights that a use takes, of the rows that say which. Which namespace they are for is known to who uses them. */
export function needsOf(use: Use): readonly (Pick<Permission, 'group' | 'resource'> & { readonly verb: Verb })[] {
  return rows.flatMap(({ group, resource, verbs }) =>
    Object.entries(verbs).flatMap(([verb, uses]) =>
      Array.isArray(uses) && uses.includes(use) ? [{ verb: verb as Verb, group, resource }] : [],
    ),
  );
}

/** One thing that is done at the API server. */
export interface Access {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly scope?: Permission['scope'] | undefined;
  readonly name?: string | undefined;
  /** The setting in force. */
  readonly only?: Permission['only'] | undefined;
}

/** The row that allows it. What the access does not say is not compared; without the setting of a row there is no such row. */
export function permissionFor({ verb, group, resource, scope, name, only }: Access): Permission | undefined {
  return permissions.find(
    row =>
      row.group === group &&
      row.resource === resource &&
      row.verbs.some(each => each === verb) &&
      (row.only === undefined || row.only === only) &&
      (scope === undefined || row.scope === scope) &&
      (name === undefined || !row.resourceNames || row.resourceNames.includes(name)),
  );
}

const places: Readonly<Record<Permission['scope'], string>> = {
  own: '`--namespace`',
  kagent: '`--kagent-namespace`',
  discovery: 'the namespaces of discovery and presets',
  serving: 'the namespace of served models',
  default: 'the namespace `default`',
  cluster: 'the whole cluster',
};

const namesInWords = (names: readonly string[] | undefined) =>
  names ? (names.length > 1 ? ' of backend documents' : ` \`${names[0]}\``) : '';

/** The table in Markdown, for people who grant it. */
export function permissionsTable(): string {
  const rows = permissions.map(({ scope, group, resource, verbs, resourceNames, only, why }) => [
    only ? `${places[scope]}, with \`--${only}\`` : places[scope],
    `\`${group === '' ? resource : `${resource}.${group}`}\`${namesInWords(resourceNames)}`,
    verbs.join(', '),
    why,
  ]);
  return [['in', 'resource', 'verbs', 'to'], ['---', '---', '---', '---'], ...rows]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n');
}
