import assert from 'node:assert/strict';
import { test } from 'node:test';
import { all, answer, callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, asked, driverAt, list, model } from './host.ts';

const health = { 'GET /api/v1/health': fixtureJson('health.json') };
const listed = { 'GET /api/v1/models': fixtureJson('models.json') };
const system = { 'GET /api/v1/system-info': fixtureJson('system-info.json') };

test('the driver says what it is as data, also for a host that is not there', () => {
  const driver = driverAt(' http://127.0.0.1:1/ ', { agentHost: 'http://box:13305//' });
  assert.equal(driver.kind, 'lemonade');
  assert.equal(driver.name, 'lemonade');
  assert.equal(driver.endpoint, 'http://127.0.0.1:1');
  assert.deepEqual(driver.loading, { onDemand: true, idleEviction: false });
  assert.deepEqual(driver.capabilities, {
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
  });
  assert.throws(
    () => driverAt('172.21.0.1:13305'),
    /endpoint of lemonade must be an http\(s\) URL, got "172\.21\.0\.1:13305"/,
  );
});

test('agents dial the OpenAI path of the agent host, which is not doubled', () => {
  const table: [string | undefined, string][] = [
    ['http://box:13305//', 'http://box:13305/api/v1'],
    ['http://box:13305/api/v1/', 'http://box:13305/api/v1'],
    ['http://box:13305/v1', 'http://box:13305/v1'],
    ['https://x/lemonade', 'https://x/lemonade/api/v1'],
    ['http://box:13305/rev1', 'http://box:13305/rev1/api/v1'],
    [' ', 'http://h:1/api/v1'],
    [undefined, 'http://h:1/api/v1'],
  ];
  for (const [agentHost, address] of table)
    assert.equal(driverAt('http://h:1/', { agentHost }).agentEndpoint, address, agentHost);
});

test('a server that answers its health is healthy, one that reports another status is not', async t => {
  const { driver } = await against(t, health);
  assert.deepEqual(await driver.describe(callOf()), { healthy: true, version: '11.7.0' });
  const table: [object, object][] = [
    [{ status: 'OK' }, { healthy: true, version: undefined }],
    [{ all_models_loaded: [] }, { healthy: true, version: undefined }],
    [
      { status: 'starting\n', version: '11.7.0' },
      { healthy: false, version: '11.7.0', message: 'lemonade reports status starting' },
    ],
    [
      { status: 'error', message: 'x' },
      { healthy: false, version: undefined, message: 'lemonade reports status error' },
    ],
  ];
  for (const [document, expected] of table) {
    const odd = await against(t, { 'GET /api/v1/health': document });
    assert.deepEqual(await odd.driver.describe(callOf()), expected);
  }
});

const notFound = [404, '404 page not found', 'text/plain'];

test('what is no Lemonade is unhealthy, and the message says what was found', async t => {
  const path = 'GET /api/v1/health';
  const table: [Readonly<Record<string, unknown>>, RegExp][] = [
    [
      { [path]: { error: 'Unexpected endpoint or method. (GET /api/v1/health)' } },
      /is LM Studio \("Unexpected endpoint .*"\); configure it as an lmstudio backend \(HTTP 200\)$/,
    ],
    [
      { [path]: notFound, 'GET /api/version': { version: '0.33.0' } },
      /^lemonade: GET \/api\/v1\/health: http:\S+ is Ollama 0\.33\.0; configure it as an ollama backend$/,
    ],
    [
      // What a Lemonade answers there; whoever it is, it is not known to be an Ollama.
      { [path]: notFound, 'GET /api/version': { version: '0.16.1' } },
      /has no such endpoint; is this the root address of a Lemonade Server, and is the server up to date\?: the text 404/,
    ],
    [{ [path]: notFound, 'GET /api/version': [200, 'hello', 'text/plain'] }, /has no such endpoint/],
    [{ [path]: notFound, 'GET /api/version': { version: 7 } }, /has no such endpoint/],
    [{}, /has no such endpoint; .*: The requested endpoint does not exist \(HTTP 404\)$/],
    [{ [path]: { error: 'no' } }, /did not answer like Lemonade but with the error "no" \(HTTP 200\)/],
    [{ [path]: { version: '1' } }, /did not answer like Lemonade but with the document {"version":"1"}/],
    [{ [path]: [200, 'Ollama is running', 'text/plain'] }, /but with the text Ollama is running/],
    [{ [path]: [200, '', ''] }, /but with an empty answer/],
    [{ [path]: [200, '<!doctype html><title>Sign in</title>', 'text/html'] }, /but with a web page titled "Sign in"/],
  ];
  for (const [script, words] of table) {
    const { driver, endpoint } = await against(t, script);
    const { healthy, message, version } = await driver.describe(callOf());
    assert.equal(healthy, false);
    assert.equal(version, undefined);
    assert.match(message ?? '', words);
    assert.ok(message?.includes(endpoint), 'the message names the address');
  }
});

test('an Ollama or an LM Studio is named by every call, not shown as an empty Lemonade', async t => {
  const ollama = await serve(t, ({ path }, response) =>
    path === '/api/version'
      ? answer(response, 200, { version: '0.33.0' })
      : answer(response, 404, '404 page not found', 'text/plain'),
  );
  const lmStudio = await serve(t, ({ method, path }, response) =>
    path === '/api/v1/models'
      ? answer(response, 200, { models: [] })
      : answer(response, 200, { error: `Unexpected endpoint or method. (${method} ${path})` }),
  );
  for (const [{ endpoint }, words] of [
    [ollama, /is Ollama 0\.33\.0; configure it as an ollama backend/],
    [lmStudio, /is LM Studio(?: \("Unexpected .*"\))?; configure it as an lmstudio backend/],
  ] as const) {
    const driver = driverAt(endpoint);
    for (const work of [
      () => driver.models(callOf()),
      () => driver.loaded(callOf()),
      () => driver.nodes(callOf()),
      () => driver.load(callOf(), { model: 'x', keepAlive: '5m' }),
      () => driver.unload(callOf(), model('x')),
      () => driver.remove(callOf(), model('x')),
      () => all(driver.pull(callOf(), { model: 'x' })),
    ]) {
      const error = await failure(work());
      assert.equal(error.code, 'backend_error');
      assert.match(error.message, words);
    }
  }
});

