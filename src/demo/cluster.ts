/**
 * An emulated Kubernetes API server: a real HTTP(S) server on loopback that speaks its protocol well enough for `kubectl`
 * and for every client library, and keeps its objects in memory.
 *
 * It is an API server with its own housekeeping (namespaces and pods that end, collection of garbage) and nothing else: no
 * scheduler, no kubelet, no controllers. Whatever else a cluster does is done to its objects by who uses it, with `put`,
 * `update`, `remove` and `watch` here or as a client. It is deterministic: what happens follows from what is asked and
 * from the clock; give it a `manualClock()` and nothing moves until a test says so.
 *
 * How it is made: `cluster/store` has the objects and the rules of their lives and knows nothing of HTTP; `cluster/http`
 * has what clients see. Where it is extended:
 * - subresources other than `status` are `routes`, by `pods/log`, `services/proxy`: see `cluster/routes.ts`;
 * - what reacts to changes of objects, such as the collection of garbage, is a listener of the store. Deletion with
 *   `propagationPolicy` leaves the finalizers `foregroundDeletion` and `orphan`, as a real server does, for it to act on.
 */

import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { collectGarbage } from './cluster/garbage.ts';
import { issueCertificates } from './cluster/http/certificate.ts';
import { type ClusterFault, faultPlan } from './cluster/http/faults.ts';
import { admin, type ClusterUser, createRights, type Rights } from './cluster/http/rights.ts';
import { type ApiServer, startServer } from './cluster/http/server.ts';
import { openWatches } from './cluster/http/watching.ts';
import { createLogs, type Logs } from './cluster/logs.ts';
import { createProxy, type Proxy as ServiceProxy } from './cluster/proxy.ts';
import { createCatalogue, definitions } from './cluster/store/catalogue.ts';
import { groupVersionOf, type Kind, tableOf } from './cluster/store/kinds.ts';
import { endThingsInTime } from './cluster/store/lifecycle.ts';
import { isRecord, type KubernetesObject, recordOf } from './cluster/store/object.ts';
import { type Change, createStore, keyOf } from './cluster/store/store.ts';
import { kept } from './cluster/store/views.ts';
import { create, type Registry, type RemoveOptions, remove, replace } from './cluster/store/writes.ts';
import { type Clock, realClock } from './host/clock.ts';

export type { ClusterUser, Rule } from './cluster/http/rights.ts';
export type { RecordedRequest } from './cluster/http/server.ts';
export type { KubernetesObject } from './cluster/store/object.ts';
export type { Change } from './cluster/store/store.ts';
export { manualClock } from './host/clock.ts';

export interface ClusterOptions {
  /** Any free one when absent. */
  readonly port?: number;
  /** Speaks HTTPS, with a certificate of an authority of its own. */
  readonly tls?: boolean;
  readonly clock?: Clock;
  /** By name; `admin` is there besides. When absent, everybody may do everything, as `admin`, and needs no token. */
  readonly users?: Readonly<Record<string, ClusterUser>>;
  /** What there is from the beginning besides the usual namespaces; in any order. */
  readonly objects?: readonly object[];
  /** What else is wrong with an object, as it is sent to be written, each as `spec.model: Required value`. */
  readonly validate?: (object: KubernetesObject) => readonly string[];
}

/**
 * The objects as the cluster itself sees them: at once, without rights, and without the schemas of custom kinds, so that
 * also objects can be there that no client could write now; with all other rules of a client's request. A
 * resource is named `configmaps`, `modelconfigs.kagent.dev`, or by the kind. Throws a `StatusError` where a client is
 * refused, and an `Error` for a resource that is not served.
 */
export interface ClusterObjects {
  get<T = KubernetesObject>(resource: string, name: string, namespace?: string): T | undefined;
  /** Of a namespace or of all, by namespace and name. */
  list<T = KubernetesObject>(resource: string, namespace?: string): readonly T[];
  /** Creates the object or replaces what has its name, `status` included where it is given. */
  put<T extends object>(object: T): T & KubernetesObject;
  /** Changes an object that is there: `change` gets a copy to alter. */
  update<T = KubernetesObject>(
    resource: string,
    name: string,
    namespace: string | undefined,
    change: (object: T) => void,
  ): T;
  /** False when it was not there. A pod is gone at once, as when its node says so. */
  remove(resource: string, name: string, namespace?: string, options?: RemoveOptions): boolean;
  /** Tells each change, after it was made and in order; returns what ends it. A listener may change objects itself. */
  watch(listener: (change: Change) => void): () => void;
}

export interface EmulatedCluster
  extends ClusterObjects,
    Pick<ApiServer, 'requests' | 'requested' | 'start' | 'stop'>,
    Pick<Rights, 'grant' | 'revoke' | 'setToken' | 'expireToken' | 'tokenOf'>,
    AsyncDisposable {
  readonly url: string;
  /** Certificate of the authority that clients are to trust, in PEM; '' without TLS. */
  readonly ca: string;
  /** For `kubectl` and client libraries, as YAML; of `admin` when no user is named. */
  kubeconfig(user?: string): string;

  /** What containers have written. */
  readonly logs: Omit<Logs, 'route'>;
  /** What stands behind services. */
  readonly proxy: Omit<ServiceProxy, 'route'>;

  fault(fault: ClusterFault): () => void;
  /** Breaks the open watches of a resource, or all. */
  cutWatches(resource?: string): void;
  /** The open watches of a resource, or all, stay open and say nothing until the result is called. */
  freezeWatches(resource?: string): () => void;
  /** Forgets the past: who asks from an older `resourceVersion` is told 410. */
  compact(): void;
  close(): Promise<void>;
}

const namespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

export async function startCluster(options: ClusterOptions = {}): Promise<EmulatedCluster> {
  const { clock = realClock, validate = () => [] } = options;
  const store = createStore();
  const registry: Registry = { store, catalogue: createCatalogue(store), now: clock.now, validate };
  const objects = objectsOf(registry);
  const life = new AbortController();
  const watches = openWatches();
  endThingsInTime(registry, clock, life.signal);
  collectGarbage(registry);
  store.listen(({ type, resource, object, previous }) => {
    if (resource !== definitions || type === 'ADDED') return;
    // Whoever watches objects of a kind has to come again when it is defined otherwise, or no more.
    if (type === 'DELETED' || !isDeepStrictEqual(object.spec, previous?.spec)) watches.end(object.metadata.name);
  });
  for (const name of namespaces) objects.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const object of inOrder(options.objects ?? [])) objects.put(object);

  const faults = faultPlan();
  const rights = createRights(options.users);
  const logs = createLogs(clock.now);
  const proxy = createProxy();
  const routes = { 'pods/log': logs.route, 'services/proxy': proxy.route };
  const { port } = options;
  const tls = options.tls ? issueCertificates() : undefined;
  const server = await startServer({ api: { registry, rights, routes, watches, clock }, faults, port, tls });
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${server.port}`;
  const ca = tls?.ca ?? '';

  async function close(): Promise<void> {
    life.abort();
    await server.stop();
  }

  return {
    ...objects,
    url,
    ca,
    kubeconfig: (user = admin) => kubeconfigOf(url, ca, user, rights.tokenOf(user)),
    requests: server.requests,
    requested: server.requested,
    logs,
    proxy,
    fault: faults.add,
    cutWatches: watches.cut,
    freezeWatches: watches.freeze,
    compact: store.compact,
    grant: rights.grant,
    revoke: rights.revoke,
    setToken: rights.setToken,
    expireToken: rights.expireToken,
    tokenOf: rights.tokenOf,
    start: server.start,
    stop: server.stop,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function objectsOf(registry: Registry): ClusterObjects {
  const { store, catalogue } = registry;
  const found = (resource: string, name: string, namespace: string | undefined) => {
    const kind = catalogue.named(resource);
    return { kind, object: store.get(tableOf(kind), keyOf(name, kind.namespaced ? namespace : undefined)) };
  };
  const direct = { direct: true };

  return {
    get: <T>(resource: string, name: string, namespace?: string) =>
      found(resource, name, namespace).object as T | undefined,
    list<T>(resource: string, namespace?: string) {
      const all = store.list(tableOf(catalogue.named(resource)));
      return all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace) as T[];
    },
    put<T extends object>(object: T) {
      const kind = kindOf(registry, object);
      const input = kept(kind, object as unknown as KubernetesObject);
      const { name, namespace } = input.metadata ?? {};
      const isThere = store.get(tableOf(kind), keyOf(name, namespace)) !== undefined;
      const written = isThere ? replace(registry, kind, input, direct) : create(registry, kind, input, direct);
      return written as T & KubernetesObject;
    },
    update<T>(resource: string, name: string, namespace: string | undefined, change: (object: T) => void) {
      const { kind, object } = found(resource, name, namespace);
      if (!object) throw new Error(`no ${resource} "${name}" in the emulated cluster`);
      const copy = structuredClone(object);
      change(copy as T);
      return replace(registry, kind, copy, direct) as T;
    },
    remove(resource, name, namespace, options) {
      const { kind, object } = found(resource, name, namespace);
      if (object) remove(registry, kind, name, object.metadata.namespace, { gracePeriodSeconds: 0, ...options });
      return object !== undefined;
    },
    watch: store.listen,
  };
}

function kindOf({ catalogue }: Registry, object: object): Kind {
  const { apiVersion, kind } = isRecord(object) ? object : {};
  const [group, version] = groupVersionOf(String(apiVersion));
  const found = catalogue.kind(group, String(kind));
  if (!found?.versions.includes(version)) {
    throw new Error(`no kind "${kind}" of "${apiVersion}" in the emulated cluster: define it first`);
  }
  return found;
}

/** Definitions first, then namespaces: what the others need. */
function inOrder(objects: readonly object[]): readonly object[] {
  const rank = (object: object) => {
    const { kind } = recordOf(object);
    return kind === 'CustomResourceDefinition' ? 0 : kind === 'Namespace' ? 1 : 2;
  };
  return [...objects].sort((a, b) => rank(a) - rank(b));
}

function kubeconfigOf(server: string, ca: string, user: string, token: string): string {
  const authority = ca && { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'emulated', cluster: { server, ...authority } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'emulated', context: { cluster: 'emulated', user, namespace: 'default' } }],
    'current-context': 'emulated',
  });
}
