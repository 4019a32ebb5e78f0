import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { FormattedExecutionResult } from 'graphql';
import { type Client, createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import {
  createInbox,
  eventually,
  openSocket,
  startServer,
  type TestServer,
  textOf,
  turn,
  within,
} from '../support/server.ts';

/** A client of graphql-ws, as an application has one. */
function clientOf(t: TestContext, server: TestServer): Client {
  const client = createClient({ url: server.socketUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
  t.after(() => client.dispose());
  return client;
}

/** Subscribes, and gives the results one by one. */
function follow(client: Client, query: string, variables?: Record<string, unknown>) {
  const results = createInbox<FormattedExecutionResult<Record<string, unknown>, unknown>>();
  const over = Promise.withResolvers<void>();
  const leave = client.subscribe(
    { query, ...(variables && { variables }) },
    { next: result => results.push(result), error: over.reject, complete: over.resolve },
  );
  over.promise.catch(() => {});
  return {
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
    async next(what: string): Promise<any> {
      const result = await results.next(what);
      assert.equal(result.errors, undefined);
      return result.data;
    },
    unread: results.items,
    over: over.promise,
    leave,
  };
}

const names = (event: { items: { name: string }[] }) => event.items.map(({ name }) => name);

test('models: the whole state first, then what changed, with revisions that grow; what is gone is named', async t => {
  const driver = fakeDriver({ models: ['a', 'b'] });
  const gateway = testGateway({ drivers: [driver] });
  await using server = await startServer({ gateway });
  const [backend] = gateway.registry.backends;
  const models = follow(clientOf(t, server), textOf('watchModels'));

  const first = (await models.next('the first event')).models;
  assert.deepEqual([first.snapshot, names(first), first.removed], [true, ['a', 'b'], []]);
  const idOfA = first.items[0].id;

  driver.world.models.push({ backend: 'ollama', name: 'c', sizeBytes: 1 });
  backend?.changed();
  const second = (await models.next('a new model')).models;
  assert.deepEqual([second.snapshot, names(second), second.removed], [false, ['c'], []]);

  driver.world.models = driver.world.models.filter(({ name }) => name !== 'a');
  backend?.changed();
  const third = (await models.next('a model less')).models;
  assert.deepEqual([third.snapshot, names(third), third.removed], [false, [], [idOfA]]);
  assert.ok(first.revision < second.revision && second.revision < third.revision);
});

test('jobs: a pull shows from its beginning to its end', async t => {
  const driver = fakeDriver();
  const go = Promise.withResolvers<void>();
  driver.script.pull = async function* () {
    yield { status: 'downloading', bytesCompleted: 25, bytesTotal: 100 };
    await go.promise;
  };
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const client = clientOf(t, server);
  const jobs = follow(client, textOf('watchJobs'));
  assert.deepEqual((await jobs.next('the first event')).jobs.items, []);

  const pull = await follow(client, textOf('pullModel'), { model: 'a' }).next('the answer to the mutation');
  const { id } = pull.pullModel.job;
  let revision = 0;
  const phases: string[] = [];
  for (let phase = ''; phase !== 'SUCCEEDED'; ) {
    const event = (await jobs.next('news of the job')).jobs;
    assert.ok(event.revision > revision);
    revision = event.revision;
    const [job] = event.items;
    assert.equal(job.id, id);
    if (job.phase === 'RUNNING' && job.bytesCompleted === 25) go.resolve();
    phase = job.phase;
    phases.push(phase);
  }
  assert.equal(phases.at(-1), 'SUCCEEDED');
});

test('a query and a mutation go over the socket too', async t => {
  const driver = fakeDriver({ models: ['a'] });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const client = clientOf(t, server);
  const query = follow(client, '{ models { items { name loaded } } }');
  assert.deepEqual((await query.next('the answer')).models.items, [{ name: 'a', loaded: false }]);
  await query.over;
  const load = follow(client, 'mutation ($model: String) { loadModel(model: $model) { loaded } }', { model: 'a' });
  assert.deepEqual((await load.next('the answer')).loadModel, { loaded: true });
});

test('a query whose backend hangs is over after 10 s, also on a socket', async t => {
  const driver = fakeDriver();
  const hanging = hang();
  driver.script.models = hanging.answer;
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const deadlines: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    deadlines.push(ms);
    const abort = new AbortController();
    queueMicrotask(() => abort.abort(new DOMException('late', 'TimeoutError')));
    return abort.signal;
  });
  const socket = await openSocket(server.socketUrl);
  socket.send({ id: '1', type: 'subscribe', payload: { query: '{ models { totalCount } }' } });
  const { payload } = await socket.next('the answer');
  assert.equal(payload.errors[0].extensions.code, 'backend_error');
  assert.ok(deadlines.some(ms => ms > 9_000 && ms <= 10_000));
});

test('a document that is refused is an error of its operation, and the socket lives on', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  socket.send({ id: '1', type: 'subscribe', payload: { query: '{ nope }' } });
  const refusal = await socket.next();
  assert.deepEqual([refusal.type, refusal.id, refusal.payload[0].extensions.code], ['error', '1', 'invalid_request']);
  socket.send({ id: '2', type: 'subscribe', payload: { query: 'subscription { job(id: "f00") { removed } }' } });
  const failure = await socket.next();
  assert.deepEqual([failure.type, failure.payload.errors[0].extensions.code], ['next', 'not_found']);
  assert.deepEqual(await socket.next(), { id: '2', type: 'complete' });
  socket.send({ id: '3', type: 'subscribe', payload: { query: '{ __typename }' } });
  assert.deepEqual((await socket.next()).payload, { data: { __typename: 'Query' } });
});

