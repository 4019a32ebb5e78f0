import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { trackUpdate } from '../patch.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  invalid,
  modified,
  notFound,
  type Problem,
} from '../status.ts';
import { type Catalogue, schemaOf } from './catalogue.ts';
import { firstStatus, withDefaults } from './defaults.ts';
import { type Kind, resourceOf, tableOf } from './kinds.ts';
import { type KubernetesObject, type Metadata, timestamp, withFields } from './object.ts';
import { checkShape, problemsOf } from './rules.ts';
import { keyOf, type Store } from './store.ts';

/** What an API server is made of, as far as its objects are concerned. */
export interface Registry {
  readonly store: Store;
  readonly catalogue: Catalogue;
  /** Milliseconds since the epoch. */
  now(): number;
  /** What else is wrong with an object, each as `field: message`; nothing when it is right. */
  validate(object: KubernetesObject): readonly string[];
}

export interface WriteOptions {
  /** Through which subresource; without one, `status` is left alone where the kind has it as a subresource. */
  readonly subresource?: string | undefined;
  readonly fieldManager?: string | undefined;
  /** Everything is checked and nothing is written. */
  readonly dryRun?: boolean | undefined;
  /**
   * By the cluster itself and not by a client: `status` is part of the object, what the server sets may be given, and no
   * schema is asked.
   */
  readonly direct?: boolean | undefined;
  /** The managers of the fields are told already. */
  readonly tracked?: boolean | undefined;
}

export interface RemoveOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: string | undefined;
  /** Of a pod; what its specification says when absent. */
  readonly gracePeriodSeconds?: number | undefined;
  readonly dryRun?: boolean | undefined;
}

export function find({ store }: Registry, kind: Kind, name: string, namespace?: string): KubernetesObject {
  const found = store.get(tableOf(kind), keyOf(name, namespace));
  if (!found) throw notFound(kind, name);
  return found;
}

/** Creates an object of the storage version. Throws a `StatusError`. */
export function create(registry: Registry, kind: Kind, input: unknown, options: WriteOptions = {}): KubernetesObject {
  checkShape(input);
  const given = metadataIn(input);
  if (given.resourceVersion && !options.direct) {
    throw badRequest('resourceVersion should not be set on objects to be created');
  }
  const name = given.name || (given.generateName ? given.generateName + suffix() : '');
  if (!name) throw invalid(kind, '', [['metadata.name', 'Required value: name or generateName is required']]);
  checkNamespace(registry, kind, given.namespace, name);

  const now = registry.now();
  const isDirect = options.direct === true;
  const metadata = withFields(given, {
    name,
    namespace: kind.namespaced ? given.namespace : undefined,
    uid: (isDirect && given.uid) || randomUUID(),
    creationTimestamp: (isDirect && given.creationTimestamp) || timestamp(now),
    generation: kind.counted ? 1 : undefined,
    resourceVersion: undefined,
    deletionTimestamp: isDirect ? given.deletionTimestamp : undefined,
    deletionGracePeriodSeconds: undefined,
  });
  const whole = { ...input, metadata };
  const first = firstStatus[resourceOf(kind)];
  const status = hasStatus(kind) && !isDirect ? first : (input.status ?? first);
  const object = finished(registry, kind, undefined, withFields(whole, { status }), options);
  const key = keyOf(name, metadata.namespace);
  if (registry.store.get(tableOf(kind), key)) throw alreadyExists(kind, name);
  return options.dryRun ? object : registry.store.put(tableOf(kind), object);
}

