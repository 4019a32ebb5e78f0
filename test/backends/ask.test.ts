import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askBackends } from '../../src/backends/ask.ts';
import { capableBackends } from '../../src/backends/registry.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { backendError, unavailable } from '../../src/errors.ts';
import { callOf, registryOf } from '../support/backends.ts';
import { type FakeDriver, fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { refusalOf, serveRest } from '../support/rest.ts';
import { within } from '../support/server.ts';

const inTime = { timeout: 10_000 };

/** The models that these drivers list, and the errors of those that do not. */
async function ask(
  drivers: readonly Driver[],
  { call = callOf(), ...options }: { call?: ReturnType<typeof callOf>; lookMs?: number } = {},
) {
  const registry = registryOf(drivers, options);
  const { rows, errors } = await askBackends(call, capableBackends(registry, undefined), 'models');
  return {
    models: rows.map(({ backend, name }) => `${backend}/${name}`),
    errors: errors.map(({ backend, error }) => `${backend}: ${error.code}: ${error.message}`),
  };
}

function failing(name: string, error: Error = backendError(`${name}: connection refused`)): FakeDriver {
  const driver = fakeDriver({ name });
  driver.script.models = async () => {
    throw error;
  };
  return driver;
}

test('rows come in backend order, whoever answers first', async () => {
  const slow = fakeDriver({ name: 'ollama', models: ['a:1b', 'b:1b'] });
  const gate = Promise.withResolvers<void>();
  slow.script.models = async () => {
    await gate.promise;
    return slow.world.models;
  };
  const quick = fakeDriver({ name: 'kserve', models: ['c:1b'] });
  quick.script.models = async () => {
    gate.resolve();
    return quick.world.models;
  };
  assert.deepEqual(await ask([slow, quick]), { models: ['ollama/a:1b', 'ollama/b:1b', 'kserve/c:1b'], errors: [] });
});

test('a backend that fails costs its own rows', async () => {
  const drivers = [failing('ollama'), fakeDriver({ name: 'lemonade', models: ['a:1b'] }), failing('kserve')];
  assert.deepEqual(await ask(drivers), {
    models: ['lemonade/a:1b'],
    errors: ['ollama: backend_error: ollama: connection refused', 'kserve: backend_error: kserve: connection refused'],
  });
});

test('when the only one asked fails, that is the failure', async () => {
  await assert.rejects(ask([failing('ollama', unavailable('no control plane'))]), {
    code: 'unavailable',
    message: 'backend unavailable: no control plane',
  });
});

test('when all fail, each is quoted, and the first one in order gives the code', async () => {
  const first = failing('ollama', unavailable('no control plane'));
  await assert.rejects(ask([first, failing('lemonade')]), {
    code: 'unavailable',
    message:
      'every backend failed: ollama: backend unavailable: no control plane; lemonade: lemonade: connection refused',
  });
});

test('what nobody expected of a driver is its failure, not the end of the answer', async () => {
  const drivers = [
    failing('ollama', new TypeError('x is undefined')),
    fakeDriver({ name: 'lemonade', models: ['a:1b'] }),
  ];
  assert.deepEqual(await ask(drivers), {
    models: ['lemonade/a:1b'],
    errors: ['ollama: internal_error: unexpected error while looking; the log has it'],
  });
});

test('a backend that hangs is given up in time, and costs its own rows', inTime, async () => {
  const stuck = fakeDriver({ name: 'ollama' });
  const hanging = hang();
  stuck.script.models = hanging.answer;
  const late = 'ollama: backend_error: the backend did not answer in time; ask again, or look at its health';
  const drivers = [stuck, fakeDriver({ name: 'lemonade', models: ['a:1b'] })];
  assert.deepEqual(await ask(drivers, { lookMs: 20 }), { models: ['lemonade/a:1b'], errors: [late] });
  await within(hanging.aborted, 'the end of the look');
});

test('a call whose time is up before that of a look is answered with what there is', inTime, async () => {
  const stuck = fakeDriver({ name: 'ollama' });
  const hanging = hang();
  stuck.script.models = hanging.answer;
  const { models, errors } = await ask([stuck, fakeDriver({ name: 'lemonade', models: ['a:1b'] })], {
    call: callOf({ timeoutMs: 20 }),
  });
  assert.deepEqual(models, ['lemonade/a:1b']);
  assert.match(errors[0] ?? '', /^ollama: backend_error: the backend did not answer in time/);
  await within(hanging.aborted, 'the end of a look that nobody waits for');
});

test('a caller who leaves is not waited for', inTime, async () => {
  const stuck = fakeDriver({ name: 'ollama' });
  const hanging = hang();
  stuck.script.models = hanging.answer;
  const leaving = new AbortController();
  const asked = ask([stuck], { call: callOf({ signal: leaving.signal }) });
  await hanging.reached;
  leaving.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  await within(hanging.aborted, 'the end of a look that nobody waits for');
});

test('many who ask at once are one look', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const registry = registryOf([driver]);
  const answers = Array.from({ length: 50 }, () => askBackends(callOf(), registry.backends, 'models'));
  assert.equal((await Promise.all(answers)).length, 50);
  assert.deepEqual(driver.asked.sort(), ['loaded', 'models']);
});

