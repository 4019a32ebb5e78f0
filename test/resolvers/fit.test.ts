import assert from 'node:assert/strict';
import { test } from 'node:test';
import { graphql } from 'graphql';
import { backendError, modelNotFound } from '../../src/errors.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { callOf } from '../support/backends.ts';
import { startFaces } from '../support/faces.ts';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { openStream, startServer, turn, within } from '../support/server.ts';
import { qwenPreset, servingDriver } from '../support/serving.ts';

/** A backend of `count` presets, `count` models served by each of the first two, and `count` machines. */
function world(count: number) {
  const kserve = servingDriver({
    capabilities: { nodeInventory: true, loadedModels: true },
    models: Array.from({ length: 2 * count }, (_, index) => ({ name: `m${index}`, preset: `p${index % 2}` })),
  });
  kserve.world.presets = Array.from({ length: count }, (_, index) => ({ ...qwenPreset, name: `p${index}` }));
  kserve.world.nodes = Array.from({ length: count }, (_, index) => ({
    backend: 'kserve',
    name: `n${index}`,
    ready: true,
    eligible: true,
    gpuCount: 1,
    reservedBytes: 0,
  }));
  return { kserve, gateway: testGateway({ drivers: [fakeDriver(), kserve] }) };
}

const questions: Record<string, string> = {
  'models, with their presets, and what those serve':
    '{ models(backend: "kserve") { items { presetObject { name models { name } } } } }',
  'models, with the fits of their presets and why': `{
    models(backend: "kserve") { items { presetObject { fit(node: "n1") { fits whyNot { nodes { node } } } } } }
  }`,
  'machines, with what they hold and run': `{
    nodes(backend: "kserve") { items { loaded { name } cachedModels { name presetObject { name } } } }
  }`,
  'presets, with what is served by them': '{ presets { items { models { name presetObject { name } } } } }',
};

for (const [what, question] of Object.entries(questions)) {
  test(`${what}: the number of calls to a backend does not grow with the number of rows`, async () => {
    const [few, many] = await Promise.all(
      [2, 40].map(async count => {
        const { kserve, gateway } = world(count);
        assert.deepEqual((await askGraph(gateway, question)).errors, []);
        return [...kserve.asked].sort();
      }),
    );
    assert.deepEqual(many, few);
    const asked = [...new Set(many)];
    assert.ok(asked.length > 0);
    // The models are served by two presets: there are two questions about fits, and one read of each list.
    assert.deepEqual(many, asked);
  });
}

test('the fits of presets are one question each, and all are asked with the same call', async () => {
  const { kserve, gateway } = world(3);
  const calls = new Set<unknown>();
  const requests: unknown[] = [];
  kserve.script.checkFit = async (call, request) => {
    calls.add(call);
    requests.push(request);
    if (request.preset === 'p1') throw modelNotFound('gone');
    return { backend: 'kserve', model: 'a/b', fits: request.node === 'n1', tokenConfigured: false };
  };
  const { data, errors } = await askGraph(
    gateway,
    '{ presets { items { name fit { fits } here: fit(node: " n1 ") { fits } again: fit(node: " n1 ") { fits } } } }',
  );
  const [first, second, third] = data.presets.items;
  assert.deepEqual(first, { name: 'p0', fit: { fits: false }, here: { fits: true }, again: { fits: true } });
  assert.deepEqual(second, { name: 'p1', fit: null, here: null, again: null });
  assert.equal(third.here.fits, true);
  assert.deepEqual(
    errors,
    ['fit', 'here', 'again'].map(field => `presets.items.1.${field}: not_found: model not found: gone`),
  );
  assert.equal(calls.size, 1);
  assert.deepEqual(
    requests,
    ['p0', 'p1', 'p2'].flatMap(preset => [undefined, 'n1'].map(node => ({ model: undefined, preset, node }))),
  );
});

test('the edges of three hundred rows cost one read of each list', async () => {
  const { kserve, gateway } = world(300);
  const place = (index: number) => ({ backend: 'kserve', name: `m${index}`, node: `n${index}` });
  kserve.world.models = kserve.world.presets.map(({ name }, index) => ({ ...place(index), preset: name }));
  kserve.world.loaded = kserve.world.presets.map((_, index) => place(index));
  const { data, errors } = await askGraph(
    gateway,
    `{
      models(backend: "kserve") { items { presetObject { name } } }
      nodes(backend: "kserve") { items { loaded { name } cachedModels { name } } }
      presets { items { models { name } } }
    }`,
  );
  assert.deepEqual(errors, []);
  const [name, last] = ['m299', 299];
  assert.deepEqual(data.models.items[last], { presetObject: { name: 'p299' } });
  assert.deepEqual(data.nodes.items[last], { loaded: [{ name }], cachedModels: [{ name }] });
  assert.deepEqual(data.presets.items[last], { models: [{ name }] });
  assert.deepEqual([...kserve.asked].sort(), ['loaded', 'models', 'nodes', 'presets']);
});

