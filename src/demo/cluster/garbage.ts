import type { Kind } from './store/kinds.ts';
import { groupVersionOf, tableOf } from './store/kinds.ts';
import { type KubernetesObject, type OwnerReference, withFields } from './store/object.ts';
import { type Change, keyOf } from './store/store.ts';
import { type Registry, remove, replace } from './store/writes.ts';

/** Where an object is, and which one it is. */
interface Place {
  readonly kind: Kind;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string;
}

const foreground = 'foregroundDeletion';
const orphan = 'orphan';

/**
 * Removes what belongs to owners that are gone, and lets go of owners that wait for it: `Background` removes an owner and
 * then its dependents, `Foreground` first the dependents, `Orphan` leaves them without it. What names an owner that never
 * was is removed too. Returns what ends it.
 */
export function collectGarbage(registry: Registry): () => void {
  const { store, catalogue } = registry;
  /** By the uid of the owner, and by their own. */
  const dependents = new Map<string, Map<string, Place>>();

  const placeOf = (object: KubernetesObject, resource: string): Place | undefined => {
    const kind = catalogue.kinds().find(each => tableOf(each) === resource);
    const { name, namespace, uid = '' } = object.metadata;
    return kind && { kind, name, namespace, uid };
  };

  /** The object as it is now; undefined when it is gone, or another has its name. */
  function current({ kind, name, namespace, uid }: Place): KubernetesObject | undefined {
    const found = store.get(tableOf(kind), keyOf(name, namespace));
    return found?.metadata.uid === uid ? found : undefined;
  }

  function note(place: Place, before: KubernetesObject | undefined, after: KubernetesObject | undefined) {
    for (const { uid } of ownersOf(before)) dependents.get(uid)?.delete(place.uid);
    for (const { uid } of ownersOf(after)) {
      const known = dependents.get(uid) ?? new Map<string, Place>();
      dependents.set(uid, known.set(place.uid, place));
    }
    for (const { uid } of ownersOf(before)) if (dependents.get(uid)?.size === 0) dependents.delete(uid);
  }

  const dependentsOf = (uid: string) =>
    [...(dependents.get(uid)?.values() ?? [])].flatMap(place => {
      const object = current(place);
      return object && ownersOf(object).some(owner => owner.uid === uid) ? [{ place, object }] : [];
    });

  /** Undefined when it is gone; of a kind that is not served nobody can tell. */
  function ownerOf(reference: OwnerReference, namespace: string | undefined): KubernetesObject | 'unknown' | undefined {
    const kind = catalogue.kind(groupVersionOf(reference.apiVersion)[0], reference.kind);
    if (!kind) return 'unknown';
    const { name, uid } = reference;
    return current({ kind, name, namespace: kind.namespaced ? namespace : undefined, uid });
  }

  function checkOwners(place: Place) {
    const object = current(place);
    if (!object || object.metadata.deletionTimestamp) return;
    const references = ownersOf(object);
    const owners = references.map(reference => ({ reference, owner: ownerOf(reference, place.namespace) }));
    const waiting = owners.filter(({ owner }) => owner !== undefined && owner !== 'unknown' && isWaiting(owner));
    const lost = owners.filter(each => each.owner === undefined || waiting.includes(each)).map(each => each.reference);
    if (lost.length === 0) return;
    if (lost.length < references.length) {
      write(
        place,
        withOwners(
          object,
          references.filter(reference => !lost.includes(reference)),
        ),
      );
      return;
    }
    const isDeep = waiting.length > 0 && dependentsOf(place.uid).length > 0;
    remove(registry, place.kind, place.name, place.namespace, {
      uid: place.uid,
      propagationPolicy: isDeep ? 'Foreground' : 'Background',
    });
  }

  function letGo(place: Place) {
    const object = current(place);
    if (!object?.metadata.deletionTimestamp) return;
    const { finalizers = [], uid = '' } = object.metadata;
    if (finalizers.includes(orphan)) {
      for (const { place: left, object: dependent } of dependentsOf(uid)) {
        write(
          left,
          withOwners(
            dependent,
            ownersOf(dependent).filter(owner => owner.uid !== uid),
          ),
        );
      }
      write(place, withoutFinalizer(object, orphan));
    } else if (finalizers.includes(foreground)) {
      for (const dependent of dependentsOf(uid)) checkOwners(dependent.place);
      const isHeld = dependentsOf(uid).some(({ object: { metadata } }) =>
        metadata.ownerReferences?.some(owner => owner.uid === uid && owner.blockOwnerDeletion),
      );
      if (!isHeld) write(place, withoutFinalizer(object, foreground));
    }
  }

  const write = (place: Place, object: KubernetesObject) => replace(registry, place.kind, object, { direct: true });

  function changed({ type, resource, object, previous }: Change) {
    const place = placeOf(object, resource);
    if (!place) return;
    const isGone = type === 'DELETED';
    note(place, previous, isGone ? undefined : object);
    if (isGone) for (const dependent of dependents.get(place.uid)?.values() ?? []) checkOwners(dependent);
    else if (ownersOf(object).length > 0) checkOwners(place);
    if (!isGone) letGo(place);
    // An owner may have waited for just this one.
    for (const reference of ownersOf(previous)) {
      const owner = ownerOf(reference, place.namespace);
      const owned = owner === undefined || owner === 'unknown' ? undefined : ownerPlace(reference, place.namespace);
      if (owned) letGo(owned);
    }
  }

  function ownerPlace(reference: OwnerReference, namespace: string | undefined): Place | undefined {
    const kind = catalogue.kind(groupVersionOf(reference.apiVersion)[0], reference.kind);
    const { name, uid } = reference;
    return kind && { kind, name, namespace: kind.namespaced ? namespace : undefined, uid };
  }

  return store.listen(changed);
}

const ownersOf = (object: KubernetesObject | undefined) => object?.metadata.ownerReferences ?? [];

const isWaiting = ({ metadata }: KubernetesObject) =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(foreground) === true;

const withOwners = (object: KubernetesObject, owners: readonly OwnerReference[]) =>
  withMetadata(object, { ownerReferences: owners.length > 0 ? owners : undefined });

function withoutFinalizer(object: KubernetesObject, gone: string): KubernetesObject {
  const left = object.metadata.finalizers?.filter(finalizer => finalizer !== gone);
  return withMetadata(object, { finalizers: left?.length ? left : undefined });
}

const withMetadata = (object: KubernetesObject, fields: Readonly<Record<string, unknown>>): KubernetesObject => ({
  ...object,
  metadata: withFields(object.metadata, fields),
});
