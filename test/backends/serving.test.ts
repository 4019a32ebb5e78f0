import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackend } from '../../src/backends/backend.ts';
import { startReconciler } from '../../src/backends/reconcile.ts';
import { backendError } from '../../src/errors.ts';
import { type DriverLabOptions, nova, served, startDriver, worldOf } from '../drivers/kserve/driverLab.ts';
import { clusterNodes } from '../drivers/kserve/world.ts';
import { callTool } from '../mcp/muster.ts';
import { facesOf } from '../support/faces.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';
import { jobEnd, jobWhen } from '../support/jobs.ts';
import { refusalOf } from '../support/rest.ts';
import { eventually } from '../support/server.ts';
import { type FakeWiring, fakeWiring } from '../support/serving.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const services = 'llminferenceservices.serving.kserve.io';
const expected = 'https://models.demo.example.com/model-serving/nova-4b/v1';

// biome-ignore lint/suspicious/noExplicitAny: objects and answers of every shape
type Any = any;

interface Options extends DriverLabOptions {
  readonly wiring?: FakeWiring | undefined;
  /** A host beside it. */
  readonly host?: ReturnType<typeof fakeDriver>;
}

/** A gateway over the driver and its cluster, with somebody who wires in memory. */
async function serving({ wiring, host, ...options }: Options = { wiring: fakeWiring() }) {
  const lab = await startDriver(options);
  const gateway = testGateway({ drivers: [lab.driver, ...(host ? [host] : [])], ...(wiring && { wiring }) });
  const faces = await facesOf(gateway);
  const { send } = faces.rest;
  return {
    lab,
    gateway,
    faces,
    send,
    load: async (body: object) => (await send('POST models/load', body)).json,
    objects: () => lab.cluster.list<Any>(services, 'model-serving'),
    jobs: () => gateway.jobs.store.list(),
    /** KServe's word for how it stands. */
    become: (status: object, name = 'nova-4b') =>
      lab.cluster.update<Any>(services, name, 'model-serving', object => {
        object.status = status;
      }),
    async [Symbol.asyncDispose]() {
      await gateway.jobs.interrupt();
      await faces[Symbol.asyncDispose]();
      await lab[Symbol.asyncDispose]();
    },
  };
}

const ready = (url = 'https://models.demo.example.com/published/nova-4b') => ({
  url,
  conditions: [{ type: 'Ready', status: 'True' }],
});
const wires = (wiring: FakeWiring) => wiring.asked.filter(([what]: Any) => what === 'wire').length;

test('a load answers what was created, what allowed it, and how agents know it; a job follows it until it is ready', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  const answer = await world.load({ model: nova });
  assert.deepEqual(
    [answer.backend, answer.name, answer.loaded, answer.preset, answer.fit.fits, answer.fit.preset],
    ['kserve', nova, true, 'nova-4b', true, 'nova-4b'],
  );
  const { running } = answer;
  assert.deepEqual(
    [running.status, running.resource, running.kind, running.phase, running.steps.length],
    ['Pending', 'nova-4b', 'LLMInferenceService', 'scheduling', 7],
  );
  assert.deepEqual([answer.wiring.wired, answer.wiring.reason], [true, 'wired on load']);
  assert.equal(answer.modelConfig.endpoint, expected);
  assert.deepEqual(answer.wiring.modelConfig, answer.modelConfig);

  const [job] = world.jobs();
  assert.deepEqual(
    [job?.type, job?.model, job?.preset, job?.resource, job?.wire, job?.backend],
    ['load', nova, 'nova-4b', 'nova-4b', true, 'kserve'],
  );
  const id = job?.id ?? '';
  await jobWhen(world.gateway, id, ({ phase }) => phase === 'running');
  await jobWhen(
    world.gateway,
    id,
    ({ status }) => status === 'waiting for LLMInferenceService nova-4b to become ready: scheduling (WaitingForPod)',
  );
  world.become(ready());
  const over = await jobEnd(world.gateway, id);
  assert.deepEqual(
    [over.phase, over.status, over.result?.endpoint],
    ['succeeded', 'wired', 'https://models.demo.example.com/published/nova-4b/v1'],
  );
  assert.equal((await world.send(`GET models/${nova}`)).json.running.status, 'Ready');
});