test('rows that ask the same are told the same, wherever they are in the answer; few are asked at a time', async () => {
  const { kserve, gateway } = world(300);
  let [fits, whys, running, most] = [0, 0, 0, 0];
  async function busy() {
    running++;
    most = Math.max(most, running);
    await turn();
    running--;
  }
  kserve.script.checkFit = async () => {
    fits++;
    await busy();
    return { backend: 'kserve', model: 'a/b', fits: true, tokenConfigured: false };
  };
  kserve.script.explain = async () => {
    whys++;
    await busy();
    return { backend: 'kserve', model: 'a/b', obstacles: [], nodes: [], sizes: [] };
  };
  const { data, errors } = await askGraph(
    gateway,
    `{
      presets { items { fit { fits whyNot { model } } again: fit(node: " ") { whyNot { model } } } }
      models(backend: "kserve") { items { presetObject { fit { fits } } } }
    }`,
  );
  assert.deepEqual(errors, []);
  assert.equal(data.presets.items.length, 300);
  assert.ok(data.presets.items.every((each: { fit: { whyNot: object } }) => each.fit.whyNot));
  assert.deepEqual([fits, whys], [300, 300]);
  assert.equal(most, 8);

  await askGraph(gateway, '{ presets { items { fit { fits } } } }');
  assert.equal(fits, 600, 'another answer asks anew');
});

test('who leaves is not asked for any more', async () => {
  const { kserve, gateway } = world(30);
  const leaving = new AbortController();
  const full = Promise.withResolvers<void>();
  let asked = 0;
  kserve.script.checkFit = call => {
    asked++;
    if (asked === 8) full.resolve();
    return hang().answer(call);
  };
  const contextValue = { gateway, call: callOf({ signal: leaving.signal }) };
  const answer = graphql({ schema, source: '{ presets { items { fit { fits } } } }', contextValue });
  await within(full.promise, 'eight questions');
  leaving.abort(new Error('gone'));
  const { errors = [] } = await within(answer, 'the answer');
  assert.deepEqual([asked, errors.length], [8, 30]);
  assert.ok(errors.every(({ message }) => message === 'gone'));
});

test('presets of a backend that checks no fits are there, their fits are refused', async () => {
  const gateway = testGateway({ drivers: [servingDriver({ capabilities: { fitCheck: false } })] });
  const { data, errors } = await askGraph(gateway, '{ presets { items { name fit { fits } } } }');
  assert.deepEqual(data.presets.items, [{ name: 'qwen3-14b', fit: null }]);
  assert.deepEqual(errors, ['presets.items.0.fit: unsupported: operation not supported: fit check']);
});

test('why it does not fit is asked of the same question as the fit, and only when it is asked for', async () => {
  const { kserve, gateway } = world(1);
  const asked: unknown[] = [];
  kserve.script.explain = async (_call, request) => {
    asked.push(request);
    return { backend: 'kserve', model: 'a/b', obstacles: [], nodes: [], sizes: [] };
  };
  await askGraph(gateway, '{ checkFit(model: " a/b ", node: "n0") { fits } }');
  assert.deepEqual(asked, []);
  const { data } = await askGraph(
    gateway,
    '{ checkFit(model: " a/b ", node: "n0") { node whyNot { model nodes { node } } } }',
  );
  assert.deepEqual(data.checkFit, { node: 'n0', whyNot: { model: 'a/b', nodes: [] } });
  assert.deepEqual(asked, [{ model: 'a/b', preset: undefined, node: 'n0' }]);

  kserve.script.explain = async (): Promise<never> => {
    throw backendError('kserve: forbidden');
  };
  const failing = await askGraph(gateway, '{ checkFit(model: "a/b") { fits whyNot { model } } }');
  assert.deepEqual(failing.data.checkFit, { fits: true, whyNot: null });
  assert.deepEqual(failing.errors, ['checkFit.whyNot: backend_error: kserve: forbidden']);
});

