import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError, modelNotFound } from '../../src/errors.ts';
import { startFaces } from '../support/faces.ts';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { refusalOf } from '../support/rest.ts';
import { qwenResult, servingDriver } from '../support/serving.ts';

const noBackend =
  'no_backend: no backend registered: register one with add_backend (kind ollama|lmstudio|lemonade|kserve) or configure --backends';
const unsupported = (what: string) => `unsupported: operation not supported: ${what}`;
const invalid = (what: string) => `invalid_request: invalid request: ${what}`;

/** What asks for presets, a search and a fit check, and how their lack is called. */
const questions = [
  ['listPresets', {}, 'presets'],
  ['searchModels', { query: 'qwen3' }, 'search'],
  ['fitCheck', { model: 'Qwen/Qwen3-14B-AWQ' }, 'fit check'],
  ['explainFit', { model: 'Qwen/Qwen3-14B-AWQ' }, 'fit check'],
] as const;

test('without a backend the question is refused, also when it names one', async () => {
  await using faces = await startFaces({ drivers: [] });
  for (const [name, asks] of questions) {
    assert.equal(await faces.refusal(name, asks), noBackend);
    assert.equal(await faces.refusal(name, { ...asks, backend: 'kserve' }), noBackend);
  }
});

test('an unknown backend is refused, then one that cannot', async () => {
  for (const drivers of [[fakeDriver()], [fakeDriver(), fakeDriver({ name: 'lemonade' })]]) {
    await using faces = await startFaces({ drivers });
    const names = drivers.map(({ name }) => name).join(', ');
    for (const [name, asks, lack] of questions) {
      const unknown = invalid(`unknown backend "kserve" (configured: ${names})`);
      assert.equal(await faces.refusal(name, { ...asks, backend: 'kserve' }), unknown);
      assert.equal(await faces.refusal(name, asks), unsupported(lack));
      assert.equal(await faces.refusal(name, { ...asks, backend: ' ollama ' }), unsupported(lack));
    }
  }
});

test('a backend that can is asked, the others are not mentioned', async () => {
  const kserve = servingDriver();
  await using faces = await startFaces({ drivers: [fakeDriver(), kserve] });
  const { send } = faces.rest;
  assert.deepEqual(Object.keys((await send('GET presets')).json), ['presets']);
  assert.deepEqual(Object.keys((await send('GET search?q=qwen3')).json), ['query', 'results']);
  assert.equal((await send('POST models/fit-check', { preset: 'qwen3-14b' })).json.backend, 'kserve');
  assert.deepEqual(kserve.asked, ['presets', 'search qwen3', 'checkFit qwen3-14b']);
  for (const [name, asks, lack] of questions) {
    assert.equal(await faces.refusal(name, { ...asks, backend: 'ollama' }), unsupported(lack));
  }
});

test('a search is checked in order: limit, backend, capability, query', async () => {
  await using faces = await startFaces({ drivers: [fakeDriver(), servingDriver()] });
  const { send } = faces.rest;
  const table: Record<string, string> = {
    'limit=abc&backend=x': '400 invalid_request: invalid request: limit must be a non-negative integer',
    'limit=-1&q=a': '400 invalid_request: invalid request: limit must be a non-negative integer',
    'limit=1.5&q=a': '400 invalid_request: invalid request: limit must be a non-negative integer',
    'backend=x': '400 invalid_request: invalid request: unknown backend "x" (configured: ollama, kserve)',
    'backend=ollama': '501 unsupported: operation not supported: search',
    '': '400 invalid_request: invalid request: query is required',
    'q=': '400 invalid_request: invalid request: query is required',
    'q=%20%09&backend=kserve': '400 invalid_request: invalid request: query is required',
  };
  for (const [query, refusal] of Object.entries(table)) {
    assert.equal(refusalOf(await send(`GET search?${query}`)), refusal, query);
  }
  assert.equal(await faces.refusal('searchModels', { query: '  ' }), invalid('query is required'));
  assert.equal(await faces.toolRefusal('search_models'), 'backend_error: required argument "query" not found');
  assert.equal(
    await faces.toolRefusal('search_models', { query: 5 }),
    'backend_error: argument "query" is not a string',
  );
});