test('a second load joins what comes up, and one of what is ready does nothing', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  await world.load({ model: nova });
  const second = await world.load({ preset: 'nova-4b' });
  assert.deepEqual([second.wiring.wired, second.wiring.reason], [true, 'already wired']);
  assert.deepEqual([world.objects().length, world.jobs().length], [1, 1]);
  world.become(ready());
  await jobEnd(world.gateway, world.jobs()[0]?.id ?? '');
  const third = await world.load({ preset: 'nova-4b' });
  assert.deepEqual([third.running.status, third.loaded, third.wiring.reason], ['Ready', true, 'already wired']);
  assert.equal(world.jobs().length, 1);
});

test('loads at the same time make one object and one job', async () => {
  await using world = await serving({ wiring: fakeWiring() });
  const answers = await Promise.all(Array.from({ length: 5 }, () => world.send('POST models/load', { model: nova })));
  assert.deepEqual(
    answers.map(({ status, json }) => [status, json.running?.resource]),
    Array(5).fill([200, 'nova-4b']),
  );
  assert.deepEqual([world.objects().length, world.jobs().length], [1, 1]);
});

test('with nobody to wire it, or none wanted, there is neither wiring nor a job', async () => {
  for (const wiring of [undefined, fakeWiring({ autoWire: false })]) {
    await using world = await serving({ wiring });
    const answer = await world.load({ model: nova });
    assert.deepEqual([answer.loaded, answer.wiring, answer.modelConfig], [true, undefined, undefined]);
    assert.deepEqual([world.objects().length, world.jobs()], [1, []]);
    assert.equal(wiring?.asked.length ?? 0, 0);
  }
});

test('a wiring that fails is in the answer, and the job tries again', async () => {
  const wiring = fakeWiring();
  wiring.failure = backendError('the API server is not there');
  await using world = await serving({ wiring });
  const response = await world.send('POST models/load', { model: nova });
  assert.equal(response.status, 200);
  assert.deepEqual(response.json.wiring, {
    wired: false,
    reason: 'wiring failed',
    error: 'the API server is not there',
  });
  assert.equal(response.json.modelConfig, undefined);
  world.become(ready());
  const job = await jobEnd(world.gateway, world.jobs()[0]?.id ?? '');
  assert.deepEqual(
    [job.phase, job.error],
    ['failed', `${nova} is ready but refreshing its ModelConfig failed: the API server is not there`],
  );
  wiring.failure = undefined;
  // The failure is remembered, and who loads asks for it.
  assert.equal((await world.load({ model: nova })).wiring.reason, 'wired on load');
});

test('the faces refuse alike, and nothing is created', async () => {
  const more = served('twin', node, { metadata: { name: 'twin', namespace: 'model-serving', labels: {} } });
  await using world = await serving({ wiring: fakeWiring(), objects: worldOf({ more }) });
  const { refusal } = world.faces;
  const table: [operation: string, asks: Readonly<Record<string, unknown>>, refused: RegExp][] = [
    ['loadModel', { model: 'acme-labs/Nope' }, /^not_found: model not found: acme-labs\/Nope/],
    ['loadModel', { preset: 'nope' }, /^not_found: model not found: preset "nope" not found \(available: /],
    ['loadModel', { model: nova, preset: 'pico-1b-cpu' }, /^invalid_request: .*preset "pico-1b-cpu" serves/],
    ['loadModel', { model: nova, node: 'nope' }, /^does_not_fit: model does not fit: /],
    ['unloadModel', { model: 'nope' }, /^not_found: model not found: no LLMInferenceService serves nope$/],
    ['unloadModel', { model: 'twin' }, /^conflict: conflict: LLMInferenceService model-serving\/twin was not created/],
  ];
  for (const [operation, asks, refused] of table) assert.match(await refusal(operation, asks), refused);
  const { json, status } = await world.send('POST models/load', { node });
  assert.deepEqual([status, json.error.message], [400, 'invalid request: "model" is required']);
  assert.deepEqual([world.objects().length, world.jobs()], [1, []]);
  assert.deepEqual(world.lab.requested(services, 'create'), []);
});

test('an unload ends the job, takes what agents know, and says what is next', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  await world.load({ model: nova });
  const { json } = await world.send('POST models/unload', { model: ' nova-4b ' });
  assert.deepEqual(
    [json.backend, json.model, json.loaded, json.status, json.resources, json.inventory],
    ['kserve', 'nova-4b', false, 'Terminating', ['nova-4b'], { refreshing: true }],
  );
  assert.equal(
    json.next,
    'the object that served it is being deleted (nova-4b); list_loaded_models shows it as Terminating until it is gone, and what is cached is being counted again',
  );
  const job = await jobEnd(world.gateway, world.jobs()[0]?.id ?? '');
  assert.deepEqual([job.phase, job.error], ['cancelled', 'cancelled']);
  assert.deepEqual([world.objects(), wiring.wired.size], [[], 0]);

  await world.load({ model: nova });
  const answer = await callTool(`${world.faces.rest.url}/mcp`, 'unload_model', { model: nova, backend: 'kserve' });
  const told = JSON.parse(answer.text);
  assert.deepEqual([told.status, typeof told.next, told.inventory], ['Terminating', 'string', { refreshing: true }]);
});

