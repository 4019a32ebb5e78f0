import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answer, callOf, failure, serve, soon } from '../scripted.ts';
import { against, asked, driverAt, list, model } from './host.ts';

const done = { status: 'success', model_name: 'X' };
const names = { 'GET /api/v1/models': list('Qwen3-0.6B-GGUF', 'X') };

test('a load looks whether the model is there and then sends its name, pinned when it is to be kept for ever', async t => {
  const { driver, requests } = await against(t, { ...names, 'POST /api/v1/load': done });
  for (const keepAlive of ['5m', '-1', ' -1 ', '-1m', '0', 'soon', ''])
    await driver.load(callOf(), { model: 'X', keepAlive });
  const pinned = { model_name: 'X', pinned: true };
  const plain = { model_name: 'X' };
  const sent = asked(requests);
  assert.deepEqual(
    sent.filter(([what]) => what === 'POST /api/v1/load').map(([, body]) => body),
    [plain, pinned, pinned, plain, plain, plain, plain],
  );
  assert.deepEqual(sent[0], ['GET /api/v1/models', undefined]);
});

test('a load that names no keep-alive takes the default', async t => {
  const { driver, requests } = await against(t, { ...names, 'POST /api/v1/load': done }, { keepAliveDefault: ' -1 ' });
  await driver.load(callOf(), { model: 'X', keepAlive: ' ' });
  await driver.load(callOf(), { model: 'X', keepAlive: '5m' });
  assert.deepEqual(
    requests.filter(({ path }) => path === '/api/v1/load').map(({ body }) => body),
    [{ model_name: 'X', pinned: true }, { model_name: 'X' }],
  );
});

test('a model that is not downloaded is neither loaded, which would download it, nor deleted, which would succeed', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/v1/models': { data: [{ id: 'Not-Yet', downloaded: false }, { id: 'X' }] },
    'POST /api/v1/load': done,
    'POST /api/v1/delete': done,
  });
  for (const name of ['Not-Yet', 'Nope', 'user.X']) {
    for (const call of [
      () => driver.load(callOf(), { model: name, keepAlive: '5m', listed: model(name) }),
      () => driver.remove(callOf(), model(name)),
    ]) {
      const error = await failure(call());
      assert.equal(error.code, 'not_found');
      assert.match(error.message, /^model not found: lemonade: \S+ is not among the downloaded models of http:/);
    }
  }
  assert.ok(requests.every(({ method }) => method === 'GET'));
});

test('a name that differs in case is sent in the spelling of the server, which would not know the other', async t => {
  const { driver, requests } = await against(t, {
    ...names,
    'POST /api/v1/load': done,
    'POST /api/v1/delete': done,
  });
  await driver.load(callOf(), { model: 'qwen3-0.6b-gguf', keepAlive: '5m' });
  await driver.remove(callOf(), model('QWEN3-0.6B-GGUF'));
  assert.deepEqual(
    asked(requests).filter(([, body]) => body !== undefined),
    [
      ['POST /api/v1/load', { model_name: 'Qwen3-0.6B-GGUF' }],
      ['POST /api/v1/delete', { model_name: 'Qwen3-0.6B-GGUF' }],
    ],
  );
});

test('a blank name never reaches the server: it would unload everything', async t => {
  const { driver, requests } = await against(t, {
    ...names,
    'POST /api/v1/load': done,
    'POST /api/v1/unload': done,
    'POST /api/v1/delete': done,
  });
  for (const name of ['', ' ', '\n']) {
    for (const call of [
      () => driver.unload(callOf(), model(name)),
      () => driver.remove(callOf(), model(name)),
      () => driver.load(callOf(), { model: name, keepAlive: '-1' }),
    ]) {
      const error = await failure(call());
      assert.equal(error.code, 'invalid_request');
      assert.equal(error.message, 'invalid request: a model reference is required');
    }
  }
  assert.deepEqual(requests, []);
});

