import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError, invalidRequest } from '../../src/errors.ts';
import { startEmulated } from '../support/emulated.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { type RestServer, refusalOf, serveRest } from '../support/rest.ts';

/** Every call that is about some backend, as a line and a body. */
const backendScoped: readonly (readonly [line: string, body?: object])[] = [
  ['GET backend'],
  ['GET models'],
  ['GET models/a:1b'],
  ['DELETE models/a:1b'],
  ['GET loaded'],
  ['GET nodes'],
  ['POST models/pull', { model: 'a:1b' }],
  ['POST models/load', { model: 'a:1b' }],
  ['POST models/unload', { model: 'a:1b' }],
  ['POST models/wire', { model: 'a:1b' }],
  ['POST models/unwire', { model: 'a:1b' }],
  ['POST models/fit-check', { model: 'a:1b' }],
  ['GET presets'],
  ['GET search?q=a'],
];

/** The same call to a named backend. */
const named = ([line, body]: (typeof backendScoped)[number], backend: string) =>
  body
    ? ([line, { ...body, backend }] as const)
    : ([`${line}${line.includes('?') ? '&' : '?'}backend=${encodeURIComponent(backend)}`] as const);

const serve = (...drivers: Parameters<typeof fakeDriver>[0][]) =>
  serveRest({ gateway: testGateway({ drivers: drivers.map(fakeDriver) }) });

async function refuses({ send }: RestServer, line: string, body: unknown, refusal: string) {
  const answer = await send(line, body);
  assert.equal(refusalOf(answer), refusal, `${line} ${JSON.stringify(body)}`);
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.text, `${JSON.stringify(answer.json, null, 2)}\n`);
  assert.deepEqual(Object.keys(answer.json), ['error']);
  assert.deepEqual(Object.keys(answer.json.error), ['code', 'message']);
}

test('without a backend every call about one is refused, also when it names one', async () => {
  await using server = await serve();
  const refusal =
    '412 no_backend: no backend registered: register one with add_backend ' +
    '(kind ollama|lmstudio|lemonade|kserve) or configure --backends';
  for (const call of backendScoped) {
    await refuses(server, call[0], call[1], refusal);
    const [line, body] = named(call, 'ollama');
    await refuses(server, line, body, refusal);
  }
  await refuses(server, 'GET jobs?backend=ollama', undefined, refusal);
  // These are about no backend.
  await refuses(server, 'GET jobs/0123456789abcdef', undefined, '404 not_found: job not found: 0123456789abcdef');
  await refuses(server, 'DELETE jobs/0123456789abcdef', undefined, '404 not_found: job not found: 0123456789abcdef');
  for (const line of ['GET backends', 'GET jobs', 'GET jobs?backend=', 'GET openapi.yaml', 'GET /backendz']) {
    assert.equal((await server.send(line)).status, 200, line);
  }
});

test('an unknown backend is refused before anything else, with the names there are, in order', async () => {
  await using server = await serve(
    { name: 'ollama', models: ['a:1b'] },
    { name: 'kserve' },
    { name: 'lemonade', capabilities: { pull: false, load: false, loadedModels: false, nodeInventory: false } },
  );
  const names = '(configured: ollama, kserve, lemonade)';
  for (const call of [...backendScoped, ['GET jobs'] as const]) {
    const [line, body] = named(call, 'x');
    await refuses(server, line, body, `400 invalid_request: invalid request: unknown backend "x" ${names}`);
  }
  // Names are matched as they are, but for white space around them.
  const [line, body] = named(['GET models'], ' OLLAMA ');
  await refuses(server, line, body, `400 invalid_request: invalid request: unknown backend "OLLAMA" ${names}`);
  await refuses(
    server,
    'POST models/pull',
    { model: 'a:1b', backend: 'x', wire: true },
    `400 invalid_request: invalid request: unknown backend "x" ${names}`,
  );
});

