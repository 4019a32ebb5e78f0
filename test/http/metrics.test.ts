import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createRegistry } from '../../src/backends/registry.ts';
import { type Step, stepNames } from '../../src/domain.ts';
import { createHttp, others } from '../../src/drivers/http.ts';
import { createHub } from '../../src/drivers/kserve/hub.ts';
import { createAgents } from '../../src/drivers/kserve/inventory/agent.ts';
import { createEdges } from '../../src/http/edges.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { createMemoryStore } from '../../src/jobs/memory.ts';
import { createJobs } from '../../src/jobs/runner.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { createWatches, located } from '../../src/kubernetes/watches.ts';
import { agentPod, settingsFor } from '../drivers/kserve/agentLab.ts';
import { startLab } from '../drivers/kserve/jobLab.ts';
import { answer, callOf, serve } from '../drivers/scripted.ts';
import { accessTo } from '../kubernetes/apiLab.ts';
import { expired, minutes, reset, scriptedServer, seconds } from '../kubernetes/reflectorLab.ts';
import { mockTime, settled } from '../live/clock.ts';
import { silent, testGateway } from '../support/gateway.ts';
import { jobEnd } from '../support/jobs.ts';
import { openSocket, openStream, startServer } from '../support/server.ts';

/** The series of a metric by their labels, as Prometheus reads them. */
async function read(from: { metrics(): Promise<string> }, metric: string): Promise<Record<string, number>> {
  const lines = (await from.metrics()).split('\n').filter(line => line.startsWith(`model_manager_${metric}{`));
  return Object.fromEntries(
    lines.map(line => {
      const [, labels = '', value] = /\{(.*)\} (\S+)$/.exec(line) ?? [];
      return [labels.replaceAll('"', ''), Number(value)];
    }),
  );
}

test('requests to a backend are counted by what they ask and how they end, without what callers put into the path', async t => {
  const edges = createEdges();
  const server = await serve(t, ({ path }, response) => {
    if (path.startsWith('/lost')) return void response.destroy();
    response.writeHead(path.startsWith('/missing') ? 404 : 200, { 'content-type': 'application/json' }).end('{}');
  });
  const onRequest = edges.requestsTo('ollama');
  const http = createHttp({ kind: 'ollama', product: 'Ollama', endpoint: server.endpoint, onRequest });
  await http.document(callOf(), { method: 'GET', path: '/api/tags?x=secret' });
  await http.document(callOf(), { method: 'GET', path: '/api/tags' });
  await http.document(callOf(), { method: 'GET', path: '/missing' });
  await http.document(callOf(), { method: 'GET', path: '/lost/qwen3', op: 'GET /lost' }).catch(() => {});
  const { chunks } = await http.stream(callOf(), { method: 'POST', path: '/api/pull', body: {} });
  assert.ok(chunks);
  for await (const _ of chunks);
  await http.stream(callOf(), { method: 'POST', path: '/missing' });
  await http.stream(callOf(), { method: 'POST', path: '/lost' }).catch(() => {});
  assert.deepEqual(await read(edges.registry, 'backend_requests_total'), {
    'backend=ollama,op=GET /api/tags,outcome=ok': 2,
    'backend=ollama,op=GET /missing,outcome=refused': 1,
    'backend=ollama,op=GET /lost,outcome=failed': 1,
    'backend=ollama,op=POST /api/pull,outcome=ok': 1,
    'backend=ollama,op=POST /missing,outcome=refused': 1,
    'backend=ollama,op=POST /lost,outcome=failed': 1,
  });
  const durations = await read(edges.registry, 'backend_request_duration_seconds_count');
  assert.equal(durations['backend=ollama,op=GET /api/tags'], 2);
});

test('requests to the API server are counted by verb and resource, without names', async t => {
  const edges = createEdges();
  const server = await serve(t, ({ path }, response) => {
    const isThere = path.includes('/one');
    response.writeHead(isThere ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isThere ? { metadata: { name: 'one' } } : { kind: 'Status', code: 404 }));
  });
  const client = createKubernetesClient(accessTo(server.endpoint), edges.requestsTo(others.apiServer));
  await client.get(callOf(), configMaps, 'one', 'a');
  await client.get(callOf(), configMaps, 'two', 'a').catch(() => {});
  assert.deepEqual(await read(edges.registry, 'backend_requests_total'), {
    'backend=kubernetes,op=get configmaps,outcome=ok': 1,
    'backend=kubernetes,op=get configmaps,outcome=refused': 1,
  });
});

