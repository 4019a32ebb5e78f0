/**
 * Plays a recorded serve in an emulated cluster: what was there at each instant is there again, with its times moved so that
 * the instant is now. Whatever depends on how long ago something was then says at any speed what it said when it happened.
 */
import { isRecord, recordOf } from './cluster/store/object.ts';
import type { EmulatedCluster, KubernetesObject } from './cluster.ts';
import type { Clock } from './host/clock.ts';
import { moved } from './playing/times.ts';

/** A recording as plain data. */
export interface PlayedRecording {
  /** By time. */
  readonly instants: readonly PlayedInstant[];
}

interface PlayedInstant {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Everything that is there. */
  readonly objects: readonly object[];
  /** Reads that are refused, by the plural of the resource. */
  readonly denied: readonly {
    readonly resource: string;
    readonly namespace?: string | undefined;
    readonly message: string;
  }[];
  /** What a container wrote before it died; of every pod that has such a container when it names none. */
  readonly log?:
    | {
        readonly pod?: string | undefined;
        readonly container: string;
        readonly previous: boolean;
        readonly text: string;
      }
    | undefined;
}

export interface PlayOptions {
  /** How many times as fast as it happened, but that a span of more than 10 s is cut to that; Infinity: all at once. */
  readonly speed: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Told when the objects of an instant are there. */
  shown?(index: number): void;
}

type Cluster = Pick<EmulatedCluster, 'put' | 'get' | 'update' | 'remove' | 'fault' | 'cutWatches' | 'logs'>;

/** What the cluster would take care of itself. */
const acting: readonly string[] = ['foregroundDeletion', 'orphan'];
/** Holds an object that is being deleted until the recording says that it is gone. */
const holder = 'model-manager.giantswarm.io/replay';

/** A span in which nothing changes is cut to this, in milliseconds. */
const longestMs = 10_000;
/** How long the whole takes unless a speed is asked for, in milliseconds. */
const usualMs = 60_000;

/** How long before each instant there is nothing new, at a speed. */
const pausesOf = (instants: readonly Pick<PlayedInstant, 'at'>[], speed: number): readonly number[] =>
  instants.map(({ at }, index) => Math.min((at - (instants[index - 1]?.at ?? at)) / speed, longestMs));

/** How long it takes to play it, in milliseconds. */
export const playingMs = (instants: readonly Pick<PlayedInstant, 'at'>[], speed: number): number =>
  pausesOf(instants, speed).reduce((sum, ms) => sum + ms, 0);

/** The slowest whole speed at which it takes no more than a minute. */
export function usualSpeed(instants: readonly Pick<PlayedInstant, 'at'>[]): number {
  let slow = 1;
  let fast = Math.max(1, Math.ceil(((instants.at(-1)?.at ?? 0) - (instants[0]?.at ?? 0)) / usualMs));
  while (slow < fast) {
    const between = Math.floor((slow + fast) / 2);
    if (playingMs(instants, between) <= usualMs) fast = between;
    else slow = between + 1;
  }
  return fast;
}

/** Resolves when the last instant is there, which then stays. Rejects when the signal aborts, and for what no cluster has. */
export async function playRecording(
  cluster: Cluster,
  { instants }: PlayedRecording,
  { speed, clock, signal, shown = () => {} }: PlayOptions,
): Promise<void> {
  let before: ReadonlyMap<string, KubernetesObject> = new Map();
  let denied = '[]';
  let allow = () => {};
  const pauses = pausesOf(instants, speed);
  for (const [index, instant] of instants.entries()) {
    await clock.sleep(pauses[index] as number, signal);
    // Objects have whole seconds. What is a moment too young gets older; what is too old at once would tell too much.
    const shift = Math.ceil((clock.now() - instant.at) / 1000) * 1000;
    const objects = instant.objects.map(object => played(moved(object, shift) as KubernetesObject));
    const next = new Map(objects.map(object => [placeOf(object), object]));
    for (const [place, object] of before) if (!next.has(place)) gone(cluster, object);
    // Who sees that a container died asks at once for what it wrote.
    if (instant.log) writeLogs(cluster, objects, instant.log);
    for (const object of objects) accepted(index, object, () => there(cluster, object));
    before = next;
    if (JSON.stringify(instant.denied) !== denied) {
      allow();
      allow = refuse(cluster, instant.denied);
      denied = JSON.stringify(instant.denied);
    }
    shown(index);
  }
}

const placeOf = ({ kind, metadata: { namespace = '', name } }: KubernetesObject) => `${kind} ${namespace}/${name}`;