test('a limit that is none, too small or too large gives the usual number', async () => {
  const kserve = servingDriver();
  kserve.world.hub = Array.from({ length: 60 }, (_, index) => ({
    ...qwenResult,
    id: `a/${index}`,
    downloads: 60 - index,
  }));
  const gateway = testGateway({ drivers: [kserve] });
  await using faces = await startFaces({ drivers: [kserve] });
  const found = async (limit: string) => (await faces.rest.send(`GET search?q=a${limit}`)).json.results.length;
  const table: Record<string, number> = {
    '': 20,
    '&limit=0': 20,
    '&limit=1': 1,
    '&limit=50': 50,
    '&limit=51': 20,
    '&limit=99999999999': 20,
  };
  for (const [limit, expected] of Object.entries(table)) assert.equal(await found(limit), expected, limit);
  for (const limit of [-3, 0, 51, null]) {
    const { data } = await askGraph(
      gateway,
      'query ($limit: Int) { searchModels(query: "a", limit: $limit) { items { reference } } }',
      { limit },
    );
    assert.equal(data.searchModels.items.length, 20, `${limit}`);
  }
});

test('several hubs are searched at the same time, most downloads first, and one that fails is named', async () => {
  const first = servingDriver();
  const second = servingDriver({ name: 'kserve-east' });
  second.world.hub = [
    { ...qwenResult, backend: 'kserve-east', id: 'a/more', downloads: 300_000 },
    { ...qwenResult, backend: 'kserve-east', id: 'a/unknown', downloads: undefined },
  ];
  await using faces = await startFaces({ drivers: [first, second] });
  const { send } = faces.rest;
  const ids = ({ json }: Awaited<ReturnType<typeof send>>) => json.results.map(({ id }: { id: string }) => id);
  assert.deepEqual(ids(await send('GET search?q=a')), ['a/more', 'Qwen/Qwen3-14B-AWQ', 'a/unknown']);
  assert.deepEqual(ids(await send('GET search?q=a&limit=2')), ['a/more', 'Qwen/Qwen3-14B-AWQ']);

  const down = async (): Promise<never> => {
    throw backendError('hub: GET /api/models: connection refused');
  };
  second.script.search = down;
  const partial = await send('GET search?q=%20a%20');
  assert.deepEqual(partial.json.errors, { 'kserve-east': 'hub: GET /api/models: connection refused' });
  assert.equal(partial.json.query, ' a ');
  assert.deepEqual(ids(partial), ['Qwen/Qwen3-14B-AWQ']);
  const alone = '502 backend_error: hub: GET /api/models: connection refused';
  assert.equal(refusalOf(await send('GET search?q=a&backend=kserve-east')), alone);
  first.script.search = async () => {
    throw modelNotFound('no hub');
  };
  assert.equal(
    await faces.refusal('searchModels', { query: 'a' }),
    'not_found: every backend failed: kserve: model not found: no hub; kserve-east: hub: GET /api/models: connection refused',
  );
});

test('a hub that hangs costs its own results, and hears that nobody waits any more', { timeout: 10_000 }, async () => {
  const slow = servingDriver({ name: 'slow' });
  const hanging = hang();
  slow.script.search = hanging.answer;
  await using faces = await startFaces({ drivers: [slow, servingDriver()] });
  const { json } = await faces.rest.send('GET search?q=a');
  assert.deepEqual(json.errors, { slow: 'slow has not answered within 2 s of the others' });
  assert.equal(json.results.length, 1);
  await hanging.aborted;
});

test('a fault of a driver is masked in a partial answer', async () => {
  const broken = servingDriver({ name: 'broken' });
  broken.script.search = async () => {
    throw new TypeError('secret of the house');
  };
  await using faces = await startFaces({ drivers: [broken, servingDriver()] });
  const { json } = await faces.rest.send('GET search?q=a', undefined, { 'x-request-id': 'abc' });
  assert.deepEqual(json.errors, { broken: 'unexpected error; the log has it under request abc' });
  assert.match(faces.rest.server.logged.join(), /secret of the house/);
});