test('what a backend cannot do is refused in the words that clients know', async () => {
  const capabilities = {
    pull: false,
    load: false,
    unload: false,
    delete: false,
    loadedModels: false,
    nodeInventory: false,
  };
  await using server = await serve({ name: 'lmstudio', models: ['a:1b'], capabilities });
  const unsupported = (what: string) => `501 unsupported: operation not supported: ${what}`;
  await refuses(server, 'POST models/pull', { model: 'a:1b' }, unsupported('pull on lmstudio'));
  await refuses(server, 'POST models/load', { model: 'a:1b' }, unsupported('load on lmstudio'));
  await refuses(server, 'POST models/unload', { model: 'a:1b' }, unsupported('unload on lmstudio'));
  await refuses(server, 'DELETE models/a:1b', undefined, unsupported('delete on lmstudio'));
  await refuses(server, 'GET loaded', undefined, unsupported('listing loaded models'));
  await refuses(server, 'GET nodes?backend=lmstudio', undefined, unsupported('node inventory'));
  await refuses(server, 'GET presets', undefined, unsupported('presets'));
  await refuses(server, 'GET search?q=', undefined, unsupported('search'));
  await refuses(server, 'POST models/fit-check', { preset: 'p' }, unsupported('fit check'));
  const disabled = unsupported('agent wiring is disabled (no Kubernetes access)');
  await refuses(server, 'POST models/wire', { model: 'nope', apiKeyPassthrough: true, apiKeySecret: 's' }, disabled);
  await refuses(server, 'POST models/unwire', { model: 'nope' }, disabled);
});

test('a pull is checked in order: body, backend, capability, reference, wiring', async () => {
  await using server = await serve({ name: 'ollama' }, { name: 'lmstudio', capabilities: { pull: false } });
  const cases: readonly [body: unknown, refusal: string][] = [
    [{ model: 5, backend: 'x' }, '400 invalid_request: invalid request: invalid JSON: "model" must be a string, got 5'],
    [
      { model: 'a', backend: 'x', wire: true },
      '400 invalid_request: invalid request: unknown backend "x" (configured: ollama, lmstudio)',
    ],
    [{ model: 'a', backend: 'lmstudio', wire: true }, '501 unsupported: operation not supported: pull on lmstudio'],
    [{ model: ' ', wire: true }, '400 invalid_request: invalid request: "model" is required'],
    [
      { model: 'a', wire: true },
      '501 unsupported: operation not supported: agent wiring is disabled (no Kubernetes access)',
    ],
  ];
  for (const [body, refusal] of cases) await refuses(server, 'POST models/pull', body, refusal);
  assert.equal((await server.send('GET jobs')).json.jobs.length, 0, 'a refusal leaves no job');
  assert.equal((await server.send('POST models/pull', { model: 'a', wire: false })).status, 202);
});

test('a named backend is asked whether it can load before it is asked for the model', async () => {
  await using server = await serve({ name: 'ollama' }, { name: 'x', models: ['a:1b'], capabilities: { load: false } });
  const cases: readonly [body: unknown, refusal: string][] = [
    [{ model: 'nope', backend: 'x' }, '501 unsupported: operation not supported: load on x'],
    [{ model: 'nope', backend: 'ollama' }, '404 not_found: model not found: nope is not on ollama'],
    [{ model: 'nope' }, '404 not_found: model not found: nope is on none of the backends (ollama, x)'],
    // Where none is named the model decides.
    [{ model: 'a:1b' }, '501 unsupported: operation not supported: load on x'],
    [{ preset: 'nope' }, '404 not_found: model not found: nope is on none of the backends (ollama, x)'],
  ];
  for (const [body, refusal] of cases) await refuses(server, 'POST models/load', body, refusal);
});

test('unloading and deleting find the model first, then ask whether the backend can', async () => {
  const capabilities = { unload: false, delete: false };
  await using server = await serve({ name: 'ollama' }, { name: 'x', models: ['a:1b'], capabilities });
  const missing = '404 not_found: model not found: nope is not on x';
  await refuses(server, 'POST models/unload', { model: 'nope', backend: 'x' }, missing);
  await refuses(server, 'DELETE models/nope?backend=x', undefined, missing);
  const unsupported = '501 unsupported: operation not supported';
  await refuses(server, 'POST models/unload', { model: 'a:1b', backend: 'x' }, `${unsupported}: unload on x`);
  await refuses(server, 'DELETE models/a:1b?unwire=false', undefined, `${unsupported}: delete on x`);
});

