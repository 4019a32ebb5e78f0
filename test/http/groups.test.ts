import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GraphQLError } from 'graphql';
import { createCall } from '../../src/call.ts';
import { createEngine } from '../../src/http/graphql/engine.ts';
import { createGroups, type Groups, type Member } from '../../src/http/graphql/groups.ts';
import type { Context } from '../../src/resolvers/builder.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';
import { eventually, openSocket, openStream, type Stream, startServer, textOf, turn } from '../support/server.ts';
import { assertExecutedOnce, createLab, type Lab, watchThings } from './lab.ts';

/** Groups over a lab, without a transport. */
function groupsOf(lab: Lab) {
  const engine = createEngine(lab.schema, []);
  const gateway = testGateway();
  const contextOf = (scope: string): Context => ({
    gateway,
    face: 'graphql',
    call: createCall({ log: silent, caller: { name: scope, anonymous: false, scope } }),
  });
  const groups: Groups = createGroups(engine, context => context);
  async function join(variables: Record<string, unknown> = {}, { scope = 'a', query = watchThings } = {}) {
    const joined = await groups.join(await engine.prepare({ query, variables }), contextOf(scope), 'websocket');
    assert.ok('next' in joined, JSON.stringify(joined));
    return joined;
  }
  return { groups, engine, join, contextOf };
}

/** What a member is given next. */
async function nextOf(member: Member) {
  const { value } = await member.next();
  assert.ok(value, 'the member has ended');
  return JSON.parse(value.text).data.things;
}

test('a thousand who ask the same cost one subscription, and each event one execution and one serialisation', async () => {
  const lab = createLab({ name: 'a' });
  await using server = await startServer({ schema: lab.schema });
  const spellings = [{ tag: 'x' }, { tag: 'x', size: 1 }, { size: 1, tag: 'x' }, { tag: 'x', unknown: [{ b: 1 }] }];
  const variablesOf = (index: number) => spellings[index % spellings.length];

  const sockets = await Promise.all(Array.from({ length: 10 }, () => openSocket(server.socketUrl)));
  for (const socket of sockets) {
    for (let id = 0; id < 50; id++) {
      const payload = { query: watchThings, variables: variablesOf(id) };
      socket.send({ id: String(id), type: 'subscribe', payload });
    }
  }
  const streams: Stream[] = [];
  for (let batch = 0; batch < 500; batch += 100) {
    const opened = Array.from({ length: 100 }, (_, index) =>
      openStream(server.graphqlUrl, { query: watchThings, variables: variablesOf(index) }),
    );
    streams.push(...(await Promise.all(opened)));
  }
  const everybody = async (check: (event: { snapshot: boolean; things: unknown[] }) => void) => {
    for (const stream of streams) check((await stream.nextPayload()).data.things);
    for (const socket of sockets) {
      for (let id = 0; id < 50; id++) check((await socket.next()).payload.data.things);
    }
  };

  await everybody(event => assert.equal(event.snapshot, true));
  assert.equal(server.counts.members, 1_000);
  assert.equal(lab.counts.subscribed, 1);
  assert.equal(lab.counts.executions.size, 1);
  assert.equal(lab.counts.serialised, 1);

  for (let round = 1; round <= 3; round++) {
    lab.set({ name: 'a' }, { name: `b${round}` });
    await everybody(event => assert.deepEqual(event.things, [{ name: `b${round}` }]));
    assert.equal(lab.counts.executions.size, 1 + round);
    assert.equal(lab.counts.serialised, 1 + round);
  }
  assertExecutedOnce(lab);
  assert.equal(lab.counts.subscribed, 1);

  for (const stream of streams) stream.leave();
  for (const socket of sockets) socket.raw.close();
  await eventually(() => server.counts.members === 0, 'no member left');
  assert.equal(lab.counts.listening, 0);
});

test('a thousand who ask the graph cost the backend one look an interval', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() });
  const driver = fakeDriver({ models: ['a'] });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  t.mock.timers.tick(3_600_000);
  await turn();
  assert.deepEqual(driver.asked, [], 'nobody asks, nobody looks');

  const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(server.socketUrl)));
  for (const socket of sockets) {
    for (let id = 0; id < 50; id++) {
      socket.send({ id: String(id), type: 'subscribe', payload: { query: textOf('watchModels') } });
    }
  }
  for (const socket of sockets) for (let id = 0; id < 50; id++) await socket.next('the first event');
  assert.equal(server.counts.members, 1_000);
  assert.deepEqual(driver.asked.toSorted(), ['loaded', 'models']);

  for (let round = 2; round <= 6; round++) {
    t.mock.timers.tick(31_500);
    await eventually(() => driver.asked.length === 2 * round, 'the next look at each list');
    // Whatever else were to look would do it now.
    for (let turns = 0; turns < 10; turns++) await turn();
    assert.equal(driver.asked.length, 2 * round);
  }

  for (const socket of sockets) socket.raw.close();
  await eventually(() => server.counts.members === 0, 'no member left');
  const looks = driver.asked.length;
  t.mock.timers.tick(3_600_000);
  for (let turns = 0; turns < 10; turns++) await turn();
  assert.equal(driver.asked.length, looks, 'nobody asks any more, nobody looks');
});

