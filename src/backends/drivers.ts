import type { Logger } from 'pino';
import type { Caller } from '../call.ts';
import { ConfigError, type ServeSettings } from '../config/settings.ts';
import type { BackendKind, Step } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import type { OnRequest } from '../drivers/http.ts';
import { createKserveDriver } from '../drivers/kserve/index.ts';
import { createLemonadeDriver } from '../drivers/lemonade/index.ts';
import { createLmstudioDriver } from '../drivers/lmstudio/index.ts';
import { createOllamaDriver } from '../drivers/ollama/index.ts';
import { quoted } from '../errors.ts';
import { createKubernetesClient, type KubernetesClient } from '../kubernetes/client.ts';
import { createWatches, type Watches, type WatchesOptions } from '../kubernetes/watches.ts';
import type { BackendSpec } from './documents/document.ts';

/** An API server, and what is seen there. */
interface Cluster {
  readonly client: KubernetesClient;
  readonly watches: Watches;
}

/** What drivers are made with besides settings. */
export interface Surroundings {
  /** Absent when there is no cluster. */
  readonly kubernetes?: Cluster | undefined;
  readonly log: Logger;
  /** As whom the cluster is worked with; the gateway itself when absent. */
  readonly caller?: Caller | undefined;
  /** The hook for the requests to a backend, by its name; absent when nobody counts. */
  readonly requestsTo?: ((backend: string) => OnRequest) | undefined;
  /** Told of each watch at a remote target that is begun anew. */
  readonly onRestart?: WatchesOptions['onRestart'];
  /** Told the steps of each served model that becomes ready, once. */
  readonly onServed?: ((steps: readonly Step[]) => void) | undefined;
}

/** What there is to know of a kind of backend to have one of it. */
interface DriverKind {
  /** Without a server on a port of its own to look for. */
  readonly inCluster?: boolean;
  /** The driver of the configured server. Throws a `ConfigError` for what it cannot be made of. */
  create(settings: ServeSettings, surroundings: Surroundings): Driver;
  /**
   * The driver of a server that a document names. What the flags say of the configured server, its memory and its token, is
   * nothing to this one.
   */
  register(spec: BackendSpec, settings: ServeSettings, surroundings: Surroundings): Driver;
}

/** A document of a host has an endpoint: it was checked. */
const addressOf = ({ endpoint = '', agentEndpoint }: BackendSpec) => ({ endpoint, agentHost: agentEndpoint });

type RemoteTarget = NonNullable<BackendSpec['kserve']>['target'];

/** By the documents that name them: whoever works there does so over the same connections. */
const remotes = new WeakMap<RemoteTarget, Cluster>();

/** A cluster that is worked with as its callers only: the gateway itself is nobody there. */
function remoteCluster(target: RemoteTarget, { log, requestsTo, onRestart }: Surroundings): Cluster {
  const known = remotes.get(target);
  if (known) return known;
  const { apiServer = '', caBundle: ca } = target;
  const client = createKubernetesClient(
    {
      server: apiServer.replace(/\/+$/, ''),
      trust: () => Promise.resolve({ ca }),
      identity: () => Promise.reject(new Error('the gateway has none at a remote target')),
      refused() {},
    },
    requestsTo?.('kserve'),
  );
  const cluster = { client, watches: createWatches({ client, log, onRestart }) };
  remotes.set(target, cluster);
  return cluster;
}

