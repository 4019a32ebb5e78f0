import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, describe, test } from 'node:test';
import { ask, send, startServer, within } from '../support/server.ts';
import { raw, startGuarded, untilClosed } from './lab.ts';

const server = await startGuarded();
after(() => server.close());

describe('check 40: bodies have an end', () => {
  test('300 KiB are refused with 413, announced or not', async () => {
    const body = JSON.stringify({ query: '{ __typename }', extensions: { x: 'x'.repeat(300 * 1024) } });
    assert.equal((await send(server.graphqlUrl, body)).status, 413);
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    assert.equal((await raw(server, { method: 'POST', headers }, body)).status, 413);
  });

  test('255 KiB are read', async () => {
    const body = JSON.stringify({ query: '{ __typename }', extensions: { x: 'x'.repeat(255 * 1024) } });
    assert.equal((await send(server.graphqlUrl, body)).status, 200);
  });

  test('one that goes on for ever is answered and cut off', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const answer: Buffer[] = [];
    socket.on('data', chunk => answer.push(chunk));
    socket.on('error', () => {});
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    socket.write(
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    let sent = 0;
    const pump = () => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
      sent += chunk.length;
      if (!socket.destroyed) socket.once('drain', pump);
    };
    pump();
    await within(closed, 'the end of the connection');
    assert.match(Buffer.concat(answer).toString(), /^HTTP\/1\.1 413 /);
    assert.ok(sent < 16e6, `${sent} bytes were taken`);
  });

  test('one that comes slowly holds up nobody', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{',
    );
    assert.equal((await ask(server, '{ __typename }')).status, 200);
    socket.destroy();
  });
});

describe('check 40: what comes too slowly is cut off', () => {
  for (const [what, bytes] of [
    [
      'a body without end',
      'POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{',
    ],
    ['a body of REST', 'POST /api/v1/models/pull HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n{'],
    ['a body of MCP', 'POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\n'],
    ['headers without end', 'GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: b\r\n'],
  ] as const) {
    test(`${what}: 408, and others are served meanwhile`, async () => {
      await using hasty = await startServer({ limits: { requestTimeout: 300 } });
      const sent = bytes.replace('host: x', `host: 127.0.0.1:${hasty.port}`);
      const end = untilClosed(hasty, sent);
      assert.equal((await ask(hasty, '{ __typename }')).status, 200);
      assert.match(await end, /^HTTP\/1\.1 408 /);
      assert.deepEqual(hasty.refused, ['request_timeout']);
      assert.equal((await send(`${hasty.url}/healthz`)).text, 'ok');
    });
  }

  test('an answer that takes longer than a request may is no request', async () => {
    await using hasty = await startGuarded({ limits: { requestTimeout: 300 } });
    const go = Promise.withResolvers<void>();
    hasty.driver.script.load = () => go.promise;
    const slow = ask(hasty, 'mutation { loadModel(model: "a") { name } }');
    // One that never comes is cut off after this one was asked, so that time has passed for both.
    assert.match(await untilClosed(hasty, 'GET / HTTP/1.1\r\nhost: localhost\r\n'), / 408 /);
    go.resolve();
    assert.equal((await slow).json.errors, undefined);
  });
});

test('headers over 16 KiB: 431, and counted; 15 KiB are read', async () => {
  await using own = await startServer();
  const head = (bytes: number) =>
    `GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-a: ${'x'.repeat(bytes)}\r\n\r\n`;
  assert.match(await untilClosed(own, head(17 * 1024)), /^HTTP\/1\.1 431 /);
  assert.deepEqual(own.refused, ['headers']);
  assert.match(await untilClosed(own, head(15 * 1024)), /^HTTP\/1\.1 200 /);
});

test('what is no HTTP is answered with 400, and counts as nothing', async () => {
  await using own = await startServer();
  assert.match(await untilClosed(own, 'HELO there\r\n\r\n'), /^HTTP\/1\.1 400 /);
  assert.deepEqual(own.refused, []);
});

test('an MCP message over its limit: 413, and counted; a REST body is cut, as its contract says', async () => {
  await using own = await startServer();
  const filler = 'x'.repeat(1024 * 1024);
  assert.equal((await send(`${own.url}/mcp`, { filler })).status, 413);
  const cut = await send(`${own.url}/api/v1/models/pull`, { model: 'a', filler });
  assert.deepEqual([cut.status, cut.json.error.code], [400, 'invalid_request']);
  assert.deepEqual(own.refused, ['body', 'body']);
});
