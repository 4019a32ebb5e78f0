import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createTurns } from '../../../src/live/turns.ts';
import { answer, callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, asked, driverAt, entry, model } from './host.ts';

const look = ['GET /api/v1/models'];

test('load and unload send what the recorded pairs hold', async t => {
  const { pairs } = fixtureJson('load-unload.json');
  let instances: string[] = [];
  const { endpoint, requests } = await serve(t, ({ method, path, body }, response) => {
    if (method === 'GET') return answer(response, 200, { models: [entry('ibm/granite-4-micro', ...instances)] });
    const pair = pairs.find((each: { request: object }) => isDeepStrictEqual(each.request, { method, path, body }));
    if (pair) answer(response, pair.response.status, pair.response.body);
    else answer(response, 500, { error: `not recorded: ${method} ${path} ${JSON.stringify(body)}` });
  });
  const driver = driverAt(endpoint);
  await driver.load(callOf(), { model: 'ibm/granite-4-micro', keepAlive: '-1' });
  instances = ['ibm/granite-4-micro:2', 'gone'];
  await driver.unload(callOf(), model('ibm/granite-4-micro'));
  assert.deepEqual(asked(requests), [
    look,
    ['POST /api/v1/models/load', { model: 'ibm/granite-4-micro' }],
    look,
    ['POST /api/v1/models/unload', { instance_id: 'ibm/granite-4-micro:2' }],
    ['POST /api/v1/models/unload', { instance_id: 'gone' }],
  ]);
});

test('a model that is loaded, under whatever instance name, is not loaded again', async t => {
  for (const id of ['x', 'x:2', 'my own name', '']) {
    const { driver, requests } = await against(t, { 'GET /api/v1/models': { models: [entry('x', id)] } });
    await driver.load(callOf(), { model: 'x', keepAlive: '5m' });
    assert.deepEqual(asked(requests), [look]);
  }
});

test('without the library nothing is loaded, because there may be a copy', async t => {
  const { driver, requests } = await against(t, { 'GET /api/v1/models': [500, { error: 'boom' }] });
  assert.match((await failure(driver.load(callOf(), { model: 'x', keepAlive: '5m' }))).message, /boom/);
  assert.deepEqual(asked(requests), [look]);
});

test('every instance of a model is unloaded by its own name, one without a name by the key; others stay', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/v1/models': { models: [...fixtureJson('models-odd.json').models, entry('twice/model', 'elsewhere')] },
    'POST /api/v1/models/unload': ({ body }: { body: unknown }) => body,
  });
  await driver.unload(callOf(), model('twice/model'));
  await driver.unload(callOf(), model('bare'));
  await driver.unload(callOf(), model('mlx/model'));
  await driver.unload(callOf(), model('not-in-the-library'));
  const unload = (id: string) => ['POST /api/v1/models/unload', { instance_id: id }];
  assert.deepEqual(asked(requests), [
    look,
    ...['twice/model', 'twice/model:2', 'my own name', 'elsewhere'].map(unload),
    look,
    unload('bare'),
    look,
    look,
  ]);
});

test('an instance that has just left is what was wanted; another refusal is a failure', async t => {
  const gone = "Model with instance identifier 'x' is not loaded.";
  const table: [unknown, string | undefined][] = [
    [[404, { error: { type: 'model_not_found', message: gone } }], undefined],
    [[400, { error: { type: 'invalid_request', message: gone } }], undefined],
    [[404, { error: gone }], undefined],
    [[500, { error: { type: 'unknown', message: gone } }], 'backend_error'],
    [[404, '404 page not found', 'text/plain'], 'backend_error'],
    [{ error: { type: 'model_not_found', message: gone } }, 'backend_error'],
    [[404, { error: 'no' }], 'not_found'],
    [{ status: 'unloaded' }, 'backend_error'],
  ];
  for (const [response, code] of table) {
    const { driver } = await against(t, {
      'GET /api/v1/models': { models: [entry('x', 'x')] },
      'POST /api/v1/models/unload': response,
    });
    const unload = driver.unload(callOf(), model('x'));
    if (code === undefined) await unload;
    else assert.equal((await failure(unload)).code, code, JSON.stringify(response));
  }
});

test('a load that does not name its instance is none', async t => {
  for (const body of [
    {},
    { status: 'loaded' },
    { instance_id: '' },
    [200, 'null'],
    [200, '', ''],
    [200, '<p>', 'text/html'],
  ]) {
    const { driver } = await against(t, { 'GET /api/v1/models': { models: [] }, 'POST /api/v1/models/load': body });
    const error = await failure(driver.load(callOf(), { model: 'x', keepAlive: '5m' }));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, /^lmstudio: POST \/api\/v1\/models\/load: \S+ did not answer like LM Studio but with/);
  }
});

