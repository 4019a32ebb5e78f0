import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listSource } from '../../src/backends/ask.ts';
import { answersInTime } from '../../src/backends/patience.ts';
import { createCall } from '../../src/call.ts';
import { rowsEvents } from '../../src/live/events.ts';
import { fakeDriver, hang, silent, testGateway } from '../support/gateway.ts';

test('who keeps the others waiting is answered for, and everybody else has their say', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const never = new Promise<string>(() => {});
  const answers = answersInTime([never, Promise.resolve('here')], index => `${index} is late`, 2_000);
  await new Promise(resolve => setImmediate(resolve));
  t.mock.timers.tick(2_000);
  assert.deepEqual(await answers, ['0 is late', 'here']);
});

test('one who is asked alone has all the time of the call', async () => {
  assert.deepEqual(await answersInTime([Promise.resolve('here')], () => 'late', 0), ['here']);
});

test('a hanging backend does not keep subscribers from the rows of the others', async () => {
  const slow = fakeDriver({ name: 'lemonade' });
  slow.script.models = hang().answer;
  const quick = fakeDriver({ name: 'ollama', models: ['qwen3:8b'] });
  const { registry } = testGateway({ drivers: [slow, quick] });
  const events = rowsEvents(listSource(registry, undefined, 'models', { patience: 20 }), model => model.name);
  const { value } = await events.next();
  await events.return();
  assert.deepEqual(
    value?.snapshot.rows.map(model => model.name),
    ['qwen3:8b'],
  );
  assert.match(value?.snapshot.errors[0]?.error.message ?? '', /^lemonade has not answered/);
});

test('what a straggler says in the end is there for the next who asks', async () => {
  const gate = Promise.withResolvers<void>();
  const slow = fakeDriver({ name: 'lemonade', models: ['late'] });
  slow.script.models = async () => {
    await gate.promise;
    return slow.world.models;
  };
  const { registry } = testGateway({ drivers: [slow] });
  const source = listSource(registry, undefined, 'models');
  const call = createCall({ log: silent });
  const late = await answersInTime([source.read(call), Promise.resolve(undefined)], () => undefined, 10);
  assert.equal(late[0], undefined);
  gate.resolve();
  assert.deepEqual(
    (await source.read(call)).value?.rows.map(model => model.name),
    ['late'],
  );
  assert.equal(slow.asked.filter(what => what === 'models').length, 1);
});
