import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError } from '../../src/errors.ts';
import { callOf } from '../support/backends.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { jobEnd } from '../support/jobs.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `m${index}:1b`);

/** Two backends with `count` models each, all of them loaded, and a job on each model of the first. */
function world(count: number) {
  const drivers = ['ollama', 'lemonade'].map(name => {
    const driver = fakeDriver({ name, models: numbers(count) });
    driver.world.loaded = numbers(count).map(model => ({ backend: name, name: model, sizeBytes: 1 }));
    return driver;
  });
  const gateway = testGateway({ drivers });
  for (const model of numbers(count)) {
    const spec = { type: 'pull', backend: 'ollama', model, key: model, wire: false } as const;
    gateway.jobs.start(callOf(), spec, async () => {});
  }
  return { gateway, drivers, ollama: drivers[0] as FakeDriver, lemonade: drivers[1] as FakeDriver };
}

const questions: Record<string, string> = {
  'models, with backend, what runs, and jobs': `{
    models { items { name backend { name healthy version } running { name model { name } } jobs { jobId model { name } } } }
  }`,
  'loaded models, with their models and backends': `{
    loadedModels { items { name model { name jobs { jobId } } backend { name healthy } } }
  }`,
  'jobs, with their models and backends':
    '{ jobs { items { jobId model { name running { name } } backend { name healthy } } } }',
  'backends, with everything': `{
    backends { items { name healthy models { name loaded jobs { jobId } } loaded { name model { name } } nodes { name loaded { name } } jobs { jobId model { name } } } }
  }`,
  'machines, with what is loaded':
    '{ nodes { items { name backend { name healthy } loaded { name model { name } } } } }',
};

for (const [what, question] of Object.entries(questions)) {
  test(`${what}: the number of calls to a backend does not grow with the number of rows`, async () => {
    const [few, many] = await Promise.all(
      [2, 60].map(async count => {
        const { gateway, drivers } = world(count);
        assert.deepEqual((await askGraph(gateway, question)).errors, []);
        return drivers.map(({ asked }) => [...asked].sort());
      }),
    );
    assert.deepEqual(many, few);
    for (const asked of many ?? []) assert.equal(new Set(asked).size, asked.length, 'nothing is asked twice');
  });
}

test('edges lead to the things they name', async () => {
  const { gateway } = world(2);
  const { data } = await askGraph(gateway, questions['backends, with everything'] ?? '');
  const names = (things: { name: string }[]) => things.map(({ name }) => name);
  for (const backend of data.backends.items) {
    assert.deepEqual(names(backend.models), numbers(2));
    assert.deepEqual(names(backend.loaded), numbers(2));
    assert.deepEqual(names(backend.nodes), [`${backend.name}-host`]);
    assert.deepEqual(names(backend.nodes[0].loaded), numbers(2));
    assert.deepEqual(
      backend.loaded.map(({ model }: { model: { name: string } }) => model.name),
      numbers(2),
    );
    assert.equal(backend.jobs.length, backend.name === 'ollama' ? 2 : 0);
    for (const { jobs } of backend.models) assert.equal(jobs.length, backend.name === 'ollama' ? 1 : 0);
  }
});

test('a job names its model once the backend has it, however the request spelled it', async () => {
  const driver = fakeDriver();
  const gateway = testGateway({
    drivers: [
      { ...driver, find: (models, reference) => models.find(({ name }) => name === `${reference.trim()}:latest`) },
    ],
  });
  const spec = { type: 'pull', backend: 'ollama', model: 'x', key: 'x', wire: false } as const;
  const { job } = await gateway.jobs.start(callOf(), spec, async () => {});
  await jobEnd(gateway, job.id);
  const question = '{ jobs { items { reference model { name jobs { reference } } } } }';
  const before = await askGraph(gateway, question);
  assert.deepEqual(before, { data: { jobs: { items: [{ reference: 'x', model: null }] } }, errors: [] });
  driver.world.models = [{ backend: 'ollama', name: 'x:latest' }];
  for (const backend of gateway.registry.backends) backend.changed();
  const { data } = await askGraph(gateway, question);
  assert.deepEqual(data.jobs.items, [{ reference: 'x', model: { name: 'x:latest', jobs: [{ reference: 'x' }] } }]);
});