test('unload sends the name, and a model that is not loaded is no error', async t => {
  const { driver, requests } = await against(t, { 'POST /api/v1/unload': done });
  await driver.unload(callOf(), model('X'));
  assert.deepEqual(asked(requests), [['POST /api/v1/unload', { model_name: 'X' }]]);
  for (const body of [
    { error: 'Model not loaded: X' },
    { error: { code: 'model_not_found', message: 'x', type: 'model_not_found' } },
  ])
    await (await against(t, { 'POST /api/v1/unload': [404, body] })).driver.unload(callOf(), model('X'));
});

test('an unload that the server does not know, or that is not done, is not a success', async t => {
  const table: [unknown, RegExp][] = [
    [undefined, /has no such endpoint/],
    [[404, '404 page not found', 'text/plain'], /has no such endpoint/],
    [[404, { detail: 'Not Found' }], /has no such endpoint/],
    [[500, { error: 'boom' }], /^lemonade: boom \(HTTP 500\)$/],
    [{}, /did not answer like Lemonade but with the document {}/],
    [[200, '', ''], /but with an empty answer/],
    [{ error: 'Unexpected endpoint or method. (POST /api/v1/unload)' }, /is LM Studio/],
  ];
  for (const [response, words] of table) {
    const { driver } = await against(t, response === undefined ? {} : { 'POST /api/v1/unload': response });
    const error = await failure(driver.unload(callOf(), model('X')));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, words);
  }
});

test('a 200 that does not say the load is done is not a load', async t => {
  const table: [unknown, RegExp][] = [
    [{ status: 'error', message: 'backend crashed' }, /^lemonade: backend crashed \(HTTP 200\)$/],
    [{ status: 'error' }, /^lemonade: it reports an error without words \(HTTP 200\)$/],
    [{ error: 'quota' }, /did not answer like Lemonade but with the error "quota"/],
    [{ model_name: 'X' }, /with the document/],
    [[200, 'null'], /with the text null/],
    [[200, '<title>Sign in</title>', 'text/html'], /with a web page titled "Sign in"/],
  ];
  for (const [body, words] of table) {
    const { driver } = await against(t, { ...names, 'POST /api/v1/load': body });
    const error = await failure(driver.load(callOf(), { model: 'X', keepAlive: '5m' }));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, words);
  }
});

test('an abort in the middle of a load closes the request', async t => {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, ({ path }, response) => {
    if (path === '/api/v1/models') return answer(response, 200, list('X'));
    response.on('close', closed.resolve);
    arrived.resolve();
  });
  const abort = new AbortController();
  const load = failure(driverAt(endpoint).load(callOf({ signal: abort.signal }), { model: 'X', keepAlive: '-1' }));
  await soon(arrived.promise, 'request');
  abort.abort();
  assert.match((await soon(load, 'load')).message, /^lemonade: POST \/api\/v1\/load: cancelled by the caller$/);
  await soon(closed.promise, 'close');
});

test('a load and its look before have ten minutes, an unload and a delete one, unless the caller has less', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const arrivals: (() => void)[] = [];
  const { endpoint } = await serve(t, ({ path }, response) => {
    if (path === '/api/v1/models') answer(response, 200, list('X'));
    else arrivals.shift()?.();
  });
  const driver = driverAt(endpoint);
  const hanging = async (ms: number, work: () => Promise<unknown>) => {
    const arrived = Promise.withResolvers<void>();
    arrivals.push(arrived.resolve);
    let ended: Error | undefined;
    const end = failure(work()).then(error => {
      ended = error;
    });
    await arrived.promise;
    t.mock.timers.tick(ms - 1);
    await new Promise(setImmediate);
    assert.equal(ended, undefined);
    t.mock.timers.tick(1);
    await end;
    return ended as Error | undefined;
  };
  const load = await hanging(600_000, () => driver.load(callOf(), { model: 'X', keepAlive: '5m' }));
  assert.match(load?.message ?? '', /^lemonade: POST \/api\/v1\/load: no answer from http:\S+ within 600 s$/);
  const unload = await hanging(60_000, () => driver.unload(callOf(), model('X')));
  assert.match(unload?.message ?? '', /^lemonade: POST \/api\/v1\/unload: no answer from http:\S+ within 60 s$/);
  const remove = await hanging(60_000, () => driver.remove(callOf(), model('X')));
  assert.match(remove?.message ?? '', /within 60 s$/);
});