test('that it cannot be unwired does not undo an unload', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  await world.load({ model: nova });
  wiring.failure = backendError('no');
  assert.equal((await world.send('POST models/unload', { model: nova })).status, 200);
  assert.deepEqual(world.objects(), []);
});

test('when only some of what serves a model can go, those lose their jobs, and agents go on with the rest', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  await world.load({ preset: 'nova-4b' });
  for (const object of served('twin', node)) world.lab.cluster.put(object);
  assert.match(wiring.wired.get(`kserve/${nova}`)?.endpoint ?? '', /\/nova-4b\/v1$/);
  world.lab.cluster.fault({ kind: 'answer', status: 403, verb: 'delete', resource: services, name: 'twin' });
  const { status, json } = await world.send('POST models/unload', { model: nova });
  assert.equal(status, 403);
  assert.match(json.error.message, /^twin is not deleted: cannot delete .*; nova-4b is being deleted$/);
  assert.match(wiring.wired.get(`kserve/${nova}`)?.endpoint ?? '', /\/twin\/v1$/);
  assert.equal((await jobEnd(world.gateway, world.jobs()[0]?.id ?? '')).phase, 'cancelled');
});

test('an unload that overtakes the wiring of a load leaves nothing of it', async () => {
  const wiring = fakeWiring();
  const { wire } = wiring;
  const [begun, may] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  wiring.wire = async (...asked) => {
    begun.resolve();
    await may.promise;
    return wire(...asked);
  };
  await using world = await serving({ wiring });
  const loading = world.load({ model: nova });
  await begun.promise;
  assert.equal((await world.send('POST models/unload', { model: nova })).status, 200);
  may.resolve();
  await loading;
  const job = await jobEnd(world.gateway, world.jobs()[0]?.id ?? '');
  assert.match(job.error ?? '', /LLMInferenceService model-serving\/nova-4b is gone/);
  assert.deepEqual([world.objects(), wiring.wired.size], [[], 0]);
});

test('agents go on with another object of the same model', async () => {
  const wiring = fakeWiring();
  await using world = await serving({
    wiring,
    objects: worldOf({ more: [...served('nova-4b', node), ...served('twin', node)] }),
  });
  assert.equal((await world.send('POST models/wire', { model: 'nova-4b' })).status, 200);
  assert.equal((await world.send('POST models/unload', { model: 'nova-4b' })).status, 200);
  assert.match(wiring.wired.get(`kserve/${nova}`)?.endpoint ?? '', /\/twin\/v1$/);
  await world.send('POST models/unload', { model: 'twin' });
  assert.equal(wiring.wired.size, 0);
});

test('beside a host that has another model, references find their backend', async () => {
  const host = fakeDriver({ models: ['a:1b'] });
  const wiring = fakeWiring();
  await using world = await serving({ wiring, host });
  assert.equal((await world.load({ preset: 'nova-4b' })).backend, 'kserve');
  assert.equal((await world.load({ model: 'a:1b', preset: 'nova-4b' })).error.code, 'invalid_request');
  assert.equal((await world.load({ model: 'a:1b' })).backend, 'ollama');
  const hosted = await world.send('POST models/unload', { model: 'a:1b' });
  assert.deepEqual(hosted.json, { backend: 'ollama', model: 'a:1b', loaded: false });
  const unloaded = await world.send('POST models/unload', { model: nova });
  assert.deepEqual([unloaded.json.backend, unloaded.json.status], ['kserve', 'Terminating']);
  const none = refusalOf(await world.send('POST models/unload', { model: nova, backend: 'kserve' }));
  assert.equal(none, `404 not_found: model not found: no LLMInferenceService serves ${nova}`);
});

test('what is served is not deleted', async () => {
  await using world = await serving({ wiring: fakeWiring() });
  await world.load({ model: nova });
  const refused = refusalOf(await world.send('DELETE models/nova-4b'));
  assert.equal(refused, `409 conflict: conflict: ${nova} is served by LLMInferenceService nova-4b; unload it first`);
});

