import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, asked, driverAt } from './host.ts';

test('the driver says what it is as data, also for a host that is not there', () => {
  const driver = driverAt(' http://127.0.0.1:1/ ', { agentHost: 'http://box:11434//', keepAliveDefault: '30m' });
  assert.equal(driver.kind, 'ollama');
  assert.equal(driver.name, 'ollama');
  assert.equal(driver.endpoint, 'http://127.0.0.1:1');
  assert.equal(driver.agentEndpoint, 'http://box:11434');
  assert.equal(driverAt('http://h:1/', { agentHost: ' ' }).agentEndpoint, 'http://h:1');
  assert.deepEqual(driver.loading, {
    onDemand: true,
    idleEviction: true,
    keepAliveDefault: '30m',
    keepAliveScope: 'request',
  });
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
    () => driverAt('172.21.0.1:11434'),
    /endpoint of ollama must be an http\(s\) URL, got "172\.21\.0\.1:11434"/,
  );
});

test('a server that answers its version is healthy', async t => {
  const { driver } = await against(t, { 'GET /api/version': fixtureJson('api-version.json') });
  assert.deepEqual(await driver.describe(callOf()), { healthy: true, version: '0.33.0' });
});

test('what is no Ollama is unhealthy, and the message says what was found', async t => {
  const zero = { models: [{ name: 'Qwen3-0.6B-GGUF:latest', digest: '0'.repeat(64) }] };
  const lmStudio = { error: 'Unexpected endpoint or method. (GET /api/version)' };
  const table: [Readonly<Record<string, unknown>>, RegExp][] = [
    [
      { 'GET /api/version': lmStudio },
      /is LM Studio \("Unexpected endpoint .*"\); configure it as an lmstudio backend/,
    ],
    [{ 'GET /api/version': { error: 'no' } }, /did not answer like Ollama but with the error "no" \(HTTP 200\)/],
    [{ 'GET /api/version': { status: 'ok' } }, /did not answer like Ollama but with the document {"status":"ok"}/],
    [{ 'GET /api/version': [200, 'Ollama is running', 'text/plain'] }, /but with the text Ollama is running/],
    [{ 'GET /api/version': [200, '', ''] }, /but with an empty answer/],
    [
      { 'GET /api/version': [200, '<!doctype html><title>Sign in</title>', 'text/html'] },
      /but with a web page titled "Sign in"/,
    ],
    [
      { 'GET /api/version': { version: '0.16.1' }, 'GET /api/tags': zero },
      /is a Lemonade Server \(the digests of its models are all zero\); configure it as a lemonade backend/,
    ],
    [
      {},
      /has no such endpoint; is this the root address of an Ollama server\?: the text 404 page not found \(HTTP 404\)/,
    ],
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

test('a true Ollama of the version that Lemonade claims stays healthy', async t => {
  const version = { 'GET /api/version': { version: '0.16.1' } };
  for (const tags of [fixtureJson('api-tags.json'), { models: [] }, [500, { error: 'model list cache unavailable' }]]) {
    const { driver } = await against(t, { ...version, 'GET /api/tags': tags });
    assert.deepEqual(await driver.describe(callOf()), { healthy: true, version: '0.16.1' });
  }
});

test('a dead or hanging server is an unhealthy answer; a caller who left gets none', async t => {
  const dead = await driverAt('http://127.0.0.1:1').describe(callOf());
  assert.equal(dead.healthy, false);
  assert.match(dead.message ?? '', /connection refused at http:\/\/127\.0\.0\.1:1; is Ollama running there\?/);

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

test('models and loaded models are rows of this backend', async t => {
  const { driver, requests } = await against(
    t,
    { 'GET /api/tags': fixtureJson('api-tags.json'), 'GET /api/ps': fixtureJson('api-ps-edge.json') },
    { name: 'lab' },
  );
  const models = await driver.models(callOf());
  assert.deepEqual(
    models.map(({ backend, name, running, downloaded }) => [backend, name, running, downloaded]),
    ['qwen3:8b', 'gemma3:latest', 'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M', 'bge-m3:latest', 'gpt-oss:120b-cloud'].map(
      name => ['lab', name, undefined, undefined],
    ),
  );
  const loaded = await driver.loaded(callOf());
  assert.deepEqual(
    loaded.map(({ backend, status }) => [backend, status]),
    ['loaded', 'loaded', 'stopping', 'loaded', 'loaded'].map(status => ['lab', status]),
  );
  assert.deepEqual(asked(requests), [
    ['GET /api/tags', undefined],
    ['GET /api/ps', undefined],
  ]);
});

test('the models of a Lemonade Server are refused, not shown as those of an Ollama', async t => {
  const { driver } = await against(t, { 'GET /api/tags': { models: [{ name: 'a:latest', digest: '0'.repeat(64) }] } });
  assert.match((await failure(driver.models(callOf()))).message, /is a Lemonade Server/);
});

test('the node stands on what is loaded; when that cannot be read there is no node with made-up numbers', async t => {
  const { driver } = await against(
    t,
    { 'GET /api/ps': fixtureJson('api-ps.json') },
    { agentHost: 'http://box:11434', memoryBudgetGiB: '32' },
  );
  const [node, ...others] = await driver.nodes(callOf());
  assert.equal(others.length, 0);
  assert.deepEqual(
    [node?.name, node?.accelerated, node?.reservedBytes, node?.budgetBytes, node?.allocatableMemoryBytes],
    ['box', true, 6_862_180_352, 32 * 2 ** 30, 64 * 2 ** 30],
  );
  const blind = await against(
    t,
    { 'GET /api/ps': { models: [] } },
    {
      meminfo: async () => {
        throw Object.assign(new Error("ENOENT: no such file, open '/proc/meminfo'"), { code: 'ENOENT' });
      },
    },
  );
  assert.match(
    (await blind.driver.nodes(callOf()))[0]?.message ?? '',
    /^host memory unknown \(cannot read .*: ENOENT\); /,
  );
  const old = await against(t, {});
  assert.equal((await failure(old.driver.nodes(callOf()))).code, 'backend_error');
});

test('nothing of the caller and nothing of a browser reaches the server', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/tags': { models: [] },
    'POST /api/generate': { done: true },
  });
  const call = callOf({ caller: { name: 'me@example.com', anonymous: false, scope: 'token-of-me' } });
  await driver.models(call);
  await driver.load(call, { model: 'x:1b', keepAlive: '5m' });
  const allowed = ['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent'];
  for (const { headers } of requests) for (const name of Object.keys(headers)) assert.ok(allowed.includes(name), name);
  assert.doesNotMatch(JSON.stringify(requests), /me@example|token-of-me/);
});