test('loads of one model wait for each other, so that there is one copy; another model does not wait', async t => {
  const loaded = new Set<string>();
  const loading = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const { endpoint, requests } = await serve(t, async ({ method, body }, response) => {
    if (method === 'GET')
      return answer(response, 200, { models: ['x', 'y'].map(key => entry(key, ...(loaded.has(key) ? [key] : []))) });
    const { model: key } = body as { model: string };
    if (key === 'x') {
      loading.resolve();
      await finish.promise;
    }
    loaded.add(key);
    answer(response, 200, { instance_id: key, status: 'loaded' });
  });
  const driver = driverAt(endpoint);
  const abort = new AbortController();
  const first = driver.load(callOf(), { model: 'x', keepAlive: '5m' });
  await soon(loading.promise, 'the first load');
  const leaving = failure(driver.load(callOf({ signal: abort.signal }), { model: 'x', keepAlive: '10m' }));
  const late = failure(driver.load(callOf({ timeoutMs: 20 }), { model: 'x', keepAlive: '10m' }));
  const third = driver.load(callOf(), { model: 'x', keepAlive: '-1' });
  await soon(driver.load(callOf(), { model: 'y', keepAlive: '5m' }), 'another model');
  abort.abort();
  assert.equal((await soon(leaving, 'the one who left')).message, 'lmstudio: load of x: cancelled by the caller');
  assert.equal(
    (await soon(late, 'the late one')).message,
    "lmstudio: load of x: not done before the request's deadline",
  );
  finish.resolve();
  await soon(Promise.all([first, third]), 'both loads');
  assert.deepEqual(
    requests.filter(({ method }) => method === 'POST').map(({ body }) => body),
    [{ model: 'x' }, { model: 'y' }],
  );
});

test('a failed load does not keep the next one from trying', async t => {
  let status = 500;
  const { driver } = await against(t, {
    'GET /api/v1/models': { models: [] },
    'POST /api/v1/models/load': () => [status, status === 500 ? { error: 'no memory' } : { instance_id: 'x' }],
  });
  assert.match((await failure(driver.load(callOf(), { model: 'x', keepAlive: '5m' }))).message, /no memory/);
  status = 200;
  await driver.load(callOf(), { model: 'x', keepAlive: '5m' });
});

test('who leaves the queue lets nobody overtake', async () => {
  const inTurn = createTurns();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const never = new AbortController().signal;
  const abort = new AbortController();
  const turns = [
    inTurn('x', never, async () => {
      await first.promise;
      order.push('first');
    }),
    inTurn('x', abort.signal, async () => order.push('left')),
    inTurn('x', never, async () => order.push('third')),
    inTurn('y', never, async () => order.push('other')),
  ];
  abort.abort();
  await assert.rejects(turns[1] as Promise<unknown>);
  await turns[3];
  first.resolve();
  await Promise.all([turns[0], turns[2]]);
  assert.deepEqual(order, ['other', 'first', 'third']);
});

test('an abort in the middle of a load closes the request', async t => {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, ({ method }, response) => {
    if (method === 'GET') return answer(response, 200, { models: [] });
    response.on('close', closed.resolve);
    arrived.resolve();
  });
  const abort = new AbortController();
  const load = failure(driverAt(endpoint).load(callOf({ signal: abort.signal }), { model: 'x', keepAlive: '-1' }));
  await soon(arrived.promise, 'request');
  abort.abort();
  assert.match((await soon(load, 'load')).message, /^lmstudio: POST \/api\/v1\/models\/load: cancelled by the caller$/);
  await soon(closed.promise, 'close');
});

test('a load is given ten minutes, and no longer', async t => {
  const loading = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, ({ method }, response) => {
    if (method === 'GET') answer(response, 200, { models: [] });
    else loading.resolve();
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const load = failure(driverAt(endpoint).load(callOf(), { model: 'x', keepAlive: '-1' }));
  await loading.promise;
  let ended = false;
  load.then(() => {
    ended = true;
  });
  t.mock.timers.tick(599_000);
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(ended, false);
  t.mock.timers.tick(1_001);
  assert.match((await load).message, /^lmstudio: POST \/api\/v1\/models\/load: no answer from \S+ within 600 s$/);
});