test('a fit check is checked in order: backend, capability, several, what it is about', async () => {
  const drivers = [fakeDriver(), servingDriver(), servingDriver({ name: 'kserve-east' })];
  await using faces = await startFaces({ drivers });
  const several = 'conflict: conflict: several backends offer fit checks (kserve, kserve-east); name the backend';
  assert.equal(await faces.refusal('fitCheck', { preset: 'qwen3-14b' }), several);
  const { toolRefusal } = faces;
  assert.equal(await toolRefusal('check_fit'), several);
  assert.equal(await toolRefusal('check_fit', { backend: 'ollama' }), unsupported('fit check'));
  assert.equal(
    await toolRefusal('check_fit', { backend: 'x' }),
    invalid('unknown backend "x" (configured: ollama, kserve, kserve-east)'),
  );
  for (const args of [{}, { model: '', preset: '  ' }, { node: 'gpu-1' }, { model: 5 }]) {
    assert.equal(
      await toolRefusal('check_fit', { backend: 'kserve', ...args }),
      invalid('model or preset is required'),
    );
  }
  // A body is checked before anything it says.
  const refusal = refusalOf(await faces.rest.send('POST models/fit-check', { backend: 'x', node: 'gpu-1' }));
  assert.equal(refusal, '400 invalid_request: invalid request: "model" is required');
  assert.equal(
    await faces.refusal('fitCheck', { model: '../x' }),
    invalid('"model" is "../x", it must have no ".." in its path'),
  );
});

test('a fit check hands over what it was given, trimmed, and passes on what the backend says', async () => {
  const kserve = servingDriver();
  const requests: unknown[] = [];
  kserve.script.checkFit = async (_call, request) => {
    requests.push(request);
    throw modelNotFound('Qwen/Nope is not on the hub, and no preset serves it');
  };
  await using faces = await startFaces({ drivers: [kserve] });
  assert.equal(
    await faces.refusal('fitCheck', { model: ' Qwen/Nope ', preset: ' ', node: ' gpu-1 ' }),
    'not_found: model not found: Qwen/Nope is not on the hub, and no preset serves it',
  );
  assert.deepEqual(requests, Array(3).fill({ model: 'Qwen/Nope', preset: undefined, node: 'gpu-1' }));
});

test('presets are a list like the others: pages, one backend, its edges', async () => {
  const [first, second] = [
    servingDriver(),
    servingDriver({ name: 'kserve-east', models: [{ name: 'm', preset: 'qwen3-14b' }, 'other'] }),
  ];
  const gateway = testGateway({ drivers: [fakeDriver(), first, second] });
  const { data } = await askGraph(
    gateway,
    '{ presets(first: 1) { totalCount items { id name backend { name } } pageInfo { endCursor hasNextPage } } }',
  );
  assert.equal(data.presets.totalCount, 2);
  assert.deepEqual(data.presets.items[0].backend, { name: 'kserve' });
  const rest = await askGraph(
    gateway,
    'query ($after: ID) { presets(after: $after) { items { backendName models { name } } } }',
    { after: data.presets.pageInfo.endCursor },
  );
  assert.deepEqual(rest.data.presets.items, [{ backendName: 'kserve-east', models: [{ name: 'm' }] }]);
  const edges = await askGraph(gateway, '{ backends { items { name presets { name } } } }');
  assert.deepEqual(
    edges.data.backends.items.map(({ presets }: { presets: unknown[] }) => presets.length),
    [0, 1, 1],
  );
  first.script.presets = async () => {
    throw backendError('kserve: forbidden');
  };
  for (const backend of gateway.registry.backends) backend.changed();
  const partial = await askGraph(gateway, '{ presets { items { backendName } errors { backend code message } } }');
  assert.deepEqual(partial.data.presets, {
    items: [{ backendName: 'kserve-east' }],
    errors: [{ backend: 'kserve', code: 'backend_error', message: 'kserve: forbidden' }],
  });
});
