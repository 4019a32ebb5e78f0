import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError, conflict } from '../../src/errors.ts';
import { startFaces } from '../support/faces.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { fakeWiring } from '../support/serving.ts';

const off = 'unsupported: operation not supported: agent wiring is disabled (no Kubernetes access)';
const noBackend =
  'no_backend: no backend registered: register one with add_backend (kind ollama|lmstudio|lemonade|kserve) or configure --backends';
const invalid = (what: string) => `invalid_request: invalid request: ${what}`;
const both = ['wireModel', 'unwireModel'] as const;

test('without wiring both are refused once the reference and the backend make sense', async () => {
  for (const drivers of [[fakeDriver()], [fakeDriver(), fakeDriver({ name: 'lemonade' })]]) {
    await using faces = await startFaces({ drivers });
    const names = drivers.map(({ name }) => name).join(', ');
    for (const name of both) {
      assert.equal(await faces.refusal(name, { model: ' ' }), invalid('"model" is required'));
      const unknown = await faces.refusal(name, { model: 'a:1b', backend: 'x' });
      assert.equal(unknown, invalid(`unknown backend "x" (configured: ${names})`));
      // Nobody is asked for the model.
      assert.equal(await faces.refusal(name, { model: 'nope' }), off);
      assert.equal(await faces.refusal(name, { model: 'nope', backend: 'ollama' }), off);
    }
    const keys = { model: 'nope', apiKeyPassthrough: true, apiKeySecret: 'key' };
    assert.equal(await faces.refusal('wireModel', keys), off);
    for (const driver of drivers) assert.deepEqual(driver.asked, []);
  }
});

test('without a backend there is nothing to wire', async () => {
  await using faces = await startFaces({ drivers: [] });
  for (const name of both) {
    assert.equal(await faces.refusal(name, { model: 'a:1b' }), noBackend);
    assert.equal(await faces.refusal(name, { model: 'a:1b', backend: 'ollama' }), noBackend);
  }
});

test('whether models can be wired is told by every backend, and by the gateway', async () => {
  const question = '{ info { wiring { namespace autoWire } } backend { capabilities { wire } wiring { apiVersion } } }';
  const without = await askGraph(testGateway(), question);
  assert.deepEqual(without.data, { info: { wiring: null }, backend: { capabilities: { wire: false }, wiring: null } });
  const withWiring = await askGraph(testGateway({ wiring: fakeWiring() }), question);
  assert.deepEqual(withWiring.data, {
    info: { wiring: { namespace: 'kagent', autoWire: true } },
    backend: { capabilities: { wire: true }, wiring: { apiVersion: 'v1alpha3' } },
  });
});

test('wiring finds the model, then checks the key, then writes', async () => {
  const wiring = fakeWiring();
  const drivers = [
    fakeDriver({ models: ['a:1b', 'shared:1b', 'taken'] }),
    fakeDriver({ name: 'lemonade', models: ['shared:1b'] }),
  ];
  await using faces = await startFaces({ drivers, wiring });
  const keys = { apiKeyPassthrough: true, apiKeySecret: 'key' };
  const refusal = (asks: object) => faces.refusal('wireModel', { ...keys, ...asks });
  assert.equal(
    await refusal({ model: 'nope' }),
    'not_found: model not found: nope is on none of the backends (ollama, lemonade)',
  );
  assert.equal(
    await refusal({ model: 'shared:1b' }),
    'conflict: conflict: shared:1b exists on ollama, lemonade; name the backend',
  );
  assert.equal(await refusal({ model: 'a:1b' }), invalid('apiKeyPassthrough and apiKeySecret are mutually exclusive'));
  assert.deepEqual(wiring.asked, []);
  assert.equal(
    await faces.refusal('wireModel', { model: 'taken' }),
    'conflict: conflict: ModelConfig kagent/taken exists but is not managed by model-manager',
  );

  const { status, json } = await faces.rest.send('POST models/wire', { model: ' a:1b ', apiKeySecret: ' key ' });
  assert.equal(status, 200);
  assert.deepEqual(json, {
    backend: 'ollama',
    model: ' a:1b ',
    modelConfig: {
      name: 'a-1b',
      namespace: 'kagent',
      apiVersion: 'kagent.dev/v1alpha3',
      provider: 'Ollama',
      model: 'a:1b',
      ready: false,
      message: 'not yet reconciled',
      managed: true,
      providerModel: 'a:1b',
      endpoint: 'http://ollama.invalid:11434',
      apiKeySecret: 'key',
      backend: 'ollama',
    },
  });
  const asked = async (body: object) => {
    await faces.rest.send('POST models/wire', { model: 'a:1b', ...body });
    return (wiring.asked.at(-1) as unknown[])[3];
  };
  const secret = (key: string) => ({ passthrough: false, secret: { name: 'key', key } });
  assert.deepEqual(await asked({ apiKeySecret: 'key' }), secret('OPENAI_API_KEY'));
  assert.deepEqual(await asked({ apiKeySecret: 'key', apiKeySecretKey: 'TOKEN' }), secret('TOKEN'));
  assert.equal(await asked({ apiKeySecretKey: 'TOKEN' }), undefined);
  assert.deepEqual(await asked({ apiKeyPassthrough: true, apiKeySecret: ' ' }), { passthrough: true });
});