test('REST names those that failed under errors, by name', async () => {
  const drivers = [failing('ollama'), fakeDriver({ name: 'lemonade', models: ['a:1b'] }), failing('kserve')];
  await using server = await serveRest({ gateway: testGateway({ drivers }) });
  const { status, json } = await server.send('GET models');
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(json), ['models', 'errors']);
  assert.deepEqual(json.errors, { ollama: 'ollama: connection refused', kserve: 'kserve: connection refused' });
  assert.equal('errors' in (await server.send('GET models?backend=lemonade')).json, false);
  assert.equal(
    refusalOf(await server.send('GET models?backend=kserve')),
    '502 backend_error: kserve: connection refused',
  );
  assert.equal('errors' in (await server.send('GET nodes')).json, false, 'their machines are not their models');
});

test('who lacks a capability is no failure and is not named; when all lack it, that is the refusal', async () => {
  const without = (name: string) => fakeDriver({ name, capabilities: { loadedModels: false, nodeInventory: false } });
  const broken = fakeDriver({ name: 'lemonade' });
  broken.script.loaded = async () => {
    throw backendError('lemonade: HTTP 500');
  };
  await using some = await serveRest({
    gateway: testGateway({ drivers: [without('kserve'), fakeDriver(), without('lmstudio')] }),
  });
  const { status, json } = await some.send('GET loaded');
  assert.deepEqual([status, json], [200, { loaded: [] }]);
  assert.equal((await some.send('GET nodes')).json.nodes.length, 1);

  await using only = await serveRest({ gateway: testGateway({ drivers: [without('kserve'), broken] }) });
  assert.equal(refusalOf(await only.send('GET loaded')), '502 backend_error: lemonade: HTTP 500');

  await using none = await serveRest({ gateway: testGateway({ drivers: [without('kserve'), without('lmstudio')] }) });
  const refusal = '501 unsupported: operation not supported: listing loaded models';
  assert.equal(refusalOf(await none.send('GET loaded')), refusal);
  assert.equal(refusalOf(await none.send('GET loaded?backend=kserve')), refusal);
  assert.equal(refusalOf(await none.send('GET nodes')), '501 unsupported: operation not supported: node inventory');
});

test('models come without what is loaded when that cannot be read', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  driver.script.loaded = async (): Promise<never> => {
    throw backendError('ollama: HTTP 500');
  };
  await using server = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const { status, json } = await server.send('GET models');
  assert.deepEqual(
    [status, json],
    [200, { models: [{ name: 'a:1b', backend: 'ollama', sizeBytes: 0, loaded: false }] }],
  );
});

test('a backend whose health cannot be read is listed as unhealthy', inTime, async () => {
  const stuck = fakeDriver({ name: 'ollama' });
  stuck.script.describe = hang().answer;
  const broken = fakeDriver({ name: 'lemonade' });
  broken.script.describe = async (): Promise<never> => {
    throw backendError('lemonade: HTTP 500');
  };
  const gateway = {
    ...testGateway(),
    registry: registryOf([stuck, broken, fakeDriver({ name: 'kserve' })], { lookMs: 20 }),
  };
  await using server = await serveRest({ gateway });
  const { status, json } = await server.send('GET backends');
  const seen = json.backends.map(({ backend, healthy, message }: Record<string, unknown>) => [
    backend,
    healthy,
    message,
  ]);
  assert.equal(status, 200);
  assert.deepEqual(seen, [
    ['ollama', false, 'the backend did not answer in time; ask again, or look at its health'],
    ['lemonade', false, 'lemonade: HTTP 500'],
    ['kserve', true, undefined],
  ]);
});
