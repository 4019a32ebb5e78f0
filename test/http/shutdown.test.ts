import assert from 'node:assert/strict';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { ask, openStream, send, startServer, textOf, within } from '../support/server.ts';

test('before it stops it is not ready but serves every face, and keeps no connection', async () => {
  await using server = await startServer({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a'] })] }) });
  const readiness = async () => {
    const { status, text: why } = await send(`${server.url}/readyz`);
    return [status, why];
  };
  assert.deepEqual(await readiness(), [200, 'ok']);
  const stream = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  await stream.nextPayload();
  server.drain();
  assert.deepEqual(await readiness(), [503, 'stopping']);
  const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const accept = { headers: { accept: 'application/json, text/event-stream' } };
  for (const answered of [
    await send(`${server.url}/healthz`),
    await send(`${server.url}/api/v1/models`),
    await ask(server, '{ info { version } }'),
    await send(`${server.url}/mcp`, tools, accept),
  ]) {
    assert.deepEqual([answered.status, answered.headers.get('connection')], [200, 'close'], answered.text);
  }
  const later = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  await later.nextPayload();
  assert.ok(!stream.response.complete, 'a stream goes on');
  await Promise.all([server.close(60_000), stream.ended, later.ended]);
});

test('what is under way is finished, and its connection is not kept for another request', async t => {
  const driver = fakeDriver({ models: ['a'] });
  const go = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  driver.script.models = async () => {
    reached.resolve();
    await go.promise;
    return driver.world.models;
  };
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const req = request(`${server.url}/api/v1/models`, { agent });
  const answered = new Promise<IncomingMessage>((resolve, reject) => req.on('response', resolve).on('error', reject));
  req.end();
  await reached.promise;
  const closed = server.close(60_000);
  go.resolve();
  const response = await within(answered, 'the answer');
  assert.equal(response.statusCode, 200);
  assert.match(await text(response), /"name": "a"/);
  await within(closed, 'the end of the server');
});

test('a stream whose client does not read is not waited for longer than the grace', async () => {
  // More than what the system takes off our hands.
  const models = Array.from({ length: 2_000 }, (_, index) => `${index}-${'x'.repeat(8_000)}`);
  await using server = await startServer({ gateway: testGateway({ drivers: [fakeDriver({ models })] }) });
  const stalled = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  stalled.pause();
  await within(server.close(50), 'the end of the server');
  stalled.leave();
});

test('a request that never ends is not waited for longer than the grace', async () => {
  await using server = await startServer();
  const socket = connect(server.port, '127.0.0.1');
  socket.on('error', () => {});
  await new Promise<void>(resolve => socket.once('connect', resolve));
  await new Promise<unknown>(resolve =>
    socket.write(
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"',
      resolve,
    ),
  );
  await within(server.close(50), 'the end of the server');
});

test('stopping twice is stopping once', async () => {
  const server = await startServer();
  await Promise.all([server.close(), server.close()]);
  await assert.rejects(fetch(server.url), TypeError);
});

test('connections on which nobody asked anything do not hold the stop up', async () => {
  await using server = await startServer();
  const opened = await Promise.all(
    ['', 'GET /heal'].map(async words => {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => {});
      await new Promise<void>(resolve => socket.once('connect', resolve));
      if (words) await new Promise<unknown>(resolve => socket.write(words, resolve));
      return socket;
    }),
  );
  await within(server.close(60_000), 'the end of the server');
  for (const socket of opened) socket.destroy();
});
