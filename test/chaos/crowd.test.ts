/** Chaos case 23: a thousand sockets at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { longestTurn, workedMs } from '../support/eventLoop.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { eventually, openSocket, startServer, textOf, within } from '../support/server.ts';

test('chaos 23: 1,000 sockets connect at once and all watch the models: one look at each list, and nobody waits long', {
  timeout: 60_000,
}, async () => {
  const driver = fakeDriver({ models: Array.from({ length: 50 }, (_, place) => `model-${place}:1b`) });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const crowd = async () => {
    const socket = await openSocket(server.socketUrl);
    const began = workedMs();
    socket.send({ id: '1', type: 'subscribe', payload: { query: textOf('watchModels') } });
    const { payload } = await socket.next('the first event');
    return { socket, event: payload.data.models, ms: workedMs() - began };
  };
  const { answer: all, ms } = await longestTurn(() =>
    within(Promise.all(Array.from({ length: 1_000 }, crowd)), 'a first event for everybody', 40_000),
  );
  for (const { event } of all) {
    assert.equal(event.snapshot, true);
    assert.equal(event.items.length, 50);
  }
  assert.equal(server.counts.members, 1_000);
  assert.deepEqual(driver.asked.toSorted(), ['loaded', 'models'], 'one look at each list');
  const waited = all.map(each => each.ms).toSorted((a, b) => a - b);
  assert.ok((waited[990] ?? 0) < 2_000, `p99 is ${waited[990]} ms`);
  assert.ok(ms < 1_000, `a turn took ${ms} ms`);

  driver.world.models = [...driver.world.models, { backend: 'ollama', name: 'new:1b' }];
  server.gateway.registry.backends[0]?.changed();
  for (const { socket } of all) {
    const { snapshot, items } = (await socket.next('the change')).payload.data.models;
    assert.deepEqual([snapshot, items.length], [false, 1]);
  }
  // The list of what is loaded has a timer of its own, and may be looked at after the event.
  await eventually(() => driver.asked.length >= 4, 'a second look at each list');
  assert.deepEqual(driver.asked.toSorted(), ['loaded', 'loaded', 'models', 'models']);
  for (const { socket } of all) socket.raw.terminate();
});
