import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { AuditFile } from '../audit/file.ts';
import { startAdopting } from '../backends/adopt.ts';
import { type Backend, type BackendOrigin, createBackend } from '../backends/backend.ts';
import { discover } from '../backends/discover.ts';
import { createDriver, isInCluster, registeredDriver, type Surroundings } from '../backends/drivers.ts';
import { nobody, personalViews } from '../backends/personal.ts';
import { createRegistry, type Registry } from '../backends/registry.ts';
import { successorOf } from '../backends/takeOver.ts';
import { type Caller, createCall } from '../call.ts';
import { introspectionOf } from '../config/interfaces.ts';
import { oauthOf } from '../config/oauth.ts';
import { ConfigError, type ServeSettings } from '../config/settings.ts';
import type { BackendKind } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { others } from '../drivers/http.ts';
import { checkFlags } from '../drivers/kserve/settings.ts';
import { createEdges } from '../http/edges.ts';
import { isLoopbackHost } from '../http/guard.ts';
import { createMetrics } from '../http/metrics.ts';
import { createGatewayServer } from '../http/server.ts';
import { tracedRequestsTo } from '../http/traces.ts';
import { createIdentity, type Identity } from '../identity/identity.ts';
import { createKubernetesStore } from '../jobs/kubernetes.ts';
import { createMemoryStore } from '../jobs/memory.ts';
import { createJobs } from '../jobs/runner.ts';
import type { JobStore } from '../jobs/store.ts';
import type { Access } from '../kubernetes/access.ts';
import { toolNamesOf } from '../mcp/index.ts';
import { loadOperations } from '../operations/load.ts';
import type { Gateway } from '../resolvers/builder.ts';
import { schema } from '../resolvers/schema.ts';
import { readBuild } from './build.ts';
import { type Connected, connect, connectTo, patient, reconcile, register } from './kubernetes.ts';
import { openTraces } from './traces.ts';

export interface Served {
  /** Root URL, by a name of this machine. */
  readonly url: string;
  /** Is not ready from now on, and serves as before: whoever sends requests here has time to send them elsewhere. */
  drain(): void;
  /** Tells subscribers how their jobs ended, finishes what is under way, and stops. */
  stop(): Promise<void>;
}

/** What is under way when the process is asked to stop has this long, jobs and requests together, in milliseconds. */
const graceMs = 15_000;
/** Subscribers are told the end also where jobs took all of that, in milliseconds. */
const lastWordMs = 1_000;
/** How long the last news of jobs takes to reach subscribers, in milliseconds. */
const newsMs = 300;
/** How long backend documents may take to be read before the gateway is ready without them, in milliseconds. */
const startMs = 30_000;
/** How long a look for servers on this machine may take, in milliseconds. */
const discoverMs = 3_000;

/**
 * Runs the gateway: builds it from its settings and listens. Works with the cluster of `access`, when there is one, and not
 * with that of the settings. `audit` is counted, not written: the log does that. Rejects when the address cannot be had.
 */
