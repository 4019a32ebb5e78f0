/** Kubernetes objects as they travel, and the resources of the API server that hold them. */

/** What every object carries. */
interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  /** Opaque; of two objects with equal `uid` and version, the content is equal. */
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  /** RFC 3339. */
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly finalizers?: readonly string[] | undefined;
}

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
}

/**
 * Any object. What a server sends is only known to have a name; whoever reads more of it than `metadata.name` checks what
 * it reads, since a broken object is to cost its own row.
 */
export interface KubernetesObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
}

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
}

export interface Secret extends KubernetesObject {
  readonly type?: string | undefined;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>> | undefined;
  /** Plain text; only written, never read. */
  readonly stringData?: Readonly<Record<string, string>> | undefined;
}

/** Who holds something, until when: the holder renews it, or it lapses. */
export interface Lease extends KubernetesObject {
  readonly spec?:
    | {
        readonly holderIdentity?: string | undefined;
        readonly leaseDurationSeconds?: number | undefined;
        /** RFC 3339 with microseconds. */
        readonly acquireTime?: string | undefined;
        readonly renewTime?: string | undefined;
        readonly leaseTransitions?: number | undefined;
      }
    | undefined;
}

/** A resource of the API server: where objects of one kind are. */
export interface Resource<T extends KubernetesObject = KubernetesObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never there; it ties the resource to the type of its objects. */
  readonly object?: T;
}

export const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

export const secrets: Resource<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
};

export const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

export const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

export const jobs: Resource = { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job', namespaced: true };

export const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** Whether an object can have that name: lower-case letters, digits, inner dashes and dots, 253 at most. */
export const isObjectName = (name: string) =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

export const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

export const persistentVolumeClaims: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
};

export const persistentVolumes: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
};

/** `v1`, `kagent.dev/v1alpha3` */
export const apiVersionOf = ({ group, version }: Pick<Resource, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

/** How messages name a resource: `configmaps`, `modelconfigs.kagent.dev`. */
export const resourceName = ({ group, plural }: Pick<Resource, 'group' | 'plural'>) =>
  group === '' ? plural : `${plural}.${group}`;
