import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { type Actions, loadModel } from '../../src/backends/actions.ts';
import { backendError } from '../../src/errors.ts';
import { callOf, registryOf } from '../support/backends.ts';
import { startEmulated } from '../support/emulated.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { refusalOf, serveRest } from '../support/rest.ts';
import { eventually, turn, within } from '../support/server.ts';

const inTime = { timeout: 10_000 };

/** A backend whose loads end when the test says so, and what was asked of it. */
function gated() {
  const driver = fakeDriver({ models: ['a:1b', 'b:1b'] });
  const loads: { model: string; keepAlive: string; signal: AbortSignal; end: PromiseWithResolvers<void> }[] = [];
  driver.script.load = ({ signal }, { model, keepAlive }) => {
    const end = Promise.withResolvers<void>();
    loads.push({ model, keepAlive, signal, end });
    return end.promise.then(() => {
      driver.world.loaded = [...driver.world.loaded, { backend: 'ollama', name: model }];
    });
  };
  const actions: Actions = { ...testGateway(), registry: registryOf([driver]) };
  const load = (model: string, { call = callOf(), keepAlive = '' } = {}) =>
    loadModel(actions, call, { model, keepAlive });
  return { driver, loads, load, begun: (count: number) => eventually(() => loads.length === count, `${count} loads`) };
}

test('equal requests share one load, others have their own', inTime, async () => {
  const { loads, load, begun } = gated();
  const first = [load('a:1b', { keepAlive: '5m' }), load(' a:1b '), load('a:1b', { keepAlive: '  ' })];
  await begun(1);
  const other = [load('a:1b', { keepAlive: '10m' }), load('b:1b')];
  await begun(3);
  assert.deepEqual(
    loads.map(({ model, keepAlive }) => `${model} ${keepAlive}`),
    ['a:1b 5m', 'a:1b 10m', 'b:1b 5m'],
  );
  for (const { end } of loads) end.resolve();
  for (const { model } of await Promise.all([...first, ...other])) assert.ok(model.running, model.name);

  const again = load('a:1b');
  await begun(4);
  loads[3]?.end.resolve();
  await again;
});

test('a load that fails fails for all who wait, and the next one tries again', inTime, async () => {
  const { loads, load, begun } = gated();
  const waiting = [load('a:1b'), load('a:1b'), load('a:1b')];
  await begun(1);
  loads[0]?.end.reject(backendError('ollama: CUDA error (HTTP 500)'));
  for (const each of waiting) await assert.rejects(each, { message: 'ollama: CUDA error (HTTP 500)' });
  const again = load('a:1b');
  await begun(2);
  loads[1]?.end.resolve();
  assert.ok((await again).model.running);
});

test('a load goes on when those who asked leave, and fails without harm when all have left', inTime, async () => {
  const { loads, load, begun } = gated();
  const leaving = new AbortController();
  const left = load('a:1b', { call: callOf({ signal: leaving.signal }) });
  const staying = load('a:1b');
  await begun(1);
  leaving.abort();
  await assert.rejects(left, { name: 'AbortError' });
  assert.equal(loads[0]?.signal.aborted, false);
  loads[0]?.end.resolve();
  assert.ok((await staying).model.running);

  // Gone before the load even began.
  const gone = load('b:1b', { call: callOf({ signal: AbortSignal.abort() }) });
  await assert.rejects(gone, { name: 'AbortError' });
  if (loads[1]) loads[1].end.reject(backendError('too late'));
});

test('when the answer is due before the load ends, it shows the model as it is', inTime, async () => {
  const { driver, loads, load } = gated();
  const { model } = await load('a:1b', { call: callOf({ timeoutMs: 30 }) });
  assert.equal(model.name, 'a:1b');
  assert.equal(model.running, undefined);
  assert.equal(loads[0]?.signal.aborted, false, 'it goes on');
  // Asking again is waiting on.
  const waiting = load('a:1b');
  await turn();
  loads[0]?.end.resolve();
  assert.ok((await waiting).model.running);
  assert.equal(loads.length, 1);
  assert.equal(driver.asked.filter(what => what === 'load a:1b').length, 1);
});

test('when the model cannot be read after the load, it is answered as it was found', inTime, async () => {
  const { driver, loads, load, begun } = gated();
  const loading = load('a:1b');
  await begun(1);
  driver.script.models = async (): Promise<never> => {
    throw backendError('ollama: HTTP 500');
  };
  loads[0]?.end.resolve();
  assert.equal((await loading).model.name, 'a:1b');
});

