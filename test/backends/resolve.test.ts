import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveModel } from '../../src/backends/resolve.ts';
import type { Call } from '../../src/call.ts';
import type { BackendStatus, Model } from '../../src/domain.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { backendError, invalidRequest, unavailable } from '../../src/errors.ts';
import { createCell } from '../../src/live/cell.ts';
import { callOf, registryOf } from '../support/backends.ts';
import { allFaces, through } from '../support/facts.ts';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { refusalOf, serveRest } from '../support/rest.ts';
import { within } from '../support/server.ts';

const inTime = { timeout: 10_000 };

/** A backend for each behaviour that matters to a reference. */
const having = (name: string) => fakeDriver({ name, models: ['a:1b'] });
const lacking = (name: string) => fakeDriver({ name, models: ['b:1b'] });
function failing(name: string): Driver {
  const driver = fakeDriver({ name });
  driver.script.models = async (): Promise<never> => {
    throw unavailable(`${name} is not there`);
  };
  return driver;
}
function hanging(name: string): Driver {
  const driver = fakeDriver({ name });
  driver.script.models = hang().answer;
  return driver;
}
const refusing = (name: string): Driver => ({
  ...fakeDriver({ name }),
  find(_models, reference) {
    throw invalidRequest(`2 presets serve ${reference} (x, y); pass preset to choose one`);
  },
});

interface Asked {
  readonly backend?: string | null;
  readonly call?: ReturnType<typeof callOf>;
  readonly lookMs?: number;
}

async function resolve(drivers: readonly Driver[], { backend, call = callOf(), lookMs = 20 }: Asked = {}) {
  const found = await resolveModel(call, registryOf(drivers, { lookMs }), 'a:1b', backend);
  return `${found.backend.name}/${found.model.name}`;
}

const invalid = {
  code: 'invalid_request',
  message: 'invalid request: 2 presets serve a:1b (x, y); pass preset to choose one',
};
const ambiguous = { code: 'conflict', message: 'conflict: a:1b exists on x, z; name the backend' };
const nowhere = { code: 'not_found', message: 'model not found: a:1b is on none of the backends (x, y, z)' };

test(
  'of several backends the only one that has the model is meant, even when others cannot answer',
  inTime,
  async () => {
    assert.equal(await resolve([lacking('x'), having('y')]), 'y/a:1b');
    assert.equal(await resolve([having('x'), lacking('y'), lacking('z')]), 'x/a:1b');
    assert.equal(await resolve([failing('x'), having('y')]), 'y/a:1b');
    assert.equal(await resolve([having('x'), failing('y'), hanging('z')]), 'x/a:1b');
    const late = callOf({ timeoutMs: 20 });
    assert.equal(await resolve([hanging('x'), having('y')], { call: late, lookMs: 8_500 }), 'y/a:1b');
  },
);

test('several that have it are a conflict, and those are named in order', inTime, async () => {
  await assert.rejects(resolve([having('x'), lacking('y'), having('z')]), ambiguous);
  await assert.rejects(resolve([having('x'), failing('y'), having('z')]), ambiguous);
  await assert.rejects(resolve([having('x'), hanging('y'), having('z')]), ambiguous);
});

test('a backend that calls the reference invalid ends the matter at once', inTime, async () => {
  await assert.rejects(resolve([refusing('x'), having('y')]), invalid);
  await assert.rejects(resolve([having('x'), refusing('y'), having('z')]), invalid);
  await assert.rejects(resolve([failing('x'), refusing('y')]), invalid);
  // At once: the one that hangs is not waited for.
  await assert.rejects(within(resolve([hanging('x'), refusing('y')], { lookMs: 60_000 }), 'the refusal'), invalid);
});

test('nobody has it and somebody could not say: that failure, with its backend and code', inTime, async () => {
  const failure = { code: 'unavailable', message: 'x: backend unavailable: x is not there' };
  await assert.rejects(resolve([failing('x'), lacking('y')]), failure);
  await assert.rejects(resolve([lacking('w'), failing('x'), hanging('y')]), failure);
  await assert.rejects(resolve([lacking('x'), hanging('y')]), {
    code: 'backend_error',
    message: 'y: the backend did not answer in time; ask again, or look at its health',
  });
});

test('nobody has it and all could say: not found', async () => {
  await assert.rejects(resolve([lacking('x'), lacking('y'), lacking('z')]), nowhere);
});

test('a named backend, or the only one, answers alone and in its own words', inTime, async () => {
  for (const backend of [null, undefined, '', '  ', 'x', ' x ']) {
    assert.equal(await resolve([having('x')], { backend: backend as string }), 'x/a:1b');
    await assert.rejects(resolve([lacking('x')], { backend: backend as string }), {
      code: 'not_found',
      message: 'model not found: a:1b is not on x',
    });
    await assert.rejects(resolve([failing('x')], { backend: backend as string }), {
      code: 'unavailable',
      message: 'backend unavailable: x is not there',
    });
    await assert.rejects(resolve([refusing('x')], { backend: backend as string }), invalid);
  }
  const asked = fakeDriver({ name: 'z', models: ['a:1b'] });
  assert.equal(await resolve([having('x'), asked], { backend: 'x' }), 'x/a:1b');
  assert.deepEqual(asked.asked, [], 'the others are left alone');
  await assert.rejects(resolve([having('x'), hanging('y')], { backend: 'y' }), { code: 'backend_error' });
});

/** A backend that lists `b:1b`, and has presets that stand for other models. */
const offering = (name: string, presets: Readonly<Record<string, string>>): Driver => ({
  ...lacking(name),
  async offered(_call, reference) {
    if (reference === 'two') throw invalidRequest('2 presets serve two (x, y); pass preset to choose one');
    const model = presets[reference];
    return model === undefined ? undefined : { backend: name, name: model, preset: reference, downloaded: false };
  },
});