export async function serve(
  settings: ServeSettings,
  log: Logger,
  env: NodeJS.ProcessEnv,
  access?: Access,
  audit?: AuditFile,
): Promise<Served> {
  const edges = settings.metricsListen && createEdges();
  const build = readBuild(env);
  const traces = await openTraces(env, build.version, log);
  const requestsTo = told(edges?.requestsTo, traces && tracedRequestsTo);
  const hooks = { onRequest: requestsTo?.(others.apiServer), onRestart: edges?.onWatchRestart };
  const connected = access ? connectTo(access, settings, log, hooks) : await connect(settings, log, env, hooks);
  const oauth = oauthOf(settings.oauth);
  const asCaller = oauth?.downstream ?? false;
  const wiringAs = (caller?: Caller) => connected.wiringAs && patient(connected.wiringAs(caller));
  const wiring = asCaller ? undefined : wiringAs();
  const surroundings = (caller?: Caller): Surroundings => ({
    kubernetes: connected.kubernetes,
    log,
    caller,
    requestsTo,
    onRestart: hooks.onRestart,
    onServed: edges?.onServed,
  });

  /** A backend in a cluster is made anew for each person where they work there as themselves. */
  function backendOf(kind: BackendKind, origin: BackendOrigin, driverAs: (caller?: Caller) => Driver): Backend {
    if (asCaller && isInCluster(kind)) {
      return createBackend(driverAs(nobody), origin, log, { caller: nobody, driverAs });
    }
    return createBackend(driverAs(), origin, log, { known: wiring?.known });
  }

  checkFlags(settings.kserve);
  const backends = settings.backends.map(kind =>
    backendOf(kind, 'static', caller => createDriver(kind, settings, surroundings(caller))),
  );
  if (settings.discover) {
    const known = new Set(backends.map(({ name }) => name));
    const found = (await findServers(settings, surroundings())).filter(({ name }) => !known.has(name));
    backends.push(...found.map(driver => backendOf(driver.kind, 'static', () => driver)));
  }
  const registry = createRegistry(backends);
  const names = registry.backends.map(({ name }) => name);

  edges?.keepOnly(name => registry.backends.some(backend => backend.name === name));
  if (connected.kubernetes) edges?.show(connected.kubernetes.watches);
  const store = storeOf(settings, connected, log);
  const operations = loadOperations(schema);
  const gateway = {
    registry,
    wiring,
    wiringOff: connected.wiringOff,
    documents: connected.documents,
    jobs: createJobs({ store, log, onBytes: edges?.onBytes }),
    defaultKeepAlive: settings.defaultKeepAlive,
    build,
    tools: toolNamesOf(operations),
  };
  const identity = oauth && createIdentity(oauth, log);
  const metrics = edges && createMetrics(gateway, { audit, identity, edges });
  const server = createGatewayServer({
    gateway,
    gatewayAs: asCaller ? personalViews<Gateway>(gateway, wiringAs) : undefined,
    schema,
    operations,
    log,
    metrics,
    traces,
    identity,
    openApi: readFileSync(new URL('../../schema/openapi.yaml', import.meta.url), 'utf8'),
    graphiql: settings.graphiql,
    limits: settings.limits,
    introspection: introspectionOf(settings),
    allowedOrigins: settings.allowedOrigins,
    mcpPath: settings.mcpEnabled ? settings.mcpPath : undefined,
    waiting: connected.documents && untilRead(registry, store),
  });
  const stopFollowing = register(
    connected,
    registry,
    ({ spec }) => backendOf(spec.kind, spec.source, caller => registeredDriver(spec, settings, surroundings(caller))),
    log,
  );
  const { listen, metricsListen } = settings;
  let measured: { close(): void } | undefined;
  let url: string;
  try {
    if (metrics && metricsListen) measured = await by('--metrics-listen', metrics.serve(metricsListen));
    url = await by('--listen', server.listen(listen));
  } catch (error) {
    measured?.close();
    identity?.stop();
    stopFollowing();
    await store.close();
    await traces?.stop();
    throw error;
  }
  // Where work is done as the caller, nothing is done that no caller asked for.
  const stops = asCaller
    ? []
    : [
        reconcile(connected, gateway, settings, log),
        gateway.jobs.takeOver(successorOf(gateway)),
        startAdopting(gateway, log),
      ];
  log.info({ url, backends: names, version: gateway.build.version }, 'model-manager serves');
  if (names.length === 0 && !connected.documents) {
    log.warn(`no backend is registered: name one with --backends${settings.discover ? '' : ', or --discover one'}`);
  }
  sayWhoMayCome(identity, connected, settings, log);

  return {
    url,
    drain: server.drain,
    async stop() {
      const end = performance.now() + graceMs;
      for (const stop of stops) stop();
      stopFollowing();
      await gateway.jobs.interrupt();
      if (gateway.jobs.store.list().length > 0) await new Promise(resolve => setTimeout(resolve, newsMs));
      measured?.close();
      await server.close(Math.max(lastWordMs, end - performance.now()));
      await traces?.stop();
      log.info('model-manager has stopped');
    },
  };
}

