/** How the endpoint behaves towards muster, which keeps us connected or drops us by it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeDriver, hang } from '../support/gateway.ts';
import { callTool, connectMuster, post, request } from './muster.ts';
import { serveTools } from './serving.ts';

const inTime = { timeout: 8_000 };
const oneModel = () => [fakeDriver({ models: ['a:1b'] })];

test('muster connects, lists the tools and works, without a session', inTime, async t => {
  const { url, mcp } = await serveTools(t, { drivers: oneModel() });
  const muster = await connectMuster(() => url);
  assert.equal(muster.initialize.protocolVersion, '2024-11-05');
  assert.deepEqual(muster.initialize.serverInfo, { name: 'model-manager', version: '1.2.3' });
  assert.deepEqual(muster.initialize.capabilities, { tools: { listChanged: false } });
  assert.match(muster.initialize.instructions, /list_backends/);
  assert.equal(muster.session, null);
  assert.equal(muster.listenStatus, 405);
  assert.deepEqual(
    muster.tools.map(tool => tool.name),
    mcp.toolNames,
  );
  assert.deepEqual(await muster.ping(), {});
  assert.equal((await muster.call('list_models')).data.models[0].name, 'a:1b');
});

for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
  test(`the handshake of ${version} is answered with ${version}`, inTime, async t => {
    const { url } = await serveTools(t, { drivers: oneModel() });
    const client = await connectMuster(() => url, version);
    assert.equal(client.initialize.protocolVersion, version);
    assert.equal((await client.call('list_models')).isError, false);
  });
}

test('a handshake of a revision nobody knows is answered with the newest one', async t => {
  const { url } = await serveTools(t);
  const params = { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  assert.equal((await request(url, 'initialize', params)).result.protocolVersion, '2025-11-25');
});

test('server/discover of 2026-07-28 is answered on the same URL', async t => {
  const { url } = await serveTools(t);
  const version = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const headers = { 'mcp-protocol-version': version, 'mcp-method': 'server/discover' };
  const { status, result } = await request(url, 'server/discover', { _meta }, { headers });
  assert.equal(status, 200);
  assert.deepEqual(result.supportedVersions, [version]);
  assert.deepEqual(result.capabilities, { tools: { listChanged: false } });
});

test('a request to listen for changes is ended at once: there will be none', inTime, async t => {
  const { url } = await serveTools(t);
  const version = '2026-07-28';
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'subscriptions/listen',
    params: {
      notifications: { toolsListChanged: true },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': version,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': version,
      'mcp-method': 'subscriptions/listen',
    },
    body: JSON.stringify(message),
  });
  const events = (await response.text()).match(/^data: .*$/gm)?.map(line => JSON.parse(line.slice(6)));
  assert.deepEqual(events?.[0].params.notifications, {});
  assert.equal(events?.[1].result.resultType, 'complete');
});

test('a session id of another life is ignored, and none is missed', async t => {
  const { url, mcp } = await serveTools(t);
  for (const session of [undefined, 'mcp-session-0f1e2d3c', 'nonsense']) {
    const headers: Record<string, string> = session ? { 'mcp-session-id': session } : {};
    const { status, result, headers: answered } = await request(url, 'tools/list', {}, { headers });
    assert.equal(status, 200);
    assert.equal(result.tools.length, mcp.toolNames.length);
    assert.equal(answered.get('mcp-session-id'), null);
  }
});

test('a restart between two calls is not noticed', inTime, async t => {
  const first = await serveTools(t, { drivers: oneModel() });
  const muster = await connectMuster(() => first.url);
  assert.equal((await muster.call('list_models')).isError, false);
  await first.close();
  await serveTools(t, { drivers: oneModel(), port: first.port });
  assert.equal((await muster.call('list_models')).isError, false);
});

test('two processes may answer one client by turns', inTime, async t => {
  const urls = [await serveTools(t, { drivers: oneModel() }), await serveTools(t, { drivers: oneModel() })];
  let turn = 0;
  const muster = await connectMuster(() => urls[turn++ % 2]?.url ?? '');
  for (let round = 0; round < 6; round++) assert.equal((await muster.call('list_models')).isError, false);
});

test('twenty parallel calls get each its own answer', inTime, async t => {
  const names = Array.from({ length: 20 }, (_, index) => `m${index}:1b`);
  const { url } = await serveTools(t, { drivers: [fakeDriver({ models: names })] });
  const muster = await connectMuster(() => url);
  const answers = await Promise.all(names.map(model => muster.call('get_model', { model })));
  assert.deepEqual(
    answers.map(({ data }) => data.name),
    names,
  );
});

test('there is nothing but POST', async t => {
  const { url } = await serveTools(t);
  for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
    const response = await fetch(url, { method, headers: { 'mcp-session-id': 'mcp-session-1' } });
    assert.equal(response.status, 405, method);
    assert.equal(response.headers.get('allow'), 'POST');
    assert.equal(await response.text(), '');
  }
});

test('notifications are accepted, whatever they say', async t => {
  const { url } = await serveTools(t);
  for (const method of ['notifications/initialized', 'notifications/cancelled', 'notifications/nonsense']) {
    const { response } = await post(url, { jsonrpc: '2.0', method, params: { requestId: 7 } });
    assert.equal(response.status, 202, method);
  }
});

test('what is no JSON, no message or of another type is refused in JSON-RPC', async t => {
  const { url } = await serveTools(t);
  const send = async (body: string, type = 'application/json') => {
    const headers = { 'content-type': type };
    const response = await fetch(url, { method: 'POST', headers, body });
    return [response.status, ((await response.json()) as { error: { code: number } }).error.code];
  };
  assert.deepEqual(await send('{broken'), [400, -32700]);
  assert.deepEqual(await send(''), [400, -32700]);
  assert.deepEqual(await send('5'), [400, -32600]);
  assert.deepEqual(await send('null'), [400, -32600]);
  assert.deepEqual(await send('{}', 'text/plain'), [415, -32000]);
});

test('parameters of the content type and any Accept are fine', async t => {
  const { url } = await serveTools(t);
  for (const accept of ['*/*', 'application/json', 'text/event-stream']) {
    const headers = { accept, 'content-type': 'application/json; charset=utf-8' };
    assert.deepEqual((await request(url, 'ping', {}, { headers })).result, {});
  }
});

test('a batch is answered as a whole, also when it takes back one of its own requests', inTime, async t => {
  const { url } = await serveTools(t, { drivers: oneModel() });
  const batch = [
    { jsonrpc: '2.0', id: 'a', method: 'ping' },
    { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'list_models', arguments: null } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'b' } },
  ];
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(batch),
  });
  const replies = (await response.json()) as { id: string }[];
  assert.deepEqual(replies.map(({ id }) => id).sort(), ['a', 'b']);
});

test('a backend that hangs holds up nobody who does not ask it', inTime, async t => {
  const stuck = fakeDriver({ name: 'lemonade' });
  const hanging = hang();
  stuck.script.models = hanging.answer;
  const { url } = await serveTools(t, { drivers: [fakeDriver({ models: ['a:1b'] }), stuck] });
  const leaving = new AbortController();
  const waiting = assert.rejects(callTool(url, 'list_models', {}, { signal: leaving.signal }));
  await hanging.reached;
  assert.equal((await callTool(url, 'list_models', { backend: 'ollama' })).data.models.length, 1);
  leaving.abort();
  await waiting;
});
