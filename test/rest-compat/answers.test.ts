import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EmulatedModel } from '../../src/demo/ollama.ts';
import { startEmulated } from '../support/emulated.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { jobEnd } from '../support/jobs.ts';
import { serveRest } from '../support/rest.ts';

const digest = (letter: string) => letter.repeat(64);

const library: EmulatedModel[] = [
  {
    name: 'qwen3:8b',
    bytes: 5_200_000_000,
    digest: digest('a'),
    family: 'qwen3',
    parameterSize: '8.2B',
    quantization: 'Q4_K_M',
    contextLength: 40_960,
    capabilities: ['completion', 'tools', 'thinking'],
    memoryBytes: 6_900_000_000,
    vramBytes: 4_000_000_000,
    modifiedAt: new Date('2026-08-14T19:07:33Z'),
  },
  {
    name: 'bge-m3:latest',
    bytes: 1_200_000_000,
    digest: digest('b'),
    family: 'bert',
    capabilities: ['embedding'],
    memoryBytes: 1_300_000_000,
    vramBytes: 0,
    modifiedAt: new Date('2026-06-11T07:45:12Z'),
  },
];

const qwen = {
  name: 'qwen3:8b',
  backend: 'ollama',
  digest: digest('a'),
  sizeBytes: 5_200_000_000,
  modifiedAt: '2026-08-14T19:07:33.000Z',
  format: 'gguf',
  family: 'qwen3',
  parameterSize: '8.2B',
  quantization: 'Q4_K_M',
  contextLength: 40_960,
  capabilities: ['completion', 'tools', 'thinking'],
  loaded: false,
};
const qwenRunning = {
  name: 'qwen3:8b',
  backend: 'ollama',
  digest: digest('a'),
  sizeBytes: 6_900_000_000,
  vramBytes: 4_000_000_000,
  contextLength: 4096,
  expiresAt: '2026-08-22T08:10:00.000Z',
  status: 'loaded',
};
const bge = {
  name: 'bge-m3:latest',
  backend: 'ollama',
  digest: digest('b'),
  sizeBytes: 1_200_000_000,
  modifiedAt: '2026-06-11T07:45:12.000Z',
  format: 'gguf',
  family: 'bert',
  capabilities: ['embedding'],
  loaded: false,
};
// Runs on the CPU (no vramBytes), for ever (no expiresAt).
const bgeRunning = {
  name: 'bge-m3:latest',
  backend: 'ollama',
  digest: digest('b'),
  sizeBytes: 1_300_000_000,
  contextLength: 4096,
  status: 'loaded',
};
const host = {
  name: 'gpu-host',
  backend: 'ollama',
  ready: true,
  eligible: true,
  architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch,
  allocatableMemoryBytes: 2 ** 36,
  gpuCount: 0,
  accelerated: false,
  budgetBytes: 2 ** 36,
  budgetSource: 'host-meminfo',
  reservedBytes: 0,
  freeBytes: 2 ** 36,
  message: 'memory as seen from the pod; per-model share on accelerators in running.vramBytes',
};

/** The emulated host and the gateway in front of it, and a check of an answer to the letter. */
async function start(models = library) {
  const stack = new AsyncDisposableStack();
  const world = stack.use(
    await startEmulated({ models, registry: [{ name: 'new:1b', layers: [{ bytes: 100 }], pullMs: 100 }] }),
  );
  const { server, send } = stack.use(await serveRest({ gateway: world.gateway }));
  return {
    ...world,
    server,
    send,
    async answers(line: string, expected: unknown, { body, status = 200 }: { body?: unknown; status?: number } = {}) {
      const answer = await send(line, body);
      assert.equal(answer.text, `${JSON.stringify(expected, null, 2)}\n`, line);
      assert.equal(answer.status, status, line);
      assert.equal(answer.headers['content-type'], 'application/json', line);
      assert.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.text)), line);
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('backends are described with everything that is known of them', async () => {
  await using world = await start();
  const backend = {
    backend: 'ollama',
    version: '0.33.0',
    endpoint: world.ollama.url,
    agentEndpoint: 'http://gpu-host:11434',
    healthy: true,
    loading: { onDemand: true, idleEviction: true, keepAliveDefault: '5m', keepAliveScope: 'request' },
    source: 'static',
    capabilities: {
      pull: true,
      pullProgress: true,
      delete: true,
      load: true,
      unload: true,
      loadedModels: true,
      nodeInventory: true,
      presets: false,
      fitCheck: false,
      search: false,
      wire: false,
    },
  };
  await world.answers('GET backends', { backends: [backend] });
  await world.answers('GET backend', { ...backend, backends: ['ollama'] });
  await world.answers('GET backend?backend=%20ollama%20', { ...backend, backends: ['ollama'] });
});