type RequestsTo = NonNullable<Surroundings['requestsTo']>;

/** One hook for all who are told of requests; undefined when nobody is. */
function told(...listeners: (RequestsTo | undefined)[]): RequestsTo | undefined {
  const there = listeners.filter(listener => listener !== undefined);
  if (there.length === 0) return undefined;
  return backend => {
    const hooks = there.map(listener => listener(backend));
    return (...facts) => {
      for (const hook of hooks) hook(...facts);
    };
  };
}

/** What a restart loses is said before it happens. */
const asCallers =
  'callers sign in; work at Kubernetes is done as each caller, and nothing there without one. Jobs and tokens are in memory: ' +
  'after a restart the next pull of a model joins its download that runs, and who lists what is served wires it';

/** One line on who may come in, and as whom their work is done. */
function sayWhoMayCome(
  identity: Identity | undefined,
  { kubernetes }: Connected,
  { listen }: ServeSettings,
  log: Logger,
): void {
  if (identity) {
    const { issuer, audiences, downstream } = identity.settings;
    const mode = { identity: downstream ? 'downstream' : 'oauth', issuer, audiences };
    if (!downstream) log.info(mode, 'callers sign in; the work is done as the gateway itself');
    else if (kubernetes) log.info(mode, asCallers);
    else log.warn(mode, 'callers sign in, and --downstream-oauth has no effect: there is no Kubernetes');
  } else if (isLoopbackHost(listen.host)) {
    log.info({ identity: 'anonymous' }, 'nobody has to sign in; only this machine reaches this port');
  } else {
    log.warn(
      { identity: 'anonymous' },
      'nobody has to sign in: whoever reaches this port may do everything; --listen 127.0.0.1:8080 keeps others out, ' +
        '--enable-oauth asks for a token',
    );
  }
}

/** What a gateway that just started waits for before it is sent requests; after a while it works with what it has. */
function untilRead({ registered }: Registry, store: JobStore): () => string | undefined {
  const end = Date.now() + startMs;
  return () => {
    if (Date.now() > end) return undefined;
    if (registered.current?.value?.documents === undefined) return 'backend documents are not read yet';
    return store.isRead() ? undefined : 'jobs are not read yet';
  };
}

/** Where jobs are kept. Without the cluster that they were to be shared in, there is no start: others would do the same work. */
function storeOf(settings: ServeSettings, { kubernetes, wiringOff }: Connected, log: Logger): JobStore {
  const { jobStore, jobRetention: retentionMs, namespace } = settings;
  if (jobStore === 'memory') return createMemoryStore({ retentionMs });
  if (!kubernetes) throw new ConfigError([`--job-store kubernetes needs a cluster: ${wiringOff}`]);
  const holder = `${hostname()}_${randomBytes(4).toString('hex')}`;
  log.info({ namespace, holder }, 'jobs are kept in the cluster');
  return createKubernetesStore({ ...kubernetes, namespace, holder, log, retentionMs });
}

/** Says of an address that cannot be had which setting gave it. */
async function by<T>(flag: string, listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    throw Object.assign(error as Error, { flag });
  }
}

/** Servers that answer on the usual ports of this machine. Each is reported, found or not. */
async function findServers(settings: ServeSettings, surroundings: Surroundings): Promise<Driver[]> {
  const { log } = surroundings;
  const findings = await discover(createCall({ log, timeoutMs: discoverMs }), settings, surroundings);
  for (const { message, kind } of findings) log.info({ backend: kind }, message);
  return findings.filter(({ found }) => found).map(({ driver }) => driver);
}