test('other variables, another text, or what another caller may see is another group', async () => {
  const lab = createLab();
  const { join, groups } = groupsOf(lab);
  await join();
  await join({}, {});
  assert.equal(lab.counts.subscribed, 1);
  await join({ tag: 'x' });
  await join({ size: 2 });
  await join({}, { scope: 'b' });
  await join({}, { query: watchThings.replace('removed', '') });
  assert.equal(lab.counts.subscribed, 5);
  assert.equal(groups.size, 6);
});

test('variables that look alike when they are flattened are not alike', async () => {
  const lab = createLab();
  const { groups, engine, contextOf } = groupsOf(lab);
  const query = watchThings;
  for (const tag of [{ a: 1 }, [['a', 1]], 1]) {
    const refused = await groups.join(await engine.prepare({ query, variables: { tag } }), contextOf('a'), 'websocket');
    assert.ok('errors' in refused);
    assert.equal(refused.errors?.[0]?.extensions.code, 'invalid_request');
  }
  assert.equal(lab.counts.subscribed, 0);
});

test('whoever comes later begins with the whole state of now', async () => {
  const lab = createLab({ name: 'a' });
  const { join } = groupsOf(lab);
  const early = await join();
  await nextOf(early);
  lab.set({ name: 'a' }, { name: 'b' });
  assert.deepEqual((await nextOf(early)).things, [{ name: 'b' }]);
  const late = await join();
  const { snapshot, things } = await nextOf(late);
  assert.deepEqual([snapshot, things], [true, [{ name: 'a' }, { name: 'b' }]]);
  assertExecutedOnce(lab);
});

test('whoever missed events is given the whole state once, and then changes again', async () => {
  const lab = createLab({ name: 'a' });
  const { join } = groupsOf(lab);
  const member = await join();
  await nextOf(member);
  for (const name of ['b', 'c', 'd']) {
    lab.set({ name });
    await turn();
  }
  const missed = await nextOf(member);
  assert.deepEqual([missed.snapshot, missed.things], [true, [{ name: 'd' }]]);
  lab.set({ name: 'd' }, { name: 'e' });
  const next = await nextOf(member);
  assert.deepEqual([next.snapshot, next.things], [false, [{ name: 'e' }]]);
});

test('an event nobody reads is not executed', async () => {
  const lab = createLab({ name: 'a' });
  const { join } = groupsOf(lab);
  const member = await join();
  await nextOf(member);
  for (let round = 0; round < 100; round++) {
    lab.set({ name: `b${round}` });
    await turn();
  }
  assert.equal(lab.counts.executions.size, 1);
  await nextOf(member);
  assert.equal(lab.counts.executions.size, 2);
});

test('the last member leaves while another joins: the other is served, however they meet', async () => {
  for (let meeting = 0; meeting < 40; meeting++) {
    const lab = createLab({ name: 'a' });
    const { join, groups } = groupsOf(lab);
    const leaver = await join();
    await nextOf(leaver);
    const [before, after] = [meeting % 8, Math.floor(meeting / 8)];
    const joining = join();
    for (let turns = 0; turns < before; turns++) await Promise.resolve();
    const leaving = leaver.return();
    for (let turns = 0; turns < after; turns++) await Promise.resolve();
    const another = join();
    for (const member of await Promise.all([joining, another])) {
      assert.deepEqual((await nextOf(member)).things, [{ name: 'a' }]);
    }
    await leaving;
    lab.set({ name: 'b' });
    assert.deepEqual((await nextOf(await joining)).things, [{ name: 'b' }]);
    assert.equal(groups.size, 2);
    assert.equal(lab.counts.listening, 1);
  }
});

test('a member who leaves while waiting is let go at once', async () => {
  const lab = createLab({ name: 'a' });
  const { join, groups } = groupsOf(lab);
  const member = await join();
  await nextOf(member);
  const waiting = member.next();
  await member.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  assert.equal(groups.size, 0);
  assert.equal(lab.counts.listening, 0);
});

test('closing ends every member after the newest event', async () => {
  const lab = createLab({ name: 'a' });
  const { join, groups } = groupsOf(lab);
  const [idle, behind] = [await join(), await join()];
  await nextOf(idle);
  await nextOf(behind);
  const waiting = idle.next();
  lab.set({ name: 'b' });
  await waiting;
  groups.close();
  assert.deepEqual((await nextOf(behind)).things, [{ name: 'b' }]);
  assert.equal((await behind.next()).done, true);
  assert.equal((await idle.next()).done, true);
  assert.equal(groups.size, 0);
});

test('a source that breaks is no end of the stream: its members are told, without its words', async () => {
  const lab = createLab({ name: 'a' });
  const { join, groups } = groupsOf(lab);
  const members = [await join(), await join()];
  for (const member of members) await nextOf(member);
  const told = members.map(member => member.next());
  lab.breakEvents(new Error('out of order'));
  for (const waiting of told) {
    await assert.rejects(waiting, (error: GraphQLError) => {
      assert.match(error.message, /^unexpected error; the log has it under request /);
      assert.equal(error.extensions.code, 'internal_error');
      return true;
    });
  }
  assert.equal(groups.size, 0);
  assert.equal(lab.counts.listening, 0);
});
