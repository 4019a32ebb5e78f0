import assert from 'node:assert/strict';
import { mock, type TestContext, test } from 'node:test';
import { at } from '../../src/identity/expiry.ts';
import { openSocket, openStream, send, textOf, within } from '../support/server.ts';
import { bearer, serveLab } from './lab.ts';

const began = Date.UTC(2030, 0, 1);

function mockClock(t: TestContext) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: began });
  t.after(() => mock.timers.reset());
}

test('check 19: a WebSocket is closed with 4403 when its token expires, though nothing happens', async t => {
  mockClock(t);
  await using lab = await serveLab();
  const token = await lab.issuer.token({ exp: began / 1000 + 300 });
  const socket = await openSocket(lab.server.socketUrl, { payload: { Authorization: `Bearer ${token}` } });
  socket.send({ type: 'subscribe', id: '1', payload: { query: textOf('watchJobs') } });
  await socket.next('the first state');
  let closed = false;
  void socket.closed.then(() => {
    closed = true;
  });
  mock.timers.tick(299_000);
  socket.send({ type: 'ping' });
  assert.equal((await socket.next()).type, 'pong');
  assert.equal(closed, false);
  mock.timers.tick(2_000);
  assert.deepEqual(await within(socket.closed, 'the end of the socket'), { code: 4403, reason: 'token expired' });
});

test('check 20: a stream ends when its token expires: it says why, and does not say that it is complete', async t => {
  mockClock(t);
  await using lab = await serveLab();
  const headers = bearer(await lab.issuer.token({ exp: began / 1000 + 300 }));
  const stream = await openStream(lab.server.graphqlUrl, { query: textOf('watchJobs') }, headers);
  await stream.nextPayload('the first state');
  mock.timers.tick(299_000);
  assert.equal(stream.response.readableEnded, false);
  mock.timers.tick(2_000);
  const last = await stream.nextPayload('why it ends');
  assert.deepEqual(last.errors[0].extensions, { code: 'unauthenticated', http: { status: 401 } });
  await within(stream.ended, 'the end of the stream');
  assert.deepEqual(stream.unread, [], 'a stream that is complete is not asked for again');
  assert.equal(lab.server.counts.members, 0);
});

test('check 20: a stream whose client does not read ends, too', async t => {
  mockClock(t);
  await using lab = await serveLab();
  const headers = bearer(await lab.issuer.token({ exp: began / 1000 + 300 }));
  const stream = await openStream(lab.server.graphqlUrl, { query: textOf('watchJobs') }, headers);
  await stream.nextPayload('the first state');
  stream.pause();
  mock.timers.tick(301_000);
  assert.equal(lab.server.counts.members, 0);
  mock.timers.tick(3_000);
  stream.resume();
  await within(stream.ended, 'the end of the stream');
});

test('check 20: at /mcp there is no stream that could outlive its token', async () => {
  await using lab = await serveLab();
  const headers = { ...bearer(await lab.issuer.token()), accept: 'text/event-stream' };
  const { status } = await send(`${lab.server.url}/mcp`, undefined, { headers });
  assert.equal(status, 405);
});

test('a client that comes with a newer token goes on: tokens of one person, one after another, are one caller', async t => {
  mockClock(t);
  await using lab = await serveLab();
  const first = bearer(await lab.issuer.token({ exp: began / 1000 + 60 }));
  const second = bearer(await lab.issuer.token({ exp: began / 1000 + 600 }));
  const ask = (headers: Record<string, string>) =>
    send(`${lab.server.url}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { headers });
  assert.equal((await ask(first)).status, 200);
  assert.equal((await ask(second)).status, 200);
  mock.timers.tick(91_000);
  assert.equal((await ask(first)).status, 401);
  assert.equal((await ask(second)).status, 200);
});

test('a time that no timer reaches is waited for', t => {
  mockClock(t);
  let came = 0;
  at(began + 2 ** 32, () => came++);
  const cancel = at(began + 2 ** 32, () => assert.fail('cancelled'));
  mock.timers.tick(2 ** 31);
  assert.equal(came, 0);
  cancel();
  mock.timers.tick(2 ** 31);
  assert.equal(came, 1);
});