test('a model that was deleted while loaded is null under what is loaded', async () => {
  const { gateway, ollama } = world(1);
  ollama.world.models = [];
  const { data, errors } = await askGraph(
    gateway,
    '{ loadedModels(backend: "ollama") { items { name model { name } } } }',
  );
  assert.deepEqual([data.loadedModels.items, errors], [[{ name: 'm0:1b', model: null }], []]);
});

test('a failing edge is an error at its place, and everything else is there', async () => {
  const { gateway, ollama } = world(1);
  ollama.script.loaded = async (): Promise<never> => {
    throw backendError('ollama: down');
  };
  const { data, errors } = await askGraph(
    gateway,
    '{ backends { items { name models { name } loaded { name } } } nodes { items { name loaded { name } } } }',
  );
  assert.deepEqual(data.backends.items, [
    { name: 'ollama', models: [{ name: 'm0:1b' }], loaded: null },
    { name: 'lemonade', models: [{ name: 'm0:1b' }], loaded: [{ name: 'm0:1b' }] },
  ]);
  assert.deepEqual(data.nodes.items, [
    { name: 'ollama-host', loaded: null },
    { name: 'lemonade-host', loaded: [{ name: 'm0:1b' }] },
  ]);
  assert.deepEqual([...errors].sort(), [
    'backends.items.0.loaded: backend_error: ollama: down',
    'nodes.items.0.loaded: backend_error: ollama: down',
  ]);
});

test('a job whose backend fails has no model, and says why', async () => {
  const { gateway, ollama } = world(1);
  ollama.script.models = async (): Promise<never> => {
    throw backendError('ollama: down');
  };
  const { data, errors } = await askGraph(gateway, '{ jobs { items { reference model { name } } } }');
  assert.deepEqual(data.jobs.items, [{ reference: 'm0:1b', model: null }]);
  assert.deepEqual(errors, ['jobs.items.0.model: backend_error: ollama: down']);
});

test('what a machine runs is what names it, or what names no machine', async () => {
  const { gateway, ollama } = world(0);
  ollama.world.nodes = ['n1', 'n2'].map(name => ({
    backend: 'ollama',
    name,
    ready: true,
    eligible: true,
    gpuCount: 0,
    reservedBytes: 0,
  }));
  ollama.world.loaded = [
    { backend: 'ollama', name: 'a', node: 'n1' },
    { backend: 'ollama', name: 'b', node: 'n2' },
    { backend: 'ollama', name: 'c' },
  ];
  const { data } = await askGraph(gateway, '{ nodes(backend: "ollama") { items { name loaded { name } } } }');
  assert.deepEqual(data.nodes.items, [
    { name: 'n1', loaded: [{ name: 'a' }, { name: 'c' }] },
    { name: 'n2', loaded: [{ name: 'b' }, { name: 'c' }] },
  ]);
});

test('a machine tells its free GPUs and what it waits for; what is not known of it is null', async () => {
  const { gateway, ollama } = world(0);
  const machine = { backend: 'ollama', ready: true, eligible: true, gpuCount: 2, reservedBytes: 0 };
  const startingSince = new Date('2026-01-02T03:04:05Z');
  ollama.world.nodes = [
    { ...machine, name: 'known', freeGpus: 0 },
    { ...machine, name: 'young', ready: false, eligible: false, startingSince, startingReason: 'not ready' },
  ];
  const question = '{ nodes(backend: "ollama") { items { name gpuCount freeGpus startingSince startingReason } } }';
  assert.deepEqual((await askGraph(gateway, question)).data.nodes.items, [
    { name: 'known', gpuCount: 2, freeGpus: 0, startingSince: null, startingReason: null },
    {
      name: 'young',
      gpuCount: 2,
      freeGpus: null,
      startingSince: '2026-01-02T03:04:05.000Z',
      startingReason: 'not ready',
    },
  ]);
});
