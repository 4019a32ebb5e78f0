import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import type { WebSocket } from 'ws';
import { createCall } from '../../src/call.ts';
import { defaultLimits } from '../../src/config/limits.ts';
import { createEngine } from '../../src/http/graphql/engine.ts';
import { createGroups } from '../../src/http/graphql/groups.ts';
import { createSeats } from '../../src/http/graphql/seats.ts';
import { createWebSockets } from '../../src/http/graphql/websocket.ts';
import { listen } from '../../src/http/listen.ts';
import type { RefusalReason } from '../../src/http/refusals.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';
import { eventually, openSocket, startServer, textOf, turn, within } from '../support/server.ts';

const subscribe = { id: '1', type: 'subscribe', payload: { query: textOf('watchModels') } };
type Violations = ReadonlyArray<[what: string, messages: Array<object | string | Buffer>, code: number, init?: false]>;
const violations: ReadonlyArray<readonly [title: string, Violations]> = [
  [
    'check 43: a socket that is out of order is closed',
    [
      ['a second connection_init', [{ type: 'connection_init' }], 4429],
      ['an operation before the acknowledgement', [subscribe], 4401, false],
      ['an id that is in use', [subscribe, subscribe], 4409],
    ],
  ],
  [
    'check 42: a socket that says what is no message is closed, and others go on',
    [
      ['a message of no known type', [{ type: 'start' }], 4400],
      ['a message without a type', [{}], 4400],
      ['a subscribe without a query', [{ id: '1', type: 'subscribe', payload: {} }], 4400],
      ['text that is no JSON', ['{"type":'], 4400],
      ['JSON that is no object', ['[]'], 4400],
      ['a binary frame, whatever is in it', [Buffer.from('{"type":"ping"}')], 4400],
      ['a frame over 256 KiB', [`{"type":"ping","payload":{"x":"${'x'.repeat(256 * 1024)}"}}`], 1009],
    ],
  ],
];

for (const [title, each] of violations) {
  for (const [what, messages, code, init] of each) {
    test(`${title}: ${what}: ${code}`, async () => {
      await using server = await startServer();
      const other = await openSocket(server.socketUrl);
      const socket = await openSocket(server.socketUrl, { init: init ?? true });
      for (const message of messages) socket.send(message);
      assert.equal((await within(socket.closed, 'the close')).code, code);
      await eventually(() => server.counts.members === 0, 'nothing of it is left');
      other.send({ type: 'ping' });
      assert.equal((await other.next('an answer')).type, 'pong');
      other.raw.terminate();
    });
  }
}

test('check 42: a frame that announces 100 MB closes the socket before they come', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x06, 0x40, 0, 0, 1, 2, 3, 4]);
  (socket.raw as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(head);
  assert.equal((await within(socket.closed, 'the close')).code, 1009);
});

test('check 42: text that is no UTF-8 closes the socket with 1007', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  socket.raw.send(Buffer.from([0x22, 0xff, 0xfe, 0x22]), { binary: false });
  assert.equal((await within(socket.closed, 'the close')).code, 1007);
});

test('who says nothing for 3 s is closed with 4408', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl, { init: false });
  await turn();
  t.mock.timers.tick(3_000);
  assert.equal((await within(socket.closed, 'the close')).code, 4408);
  t.mock.timers.reset();
  await eventually(() => server.refused.join() === 'init_timeout', 'the count');
});

test('a socket has 64 operations under way at most', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  for (let id = 1; id <= 65; id++) socket.send({ ...subscribe, id: String(id) });
  let refused: string | undefined;
  for (let answers = 0; answers < 65; answers++) {
    const { type, id, payload } = await socket.next();
    if (type === 'next') continue;
    assert.equal(payload[0].extensions.code, 'OPERATION_LIMIT');
    refused = id;
  }
  assert.equal(refused, '65');
  assert.equal(server.counts.members, 64);
  assert.deepEqual(server.refused, ['operations']);
});