test('a dead or hanging server is an unhealthy answer; a caller who left gets none', async t => {
  const dead = await driverAt('http://127.0.0.1:1').describe(callOf());
  assert.equal(dead.healthy, false);
  assert.match(dead.message ?? '', /connection refused at http:\/\/127\.0\.0\.1:1; is Lemonade running there\?/);

  const arrived = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, () => arrived.resolve());
  const hanging = await soon(driverAt(endpoint).describe(callOf({ timeoutMs: 40 })), 'describe');
  assert.equal(hanging.healthy, false);
  assert.match(hanging.message ?? '', /no answer from http/);

  const abort = new AbortController();
  const left = failure(driverAt(endpoint).describe(callOf({ signal: abort.signal })));
  await arrived.promise;
  abort.abort();
  assert.match((await soon(left, 'abort')).message, /cancelled by the caller/);
});

test('F13: a server that blocks while it loads costs each read its budget and no more', async t => {
  const { endpoint } = await serve(t, () => {});
  const driver = driverAt(endpoint);
  for (const work of [driver.models, driver.loaded, driver.nodes]) {
    const error = await soon(failure(work(callOf({ timeoutMs: 40 }))), 'read');
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, /^lemonade: GET \/api\/v1\/[\w-]+: no answer from http:/);
  }
});

test('models and loaded models are rows of this backend, loaded ones with the size of the listed one', async t => {
  const { driver, requests } = await against(
    t,
    { ...health, ...listed },
    { name: 'lab', agentHost: 'http://box:13305' },
  );
  const models = await driver.models(callOf());
  assert.deepEqual(
    models.map(({ backend, name, running, downloaded }) => [backend, name, running, downloaded]),
    [
      'Qwen3-0.6B-GGUF',
      'qwen3-it-4b-FLM',
      'nomic-embed-text-v1-GGUF',
      'Tiny-Test-Model-GGUF',
      'Whisper-Tiny',
      'SmolLM2-135M-Instruct-Hybrid',
      'Big',
      'My-Team',
    ].map(name => ['lab', name, undefined, undefined]),
  );
  assert.deepEqual(
    (await driver.loaded(callOf())).map(({ backend, name, node, sizeBytes, expiresAt, vramBytes }) => [
      backend,
      name,
      node,
      sizeBytes,
      expiresAt,
      vramBytes,
    ]),
    [
      ['lab', 'qwen3-it-4b-FLM', 'box', 3_100_000_000, undefined, undefined],
      ['lab', 'nomic-embed-text-v1-GGUF', 'box', 73_000_000, undefined, undefined],
    ],
  );
  assert.deepEqual(
    asked(requests)
      .map(([what]) => what)
      .sort(),
    ['GET /api/v1/health', 'GET /api/v1/models', 'GET /api/v1/models'],
  );
});

test('loaded models are shown without their sizes when the list cannot be read', async t => {
  const { driver } = await against(t, { ...health, 'GET /api/v1/models': [500, { error: 'boom' }] });
  assert.deepEqual(
    (await driver.loaded(callOf())).map(({ name, sizeBytes }) => [name, sizeBytes]),
    [
      ['qwen3-it-4b-FLM', undefined],
      ['nomic-embed-text-v1-GGUF', undefined],
    ],
  );
});

test('the node stands on three documents; without one of them there is no node with made-up numbers', async t => {
  const { driver } = await against(
    t,
    { ...health, ...listed, ...system },
    { name: 'lab', agentHost: 'http://box:13305/api/v1' },
  );
  const [node, ...others] = await driver.nodes(callOf());
  assert.equal(others.length, 0);
  assert.deepEqual(
    [node?.backend, node?.name, node?.reservedBytes, node?.cache?.models, node?.cache?.bytesUsed, node?.gpuCount],
    ['lab', 'box', 3_173_000_000, 8, 65_701_000_000, 2],
  );
  const documents = { ...health, ...listed, ...system };
  for (const missing of Object.keys(documents)) {
    const rest = Object.fromEntries(Object.entries(documents).filter(([path]) => path !== missing));
    assert.equal((await failure((await against(t, rest)).driver.nodes(callOf()))).code, 'backend_error', missing);
  }
});

test('nothing of the caller and nothing of a browser reaches the server', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/v1/models': list('x'),
    'POST /api/v1/load': { status: 'success' },
  });
  const call = callOf({ caller: { name: 'me@example.com', anonymous: false, scope: 'token-of-me' } });
  await driver.models(call);
  await driver.load(call, { model: 'x', keepAlive: '5m' });
  const allowed = ['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent'];
  for (const { headers } of requests) for (const name of Object.keys(headers)) assert.ok(allowed.includes(name), name);
  assert.doesNotMatch(JSON.stringify(requests), /me@example|token-of-me/);
});

test('no path has a doubled slash, which the server would not know', async t => {
  const { endpoint, requests } = await serve(t, (_, response) => answer(response, 200, list()));
  await driverAt(`${endpoint}//`).models(callOf());
  assert.equal(requests[0]?.path, '/api/v1/models');
});