/** Replaces an object; one that is being removed and has no finalizer left is gone. Throws a `StatusError`. */
export function replace(registry: Registry, kind: Kind, input: unknown, options: WriteOptions = {}): KubernetesObject {
  checkShape(input);
  const given = metadataIn(input);
  const current = find(registry, kind, given.name, given.namespace);
  const { metadata: known } = current;
  if (given.uid && given.uid !== known.uid) {
    throw conflict(
      kind,
      known.name,
      `Precondition failed: UID in precondition: ${given.uid}, UID in object meta: ${known.uid}`,
    );
  }
  if (!options.direct) {
    if (given.resourceVersion && given.resourceVersion !== known.resourceVersion) throw modified(kind, known.name);
    if (!given.resourceVersion && kind.definition) {
      throw invalid(kind, known.name, [
        ['metadata.resourceVersion', 'Invalid value: 0x0: must be specified for an update'],
      ]);
    }
  }
  const { managedFields = known.managedFields } = given;
  const next = options.subresource
    ? withFields(current, { status: input.status, metadata: withFields(known, { managedFields }) })
    : withFields(input, {
        status: statusAfter(kind, current, input, options),
        metadata: settled(given, known, options),
      });
  const object = finished(registry, kind, current, next, options);
  checkFinalizers(kind, current, object);
  if (options.dryRun || isDeepStrictEqual(comparable(object), comparable(current)))
    return options.dryRun ? object : current;

  const isCounted = kind.counted && !isDeepStrictEqual(essence(object), essence(current));
  const generation = isCounted ? (known.generation ?? 0) + 1 : known.generation;
  const written = { ...object, metadata: withFields(object.metadata, { generation }) };
  if (isFree(written)) {
    registry.store.remove(tableOf(kind), keyOf(known.name, known.namespace));
    return written;
  }
  return registry.store.put(tableOf(kind), written);
}

/** Removes an object at once, or marks it for removal when something has to end first. Throws a `StatusError`. */
export function remove(
  registry: Registry,
  kind: Kind,
  name: string,
  namespace: string | undefined,
  options: RemoveOptions = {},
): { readonly object: KubernetesObject; readonly isGone: boolean } {
  const { store } = registry;
  const current = find(registry, kind, name, namespace);
  const { metadata } = current;
  for (const [field, words, wanted, found] of [
    ['uid', 'UID', options.uid, metadata.uid],
    ['resourceVersion', 'ResourceVersion', options.resourceVersion, metadata.resourceVersion],
  ] as const) {
    if (options[field] === undefined || wanted === found) continue;
    throw conflict(
      kind,
      name,
      `Precondition failed: ${words} in precondition: ${wanted}, ${words} in object meta: ${found}`,
    );
  }

  const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagationPolicy);
  const grace = graceOf(kind, current, options.gracePeriodSeconds);
  const mustWait = finalizers.length > 0 || grace > 0 || isFull(kind, current);
  if (options.dryRun) return { object: current, isGone: !mustWait };
  if (!mustWait) {
    return { object: store.remove(tableOf(kind), keyOf(name, namespace)) as KubernetesObject, isGone: true };
  }
  const marked: KubernetesObject = {
    ...current,
    metadata: withFields(metadata, {
      deletionTimestamp: metadata.deletionTimestamp ?? timestamp(registry.now() + grace * 1000),
      deletionGracePeriodSeconds: metadata.deletionGracePeriodSeconds ?? grace,
      finalizers: finalizers.length > 0 ? finalizers : undefined,
      generation: kind.counted && !metadata.deletionTimestamp ? (metadata.generation ?? 0) + 1 : metadata.generation,
    }),
    ...(kind.group === '' && kind.plural === 'namespaces' && { status: { phase: 'Terminating' } }),
  };
  const isNews = !isDeepStrictEqual(comparable(marked), comparable(current));
  return { object: isNews ? store.put(tableOf(kind), marked) : current, isGone: false };
}

/** What is null is not there. */
const metadataIn = ({ metadata }: { readonly metadata?: Metadata | null }) =>
  Object.fromEntries(Object.entries(metadata ?? {}).filter(([, value]) => value !== null)) as unknown as Metadata;

/** As the server keeps it, after all checks. */
function finished(
  registry: Registry,
  kind: Kind,
  current: KubernetesObject | undefined,
  next: KubernetesObject,
  options: WriteOptions,
): KubernetesObject {
  const now = registry.now();
  const { fieldManager, subresource } = options;
  const schema = schemaOf(kind, kind.storage);
  const object = withDefaults(kind, structuredClone(next), now);
  const problems = problemsOf(kind, object);
  if (problems.length > 0) throw invalid(kind, object.metadata.name, problems);
  if (options.direct) checkFurther(registry, kind, object);
  if (options.direct || options.tracked) return object;
  return trackUpdate(current, object, { fieldManager, now, subresource, schema }) as unknown as KubernetesObject;
}

/** What is asked of objects besides, as they are sent: before a schema fills in and leaves out. Throws `Invalid`. */
export function checkFurther({ validate }: Registry, kind: Kind, object: KubernetesObject): void {
  const problems = validate(object).map(toProblem);
  if (problems.length > 0) throw invalid(kind, object.metadata.name, problems);
}