test('unwiring one backend needs no model to be there', async () => {
  const wiring = fakeWiring();
  const [ollama, lemonade] = [fakeDriver(), fakeDriver({ name: 'lemonade' })];
  await using faces = await startFaces({ drivers: [ollama, lemonade], wiring });
  const named = await faces.rest.send('POST models/unwire', { model: 'gone:1b', backend: 'lemonade' });
  assert.deepEqual(named.json, { backend: 'lemonade', model: 'gone:1b', modelConfig: null });
  await using alone = await startFaces({ drivers: [ollama], wiring });
  assert.equal((await alone.rest.send('POST models/unwire', { model: 'gone:1b' })).json.backend, 'ollama');
  assert.deepEqual(wiring.asked, [
    ['unwire', 'lemonade', 'gone:1b'],
    ['unwire', 'ollama', 'gone:1b'],
  ]);
  assert.deepEqual([...ollama.asked, ...lemonade.asked], []);
});

test('without a name, what is wired says where; then where the model is', async () => {
  const wiring = fakeWiring();
  const drivers = [
    fakeDriver({ models: ['a:1b', 'shared:1b'] }),
    fakeDriver({ name: 'lemonade', models: ['b:1b', 'shared:1b'] }),
  ];
  await using faces = await startFaces({ drivers, wiring });
  const { send } = faces.rest;
  const unwired = async (model: string) => (await send('POST models/unwire', { model })).json;
  const wire = (model: string, backend: string) => send('POST models/wire', { model, backend });

  await wire('shared:1b', 'lemonade');
  assert.deepEqual(await unwired('shared:1b'), { backend: 'lemonade', model: 'shared:1b', modelConfig: null });
  assert.equal(wiring.wired.size, 0);
  await wire('shared:1b', 'lemonade');
  await wire('shared:1b', 'ollama');
  assert.equal(
    await faces.refusal('unwireModel', { model: 'shared:1b' }),
    'conflict: conflict: shared:1b is wired on ollama, lemonade; name the backend',
  );
  wiring.wired.clear();
  assert.equal(
    await faces.refusal('unwireModel', { model: 'shared:1b' }),
    'conflict: conflict: shared:1b exists on ollama, lemonade; name the backend',
  );
  assert.equal((await unwired('b:1b')).backend, 'lemonade');
  assert.deepEqual(await unwired('nope'), { model: 'nope', modelConfig: null });

  // What names no backend, or one that is gone, is the default one's.
  for (const backend of [undefined, 'kserve']) {
    wiring.wired.set('x', { name: 'x', namespace: 'kagent', ready: true, managed: true, model: 'old:1b', backend });
    assert.equal((await unwired('old:1b')).backend, 'ollama');
  }
  for (const driver of drivers) {
    driver.script.models = async (): Promise<never> => {
      throw backendError('down');
    };
  }
  assert.equal((await unwired('old:1b')).backend, 'ollama');
});

test('a deletion that the backend would refuse takes no wiring away', async () => {
  const wiring = fakeWiring();
  const driver = fakeDriver({ models: ['a:1b'] });
  let isServed = true;
  const planRemove = async () => {
    if (isServed) throw conflict('a:1b is served by LLMInferenceService a; unload it first');
    return { manifests: [], deletes: [] };
  };
  await using faces = await startFaces({ drivers: [{ ...driver, planRemove }], wiring });
  assert.equal(
    await faces.refusal('deleteModel', { model: 'a:1b' }),
    'conflict: conflict: a:1b is served by LLMInferenceService a; unload it first',
  );
  assert.deepEqual(wiring.asked, []);
  isServed = false;
  assert.equal((await faces.rest.send('DELETE models/a:1b')).json.deleted, true);
  assert.deepEqual(wiring.asked, [['unwire', 'ollama', 'a:1b']]);
});
