import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError } from '../../src/errors.ts';
import { facesOf } from '../support/faces.ts';
import { fakeDriver, type TestGatewayOptions, testGateway } from '../support/gateway.ts';
import { jobEnd } from '../support/jobs.ts';
import { openStream, textOf } from '../support/server.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';

const invalid = (what: string) => `invalid_request: invalid request: ${what}`;

/** A gateway with wiring, and a pull through REST to its end. */
async function pulling(options: TestGatewayOptions) {
  const gateway = testGateway(options);
  const faces = await facesOf(gateway);
  return {
    gateway,
    faces,
    pull: async (body: object) => {
      const { json } = await faces.rest.send('POST models/pull', body);
      return jobEnd(gateway, json.job.id);
    },
    [Symbol.asyncDispose]: () => faces[Symbol.asyncDispose](),
  };
}

test('a pulled model is wired unless that is not wanted', async () => {
  for (const [autoWire, wire, expected] of [
    [true, undefined, true],
    [true, true, true],
    [true, false, false],
    [false, undefined, false],
    [false, true, true],
    [false, false, false],
  ] as const) {
    const wiring = fakeWiring({ autoWire });
    await using world = await pulling({ wiring });
    const job = await world.pull({ model: 'a:1b', ...(wire !== undefined && { wire }) });
    assert.equal(job.phase, 'succeeded');
    assert.equal(job.wire, expected, `${autoWire} ${wire}`);
    assert.equal(job.result?.name, expected ? 'a-1b' : undefined);
    assert.equal(wiring.asked.length, expected ? 1 : 0);
  }
});

test('a pull whose wiring fails has failed, and the model stays', async () => {
  const wiring = fakeWiring();
  wiring.failure = backendError('the API server is not there');
  await using world = await pulling({ wiring });
  const job = await world.pull({ model: 'a:1b' });
  assert.equal(job.phase, 'failed');
  assert.equal(job.error, 'pulled a:1b but wiring failed: the API server is not there');
  assert.equal((await world.faces.rest.send('GET models/a:1b')).status, 200);
});

test('without wiring a pull is not wired, and is refused only when that was asked for', async () => {
  await using world = await pulling({});
  assert.equal((await world.pull({ model: 'a:1b' })).wire, false);
  assert.equal(
    await world.faces.refusal('pullModel', { model: 'a:1b', wire: true }),
    'unsupported: operation not supported: agent wiring is disabled (no Kubernetes access)',
  );
  await using off = await pulling({ wiringOff: 'switched off by --disable-wiring' });
  assert.equal(
    await off.faces.refusal('wireModel', { model: 'a:1b' }),
    'unsupported: operation not supported: agent wiring is disabled (switched off by --disable-wiring)',
  );
});

test('models that are served are not wired when pulled', async () => {
  const driver = servingDriver({ capabilities: { pull: true } });
  const wiring = fakeWiring();
  await using world = await pulling({ drivers: [driver], wiring });
  assert.equal(
    await world.faces.refusal('pullModel', { model: 'a', wire: true }),
    invalid('models on kserve are wired when loaded (served), not when pulled'),
  );
  assert.equal((await world.pull({ model: 'a' })).wire, false);
  assert.deepEqual(wiring.asked, []);
});

test('a loaded model is wired, and stays loaded when that fails', async () => {
  const wiring = fakeWiring();
  await using faces = await facesOf(testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })], wiring }));
  const load = async () => (await faces.rest.send('POST models/load', { model: 'a:1b' })).json;
  const loaded = await load();
  assert.equal(loaded.modelConfig.name, 'a-1b');
  wiring.failure = backendError('no');
  assert.equal((await load()).loaded, true);
  assert.equal(wiring.asked.length, 2);

  const manual = fakeWiring({ autoWire: false });
  await using other = await facesOf(testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })], wiring: manual }));
  assert.equal((await other.rest.send('POST models/load', { model: 'a:1b' })).json.loaded, true);
  assert.deepEqual(manual.asked, []);
});

test('deleting unwires first; what cannot be unwired is not deleted', async () => {
  const wiring = fakeWiring();
  const driver = fakeDriver({ models: ['a:1b', 'b:1b', 'c:1b'] });
  await using faces = await facesOf(testGateway({ drivers: [driver], wiring }));
  const { send } = faces.rest;
  assert.deepEqual((await send('DELETE models/a:1b')).json, {
    backend: 'ollama',
    model: 'a:1b',
    deleted: true,
    unwired: true,
  });
  assert.deepEqual((await send('DELETE models/b:1b?unwire=false')).json.unwired, false);
  assert.deepEqual(wiring.asked, [['unwire', 'ollama', 'a:1b']]);
  wiring.failure = backendError('the API server is not there');
  assert.equal((await send('DELETE models/c:1b')).status, 502);
  assert.equal((await send('GET models/c:1b')).status, 200);
});

test('models show what agents know them by, as it changes', async () => {
  const wiring = fakeWiring();
  await using faces = await facesOf(testGateway({ drivers: [fakeDriver({ models: ['a:1b', 'b:1b'] })], wiring }));
  const stream = await openStream(faces.rest.server.graphqlUrl, { query: textOf('watchModels') });
  const items = async () => (await stream.nextPayload()).data.models.items;
  assert.equal((await items()).length, 2);
  await faces.rest.send('POST models/wire', { model: 'a:1b' });
  const [wired, ...others] = await items();
  assert.deepEqual([wired.name, wired.modelConfig.ready, others.length], ['a:1b', false, 0]);
  wiring.wired.set('ollama/a:1b', { name: 'a-1b', namespace: 'kagent', ready: true, managed: true });
  wiring.observe();
  assert.equal((await items())[0].modelConfig.ready, true);
  assert.equal((await faces.rest.send('GET models/a:1b')).json.modelConfig.ready, true);
  await faces.rest.send('POST models/unwire', { model: 'a:1b' });
  assert.equal((await items())[0].modelConfig, null);
});

test('that models cannot be wired is said by every backend, and followed', async () => {
  const wiring = fakeWiring();
  await using faces = await facesOf(testGateway({ wiring }));
  const stream = await openStream(faces.rest.server.graphqlUrl, { query: textOf('watchBackends') });
  const seen = async () => {
    const [{ capabilities, wiring, wiringMessage }] = (await stream.nextPayload()).data.backends.items;
    return [capabilities.wire, wiring?.namespace, wiringMessage];
  };
  assert.deepEqual(await seen(), [true, 'kagent', null]);
  wiring.state.set({ available: false, reason: 'kagent is not installed' });
  assert.deepEqual(await seen(), [false, undefined, 'kagent is not installed']);
  const { json } = await faces.rest.send('GET backend');
  assert.deepEqual([json.capabilities.wire, json.wiring], [false, undefined]);
  wiring.state.set({ available: true });
  assert.deepEqual(await seen(), [true, 'kagent', null]);
});
