/** A Kubernetes object. Only what every object carries is known; whoever reads more of it checks what it reads. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly [field: string]: unknown;
}

export interface Metadata {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** RFC 3339, in seconds, as are all times. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly object[];
  readonly [field: string]: unknown;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** A time as objects have it: whole seconds. */
export const timestamp = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** Nobody changes what it holds: whoever wants another state writes another object. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A part of an object as a record; an empty one when it is none. */
export const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

/** The object with these fields, and without those that are undefined. */
export function withFields<T extends object>(value: T, fields: { readonly [field: string]: unknown }): T {
  const all = Object.entries({ ...value, ...fields });
  return Object.fromEntries(all.filter(([, part]) => part !== undefined)) as T;
}
