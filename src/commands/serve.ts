import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { AuditFile } from '../audit/file.ts';
import { startAdopting } from '../backends/adopt.ts';
import { type BackendOrigin, createBackend } from '../backends/backend.ts';
import { discover } from '../backends/discover.ts';
import { createDriver, registeredDriver, type Surroundings } from '../backends/drivers.ts';
import { createRegistry, type Registry } from '../backends/registry.ts';
import { createCall } from '../call.ts';
import { introspectionOf } from '../config/interfaces.ts';
import { oauthOf } from '../config/oauth.ts';
import type { ServeSettings } from '../config/settings.ts';
import type { Driver } from '../drivers/driver.ts';
import { checkFlags } from '../drivers/kserve/settings.ts';
import { apiServer, createEdges } from '../http/edges.ts';
import { isLoopbackHost } from '../http/guard.ts';
import { createMetrics } from '../http/metrics.ts';
import { createGatewayServer } from '../http/server.ts';
import { createIdentity, type Identity } from '../identity/identity.ts';
import { createJobs } from '../jobs/runner.ts';
import { createMemoryStore } from '../jobs/store.ts';
import type { Access } from '../kubernetes/access.ts';
import { toolNamesOf } from '../mcp/index.ts';
import { loadOperations } from '../operations/load.ts';
import { schema } from '../resolvers/schema.ts';
import { readBuild } from './build.ts';
import { connect, connectTo, patient, reconcile, register } from './kubernetes.ts';

export interface Served {
  /** Root URL, by a name of this machine. */
  readonly url: string;
  /** Tells subscribers how their jobs ended, finishes what is under way, and stops. */
  stop(): Promise<void>;
}

/** What is under way when the process is asked to stop has this long, in milliseconds. */
const graceMs = 15_000;
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
  const hooks = edges && { onRequest: edges.requestsTo(apiServer), onRestart: edges.onWatchRestart };
  const connected = access ? connectTo(access, settings, log, hooks) : await connect(settings, log, env, hooks);
  const wiring = connected.wiring && patient(connected.wiring);
  const backendOf = (driver: Driver, origin: BackendOrigin) =>
    createBackend(driver, origin, log, { known: wiring?.known });

  const surroundings = {
    kubernetes: connected.kubernetes,
    log,
    requestsTo: edges?.requestsTo,
    onServed: edges?.onServed,
  };
  checkFlags(settings.kserve);
  const drivers = settings.backends.map(kind => createDriver(kind, settings, surroundings));
  if (settings.discover) {
    const known = new Set(drivers.map(({ name }) => name));
    drivers.push(...(await findServers(settings, surroundings)).filter(({ name }) => !known.has(name)));
  }
  const registry = createRegistry(drivers.map(driver => backendOf(driver, 'static')));
  const names = registry.backends.map(({ name }) => name);

  edges?.keepOnly(name => registry.backends.some(backend => backend.name === name));
  if (connected.kubernetes) edges?.show(connected.kubernetes.watches);
  const store = createMemoryStore({ retentionMs: settings.jobRetention });
  const operations = loadOperations(schema);
  const gateway = {
    registry,
    wiring,
    wiringOff: connected.wiringOff,
    documents: connected.documents,
    jobs: createJobs(edges?.counted(store) ?? store, log),
    defaultKeepAlive: settings.defaultKeepAlive,
    build: readBuild(env),
    tools: toolNamesOf(operations),
  };
  const oauth = oauthOf(settings.oauth);
  const identity = oauth && createIdentity(oauth, log);
  const metrics = edges && createMetrics(gateway, { audit, identity, edges });
  const server = createGatewayServer({
    gateway,
    schema,
    operations,
    log,
    metrics,
    identity,
    openApi: readFileSync(new URL('../../schema/openapi.yaml', import.meta.url), 'utf8'),
    graphiql: settings.graphiql,
    limits: settings.limits,
    introspection: introspectionOf(settings),
    allowedOrigins: settings.allowedOrigins,
    mcpPath: settings.mcpEnabled ? settings.mcpPath : undefined,
    waiting: connected.documents && untilRead(registry),
  });
  const stopFollowing = register(
    connected,
    registry,
    ({ spec }) => backendOf(registeredDriver(spec, settings, surroundings), spec.source),
    log,
  );
  const { listen, metricsListen } = settings;
  const measured = metrics && metricsListen && (await by('--metrics-listen', metrics.serve(metricsListen)));
  const url = await by('--listen', server.listen(listen)).catch(error => {
    measured?.close();
    identity?.stop();
    stopFollowing();
    throw error;
  });
  const stopReconciling = reconcile(connected, gateway, settings, log);
  const stopAdopting = startAdopting(gateway, log);
  log.info({ url, backends: names, version: gateway.build.version }, 'model-manager serves');
  if (names.length === 0 && !connected.documents) {
    log.warn(`no backend is registered: name one with --backends${settings.discover ? '' : ', or --discover one'}`);
  }
  sayWhoMayCome(identity, settings, log);

  return {
    url,
    async stop() {
      stopReconciling();
      stopAdopting();
      stopFollowing();
      await gateway.jobs.interrupt();
      if (gateway.jobs.store.list().length > 0) await new Promise(resolve => setTimeout(resolve, newsMs));
      measured?.close();
      await server.close(graceMs);
      log.info('model-manager has stopped');
    },
  };
}

/** One line on who may come in, and as whom their work is done. */
function sayWhoMayCome(identity: Identity | undefined, { listen }: ServeSettings, log: Logger): void {
  if (identity) {
    const { issuer, audiences } = identity.settings;
    log.info({ identity: 'oauth', issuer, audiences }, 'callers sign in; the work is done as the gateway itself');
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
function untilRead({ registered }: Registry): () => string | undefined {
  const end = Date.now() + startMs;
  return () => {
    const isRead = registered.current?.value?.documents !== undefined;
    return isRead || Date.now() > end ? undefined : 'backend documents are not read yet';
  };
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