/** The kinds of backends, one line each. */
const driverKinds: Partial<Record<BackendKind, DriverKind>> = {
  ollama: {
    create: (settings, { requestsTo }) =>
      createOllamaDriver({
        onRequest: requestsTo?.('ollama'),
        endpoint: settings.ollamaEndpoint,
        agentHost: settings.ollamaAgentHost,
        keepAliveDefault: settings.defaultKeepAlive,
        memoryBudgetGiB: settings.ollamaMemoryBudgetGib,
      }),
    register: (spec, { defaultKeepAlive }, { requestsTo }) =>
      createOllamaDriver({
        onRequest: requestsTo?.('ollama'),
        ...addressOf(spec),
        keepAliveDefault: defaultKeepAlive,
      }),
  },
  lemonade: {
    create: (settings, { requestsTo }) =>
      createLemonadeDriver({
        onRequest: requestsTo?.('lemonade'),
        endpoint: settings.lemonadeEndpoint,
        agentHost: settings.lemonadeAgentHost,
      }),
    register: (spec, _settings, { requestsTo }) =>
      createLemonadeDriver({ ...addressOf(spec), onRequest: requestsTo?.('lemonade') }),
  },
  lmstudio: {
    create: (settings, { requestsTo }) =>
      createLmstudioDriver({
        onRequest: requestsTo?.('lmstudio'),
        endpoint: settings.lmstudioEndpoint,
        agentHost: settings.lmstudioAgentHost,
        apiToken: settings.lmstudioApiToken,
      }),
    register: (spec, _settings, { requestsTo }) =>
      createLmstudioDriver({ ...addressOf(spec), onRequest: requestsTo?.('lmstudio') }),
  },
  kserve: {
    inCluster: true,
    create({ kserve: flags, namespace: ownNamespace }, { kubernetes, log, caller, requestsTo, onServed }) {
      if (!kubernetes) {
        throw new ConfigError(['the backend kserve needs a cluster: name one with --kubeconfig, or give --in-cluster']);
      }
      return createKserveDriver({ ...kubernetes, flags, ownNamespace, log, caller, requestsTo, onServed });
    },
    register(
      { kserve: registered },
      { kserve: flags, namespace: ownNamespace, oauth: { downstreamApiServers } },
      surroundings,
    ) {
      const { kubernetes, log, caller, requestsTo, onServed } = surroundings;
      if (!registered) throw new Error('build kserve backend: its document has no spec.kserve');
      if (!kubernetes) throw new Error('build kserve backend: there is no Kubernetes');
      const { cluster, organization } = registered.target;
      const isLocal = cluster === 'local';
      if (!isLocal && flags.inventoryMode === 'daemonset') {
        throw new Error(
          `build kserve backend: kserve target ${cluster}: inventory mode daemonset dials the cache agents' pod IPs, which are out of reach; set --kserve-inventory-mode pod`,
        );
      }
      if (!isLocal && !caller) {
        throw new Error(
          `build kserve backend: kserve target ${cluster}: a remote target is worked with as the caller, and downstream OAuth is off; register ${quoted('local')}`,
        );
      }
      const server = registered.target.apiServer?.replace(/\/+$/, '');
      if (!isLocal && !downstreamApiServers.includes(server ?? '')) {
        throw new Error(
          `build kserve backend: kserve target ${cluster}: the tokens of callers are not sent to ${server}; name it with --downstream-api-servers`,
        );
      }
      return createKserveDriver({
        ...(isLocal ? kubernetes : remoteCluster(registered.target, surroundings)),
        flags,
        registered,
        target: { cluster, organization },
        ownNamespace,
        log,
        caller,
        requestsTo,
        onServed,
      });
    },
  },
};

/** The kinds this build can serve. */
export const buildableKinds = Object.keys(driverKinds) as BackendKind[];

/** Those of which one may be running on this machine. */
export const hostKinds = buildableKinds.filter(kind => !isInCluster(kind));

/** Whether backends of a kind are worked with through the API server of a cluster. */
export function isInCluster(kind: BackendKind): boolean {
  return driverKinds[kind]?.inCluster ?? false;
}

export const createDriver = (kind: BackendKind, settings: ServeSettings, surroundings: Surroundings): Driver =>
  known(kind).create(settings, surroundings);

/** The driver of a document. Throws when there cannot be one. */
export const registeredDriver = (spec: BackendSpec, settings: ServeSettings, surroundings: Surroundings): Driver =>
  known(spec.kind).register(spec, settings, surroundings);

function known(kind: BackendKind): DriverKind {
  const found = driverKinds[kind];
  if (!found) throw new Error(`${kind} is not in this version yet; it has ${buildableKinds.join(', ')}`);
  return found;
}