const ours = { 'app.kubernetes.io/managed-by': 'model-manager', 'agent-platform.giantswarm.io/preset': 'nova-4b' };
function standing(labels: object = ours) {
  const [object, pod] = served('nova-4b', node) as Any[];
  return worldOf({ more: [{ ...object, metadata: { ...object.metadata, labels } }, pod] });
}

test('what we serve and agents do not know is made known when it is read, once', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring, objects: standing() });
  const read = async () => (await world.send('GET loaded')).json.loaded[0];
  const [first, second] = await Promise.all([read(), read()]);
  for (const row of [first, second]) {
    assert.equal(row.modelConfig.endpoint, expected);
    assert.deepEqual(row.wiring, { wired: true, reason: 'wired on read', modelConfig: row.modelConfig });
  }
  assert.equal(wires(wiring), 1);
  const later = await read();
  assert.deepEqual([later.modelConfig.endpoint, later.wiring], [expected, undefined]);
  assert.equal(wires(wiring), 1);
});

test('a wiring that a read could not have is told, and tried again a minute later', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const wiring = fakeWiring();
  wiring.failure = backendError('no');
  await using world = await serving({ wiring, objects: standing() });
  const read = async () => (await world.send('GET loaded')).json.loaded[0];
  const failed = { wired: false, reason: 'wiring failed', error: 'no' };
  for (let n = 0; n < 3; n++) assert.deepEqual((await read()).wiring, failed);
  assert.equal(wires(wiring), 1);
  wiring.failure = undefined;
  t.mock.timers.tick(59_000);
  assert.deepEqual((await read()).wiring, failed);
  t.mock.timers.tick(2_000);
  assert.equal((await read()).wiring.reason, 'wired on read');
  assert.equal(wires(wiring), 2);
});

test("nothing is wired on a read that is somebody else's, is going, or is not to be wired", async () => {
  const portal = { 'agent-platform.giantswarm.io/preset': 'nova-4b' };
  for (const [labels, autoWire] of [
    [portal, true],
    [ours, false],
  ] as const) {
    const wiring = fakeWiring({ autoWire });
    await using world = await serving({ wiring, objects: standing(labels) });
    const [row] = (await world.send('GET loaded')).json.loaded;
    assert.deepEqual([row.resource, row.wiring, row.modelConfig], ['nova-4b', undefined, undefined]);
    assert.deepEqual(wiring.asked, []);
  }
});

test('after a restart nobody follows what comes up, and the reconciler makes it known when it is ready', async () => {
  const wiring = fakeWiring();
  await using world = await serving({ wiring });
  // What the next process looks at the cache with is through at once.
  world.lab.ends('mm-scan-', 'END\n');
  await world.load({ model: nova });
  await world.gateway.jobs.interrupt();
  assert.equal(world.jobs()[0]?.phase, 'failed');
  wiring.wired.clear();
  wiring.observe();

  const gateway = testGateway({ drivers: [], wiring });
  gateway.registry.register([createBackend(world.lab.restarted(), 'static', silent, { known: wiring.known })], []);
  const stop = startReconciler({ ...gateway, wiring, intervalMs: 20, log: silent });
  const before = wires(wiring);
  world.become(ready());
  await eventually(() => wires(wiring) > before, 'that it is wired');
  stop();
  assert.equal(wiring.wired.get(`kserve/${nova}`)?.endpoint, 'https://models.demo.example.com/published/nova-4b/v1');
});

test('the reconciler leaves alone what a job follows', async () => {
  const wiring = fakeWiring();
  const objects = standing();
  await using world = await serving({ wiring, objects });
  world.become(ready());
  const end = Promise.withResolvers<undefined>();
  const { call } = world.lab;
  const spec = {
    type: 'load',
    backend: 'kserve',
    model: 'x',
    key: 'nova-4b',
    wire: true,
    resource: 'nova-4b',
  } as const;
  const { job } = await world.gateway.jobs.start(call, spec, () => end.promise);
  let passes = 0;
  const known: FakeWiring['known'] = {
    ...wiring.known,
    read(asking) {
      passes++;
      return wiring.known.read(asking);
    },
  };
  const stop = startReconciler({ ...world.gateway, wiring: { ...wiring, known }, intervalMs: 5, log: silent });
  await eventually(() => passes > 3, 'some passes');
  assert.equal(wires(wiring), 0);
  end.resolve(undefined);
  await jobEnd(world.gateway, job.id);
  await eventually(() => wires(wiring) === 1, 'that it is wired');
  stop();
});