test('requests to the Hub are counted by what they ask, redirects with the request that they lead', async t => {
  const edges = createEdges();
  const server = await serve(t, ({ path }, response) => {
    // Without an answer until the client has no patience left.
    if (path.includes('slow')) return;
    const moved = path.startsWith('/api/models/acme/old');
    const status = moved ? 307 : path.includes('private') ? 403 : 200;
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(moved && { location: path.replace('acme/old', 'acme/new') }),
    });
    response.end(path.startsWith('/api/models?') || path.includes('/tree/') ? '[]' : '{"id":"acme/new"}');
  });
  const hub = createHub({
    endpoint: server.endpoint,
    token: async () => undefined,
    timeoutMs: 1_000,
    log: silent,
    onRequest: edges.requestsTo(others.hub),
  });
  await hub.search(callOf(), 'secret', 5);
  await hub.search(callOf(), 'slow', 5).catch(() => {});
  await hub.repository(callOf(), 'acme/old');
  await hub.repository(callOf(), 'acme/private');
  await hub.files(callOf(), 'acme/new', 'v1');
  assert.deepEqual(await read(edges.registry, 'backend_requests_total'), {
    'backend=hub,op=GET /api/models,outcome=ok': 1,
    'backend=hub,op=GET /api/models,outcome=failed': 1,
    'backend=hub,op=GET /api/models/{repository},outcome=ok': 1,
    'backend=hub,op=GET /api/models/{repository},outcome=refused': 1,
    'backend=hub,op=GET /api/models/{repository}/tree/{revision},outcome=ok': 1,
  });
  const durations = await read(edges.registry, 'backend_request_duration_seconds_count');
  assert.equal(durations['backend=hub,op=GET /api/models/{repository}'], 2);
});

test('requests to the agents of the cache are counted together, wherever they are', async t => {
  const edges = createEdges();
  await using lab = await startLab();
  const { endpoint } = await serve(t, (_seen, response) => answer(response, 200, { entries: [] }));
  agentPod(lab);
  const agents = createAgents({ ...lab, onRequest: edges.requestsTo(others.cacheAgents) });
  await agents.count(lab.call, settingsFor(new URL(endpoint).port), 'spark-01');
  await agents.count(lab.call, settingsFor(1), 'spark-01').catch(() => {});
  assert.deepEqual(await read(edges.registry, 'backend_requests_total'), {
    'backend=cache-agents,op=GET /inventory,outcome=ok': 1,
    'backend=cache-agents,op=GET /inventory,outcome=failed': 1,
  });
});

test('bytes of jobs are counted as they grow, and not again', async () => {
  const edges = createEdges();
  const jobs = createJobs({ store: createMemoryStore({ retentionMs: 60_000 }), log: silent, onBytes: edges.onBytes });
  const pulled = async (backend: string, reports: readonly number[]) => {
    const spec = { type: 'pull', backend, model: 'qwen3', key: 'qwen3', wire: false } as const;
    const { job } = await jobs.start(callOf(), spec, async (_call, report) => {
      for (const bytesCompleted of reports) report({ status: 'pulling', bytesCompleted, bytesTotal: 100 });
      return undefined;
    });
    await jobEnd({ jobs }, job.id);
  };
  await pulled('ollama', [0, 40, 40, 30, 60]);
  await pulled('lemonade', [7]);
  assert.deepEqual(await read(edges.registry, 'job_bytes_total'), { 'backend=ollama': 100, 'backend=lemonade': 100 });
});

test('what was counted of a backend goes with it; what is counted of others stays', async () => {
  const edges = createEdges();
  for (const backend of ['ollama', 'lemonade', ...Object.values(others)])
    edges.requestsTo(backend)('GET /x', 'ok', 1, callOf());
  edges.onBytes('ollama', 5);
  edges.keepOnly(name => name === 'lemonade');
  assert.deepEqual(Object.keys(await read(edges.registry, 'backend_requests_total')), [
    'backend=lemonade,op=GET /x,outcome=ok',
    ...['kubernetes', 'hub', 'cache-agents'].map(other => `backend=${other},op=GET /x,outcome=ok`),
  ]);
  assert.deepEqual(await read(edges.registry, 'job_bytes_total'), {});
  const left = Object.keys(await read(edges.registry, 'backend_request_duration_seconds_count'));
  assert.deepEqual(
    left,
    ['lemonade', 'kubernetes', 'hub', 'cache-agents'].map(backend => `backend=${backend},op=GET /x`),
  );
});

test('the steps of a serve are observed, but the moment that it is ready', async () => {
  const edges = createEdges();
  const since = new Date(0);
  const steps: Step[] = stepNames.map((name, index) => ({
    name,
    state: 'done',
    since,
    finishedAt: new Date(index * 1000),
  }));
  edges.onServed(steps);
  edges.onServed([{ name: 'loading', state: 'done', since, finishedAt: new Date(1500_000) }]);
  assert.deepEqual(await read(edges.registry, 'serve_phase_duration_seconds_sum'), {
    'phase=scheduling': 0,
    'phase=nodeStarting': 1,
    'phase=downloadingWeights': 2,
    'phase=pullingImage': 3,
    'phase=loading': 1504,
    'phase=routing': 5,
  });
  const loading = await read(edges.registry, 'serve_phase_duration_seconds_bucket');
  assert.equal(loading['le=1200,phase=loading'], 1);
  assert.equal(loading['le=1800,phase=loading'], 2);
});