const subscribe = { id: '1', type: 'subscribe', payload: { query: textOf('watchModels') } };
test('another subprotocol is not spoken: 4406', async () => {
  await using server = await startServer();
  const raw = new WebSocket(server.socketUrl);
  const closed = Promise.withResolvers<number>();
  raw.on('close', closed.resolve);
  assert.equal(await within(closed.promise, 'the close'), 4406);
});

test('a client that is refused and breaks off ends nothing but its connection', async () => {
  await using server = await startServer();
  const head = `GET /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://evil.example\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`;
  for (let round = 0; round < 20; round++) {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    await new Promise<void>(resolve => socket.once('connect', resolve));
    socket.write(head);
    socket.resetAndDestroy();
    await turn();
  }
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.write(head);
  socket.resume();
  await new Promise<void>(resolve => socket.once('end', resolve));
  // It keeps its half of the connection open; the server does not wait for it.
  await within(server.close(), 'the end of the server');
  socket.destroy();
});

test('who leaves without a close frame leaves nothing behind: no member, no look at the backend', async () => {
  const driver = fakeDriver({ models: ['a'] });
  const hanging = hang();
  driver.script.models = hanging.answer;
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const socket = await openSocket(server.socketUrl);
  socket.send(subscribe);
  await hanging.reached;
  await eventually(() => server.counts.members === 1, 'a member');
  socket.raw.terminate();
  await within(hanging.aborted, 'the end of the look');
  await eventually(() => server.counts.members === 0, 'no member left');
});

test('who vanishes and answers no ping is gone after the second one; who answers stays', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const driver = fakeDriver({ models: ['a'] });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const [gone, alive] = await Promise.all([openSocket(server.socketUrl), openSocket(server.socketUrl)]);
  for (const socket of [gone, alive]) {
    socket.send(subscribe);
    await socket.next('the first event');
  }
  gone.raw.pause();
  let pinged = 0;
  alive.raw.on('ping', () => pinged++);
  for (let round = 1; round <= 3; round++) {
    t.mock.timers.tick(12_000);
    await eventually(() => pinged === round, 'the ping');
    // The pong is on its way; the next message of this socket is read after it.
    alive.send({ type: 'ping' });
    assert.equal((await alive.next('the answer to a message')).type, 'pong');
  }
  assert.equal(server.counts.members, 1);
  assert.equal(alive.raw.readyState, WebSocket.OPEN);
});

test('completing an operation frees it, and its id', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  for (let round = 0; round < 3; round++) {
    socket.send(subscribe);
    assert.equal((await socket.next('the first event')).type, 'next');
    assert.equal(server.counts.members, 1);
    socket.send({ id: '1', type: 'complete' });
    await eventually(() => server.counts.members === 0, 'no member left');
  }
});

test('a server that stops closes sockets with 1001 and tells nobody that their subscription is complete', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  socket.send(subscribe);
  await socket.next('the first event');
  const messages: string[] = [];
  socket.raw.on('message', data => messages.push(String(data)));
  await within(server.close(60_000), 'the end of the server');
  assert.equal((await within(socket.closed, 'the close')).code, 1001);
  assert.deepEqual(messages, []);
});

test('a client that does not answer the close is not waited for longer than the grace', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  socket.send(subscribe);
  await socket.next('the first event');
  socket.raw.pause();
  await within(server.close(50), 'the end of the server');
  socket.raw.terminate();
});

test('who floods and does not read is not read either', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  socket.raw.pause();
  const query = '{ __schema { types { name description fields { name description } } } }';
  const padding = 'x'.repeat(2_000);
  for (let id = 1; id <= 20_000; id++) {
    socket.send({ id: String(id), type: 'subscribe', payload: { query, extensions: { padding } } });
  }
  const flood = socket.raw.bufferedAmount;
  assert.ok(flood > 30e6);
  let unsent = flood;
  // It has stopped when a while passes without any of the flood leaving us.
  for (let quiet = 0; quiet < 200; quiet++) {
    if (socket.raw.bufferedAmount !== unsent) quiet = 0;
    unsent = socket.raw.bufferedAmount;
    await turn();
  }
  assert.ok(flood - unsent < 20e6, `${flood - unsent} of ${flood} bytes were taken`);
  socket.raw.terminate();
});