test('a backend that is down is described all the same, and says why', async () => {
  await using world = await start();
  await world.ollama.stop();
  const { status, json } = await world.send('GET backends');
  assert.equal(status, 200);
  const [{ healthy, message, version, agentEndpoint, loading, capabilities }] = json.backends;
  assert.equal(healthy, false);
  assert.equal(
    message,
    `ollama: GET /api/version: connection refused at ${world.ollama.url}; is Ollama running there?`,
  );
  assert.equal(version, undefined);
  assert.equal(agentEndpoint, 'http://gpu-host:11434');
  assert.equal(loading.keepAliveDefault, '5m');
  assert.equal(Object.keys(capabilities).length, 11);
});

test('models are written with what is known of them, and nothing else', async () => {
  await using world = await start();
  await world.answers('GET models', { models: [qwen, bge] });
  await world.answers('GET models?backend=ollama', { models: [qwen, bge] });
  await world.answers('GET models/qwen3:8b', qwen);
  await world.answers('GET models/bge-m3', bge);
  await world.answers('GET models/bge-m3%3Alatest?backend=ollama', bge);
});

test('loading, listing and unloading', async () => {
  await using world = await start();
  await world.answers('GET loaded', { loaded: [] });
  await world.answers('GET nodes', { nodes: [host] });

  const loadedQwen = { ...qwen, loaded: true, running: qwenRunning };
  await world.answers('POST models/load', loadedQwen, { body: { model: 'qwen3:8b', keepAlive: '10m' } });
  const loadedBge = { ...bge, loaded: true, running: bgeRunning };
  await world.answers('POST models/load', loadedBge, { body: { model: 'bge-m3', keepAlive: '-1' } });

  await world.answers('GET loaded', { loaded: [bgeRunning, qwenRunning] });
  await world.answers('GET models', { models: [loadedQwen, loadedBge] });
  await world.answers('GET models/qwen3:8b', loadedQwen);
  const reserved = 6_900_000_000 + 1_300_000_000;
  await world.answers('GET nodes', {
    nodes: [{ ...host, accelerated: true, reservedBytes: reserved, freeBytes: 2 ** 36 - reserved }],
  });

  const unloaded = { backend: 'ollama', model: 'qwen3:8b', loaded: false };
  await world.answers('POST models/unload', unloaded, { body: { model: '  qwen3:8b ' } });
  await world.answers('POST models/unload', unloaded, { body: { model: 'qwen3:8b' } });
  await world.answers('GET loaded', { loaded: [bgeRunning] });
});

test('deleting repeats what was asked, whatever it was', async () => {
  await using world = await start();
  const deleted = { backend: 'ollama', model: 'qwen3:8b', deleted: true, unwired: true };
  await world.answers('DELETE models/qwen3%3A8b', deleted);
  const kept = { backend: 'ollama', model: 'bge-m3', deleted: true, unwired: false };
  await world.answers('DELETE models/bge-m3?unwire=False&backend=ollama', kept);
  await world.answers('GET models', { models: [] });
  assert.deepEqual(world.ollama.models(), []);
});

test('only "false" keeps the wiring, everything else takes it along', async () => {
  const table = { 'unwire=false': false, 'unwire=FALSE': false, 'unwire=0': true, 'unwire=no': true, 'unwire=': true };
  const names = Object.keys(table).map((_, index) => `m${index}:1b`);
  await using server = await serveRest({ gateway: testGateway({ drivers: [fakeDriver({ models: names })] }) });
  for (const [index, [query, unwired]] of Object.entries(table).entries()) {
    assert.equal((await server.send(`DELETE models/m${index}:1b?${query}`)).json.unwired, unwired, query);
  }
});

test('a pull answers 202 with a job, which ends complete', async () => {
  await using world = await start();
  const pulled = await world.send('POST models/pull', { model: ' new:1b ', wire: false });
  assert.equal(pulled.status, 202);
  const { id, createdAt } = pulled.json.job;
  assert.match(id, /^[0-9a-f]{16}$/);
  const job = { id, backend: 'ollama', type: 'pull', model: 'new:1b' };
  const begun = { phase: 'pending', bytesCompleted: 0, bytesTotal: 0, percent: 0, createdAt, wire: false };
  assert.equal(pulled.text, `${JSON.stringify({ job: { ...job, ...begun }, created: true }, null, 2)}\n`);

  await world.clock.sleeping();
  await world.clock.advance(100);
  await jobEnd(world.gateway, id);
  const { startedAt, finishedAt } = (await world.send(`GET jobs/${id}`)).json;
  for (const time of [createdAt, startedAt, finishedAt]) assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const done = {
    ...job,
    phase: 'succeeded',
    status: 'success',
    bytesCompleted: 100,
    bytesTotal: 100,
    percent: 100,
    createdAt,
    startedAt,
    finishedAt,
    wire: false,
  };
  await world.answers(`GET jobs/${id}`, done);
  await world.answers('GET jobs', { jobs: [done] });
  await world.answers('GET jobs?backend=ollama', { jobs: [done] });
  // A job that has ended stays as it is.
  await world.answers(`DELETE jobs/${id}`, done);
});