test('an explanation says what stands in the way and what would change it, on the faces it has', async () => {
  await using faces = await startFaces({ drivers: [fakeDriver(), servingDriver(), servingDriver({ name: 'east' })] });
  const several = 'conflict: conflict: several backends offer fit checks (kserve, east); name the backend';
  assert.equal(await faces.refusal('explainFit', { preset: 'qwen3-14b' }), several);
  assert.equal(
    await faces.refusal('explainFit', { backend: 'east', model: ' ' }),
    'invalid_request: invalid request: model or preset is required',
  );
  assert.equal(
    await faces.refusal('explainFit', { backend: 'x', preset: 'qwen3-14b' }),
    'invalid_request: invalid request: unknown backend "x" (configured: ollama, kserve, east)',
  );
  assert.equal(
    await faces.refusal('explainFit', { backend: 'east', preset: '../x' }),
    'invalid_request: invalid request: "preset" is "../x", it must have no ".." in its path',
  );
  const fit = await faces.rest.send('POST models/fit-check', { preset: 'qwen3-14b', backend: 'east' });
  assert.equal(fit.status, 200);
  assert.ok(!('whyNot' in fit.json));
});

test('a model leads to its preset: of its own backend, and null when that is not offered', async () => {
  const [first, second] = ['kserve', 'east'].map(name =>
    servingDriver({
      name,
      models: [{ name: 'a', preset: 'qwen3-14b' }, { name: 'b', preset: 'gone' }, 'c'],
    }),
  ) as [ReturnType<typeof servingDriver>, ReturnType<typeof servingDriver>];
  const gateway = testGateway({ drivers: [first, second] });
  const question = '{ models { items { name preset presetObject { backendName name } } } }';
  const { data } = await askGraph(gateway, question);
  assert.deepEqual(
    data.models.items,
    ['kserve', 'east'].flatMap(backendName => [
      { name: 'a', preset: 'qwen3-14b', presetObject: { backendName, name: 'qwen3-14b' } },
      { name: 'b', preset: 'gone', presetObject: null },
      { name: 'c', preset: null, presetObject: null },
    ]),
  );
  first.script.presets = async (): Promise<never> => {
    throw backendError('kserve: forbidden');
  };
  for (const backend of gateway.registry.backends) backend.changed();
  const { errors } = await askGraph(gateway, question);
  assert.deepEqual(
    errors,
    [0, 1].map(index => `models.items.${index}.presetObject: backend_error: kserve: forbidden`),
  );
});

test('a machine has the models on it and on the volumes it can mount, as far as their files are there', async () => {
  const { kserve, gateway } = world(3);
  const cache = { claim: 'models', mountPath: '/m', models: 0, bytesUsed: 0 };
  kserve.world.nodes = kserve.world.nodes.map((node, index) => (index === 2 ? node : { ...node, cache }));
  kserve.world.models = [
    { name: 'on-n0', node: 'n0', path: 'a', downloaded: true },
    { name: 'on-n2', node: 'n2', path: 'b' },
    { name: 'in-volume', path: 'c', downloaded: true },
    { name: 'missing', node: 'n0', path: 'd', downloaded: false },
  ].map(model => ({ ...model, backend: 'kserve' }));
  const { data } = await askGraph(gateway, '{ nodes(backend: "kserve") { items { name cachedModels { name } } } }');
  assert.deepEqual(data.nodes.items, [
    { name: 'n0', cachedModels: [{ name: 'on-n0' }, { name: 'in-volume' }] },
    { name: 'n1', cachedModels: [{ name: 'in-volume' }] },
    { name: 'n2', cachedModels: [{ name: 'on-n2' }] },
  ]);
  const host = testGateway({ drivers: [fakeDriver({ models: ['a:1b', 'b:1b'] })] });
  const own = await askGraph(host, '{ nodes { items { cachedModels { name } } } }');
  assert.deepEqual(own.data.nodes.items, [{ cachedModels: [{ name: 'a:1b' }, { name: 'b:1b' }] }]);
});

test('presets are told as they come and go', { timeout: 10_000 }, async () => {
  const { kserve, gateway } = world(2);
  await using server = await startServer({ gateway });
  const query = 'subscription ($backend: String) { presets(backend: $backend) { snapshot items { name } removed } }';
  const follow = (backend: string) => openStream(server.graphqlUrl, { query, variables: { backend } });
  const refused = await follow('ollama');
  const [error] = (await refused.nextPayload('the refusal')).errors;
  assert.equal(error.message, 'operation not supported: presets');
  refused.leave();

  const events = await follow('kserve');
  const { data: first } = await events.nextPayload('the first event');
  assert.deepEqual(first.presets, { snapshot: true, items: [{ name: 'p0' }, { name: 'p1' }], removed: [] });
  kserve.world.presets = [...kserve.world.presets.slice(1), { ...qwenPreset, name: 'new' }];
  for (const backend of gateway.registry.backends) backend.changed();
  const { data: second } = await events.nextPayload('the change');
  const gone = Buffer.from('Preset:kserve/p0').toString('base64');
  assert.deepEqual(second.presets, { snapshot: false, items: [{ name: 'new' }], removed: [gone] });
  events.leave();
});