test('check 56: a flood of 10,000 operations is answered or refused, one by one', async () => {
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  for (let id = 1; id <= 10_000; id++) {
    socket.send({ id: String(id), type: 'subscribe', payload: { query: '{ __typename }' } });
  }
  let over = 0;
  while (over < 10_000) {
    const { type } = await socket.next();
    if (type === 'complete' || type === 'error') over++;
  }
  const { status } = await fetch(`${server.url}/healthz`);
  assert.equal(status, 200);
});

test('check 56: of 10,000 operations that take their time, 64 are under way; the others are refused at once', async () => {
  const driver = fakeDriver({ models: ['a'] });
  const go = Promise.withResolvers<void>();
  driver.script.load = () => go.promise;
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const socket = await openSocket(server.socketUrl);
  const query = 'mutation { loadModel(model: "a") { name } }';
  for (let id = 1; id <= 10_000; id++) socket.send({ id: String(id), type: 'subscribe', payload: { query } });
  for (let refused = 0; refused < 10_000 - 64; refused++) {
    const { type, payload } = await socket.next('a refusal');
    assert.deepEqual([type, payload[0].extensions.code], ['error', 'OPERATION_LIMIT']);
  }
  assert.equal(server.refused.length, 10_000 - 64);
  go.resolve();
  for (let left = 64; left > 0; ) if ((await socket.next('an answer')).type === 'complete') left--;
  socket.raw.terminate();
});

test('check 41: the 1,025th socket is told to come again later: 1013', async () => {
  await using server = await startServer();
  const open: WebSocket[] = [];
  for (let count = 0; count < 1_024; count += 128) {
    const batch = await Promise.all(Array.from({ length: 128 }, () => openSocket(server.socketUrl, { init: false })));
    open.push(...batch.map(({ raw }) => raw));
  }
  const one = await openSocket(server.socketUrl, { init: false });
  assert.equal((await within(one.closed, 'the close')).code, 1013);
  assert.deepEqual(server.refused, ['sockets']);
  open[0]?.send(JSON.stringify({ type: 'ping' }));
  const pong = Promise.withResolvers<string>();
  open[0]?.once('message', data => pong.resolve(String(data)));
  assert.equal(await within(pong.promise, 'an answer on an old socket'), '{"type":"pong"}');
  for (const raw of open) raw.terminate();
});

test('check 41: a caller who is signed in has 16 sockets; the 17th is told 1013, others and the old ones stay', async t => {
  const refused: RefusalReason[] = [];
  const gateway = testGateway();
  const engine = createEngine(schema, []);
  let subject = 'a';
  const sockets = createWebSockets({
    engine,
    groups: createGroups(engine, context => context),
    contextFor: (_type, signal, peer) => ({
      gateway,
      face: 'graphql' as const,
      call: createCall({ ...peer, log: silent, signal }),
    }),
    signIn: async () => {
      const caller = { name: 'the same name', anonymous: false, subject, scope: '' };
      return { person: { caller, expiresAt: Date.now() + 600_000 } };
    },
    admit() {},
    limits: defaultLimits,
    seats: createSeats(defaultLimits.socketsPerCaller, () => refused.push('sockets_per_caller')),
    onRefused: reason => void refused.push(reason),
    log: silent,
  });
  const server = createServer().on('upgrade', sockets.upgrade);
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
  t.after(async () => {
    sockets.terminate();
    await sockets.close();
    server.close();
  });
  const open = (init = true) => openSocket(`ws://127.0.0.1:${port}/graphql`, { init });
  const own = await Promise.all(Array.from({ length: 16 }, () => open()));
  const more = await open(false);
  more.send({ type: 'connection_init' });
  assert.equal((await within(more.closed, 'the close')).code, 1013);
  assert.deepEqual(refused, ['sockets_per_caller']);
  subject = 'b';
  await open();
  subject = 'a';
  own[0]?.send({ type: 'ping' });
  assert.equal((await own[0]?.next())?.type, 'pong');
  own[0]?.raw.close();
  await within(own[0]?.closed as Promise<unknown>, 'the close');
  await open();
});