/** `spec.model: Required value` */
function toProblem(text: string): Problem {
  const [, field, message] = /^([\w.[\]/-]+): (.*)$/s.exec(text) ?? [];
  return field !== undefined && message !== undefined ? [field, message] : ['', text];
}

/** Five letters, without those that make words. */
const suffix = () => {
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return [...randomBytes(5)].map(byte => letters[byte % letters.length]).join('');
};

const hasStatus = (kind: Kind) => kind.subresources.includes('status');

function statusAfter(kind: Kind, current: KubernetesObject, input: KubernetesObject, options: WriteOptions): unknown {
  if (options.direct) return input.status ?? current.status;
  return hasStatus(kind) ? current.status : input.status;
}

/** What a client says of an object, with what is the server's to say. */
const settled = (given: Metadata, known: Metadata, { direct = false }: WriteOptions): Metadata =>
  withFields(given, {
    namespace: known.namespace,
    uid: known.uid,
    creationTimestamp: (direct && given.creationTimestamp) || known.creationTimestamp,
    generation: known.generation,
    resourceVersion: known.resourceVersion,
    deletionTimestamp: (direct && given.deletionTimestamp) || known.deletionTimestamp,
    deletionGracePeriodSeconds: known.deletionGracePeriodSeconds,
    managedFields: given.managedFields ?? known.managedFields,
  });

/** The object without what differs between two writes of the same. */
const comparable = ({ metadata, ...rest }: KubernetesObject) => ({
  ...rest,
  metadata: withFields(metadata, { resourceVersion: undefined }),
});

/** What `metadata.generation` counts the changes of. */
const essence = ({ metadata, status, ...rest }: KubernetesObject) => rest;

function checkNamespace({ store, catalogue }: Registry, kind: Kind, namespace: string | undefined, name: string) {
  if (!kind.namespaced) return;
  if (!namespace) throw badRequest('an empty namespace may not be set during creation');
  const found = store.get('namespaces', keyOf(namespace, undefined));
  if (!found) throw notFound(catalogue.named('namespaces'), namespace);
  if (!found.metadata.deletionTimestamp) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(kind.plural, kind.group, name, why);
}

function checkFinalizers(kind: Kind, current: KubernetesObject, next: KubernetesObject) {
  if (!current.metadata.deletionTimestamp) return;
  const before = new Set(current.metadata.finalizers);
  const added = (next.metadata.finalizers ?? []).filter(each => !before.has(each));
  if (added.length === 0) return;
  const words = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map(each => `"${each}"`).join(', ')}}`;
  throw invalid(kind, current.metadata.name, [['metadata.finalizers', words]]);
}

/** Marked for removal, and nothing holds it. A pod that ends in its own time is held by its node. */
const isFree = ({ metadata, ...object }: KubernetesObject) =>
  metadata.deletionTimestamp !== undefined &&
  !metadata.finalizers?.length &&
  !metadata.deletionGracePeriodSeconds &&
  object.kind !== 'Namespace';

const policies: Readonly<Record<string, string>> = { Foreground: 'foregroundDeletion', Orphan: 'orphan' };

/** The collector of garbage lets go of what the policy adds here. */
function finalizersFor(finalizers: readonly string[], policy: string | undefined): readonly string[] {
  const others = policy ? finalizers.filter(each => !Object.values(policies).includes(each)) : finalizers;
  const added = policies[policy ?? ''];
  return added ? [...others, added] : others;
}

/** Seconds that a pod on a node has for its end. */
function graceOf(kind: Kind, object: KubernetesObject, asked: number | undefined): number {
  if (kind.group !== '' || kind.plural !== 'pods') return 0;
  const { nodeName, terminationGracePeriodSeconds = 30 } = object.spec as {
    readonly nodeName?: string;
    readonly terminationGracePeriodSeconds?: number;
  };
  const { phase } = (object.status ?? {}) as { readonly phase?: string };
  if (!nodeName || phase === 'Succeeded' || phase === 'Failed') return 0;
  return asked ?? terminationGracePeriodSeconds;
}

/** A namespace is gone when what takes care of it says so. */
const isFull = (kind: Kind, { spec }: KubernetesObject) =>
  kind.group === '' &&
  kind.plural === 'namespaces' &&
  ((spec as { readonly finalizers?: readonly string[] } | undefined)?.finalizers?.length ?? 0) > 0;