test('watches are up while they run, and their restarts are counted by why', async t => {
  const time = mockTime(t);
  const server = scriptedServer();
  const edges = createEdges();
  const watches = createWatches({ client: server, log: silent, onRestart: edges.onWatchRestart });
  edges.show(watches);
  assert.deepEqual(await read(edges.registry, 'watch_up'), {});
  const stop = watches.of(callOf(), located(configMaps)).subscribe(() => {});
  t.after(stop);
  await settled();
  assert.deepEqual(await read(edges.registry, 'watch_up'), { 'resource=configmaps': 1 });
  const [at = 0] = Object.values(await read(edges.registry, 'watch_last_event_timestamp_seconds'));
  assert.equal(at, Date.now() / 1000);

  await time.pass(20 * seconds);
  server.watches.at(-1)?.fail(reset());
  await settled();
  assert.deepEqual(await read(edges.registry, 'watch_up'), { 'resource=configmaps': 0 });
  await time.pass(20 * seconds);
  server.watches.at(-1)?.fail(expired());
  await settled();
  await time.pass(20 * seconds);
  // Silent from here on: a second watch is begun beside it, and takes its place.
  for (let half = 0; half < 6; half++) await time.pass(0.5 * minutes);
  const restarts = await read(edges.registry, 'watch_restarts_total');
  assert.equal(restarts['resource=configmaps,reason=broken'], 1);
  assert.equal(restarts['resource=configmaps,reason=expired'], 1);
  assert.ok((restarts['resource=configmaps,reason=silent'] ?? 0) >= 1, JSON.stringify(restarts));
});

/** What a Prometheus would read of a server that somebody uses. */
async function measured() {
  const gateway = testGateway();
  const metrics = createMetrics(gateway);
  return { metrics, server: await startServer({ gateway, metrics }), read: (name: string) => read(metrics, name) };
}

test('operations of GraphQL are counted by type, name and outcome; names that are not ours are one', async () => {
  const { server, read } = await measured();
  await using _ = server;
  const ask = (query: string) =>
    fetch(server.graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    }).then(response => response.text());
  await ask('query getInfo { info { version } }');
  await ask('query somethingOfMine { info { version } }');
  await ask('{ info { version } }');
  await ask('query getJob { job(id: "0123456789abcdef") { phase } }');
  await ask('mutation { cancelJob(id: "0123456789abcdef") { phase } }');
  await ask('{ nope }');
  await ask('{');
  await ask('query a { info { version } } query b { info { version } }');
  await ask(`{ ${Array.from({ length: 40 }, (_, index) => `a${index}: info { version }`).join(' ')} }`);
  const operations = {
    'type=query,name=getInfo,outcome=ok': 1,
    'type=query,name=other,outcome=ok': 2,
    'type=query,name=getJob,outcome=failed': 1,
    'type=mutation,name=other,outcome=failed': 1,
  };
  assert.deepEqual(await read('graphql_operations_total'), operations);
  assert.deepEqual(await read('graphql_rejected_total'), { 'reason=invalid': 3, 'reason=aliases': 1 });
  const durations = await read('graphql_operation_duration_seconds_count');
  assert.equal(durations['type=query,name=other'], 2);
});

test('subscribers are counted by transport and field, and why they are none any more', async () => {
  const { server, read } = await measured();
  await using _ = server;
  const query = 'subscription { jobs { snapshot } }';
  const socket = await openSocket(server.socketUrl);
  socket.send({ id: '1', type: 'subscribe', payload: { query } });
  await socket.next();
  const stream = await openStream(server.graphqlUrl, { query });
  await stream.nextPayload();
  assert.deepEqual(await read('subscriptions'), {
    'transport=websocket,field=jobs': 1,
    'transport=sse,field=jobs': 1,
  });
  assert.deepEqual(await read('graphql_operations_total'), { 'type=subscription,name=other,outcome=ok': 2 });
  await server.close();
  const closed = await read('subscription_closed_total');
  assert.equal(
    Object.values(closed).reduce((sum, each) => sum + each, 0),
    2,
  );
  assert.deepEqual(await read('subscriptions'), {
    'transport=websocket,field=jobs': 0,
    'transport=sse,field=jobs': 0,
  });
});

test('requests are counted by the route as it is documented', async () => {
  const { server, read } = await measured();
  await using _ = server;
  for (const path of ['/healthz', '/api/v1/jobs/secret', '/api/v1/jobs', '/somewhere/else']) {
    await fetch(`${server.url}${path}`).then(response => response.text());
  }
  assert.deepEqual(await read('http_requests_total'), {
    'surface=health,route=/healthz,method=GET,code=200': 1,
    'surface=rest,route=/api/v1/jobs/{id},method=GET,code=404': 1,
    'surface=rest,route=/api/v1/jobs,method=GET,code=200': 1,
    'surface=other,route=other,method=GET,code=404': 1,
  });
});

test('the README has the metrics as the code has them', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, table = ''] = /<!-- metrics -->\n([\s\S]*?)\n?<!-- \/metrics -->/.exec(readme) ?? [];
  const identity = { settings: { issuer: 'https://dex.example.com' }, keys: () => ({ up: true, age: 0 }) } as never;
  const gateway = { ...testGateway(), registry: createRegistry([]) };
  const metrics = createMetrics(gateway, { audit: { lost: 0 }, identity, edges: createEdges() });
  assert.equal(table, metrics.table());
});
