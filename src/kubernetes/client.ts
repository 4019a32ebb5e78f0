import type { Call } from '../call.ts';
import type { KubernetesObject, Resource } from './resource.ts';

/** Which objects: of one namespace or of all, and of those the ones that selectors pick. */
export interface Selection {
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  /** Kubernetes' own syntax: `a=b,c!=d,e in (f,g),!h`. */
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** All selected objects at one moment. */
export interface ObjectList<T> {
  readonly items: readonly T[];
  /** Of the list: where a watch goes on. */
  readonly resourceVersion: string;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

export interface WatchOptions {
  readonly resourceVersion: string;
  /** Seconds after which the server ends the watch. */
  readonly timeoutSeconds: number;
}

/** A group of the API server: which versions it serves, the preferred one first. */
export interface GroupVersions {
  readonly group: string;
  readonly versions: readonly string[];
}

export interface LogOptions {
  readonly container?: string | undefined;
  /** Of the container's run before this one. */
  readonly previous?: boolean | undefined;
  readonly tailLines?: number | undefined;
}

/**
 * The API server, as the one who calls: with the caller's own token where the call carries one, else with the gateway's
 * identity; never with both, and nothing is kept from one caller to the next.
 *
 * Every method ends when `call.signal` aborts and throws a `GatewayError` that names verb, resource and namespace:
 * `unauthenticated` (401), `forbidden` (403), `not_found` (404), `conflict` (409), `invalid_request` (400, 422),
 * `rate_limited` (429, with `details.retryAfterMs`), `unavailable` (503, with `details.retryAfterMs` when said, and when the server cannot be reached), else
 * `backend_error`. `details.reason` has the server's word for it (`AlreadyExists`, `Expired`, …) where it gave one.
 */
export interface KubernetesClient {
  /** URL of the API server. */
  readonly server: string;
  /** Throws `not_found` when it is not there. */
  get<T extends KubernetesObject>(call: Call, resource: Resource<T>, name: string, namespace?: string): Promise<T>;
  /** In pages, however many there are. */
  list<T extends KubernetesObject>(call: Call, resource: Resource<T>, selection: Selection): Promise<ObjectList<T>>;
  /** Throws `conflict` with reason `AlreadyExists` when the name is taken. */
  create<T extends KubernetesObject>(call: Call, resource: Resource<T>, object: T): Promise<T>;
  /** The whole object. Throws `conflict` when `metadata.resourceVersion` is not the newest. */
  replace<T extends KubernetesObject>(call: Call, resource: Resource<T>, object: T): Promise<T>;
  /** JSON merge patch. */
  patch<T extends KubernetesObject>(
    call: Call,
    resource: Resource<T>,
    name: string,
    namespace: string | undefined,
    patch: object,
  ): Promise<T>;
  /**
   * False when it was not there. With `object` only that very object is removed (`conflict` when another has its name by
   * now).
   */
  remove(
    call: Call,
    resource: Resource,
    name: string,
    namespace?: string,
    object?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
  ): Promise<boolean>;
  /**
   * Changes after a resource version, until the server ends the watch (the iteration is done) or it breaks (it throws; an
   * `ERROR` event too, with the status it carries: 410 is `details.reason` `Expired` or `Gone`).
   */
  watch<T extends KubernetesObject>(
    call: Call,
    resource: Resource<T>,
    selection: Selection,
    options: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  /** Undefined when the server does not serve the group. */
  versions(call: Call, group: string): Promise<GroupVersions | undefined>;
  /** Plural names of the resources that a version of a group has; none when the server does not serve it. */
  resources(call: Call, group: string, version: string): Promise<readonly string[]>;
  /** Text of a container's log, at most 1 MiB of its end. */
  logs(call: Call, pod: string, namespace: string, options: LogOptions): Promise<string>;
}
