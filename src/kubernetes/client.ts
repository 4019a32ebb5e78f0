import type { Call } from '../call.ts';
import { GatewayError } from '../errors.ts';
import type { Access } from './access.ts';
import { readResources, readVersions } from './discovery.ts';
import { type Attempt, noObject } from './errors.ts';
import { type KubernetesObject, pods, type Resource } from './resource.ts';
import { type Review, reviewBody, reviewed, reviewPath, selfReview } from './review.ts';
import { listObjects } from './transport/list.ts';
import { collectionPath, isObject, objectPath, placePath } from './transport/objects.ts';
import { watchEvents } from './transport/watch.ts';
import { type ApiRequest, createTransport, type OnApiRequest } from './transport.ts';

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

export type { Review } from './review.ts';

interface LogOptions {
  readonly container?: string | undefined;
  /** Of the container's run before this one. */
  readonly previous?: boolean | undefined;
  readonly tailLines?: number | undefined;
  /** The beginning of all that is there, at most so many bytes of it, and not its last lines. */
  readonly limitBytes?: number | undefined;
}

/**
 * The API server, as the one who calls: with the caller's own token where the call carries one, else with the gateway's
 * identity; never with both, and nothing is kept from one caller to the next.
 *
 * Every method ends when `call.signal` aborts and throws a `GatewayError` that names verb, resource and namespace:
 * `unauthenticated` (401 to the caller's own token; to the gateway's it is `backend_error`), `forbidden` (403), `not_found` (404), `conflict` (409), `invalid_request` (400, 422),
 * `rate_limited` (429, with `details.retryAfterMs`), `unavailable` (503, with `details.retryAfterMs` when said; and when the
 * server cannot be reached), else `backend_error`. `details.reason` has the server's word for it (`AlreadyExists`,
 * `Expired`, …) where it gave one; a `not_found` without any means that the server has no such resource.
 *
 * A request takes 8 s at most, and ends before the call's deadline. It is tried again where that can do no harm: a read whose
 * connection broke, and whatever the server puts off, when it says until when and that is in time.
 */
export interface KubernetesClient {
  /** URL of the API server. */
  readonly server: string;
  /** Milliseconds since the epoch by the server's clock, which its objects have their times of. */
  now(): number;
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
   * now). What it owns goes after it, with the policy `Foreground` before it.
   */
  remove(
    call: Call,
    resource: Resource,
    name: string,
    namespace?: string,
    object?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
    policy?: 'Background' | 'Foreground',
  ): Promise<boolean>;
  /**
   * Changes after a resource version, until the server ends the watch (the iteration is done) or it breaks (it throws; an
   * `ERROR` event too, with the status it carries: 410 is `details.reason` `Expired` or `Gone`). It begins when it is first
   * read, and has to begin within 10 s. When the call's signal aborts, it throws; leaving the iteration ends it at once.
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
  /**
   * Text of a container's log: its last 10,000 lines unless told otherwise, and at most 1 MiB of its end. With `limitBytes` a
   * text that is longer than that is not the beginning of the log: the server does not heed limits.
   */
  logs(call: Call, pod: string, namespace: string, options: LogOptions): Promise<string>;
  /** Whether the server would let the caller do something: undefined when so, else what it would refuse that with. */
  review(call: Call, review: Review): Promise<GatewayError | undefined>;
}

const logLimit = 1024 * 1024;
const usualLogLines = 10_000;
/** As whom the API server records what is written. */
const fieldManager = 'model-manager';

export function createKubernetesClient(access: Access, onRequest?: OnApiRequest): KubernetesClient {
  const transport = createTransport(access, onRequest);

  /** Sends, and takes nothing for an object that is none. */
  async function object<T extends KubernetesObject>(call: Call, request: ApiRequest): Promise<T> {
    const answer = await transport.document(call, request);
    if (!isObject<T>(answer)) throw noObject(request.attempt, transport.server, 'object');
    return answer;
  }

  function write<T extends KubernetesObject>(
    call: Call,
    method: ApiRequest['method'],
    attempt: Attempt,
    path: string,
    body: object,
    contentType?: string,
  ): Promise<T> {
    const secrets = secretsIn(body);
    return object(call, { attempt: { ...attempt, secrets }, method, path, body, ...(contentType && { contentType }) });
  }

  return {
    server: transport.server,
    now: transport.now,

    async get(call, resource, name, namespace) {
      const attempt = { verb: 'get', resource, name, namespace };
      return object(call, { attempt, method: 'GET', path: objectPath(attempt) });
    },

    list: (call, resource, selection) => listObjects(transport, call, resource, selection),

    async create(call, resource, object) {
      const { name, namespace } = object.metadata;
      const attempt = { verb: 'create', resource, name, namespace };
      return write(call, 'POST', attempt, placePath(attempt, { fieldManager }), object);
    },

    async replace(call, resource, object) {
      const { name, namespace } = object.metadata;
      const attempt = { verb: 'update', resource, name, namespace };
      return write(call, 'PUT', attempt, objectPath(attempt, { fieldManager }), object);
    },

    async patch(call, resource, name, namespace, patch) {
      const attempt = { verb: 'patch', resource, name, namespace };
      return write(
        call,
        'PATCH',
        attempt,
        objectPath(attempt, { fieldManager }),
        patch,
        'application/merge-patch+json',
      );
    },

    async remove(call, resource, name, namespace, object, propagationPolicy = 'Background') {
      const attempt = { verb: 'delete', resource, name, namespace };
      const preconditions = object && { uid: object.uid, resourceVersion: object.resourceVersion };
      const body = { propagationPolicy, preconditions };
      try {
        await transport.document(call, { attempt, method: 'DELETE', path: objectPath(attempt), body });
        return true;
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'not_found') return false;
        throw error;
      }
    },

    watch(call, resource, { namespace, labelSelector, fieldSelector }, { resourceVersion, timeoutSeconds }) {
      const attempt = { verb: 'watch', resource, namespace };
      const selection = { labelSelector, fieldSelector };
      const query = { ...selection, watch: true, allowWatchBookmarks: true, resourceVersion, timeoutSeconds };
      const request: ApiRequest = { attempt, method: 'GET', path: collectionPath(resource, namespace, query) };
      return { [Symbol.asyncIterator]: () => watchEvents(transport, call, request) };
    },

    versions: (call, group) => readVersions(transport, call, group),
    resources: (call, group, version) => readResources(transport, call, group, version),

    async logs(call, pod, namespace, { container, previous, tailLines = usualLogLines, limitBytes }) {
      const attempt = { verb: 'get', resource: pods, part: 'log', name: pod, namespace };
      const part = limitBytes === undefined ? { tailLines } : { limitBytes };
      const path = objectPath(attempt, { container, previous, ...part });
      const limit = limitBytes === undefined ? logLimit : 2 * limitBytes;
      return transport.text(call, { attempt, method: 'GET', path }, limit);
    },

    async review(call, review) {
      const request: ApiRequest = { attempt: selfReview, method: 'POST', path: reviewPath, body: reviewBody(review) };
      const answer = await transport.document(call, request);
      return reviewed(answer, review, transport.server, call.caller.token !== undefined);
    },
  };
}

/** What is in a Secret that is sent: a refusal may repeat it. */
function secretsIn(body: { readonly kind?: string; readonly data?: object; readonly stringData?: object }): string[] {
  if (body.kind !== 'Secret') return [];
  return [body.data, body.stringData].flatMap(each =>
    Object.values(each ?? {}).filter(value => typeof value === 'string'),
  );
}