test('what is not listed may be what a preset would bring, on every face', async () => {
  const preset = offering('x', { p: 'acme/p', 'b:1b': 'acme/other' });
  for (const drivers of [[preset], [lacking('w'), preset]]) {
    const gateway = testGateway({ drivers });
    await using server = await serveRest({ gateway });
    for (const face of allFaces) {
      const { name, backend, downloaded, preset } = await through(face, server.server, 'getModel', { model: 'p' });
      assert.deepEqual([name, backend, downloaded, preset], ['acme/p', 'x', false, 'p'], face);
      const listed = await through(face, server.server, 'getModel', { model: 'b:1b', backend: 'x' });
      assert.equal(listed.name, 'b:1b', 'what is listed goes before');
      assert.equal(
        await through(face, server.server, 'getModel', { model: 'nope', backend: 'x' }),
        'not_found: model not found: nope is neither cached, served nor a preset',
      );
      const several = await through(face, server.server, 'getModel', { model: 'two' });
      assert.equal(several, 'invalid_request: invalid request: 2 presets serve two (x, y); pass preset to choose one');
    }
  }
  await assert.rejects(resolve([preset, offering('z', {})]), {
    code: 'not_found',
    message: 'model not found: a:1b is on none of the backends (x, z)',
  });
  await assert.rejects(resolve([having('w'), offering('x', { 'a:1b': 'acme/a' })]), {
    code: 'conflict',
    message: 'conflict: a:1b exists on w, x; name the backend',
  });
});

test('a job has no model before it is listed, also where a preset would bring it', async () => {
  const gateway = testGateway({ drivers: [offering('x', { p: 'acme/p' })] });
  for (const model of ['p', 'two', 'b:1b']) {
    await gateway.jobs.start(
      callOf(),
      { type: 'pull', backend: 'x', model, key: model, wire: false },
      async () => undefined,
    );
  }
  const { data, errors } = await askGraph(gateway, '{ jobs { items { reference model { name } } } }');
  const models = data.jobs.items.map(({ reference, model }: { reference: string; model: { name: string } | null }) => [
    reference,
    model?.name,
  ]);
  assert.deepEqual(errors, []);
  assert.deepEqual(models.sort(), [
    ['b:1b', 'b:1b'],
    ['p', undefined],
    ['two', undefined],
  ]);
});

test('REST resolves like that for everything that names a model, but a pull goes to the default', async () => {
  const [ollama, lemonade] = [
    fakeDriver({ models: ['shared:1b'] }),
    fakeDriver({ name: 'lemonade', models: ['shared:1b', 'own:1b'] }),
  ];
  await using server = await serveRest({ gateway: testGateway({ drivers: [ollama, lemonade] }) });
  const conflict = '409 conflict: conflict: shared:1b exists on ollama, lemonade; name the backend';
  const missing = '404 not_found: model not found: nope is on none of the backends (ollama, lemonade)';
  const calls = (model: string, backend?: string): [string, object?][] => [
    [`GET models/${model}${backend ? `?backend=${backend}` : ''}`],
    ['POST models/load', { model, backend }],
    ['POST models/unload', { model, backend }],
    [`DELETE models/${model}${backend ? `?backend=${backend}` : ''}`],
  ];
  for (const [line, body] of calls('shared:1b')) assert.equal(refusalOf(await server.send(line, body)), conflict, line);
  for (const [line, body] of calls('nope')) assert.equal(refusalOf(await server.send(line, body)), missing, line);
  for (const [line, body] of [...calls('own:1b'), ...calls('shared:1b', 'lemonade')]) {
    const { status, json } = await server.send(line, body);
    assert.deepEqual([status, json.backend], [200, 'lemonade'], line);
  }
  assert.deepEqual(
    ollama.asked.filter(what => what.includes(' ')),
    [],
    'nothing was done to the other',
  );

  const pulled = await server.send('POST models/pull', { model: 'own:1b' });
  assert.deepEqual([pulled.status, pulled.json.job.backend], [202, 'ollama']);
  assert.equal((await server.send('GET backend')).json.backend, 'ollama');
});

test('one of several that cannot answer shows in its own words', async () => {
  const broken = fakeDriver({ name: 'lemonade' });
  broken.script.models = async (): Promise<never> => {
    throw backendError('lemonade: HTTP 500');
  };
  await using server = await serveRest({ gateway: testGateway({ drivers: [having('ollama'), broken] }) });
  assert.equal((await server.send('GET models/a:1b')).json.backend, 'ollama');
  assert.equal(refusalOf(await server.send('GET models/nope')), '502 backend_error: lemonade: lemonade: HTTP 500');
});

test('who has all the time there is waits for a look, and who has little no longer than they have', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const left: number[] = [];
  const models = createCell<readonly Model[]>([{ backend: 'ollama', name: 'a:1b' }]);
  const read = (call: Call) => {
    left.push(call.deadline - Date.now());
    return models.read(call);
  };
  const nothing = { nodes: createCell<readonly []>([]), loaded: createCell<readonly []>([]) };
  const status = createCell<BackendStatus>({ healthy: true });
  const observed = { ...nothing, status, presets: nothing.nodes, models: { ...models, read } };
  for (const call of [callOf(), callOf({ timeoutMs: 60_000 }), callOf({ timeoutMs: 1_000 })]) {
    assert.equal(await resolve([{ ...driver, observed }], { call }), 'ollama/a:1b');
  }
  assert.deepEqual(
    left.map(ms => Math.ceil(ms / 500) * 500),
    [8_500, 8_500, 1_000],
  );
});