test('a client of REST that hangs up leaves the load alone', inTime, async () => {
  const { driver, loads } = gated();
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const client = request(`${server.url}/api/v1/models/load`, { method: 'POST', agent: false });
  client.on('error', () => {});
  client.end('{"model":"a:1b"}');
  await eventually(() => loads.length === 1, 'the load');
  client.destroy();
  await eventually(() => !client.socket || client.socket.destroyed, 'the end of the connection');
  assert.equal((await server.send('GET models/a:1b')).json.loaded, false);
  assert.equal(loads[0]?.signal.aborted, false);
  loads[0]?.end.resolve();
  await eventually(() => server.server.logged.length >= 0 && driver.world.loaded.length === 1, 'the model in memory');
  assert.equal((await within(server.send('GET loaded'), 'the list')).json.loaded[0].name, 'a:1b');
});

test('a keep-alive of zero is refused however it is spelled, and the server is not asked', inTime, async () => {
  await using world = await startEmulated({ models: [{ name: 'a:1b' }] });
  await using server = await serveRest({ gateway: world.gateway });
  const zeros = [
    '0',
    '0s',
    '0m',
    '0h',
    '0ms',
    '00',
    '-0',
    '+0',
    '0.0',
    '.0',
    '0.',
    ' 0 ',
    '0h0m0s',
    '-0s',
    '0.0s',
    '0ns',
    '0.4ns',
  ];
  for (const keepAlive of zeros) {
    const answer = await server.send('POST models/load', { model: 'a:1b', keepAlive });
    assert.equal(answer.status, 400, keepAlive);
    assert.equal(answer.json.error.code, 'invalid_request');
    const said = `invalid request: keepAlive ${JSON.stringify(keepAlive.trim())} would unload the model; use unload`;
    assert.ok(answer.json.error.message.startsWith(said), answer.json.error.message);
  }
  for (const keepAlive of ['soon', '5 m', '1d', '5m!', 'NaN', '-', 'x'.repeat(10_000)]) {
    const refusal = refusalOf(await server.send('POST models/load', { model: 'a:1b', keepAlive }));
    assert.match(refusal, /^400 invalid_request: invalid request: keepAlive ".+" is neither a number of seconds nor a/);
    assert.ok(refusal.length < 400);
  }
  assert.deepEqual(
    world.ollama.requests.filter(({ method }) => method === 'POST'),
    [],
  );
});

test('keep-alives reach the server as it understands them, the default one too', inTime, async () => {
  await using world = await startEmulated({
    models: [{ name: 'a:1b' }, { name: 'e:1b', capabilities: ['embedding'] }],
  });
  await using server = await serveRest({ gateway: world.gateway });
  const table: [sent: string | null | undefined, received: unknown][] = [
    ['10m', '10m'],
    ['300', 300],
    ['-1', -1],
    [' 1h30m ', '1h30m'],
    ['', '5m'],
    ['  ', '5m'],
    [null, '5m'],
    [undefined, '5m'],
  ];
  for (const [keepAlive, received] of table) {
    const { json } = await server.send('POST models/load', { model: 'a:1b', keepAlive });
    assert.equal(json.loaded, true, String(keepAlive));
    const { path, body } = world.ollama.requests.filter(({ method }) => method === 'POST').at(-1) ?? {};
    assert.deepEqual([path, body], ['/api/generate', { model: 'a:1b', keep_alive: received }]);
  }
  assert.equal((await server.send('POST models/load', { model: 'e:1b' })).json.loaded, true);
  const { path, body } = world.ollama.requests.filter(({ method }) => method === 'POST').at(-1) ?? {};
  assert.deepEqual([path, body], ['/api/embed', { model: 'e:1b', input: '', keep_alive: '5m' }]);
});

test('loads and what they came to are in the log, with who asked', inTime, async () => {
  const driver: FakeDriver = fakeDriver({ models: ['a:1b'] });
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const logged = (message: string) =>
    server.server.logged.map(line => JSON.parse(line)).filter(({ msg }) => msg === message);
  await server.send('POST models/load', { model: 'a:1b', keepAlive: '1m' }, { 'x-request-id': 'one' });
  const [loaded] = logged('model loaded');
  assert.deepEqual(
    [loaded.backend, loaded.model, loaded.keepAlive, loaded.requestId, loaded.caller],
    ['ollama', 'a:1b', '1m', 'one', 'service-account'],
  );
  driver.script.load = async (): Promise<never> => {
    throw backendError('ollama: CUDA error');
  };
  await server.send('POST models/load', { model: 'a:1b' });
  assert.deepEqual(
    [logged('model load failed')[0].error, logged('model load failed').length],
    ['ollama: CUDA error', 1],
  );
});