test('what a server does not say is left out, or 0 where the contract always has a number', async () => {
  await using world = await start([]);
  await world.answers('GET models', { models: [] });
  const row = { name: 'bare:1b', size: 'many', digest: '', modified_at: '0001-01-01T00:00:00Z', details: null };
  world.ollama.fault({ kind: 'answer', path: '/api/tags', body: JSON.stringify({ models: [row] }) });
  world.ollama.fault({ kind: 'answer', path: '/api/ps', body: JSON.stringify({ models: [{ name: 'bare:1b' }] }) });
  for (const backend of world.gateway.registry.backends) backend.changed();
  const running = { name: 'bare:1b', backend: 'ollama', sizeBytes: 0, status: 'loaded' };
  await world.answers('GET loaded', { loaded: [running] });
  await world.answers('GET models', {
    models: [{ name: 'bare:1b', backend: 'ollama', sizeBytes: 0, loaded: true, running }],
  });
});

test('facts that Ollama does not have are written as the contract says', async () => {
  const driver = fakeDriver({
    models: [
      { name: 'a:1b', downloaded: false, node: 'n1', path: '/m', preset: 'p', runtime: 'flm', capabilities: [] },
    ],
  });
  driver.world.loaded = [
    { backend: 'ollama', name: 'a:1b', vramBytes: 0, device: 'npu', pinned: true, status: 'busy' },
  ];
  driver.world.nodes = [
    {
      backend: 'ollama',
      name: 'n1',
      ready: false,
      eligible: false,
      eligibilityReason: 'x',
      gpuCount: 1,
      reservedBytes: 0,
    },
  ];
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const running = { name: 'a:1b', backend: 'ollama', sizeBytes: 0, status: 'busy', device: 'npu', pinned: true };
  assert.deepEqual((await server.send('GET models')).json.models, [
    {
      name: 'a:1b',
      backend: 'ollama',
      sizeBytes: 0,
      runtime: 'flm',
      capabilities: [],
      node: 'n1',
      path: '/m',
      preset: 'p',
      downloaded: false,
      loaded: true,
      running,
    },
  ]);
  assert.deepEqual((await server.send('GET nodes')).json.nodes, [
    {
      name: 'n1',
      backend: 'ollama',
      ready: false,
      eligible: false,
      eligibilityReason: 'x',
      allocatableMemoryBytes: 0,
      gpuCount: 1,
      budgetBytes: 0,
      reservedBytes: 0,
      freeBytes: 0,
    },
  ]);
});

test('without a backend there is an empty list of them, and no job', async () => {
  await using server = await serveRest({ gateway: testGateway({ drivers: [] }) });
  assert.equal((await server.send('GET backends')).text, '{\n  "backends": []\n}\n');
  assert.equal((await server.send('GET jobs')).text, '{\n  "jobs": []\n}\n');
});

test('health answers in plain text, and only /backendz looks at backends', async () => {
  await using world = await start();
  for (const path of ['/healthz', '/readyz', '/backendz']) {
    const { status, text, headers } = await world.send(`GET ${path}`);
    assert.deepEqual([status, text, headers['content-type']], [200, 'ok', 'text/plain; charset=utf-8'], path);
  }
  await world.ollama.stop();
  for (const backend of world.gateway.registry.backends) backend.changed();
  const down = await world.send('GET /backendz');
  assert.equal(down.status, 503);
  assert.equal(
    down.text,
    `backend ollama not healthy: ollama: GET /api/version: connection refused at ${world.ollama.url}; is Ollama running there?`,
  );
  assert.equal((await world.send('GET /healthz')).status, 200);
});

test('the description of the API is YAML', async () => {
  await using server = await serveRest();
  const { status, headers, text } = await server.send('GET openapi.yaml');
  assert.deepEqual([status, headers['content-type']], [200, 'application/yaml']);
  assert.match(text, /^openapi: 3\.1\./);
});
