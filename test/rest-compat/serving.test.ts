/** How facts of a backend that serves from presets are written: what is left out, what is not, and in which words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FitResult, GpuPool, LoadedModel, ModelConfigRef, Step } from '../../src/domain.ts';
import { testGateway } from '../support/gateway.ts';
import { serveRest } from '../support/rest.ts';
import { qwenPreset, qwenResult, servingDriver } from '../support/serving.ts';

const everything = { loadedModels: true, nodeInventory: true, load: true };
const serve = (driver: ReturnType<typeof servingDriver>) => serveRest({ gateway: testGateway({ drivers: [driver] }) });
const config: ModelConfigRef = { name: 'qwen', namespace: 'kagent', ready: false, managed: false };

test('a preset is written with everything that is known of it, and its labels as an object', async () => {
  const driver = servingDriver({ target: { cluster: 'east' } });
  const { description, source, storageUri, format, contextLength, ...rest } = qwenPreset;
  const { capabilities, license, args, nodeSelector, chatTemplate, ...bare } = rest;
  driver.world.presets = [qwenPreset, { ...bare, name: 'bare', target: { cluster: 'east', organization: 'acme' } }];
  await using server = await serve(driver);
  const required = {
    gpus: 1,
    weightsBytes: 9_990_000_000,
    overheadBytes: 4_000_000_000,
    requiredBytes: 13_990_000_000,
  };
  const name = { displayName: 'Qwen3 14B' };
  const known = {
    description,
    source,
    model: qwenPreset.model,
    storageUri,
    format,
    contextLength,
    capabilities,
    license,
  };
  assert.equal(
    (await server.send('GET presets')).text,
    `${JSON.stringify(
      {
        presets: [
          { name: 'qwen3-14b', backend: 'kserve', ...name, ...known, ...required, args, nodeSelector, chatTemplate },
          {
            name: 'bare',
            backend: 'kserve',
            target: { cluster: 'east', organization: 'acme' },
            ...name,
            model: qwenPreset.model,
            ...required,
          },
        ],
      },
      null,
      2,
    )}\n`,
  );
  const kept = await server.send('GET presets');
  assert.equal((await server.send('GET presets', undefined, { 'if-none-match': kept.headers.etag ?? '' })).status, 304);
});

test('a search result always has its numbers and a time, be they unknown', async () => {
  const driver = servingDriver();
  driver.world.hub = [
    { ...qwenResult, gated: true },
    { backend: 'kserve', id: 'a/b', gated: false, private: true },
  ];
  await using server = await serve(driver);
  const { backend: _, ...full } = qwenResult;
  assert.deepEqual((await server.send('GET search?q=%20Qwen3')).json, {
    query: ' Qwen3',
    results: [
      { ...full, gated: true, lastModified: '2026-05-21T10:00:00.000Z' },
      { id: 'a/b', downloads: 0, likes: 0, gated: false, private: true, lastModified: '0001-01-01T00:00:00Z' },
    ],
  });
});

const zeros = { weightsBytes: 0, overheadBytes: 0, requiredBytes: 0, budgetBytes: 0, reservedBytes: 0, freeBytes: 0 };

test('a fit is an answer also when it is none; what does not apply is left out', async () => {
  const driver = servingDriver();
  await using server = await serve(driver);
  const answer = async (fit: FitResult) => {
    driver.script.checkFit = async () => fit;
    const { status, json } = await server.send('POST models/fit-check', { model: 'a/b' });
    assert.equal(status, 200);
    return json;
  };
  const bare = { backend: 'kserve', model: 'a/b', fits: false, tokenConfigured: false };
  const alwaysFalse = { gated: false, private: false, cached: false };
  assert.deepEqual(await answer({ ...bare, reason: 'no node is eligible', retryable: true }), {
    ...bare,
    ...zeros,
    ...alwaysFalse,
    reason: 'no node is eligible',
    retryable: true,
  });
  assert.deepEqual(await answer({ ...bare, retryable: false, cacheSource: 'unknown' }), {
    ...bare,
    ...zeros,
    ...alwaysFalse,
    cacheSource: 'unknown',
  });
  const full = {
    model: 'a/b',
    backend: 'kserve',
    fits: true,
    reason: 'x',
    retryable: true,
    preset: 'p',
    presets: ['p', 'q'],
    weightsBytes: 1,
    weightsSource: 'tree',
    declaredWeightsBytes: 2,
    overheadBytes: 3,
    requiredBytes: 4,
    downloadBytes: 5,
    node: 'n',
    instanceType: 'g6.2xlarge',
    budgetBytes: 6,
    budgetSource: 'pool-scale-from-zero',
    reservedBytes: 7,
    freeBytes: 8,
    gated: true,
    private: true,
    tokenConfigured: true,
    cached: true,
    cacheSource: 'index',
  } satisfies FitResult;
  assert.equal(JSON.stringify(await answer(full)), JSON.stringify(full));
});

test('a served model is written with its steps, in the words of the contract', async () => {
  const driver = servingDriver({
    capabilities: everything,
    models: [{ name: 'Qwen/Qwen3-14B-AWQ', downloaded: false, modelConfig: config }],
  });
  const since = new Date('2026-05-21T10:00:00Z');
  const steps: Step[] = [
    {
      name: 'scheduling',
      state: 'done',
      since,
      finishedAt: since,
      pinnedByCache: false,
      refusedInstanceTypes: ['g6.2xlarge'],
      requestedZones: ['a'],
      availableZones: ['b'],
    },
    { name: 'nodeStarting', state: 'inProgress', since, reason: 'NodeLaunching', message: 'x' },
    { name: 'downloadingWeights', state: 'pending', cached: false, bytesCompleted: 0, bytesTotal: 10 },
    { name: 'pullingImage', state: 'pending', cached: true },
    { name: 'loading', state: 'failed' },
  ];
  const loaded: LoadedModel = {
    backend: 'kserve',
    name: 'Qwen/Qwen3-14B-AWQ',
    status: 'Pending',
    resource: 'qwen3-14b',
    kind: 'LLMInferenceService',
    preset: 'qwen3-14b',
    gpus: 1,
    managedBy: 'model-manager',
    phase: 'nodeStarting',
    steps,
    modelConfig: config,
    wiring: { wired: true, reason: 'wired on read', modelConfig: config },
  };
  driver.world.loaded = [loaded];
  await using server = await serve(driver);
  const time = '2026-05-21T10:00:00.000Z';
  const { backend, name, ...rest } = loaded;
  const expected = {
    name,
    backend,
    sizeBytes: 0,
    ...rest,
    steps: [
      { ...steps[0], since: time, finishedAt: time },
      { ...steps[1], since: time },
      // Nothing is there yet: 0 is left out.
      { name: 'downloadingWeights', state: 'pending', bytesTotal: 10, cached: false },
      ...steps.slice(3),
    ],
  };
  assert.deepEqual((await server.send('GET loaded')).json.loaded, [expected]);
  const [model] = (await server.send('GET models')).json.models;
  assert.deepEqual(model, {
    name,
    backend,
    sizeBytes: 0,
    downloaded: false,
    loaded: true,
    running: expected,
    modelConfig: config,
  });
  for (const phase of ['failed', 'terminating', 'downloadingWeights'] as const) {
    driver.world.loaded = [
      { backend: 'kserve', name: 'x', phase, wiring: { wired: false, reason: 'wiring failed', error: 'y' } },
    ];
    for (const each of server.server.gateway.registry.backends) each.changed();
    const [entry] = (await server.send('GET loaded')).json.loaded;
    assert.deepEqual([entry.phase, entry.wiring], [phase, { wired: false, reason: 'wiring failed', error: 'y' }]);
  }
});

test('a load says what allowed it and how it was wired', async () => {
  const fit: FitResult = { backend: 'kserve', model: 'm', fits: true, tokenConfigured: true, freeBytes: 5 };
  const driver = servingDriver({
    capabilities: everything,
    models: [{ name: 'm', fit, wiring: { wired: true, reason: 'already wired' } }],
  });
  await using server = await serve(driver);
  const { json } = await server.send('POST models/load', { model: 'm' });
  assert.deepEqual(
    [json.fit.freeBytes, json.fit.cached, json.wiring],
    [5, false, { wired: true, reason: 'already wired' }],
  );
});

test('a backend on another cluster says which, and where it schedules', async () => {
  const gpuPool: GpuPool = {
    taint: { key: 'gpu', effect: 'PreferNoSchedule' },
    nodeSelector: { pool: '' },
    instances: [
      {
        instanceType: 'g6.2xlarge',
        size: '2xlarge',
        vcpu: 8,
        memoryGiB: 32,
        gpus: 1,
        gpuMemoryGiB: 24,
        usableVcpu: 7.5,
        usableMemoryGiB: 28.25,
      },
    ],
  };
  const driver = servingDriver({ target: { cluster: 'east', organization: 'acme' } });
  driver.world.status = { healthy: true, gpuPool };
  await using server = await serve(driver);
  const [backend] = (await server.send('GET backends')).json.backends;
  assert.deepEqual([backend.target, backend.gpuPool], [{ cluster: 'east', organization: 'acme' }, gpuPool]);
  assert.deepEqual(Object.keys(backend.capabilities).length, 11);
  driver.world.status = { healthy: false, message: 'down' };
  for (const each of server.server.gateway.registry.backends) each.changed();
  assert.equal((await server.send('GET backend')).json.gpuPool, undefined);
});

test('a job names what it follows and what came of it', async () => {
  const driver = servingDriver();
  await using server = await serve(driver);
  const { store } = server.server.gateway.jobs;
  await store.begin('load', {
    id: '0123456789abcdef',
    backend: 'kserve',
    type: 'load',
    model: 'm',
    phase: 'succeeded',
    bytesCompleted: 0,
    bytesTotal: 0,
    createdAt: new Date(),
    wire: true,
    preset: 'qwen3-14b',
    resource: 'qwen3-14b',
    requestedBy: 'me',
    result: { ...config, apiKeyPassthrough: false },
  });
  const { resource, result, requestedBy } = (await server.send('GET jobs/0123456789abcdef')).json;
  assert.deepEqual([resource, result, requestedBy], ['qwen3-14b', config, 'me']);
});