test('a reference is refused when it is empty, missing, or no reference', async () => {
  await using server = await serve({ models: ['a:1b'] });
  const invalid = '400 invalid_request: invalid request:';
  await refuses(server, 'GET models/', undefined, `${invalid} a model reference is required`);
  await refuses(server, 'DELETE models/', undefined, `${invalid} a model reference is required`);
  await refuses(server, 'GET models/%20', undefined, `${invalid} "model" is required`);
  await refuses(server, 'GET models/pull', undefined, '404 not_found: model not found: pull is not on ollama');
  await refuses(server, 'DELETE models/load', undefined, '404 not_found: model not found: load is not on ollama');
  await refuses(server, 'GET jobs/%20', undefined, '404 not_found: job not found:  ');
});

test('a backend that fails is quoted, with the status of what it said', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  driver.script.unload = async () => {
    throw backendError('ollama: out of order (HTTP 500)');
  };
  await refuses(server, 'POST models/unload', { model: 'a:1b' }, '502 backend_error: ollama: out of order (HTTP 500)');
  driver.script.remove = async () => {
    throw invalidRequest('ollama: invalid model name (HTTP 400)');
  };
  await refuses(
    server,
    'DELETE models/a:1b',
    undefined,
    '400 invalid_request: invalid request: ollama: invalid model name (HTTP 400)',
  );
  driver.script.load = async () => {
    throw new TypeError('cannot read properties of undefined');
  };
  const masked = await server.send('POST models/load', { model: 'a:1b' }, { 'x-request-id': 'abc' });
  assert.equal(refusalOf(masked), '500 internal_error: unexpected error; the log has it under request abc');
});

test('failures of 500 and above are logged, refusals are not', async () => {
  const driver = fakeDriver();
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const logged = () => server.server.logged.map(line => JSON.parse(line)).filter(({ level }) => level >= 40);
  await server.send('GET models/nope');
  await server.send('GET models/');
  assert.deepEqual(logged(), []);
  driver.script.nodes = async () => {
    throw backendError('ollama: no machine');
  };
  await server.send('GET nodes', undefined, { 'x-request-id': 'abc' });
  const [line, ...others] = logged();
  assert.deepEqual(
    [line.status, line.code, line.error, line.requestId],
    [502, 'backend_error', 'ollama: no machine', 'abc'],
  );
  assert.deepEqual(others, []);
});

test('the emulated server refuses in its own words', async () => {
  await using world = await startEmulated({
    models: [{ name: 'a:1b' }, { name: 'bad:1b', loadError: 'CUDA error: out of memory' }],
  });
  await using server = await serveRest({ gateway: world.gateway });
  await refuses(
    server,
    'POST models/load',
    { model: 'bad:1b' },
    '502 backend_error: ollama: CUDA error: out of memory (HTTP 500)',
  );
  world.ollama.fault({
    kind: 'answer',
    path: '/api/delete',
    status: 404,
    body: '{"error":"model \'a:1b\' not found"}',
  });
  await refuses(
    server,
    'DELETE models/a:1b',
    undefined,
    "404 not_found: model not found: ollama: model 'a:1b' not found (HTTP 404)",
  );
  await world.ollama.stop();
  for (const backend of world.gateway.registry.backends) backend.changed();
  const end = `: connection refused at ${world.ollama.url}; is Ollama running there?`;
  for (const line of ['GET models', 'GET models/a:1b', 'GET loaded', 'GET nodes']) {
    const refusal = refusalOf(await server.send(line));
    assert.match(refusal, /^502 backend_error: ollama: GET \/api\/\w+: /, line);
    assert.ok(refusal.endsWith(end), refusal);
  }
});