/** Throws which of the objects the cluster does not take, and why. */
function accepted(index: number, object: KubernetesObject, put: () => void): void {
  try {
    put();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`instants[${index}] has the ${placeOf(object)}, which a cluster refuses: ${why}`, { cause: error });
  }
}

/** Without what the cluster would act on: owners that are not here, and an end that has come. */
function played(object: KubernetesObject): KubernetesObject {
  const { ownerReferences, deletionGracePeriodSeconds, resourceVersion, ...metadata } = object.metadata;
  const { finalizers = [], deletionTimestamp } = metadata;
  const kept = finalizers.filter(each => !acting.includes(each));
  const held = deletionTimestamp === undefined ? kept : [...kept, holder];
  return { ...object, metadata: { ...metadata, finalizers: held } };
}

function there(cluster: Cluster, object: KubernetesObject): void {
  const { name, namespace, uid } = object.metadata;
  define(cluster, object);
  if (namespace !== undefined && !cluster.get('namespaces', namespace)) {
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  const known = cluster.get<KubernetesObject>(resourceOf(object), name, namespace);
  const isAnother = known && uid !== undefined && known.metadata.uid !== uid;
  // What was being deleted and is not any more is another one, too.
  const isBack = known?.metadata.deletionTimestamp && !object.metadata.deletionTimestamp;
  if (isAnother || isBack) gone(cluster, object);
  cluster.put(object);
}

/** Takes an object away, whatever holds it. */
function gone(cluster: Cluster, object: KubernetesObject): void {
  const { name, namespace } = object.metadata;
  const resource = resourceOf(object);
  cluster.update<{ metadata: { finalizers?: readonly string[] } }>(resource, name, namespace, ({ metadata }) => {
    metadata.finalizers = [];
  });
  cluster.remove(resource, name, namespace);
}

/** `pods`, `nodeclaims.karpenter.sh` */
function resourceOf({ apiVersion, kind }: KubernetesObject): string {
  const singular = kind.toLowerCase();
  const plural = singular.endsWith('s') ? `${singular}es` : `${singular}s`;
  const group = groupOf(apiVersion);
  return group === '' ? plural : `${plural}.${group}`;
}

const groupOf = (apiVersion: string) => (apiVersion.includes('/') ? (apiVersion.split('/', 1)[0] as string) : '');

/** Sees to it that the cluster serves objects of that kind. */
function define(cluster: Cluster, object: KubernetesObject): void {
  const { apiVersion, kind, metadata } = object;
  const [group, name] = [groupOf(apiVersion), resourceOf(object)];
  if (group === '' || cluster.get('customresourcedefinitions.apiextensions.k8s.io', name)) return;
  const singular = kind.toLowerCase();
  const version = {
    name: apiVersion.slice(group.length + 1),
    served: true,
    storage: true,
    subresources: { status: {} },
    schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  };
  cluster.put({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group,
      scope: metadata.namespace === undefined ? 'Cluster' : 'Namespaced',
      names: { plural: name.split('.', 1)[0], singular, kind, listKind: `${kind}List` },
      versions: [version],
    },
  });
}

function writeLogs(
  cluster: Cluster,
  objects: readonly KubernetesObject[],
  { pod, container, previous, text }: NonNullable<PlayedInstant['log']>,
): void {
  for (const { kind, metadata, spec } of objects) {
    if (kind !== 'Pod' || (pod !== undefined && pod !== metadata.name)) continue;
    const { containers } = recordOf(spec);
    if (!Array.isArray(containers) || !containers.some(each => isRecord(each) && each.name === container)) continue;
    const log = previous ? { current: '', previous: text } : { current: text };
    cluster.logs.set(metadata.namespace ?? '', metadata.name, container, log);
  }
}

/** Groups of the resources that are not of the core. */
const groups: Readonly<Record<string, string>> = {
  nodeclaims: 'karpenter.sh',
  nodepools: 'karpenter.sh',
  ec2nodeclasses: 'karpenter.k8s.aws',
  llminferenceservices: 'serving.kserve.io',
};

/** Refuses reads, in the words that are on record. Returns what allows them again. */
function refuse(cluster: Cluster, denied: PlayedInstant['denied']): () => void {
  const allowed = denied.map(({ resource: plural, namespace, message }) => {
    const group = groups[plural];
    const resource = group === undefined ? plural : `${plural}.${group}`;
    const body = { apiVersion: 'v1', kind: 'Status', status: 'Failure', code: 403, reason: 'Forbidden', message };
    const allow = cluster.fault({ kind: 'answer', status: 403, body, resource, ...(namespace && { namespace }) });
    cluster.cutWatches(resource);
    return allow;
  });
  return () => {
    for (const allow of allowed) allow();
  };
}
