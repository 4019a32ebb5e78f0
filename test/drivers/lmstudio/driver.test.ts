import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, asked, driverAt } from './host.ts';

test('the driver says what it is as data, also for a host that is not there', () => {
  const driver = driverAt(' http://127.0.0.1:1/ ', { agentHost: 'http://box:1234//' });
  assert.equal(driver.kind, 'lmstudio');
  assert.equal(driver.name, 'lmstudio');
  assert.equal(driver.endpoint, 'http://127.0.0.1:1');
  assert.equal(driver.agentEndpoint, 'http://box:1234/v1');
  assert.equal(driverAt('http://h:1/', { agentHost: 'http://box:1234/v1/' }).agentEndpoint, 'http://box:1234/v1');
  assert.equal(driverAt('http://h:1/', { agentHost: ' ' }).agentEndpoint, 'http://h:1/v1');
  assert.deepEqual(driver.loading, { onDemand: true, idleEviction: false });
  assert.deepEqual(driver.capabilities, {
    pull: true,
    pullProgress: true,
    delete: false,
    load: true,
    unload: true,
    loadedModels: true,
    nodeInventory: false,
    presets: false,
    fitCheck: false,
    search: false,
  });
  assert.equal(driver.remove, undefined);
  assert.equal(driver.nodes, undefined);
  assert.throws(() => driverAt('172.21.0.1:1234'), /endpoint of lmstudio must be an http\(s\) URL, got "172\.21/);
});

test('a server that answers its library is healthy, and has no version to tell', async t => {
  for (const library of [fixtureJson('models.json'), { models: [] }]) {
    const { driver } = await against(t, { 'GET /api/v1/models': library });
    assert.deepEqual(await driver.describe(callOf()), { healthy: true });
  }
});

const page = [404, '404 page not found', 'text/plain'];
const odd: [string, Readonly<Record<string, unknown>>, RegExp][] = [
  [
    'an LM Studio before 0.4.0',
    {},
    /answered the error "Unexpected endpoint or method\. \(GET \/api\/v1\/models\)" \(HTTP 200\); LM Studio 0\.4\.0 or newer is needed$/,
  ],
  [
    'an Ollama',
    { 'GET /api/v1/models': page, 'GET /api/version': { version: '0.33.0' } },
    /is Ollama 0\.33\.0; configure it as an ollama backend$/,
  ],
  [
    'a Lemonade Server',
    {
      'GET /api/v1/models': { object: 'list', data: [{ id: 'Qwen3-0.6B-GGUF', owned_by: 'lemonade', recipe: 'flm' }] },
    },
    /is a Lemonade Server; configure it as a lemonade backend \(HTTP 200\)$/,
  ],
  [
    'an empty Lemonade Server, or any other of the OpenAI kind',
    { 'GET /api/v1/models': { object: 'list', data: [null, { id: 'gpt' }] } },
    /answered with a model list of the OpenAI kind, as a Lemonade Server and others do, not with LM Studio's \(HTTP 200\)$/,
  ],
  [
    'a server without such a path',
    { 'GET /api/v1/models': page, 'GET /api/version': page },
    /has no such endpoint; is this the root address of LM Studio, 0\.4\.0 or newer\?: the text 404 page not found \(HTTP 404\)$/,
  ],
  ['a library with an error', { 'GET /api/v1/models': { models: [], error: 'no' } }, /answered the error "no"/],
  [
    'another document',
    { 'GET /api/v1/models': { status: 'ok' } },
    /but with the document {"status":"ok"} \(HTTP 200\)$/,
  ],
  ['a list that is none', { 'GET /api/v1/models': { models: null } }, /did not answer like LM Studio/],
  [
    'a login page',
    { 'GET /api/v1/models': [200, '<!doctype html><title>Sign in</title>', 'text/html'] },
    /but with a web page titled "Sign in" \(HTTP 200\)$/,
  ],
  ['silence', { 'GET /api/v1/models': [200, '', ''] }, /but with an empty answer \(HTTP 200\)$/],
];

for (const [what, table, words] of odd) {
  test(`${what} is unhealthy, and neither its models nor what it has loaded are shown`, async t => {
    const { driver, endpoint } = await against(t, table);
    const { healthy, message, version } = await driver.describe(callOf());
    assert.equal(healthy, false);
    assert.equal(version, undefined);
    assert.match(message ?? '', words);
    assert.ok(message?.startsWith(`lmstudio: GET /api/v1/models: ${endpoint} `), message);
    for (const read of [driver.models, driver.loaded]) {
      const error = await failure(read(callOf()));
      assert.equal(error.code, 'backend_error');
      assert.equal(error.message, message);
    }
  });
}

test('an address below the root is told from an old version', async t => {
  const { endpoint } = await against(t, {});
  const { message } = await driverAt(`${endpoint}/v1`).describe(callOf());
  assert.match(message ?? '', /LM Studio 0\.4\.0 or newer is needed, at its root address without \/v1$/);
});

test('a dead or hanging server is an unhealthy answer; a caller who left gets none', async t => {
  const dead = await driverAt('http://127.0.0.1:1').describe(callOf());
  assert.equal(dead.healthy, false);
  assert.match(dead.message ?? '', /connection refused at http:\/\/127\.0\.0\.1:1; is LM Studio running there\?/);

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

test('a connection that drops in the middle of the library is no library', async t => {
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
    response.write('{"models":[', () => response.socket?.destroy());
  });
  const error = await soon(failure(driverAt(endpoint).models(callOf())), 'drop');
  assert.match(error.message, /^lmstudio: GET \/api\/v1\/models: the connection to \S+ was lost before/);
});

test('models and loaded models are rows of this backend; what is loaded names the machine as agents dial it', async t => {
  const { driver, requests } = await against(
    t,
    { 'GET /api/v1/models': fixtureJson('models-odd.json') },
    { name: 'lab', agentHost: 'http://box.lan:1234' },
  );
  const models = await driver.models(callOf());
  assert.deepEqual(
    models.map(({ backend, name, downloaded }) => [backend, name, downloaded]),
    ['twice/model', 'mlx/model', 'bare', 'Case/Model', 'case/model', 'emb-v0-spelling', 'nulls', 'qwen3-8b@q8_0'].map(
      name => ['lab', name, true],
    ),
  );
  const loaded = await driver.loaded(callOf());
  assert.deepEqual(
    loaded.map(({ backend, name, node, status, expiresAt }) => [backend, name, node, status, expiresAt]),
    ['twice/model', 'twice/model', 'twice/model', 'bare'].map(name => ['lab', name, 'box.lan', 'loaded', undefined]),
  );
  assert.deepEqual(asked(requests), [['GET /api/v1/models'], ['GET /api/v1/models']]);
});

test('nothing of the caller and nothing of a browser reaches the server', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/v1/models': { models: [] },
    'POST /api/v1/models/load': { instance_id: 'x' },
  });
  const call = callOf({ caller: { name: 'me@example.com', anonymous: false, scope: 'token-of-me' } });
  await driver.load(call, { model: 'x', keepAlive: '5m' });
  const allowed = ['accept', 'connection', 'content-length', 'content-type', 'host', 'user-agent'];
  for (const { headers } of requests) for (const name of Object.keys(headers)) assert.ok(allowed.includes(name), name);
  assert.doesNotMatch(JSON.stringify(requests), /me@example|token-of-me/);
});
