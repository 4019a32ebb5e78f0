/** A gateway over an emulated cluster: the real client, watches, wiring and registration, over real sockets. */
import type { Logger } from 'pino';
import { createBackend } from '../../src/backends/backend.ts';
import type { BackendDocument } from '../../src/backends/documents/document.ts';
import { type Connected, connectTo, patient, reconcile, register } from '../../src/commands/kubernetes.ts';
import { parseServe } from '../../src/config/parse.ts';
import { type ClusterOptions, type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import type { BackendKind } from '../../src/domain.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { fakeDriver, silent, testGateway } from './gateway.ts';

/** Where documents and ModelConfigs are kept in tests. */
export const namespace = 'model-manager';
export const kagentNamespace = 'kagent';

export const namespaceOf = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

export interface ClusterSetup {
  /** One that runs already, for a second gateway on it; else its options. */
  readonly cluster?: EmulatedCluster | ClusterOptions;
  /** Static backends. */
  readonly drivers?: readonly Driver[];
  /** The driver of a document; by default one of fakes that have the models `a:1b` and `b:1b`. */
  readonly build?: (document: BackendDocument) => Driver;
  /** Flags beside the usual ones. */
  readonly flags?: readonly string[];
  readonly withoutKagent?: boolean;
  /** Whose token the gateway has; without users it needs none. */
  readonly user?: string;
  readonly log?: Logger;
}

export interface ClusterGateway extends AsyncDisposable {
  readonly cluster: EmulatedCluster;
  readonly gateway: Gateway;
  readonly connected: Connected;
}

export async function startOnCluster(setup: ClusterSetup = {}): Promise<ClusterGateway> {
  const { drivers = [], flags = [], log = silent, cluster: given = {}, withoutKagent = false, user } = setup;
  const isRunning = 'url' in given;
  const cluster = isRunning ? given : await startCluster(given);
  if (!isRunning) {
    for (const name of [namespace, kagentNamespace]) cluster.put(namespaceOf(name));
    if (!withoutKagent) cluster.put(kagentDefinition());
  }
  const usual = ['--namespace', namespace, '--kagent-namespace', kagentNamespace];
  const { settings } = parseServe([...usual, ...flags], {}, { buildable: [] });
  const server = openServer(cluster.url);
  const access = user ? { ...server, identity: async () => bearer(cluster.tokenOf(user)) } : server;
  const connected = connectTo(access, settings, log);
  const wiring = connected.wiringAs && patient(connected.wiringAs());
  const gateway = testGateway({
    drivers,
    log,
    ...(wiring && { wiring }),
    ...(connected.wiringOff && { wiringOff: connected.wiringOff }),
    ...(connected.documents && { documents: connected.documents }),
  });
  const { build = ({ spec }) => registered(spec.kind) } = setup;
  const known = wiring?.known;
  const stops = [
    register(
      connected,
      gateway.registry,
      document => createBackend(build(document), document.spec.source, log, { known }),
      log,
    ),
    reconcile(connected, gateway, settings, log),
  ];
  return {
    cluster,
    gateway,
    connected,
    async [Symbol.asyncDispose]() {
      for (const stop of stops) stop();
      if (!isRunning) await cluster.close();
    },
  };
}

export const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

const registered = (kind: BackendKind) => fakeDriver({ kind, name: kind, models: ['a:1b', 'b:1b'] });

/** A ConfigMap as a person writes it by hand. */
export const documentMap = (kind: string, text: string, name = `model-backend-${kind}`) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels: { 'agent-platform.giantswarm.io/model-backend': 'true' } },
  data: { 'backend.yaml': text },
});

export const documentText = (kind: string, endpoint = `http://${kind}.example:1`) =>
  [
    'apiVersion: agent-platform.giantswarm.io/v1alpha1',
    'kind: ModelBackend',
    `spec: {kind: ${kind}, endpoint: "${endpoint}"}`,
    '',
  ].join('\n');
