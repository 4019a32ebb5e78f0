import type { Logger } from 'pino';
import type { Actions } from '../backends/actions.ts';
import type { Backend } from '../backends/backend.ts';
import { documentSelector } from '../backends/documents/configMap.ts';
import type { BackendDocument } from '../backends/documents/document.ts';
import { followDocuments } from '../backends/documents/follow.ts';
import type { Documents } from '../backends/documents/registration.ts';
import { isInCluster } from '../backends/drivers.ts';
import { patienceMs } from '../backends/patience.ts';
import { startReconciler } from '../backends/reconcile.ts';
import type { OpenRegistry } from '../backends/registry.ts';
import { noKubernetes } from '../backends/wiring.ts';
import { type Caller, createCall } from '../call.ts';
import { ConfigError, type ServeSettings } from '../config/settings.ts';
import { messageOf } from '../errors.ts';
import { type Access, openAccess } from '../kubernetes/access.ts';
import { createKubernetesClient, type KubernetesClient } from '../kubernetes/client.ts';
import { configMaps } from '../kubernetes/resource.ts';
import { createReviews } from '../kubernetes/reviews.ts';
import type { OnApiRequest } from '../kubernetes/transport.ts';
import { createWatches, located, type Watches, type WatchesOptions } from '../kubernetes/watches.ts';
import { derive } from '../live/derive.ts';
import { optional } from '../live/optional.ts';
import { createKagent } from '../wiring/kagent.ts';
import type { Known, WiringState, WiringTarget } from '../wiring/wiring.ts';

/** The API server of this process, and what it sees there. */
interface Kubernetes {
  readonly client: KubernetesClient;
  readonly watches: Watches;
}

/** What the gateway does with a cluster; with none, why not. */
export interface Connected {
  readonly kubernetes?: Kubernetes;
  /** What makes models known to agents, as a person; as the gateway itself when none is given. */
  readonly wiringAs?: (caller?: Caller) => WiringTarget;
  readonly wiringOff?: string;
  readonly documents?: Documents;
}

/** What is told of the work with a cluster, to those who count. */
interface ClusterHooks {
  readonly onRequest?: OnApiRequest | undefined;
  readonly onRestart?: WatchesOptions['onRestart'];
}

/**
 * Opens the cluster that the settings name. One that cannot be had is a warning, for hosts are served without; rejects with a
 * `ConfigError` where a backend is to be in it.
 */
export async function connect(
  settings: ServeSettings,
  log: Logger,
  env: NodeJS.ProcessEnv,
  hooks?: ClusterHooks,
): Promise<Connected> {
  if (!settings.inCluster && settings.kubeconfig === '') return {};
  const { kubeconfig, kubeContext: context, inCluster } = settings;
  const access = await openAccess({ kubeconfig, context, inCluster }, env).catch((error: unknown) => messageOf(error));
  if (typeof access === 'string') {
    const lost = settings.backends.find(isInCluster);
    if (lost) throw new ConfigError([`the backend ${lost} needs a cluster: ${access}`]);
    log.warn({ error: access }, 'there is no Kubernetes: models cannot be wired, and backends not registered');
    return { wiringOff: `${noKubernetes}: ${access}` };
  }
  return connectTo(access, settings, log, hooks);
}

/** The same with a cluster that is open. */
export function connectTo(
  access: Access,
  settings: ServeSettings,
  log: Logger,
  { onRequest, onRestart }: ClusterHooks = {},
): Connected {
  const client = createKubernetesClient(access, onRequest);
  const watches = createWatches({ client, log, onRestart });
  const { namespace } = settings;
  log.info({ server: client.server, namespace }, 'Kubernetes');
  return {
    kubernetes: { client, watches },
    ...(namespace && { documents: { client, namespace, reviews: createReviews(client) } }),
    ...(settings.disableWiring
      ? { wiringOff: 'switched off by --disable-wiring' }
      : {
          wiringAs: caller =>
            createKagent({
              client,
              watches,
              log,
              caller,
              namespace: settings.kagentNamespace,
              apiVersion: settings.kagentApiVersion,
              prefix: settings.modelconfigPrefix,
              autoWire: settings.autoWire,
            }),
        }),
  };
}

/** The same target, that keeps nobody waiting: what agents know is beside the point of most answers. */
export function patient(target: WiringTarget): WiringTarget {
  const nothing: Known = { refs: [], of: () => undefined };
  return {
    ...target,
    get info() {
      return target.info;
    },
    known: derive<[Known], Known>([optional(target.known, patienceMs)], ([{ value = nothing }]) => value),
    state: derive<[WiringState], WiringState>([optional(target.state, patienceMs)], ([{ value }]) => value ?? unseen),
  };
}

/** Until it was looked at, there is no reason why not. */
const unseen: WiringState = { available: true };

/** Registers the backends that documents name from now on, each made by `build`. Returns how to stop. */
export function register(
  { kubernetes, documents }: Connected,
  registry: OpenRegistry,
  build: (document: BackendDocument) => Backend,
  log: Logger,
): () => void {
  if (!kubernetes || !documents) return () => {};
  const { namespace } = documents;
  return followDocuments({
    registry,
    build,
    log,
    // Documents say what the gateway has: they are read as the gateway, whoever calls.
    configMaps: kubernetes.watches.of(createCall({ log }), located(configMaps), {
      namespace,
      labelSelector: documentSelector,
    }),
  });
}

/** Compares what is served with what is wired, unless nothing is to be wired by itself. Returns how to stop. */
export function reconcile(
  { wiringAs }: Connected,
  { registry, jobs }: Pick<Actions, 'registry' | 'jobs'>,
  { autoWire, reconcileInterval: intervalMs }: ServeSettings,
  log: Logger,
): () => void {
  const wiring = wiringAs?.();
  if (!wiring || !autoWire || intervalMs === 0) return () => {};
  return startReconciler({ registry, wiring, jobs, intervalMs, log });
}
