import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, createCall } from '../../../src/call.ts';
import type { ServePlan } from '../../../src/drivers/driver.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, within } from '../../support/server.ts';
import { failure } from '../scripted.ts';
import { type DriverLab, nova, startDriver, tenSeconds } from './driverLab.ts';

const services = 'llminferenceservices.serving.kserve.io';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape
type Any = any;

/** Something that was just loaded, and somebody who waits for it. */
async function waiting(flags: Parameters<typeof startDriver>[0] = {}, call: Call = createCall({ log: silent })) {
  const lab = await startDriver(flags);
  const plan = (await lab.driver.planServe?.(tenSeconds(), { model: nova })) as ServePlan;
  await lab.driver.serve?.(tenSeconds(), plan);
  return { lab, plan, ready: within(lab.driver.whenServed?.(call, plan) as Promise<Any>, 'the model to be ready') };
}

const become = ({ cluster }: DriverLab, status: object) =>
  cluster.update<Any>(services, 'nova-4b', 'model-serving', object => {
    object.status = status;
  });
const condition = (status: string) => ({ conditions: [{ type: 'Ready', status }] });

test('the watch tells that a model is ready, and where', async () => {
  const { lab, ready } = await waiting();
  await using _ = lab;
  become(lab, { ...condition('Unknown'), url: 'http://early.example' });
  const url = 'https://nova-4b-kserve-workload-svc.model-serving.svc.cluster.local/x/';
  become(lab, { ...condition('True'), url });
  const access = await ready;
  assert.deepEqual(
    [access.url, access.object, access.model, access.key],
    ['http://nova-4b-kserve-workload-svc.model-serving.svc.cluster.local/x/v1', 'nova-4b', nova, 'placeholder'],
  );
  assert.ok(lab.requested(services, 'get').length < 4, 'it is not asked for again and again');
});

test('where the watch says nothing the object is asked for', async () => {
  const { lab, ready } = await waiting({ flags: { pollInterval: '20ms' } });
  await using _ = lab;
  lab.cluster.fault({ kind: 'answer', status: 500, verb: 'watch', resource: services });
  lab.cluster.fault({ kind: 'answer', status: 500, verb: 'list', resource: services });
  lab.cluster.cutWatches(services);
  const before = lab.requested(services, 'get').length;
  await eventually(() => lab.requested(services, 'get').length > before + 2, 'that it is asked for');
  become(lab, condition('True'));
  assert.equal((await ready).object, 'nova-4b');
});

test('an object that is gone ends the wait', async () => {
  const { lab, ready } = await waiting();
  await using _ = lab;
  const failed = failure(ready);
  lab.cluster.remove(services, 'nova-4b', 'model-serving');
  const { code, message } = await failed;
  assert.equal(`${code}: ${message}`, 'not_found: model not found: LLMInferenceService model-serving/nova-4b is gone');
});

const caller = { name: 'ada', anonymous: false, scope: 'ada', token: () => 'token-of-ada' };

for (const [status, call] of [
  [403, createCall({ log: silent })],
  [401, createCall({ log: silent, caller })],
] as const) {
  test(`so does an API server that answers ${status}`, async () => {
    const { lab, ready } = await waiting({ flags: { pollInterval: '20ms' } }, call);
    await using _ = lab;
    const failed = failure(ready);
    for (const verb of ['watch', 'list']) lab.cluster.fault({ kind: 'answer', status: 500, verb, resource: services });
    lab.cluster.fault({ kind: 'answer', status, verb: 'get', resource: services });
    lab.cluster.cutWatches(services);
    const { message } = await failed;
    assert.match(
      message,
      /^waiting for acme-labs\/Nova-4B-Instruct to become ready: cannot get llminferenceservices.+; the serving object keeps starting — the loaded models list shows its state and wire_model wires it once Ready$/,
    );
  });
}

test('it waits for so long and no longer, and not for who has left', async () => {
  const { lab, ready } = await waiting({ flags: { readyTimeout: '50ms' } });
  await using _ = lab;
  const { code, message } = await failure(ready);
  assert.equal(`${code}: ${message}`, `backend_error: ${nova} is not ready after 50ms`);

  const left = new AbortController();
  const other = await waiting({}, createCall({ log: silent, signal: left.signal }));
  await using __ = other.lab;
  left.abort(new Error('cancelled'));
  await assert.rejects(other.ready, /cancelled/);
});
