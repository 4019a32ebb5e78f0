import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { send, startServer, type TestServer, within } from '../support/server.ts';
import { pull, raw, startGuarded } from './lab.ts';

const server = await startGuarded();
after(() => server.close());

describe('check 29: a mutation is only taken as JSON by POST', () => {
  const form = new URLSearchParams({ query: pull }).toString();
  const multipart = `--x\r\ncontent-disposition: form-data; name="query"\r\n\r\n${pull}\r\n--x--\r\n`;
  const operations = `--x\r\ncontent-disposition: form-data; name="operations"\r\n\r\n${JSON.stringify({ query: pull })}\r\n--x\r\ncontent-disposition: form-data; name="map"\r\n\r\n{}\r\n--x--\r\n`;
  for (const [type, body] of [
    ['application/x-www-form-urlencoded', form],
    ['multipart/form-data; boundary=x', multipart],
    ['multipart/form-data; boundary=x', operations],
    ['text/plain', JSON.stringify({ query: pull })],
    ['text/plain; application/json', JSON.stringify({ query: pull })],
    ['application/graphql', pull],
    ['', JSON.stringify({ query: pull })],
  ] as const) {
    test(`${type || 'no content type'} is refused, and nothing happens`, () =>
      server.untouched(async () => {
        for (const accept of ['*/*', 'application/graphql-response+json', 'text/event-stream']) {
          const headers = { accept, ...(type && { 'content-type': type }) };
          const { status } = await raw(server, { method: 'POST', headers }, body);
          assert.equal(status, 415);
        }
      }));
  }

  test('nor does MCP take it as anything but JSON', () =>
    server.untouched(async () => {
      const params = { name: 'pull_model', arguments: { model: 'x' } };
      const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      for (const type of [
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'text/plain',
        undefined,
      ]) {
        const headers = type ? { 'content-type': type } : {};
        const { status } = await raw(server, { method: 'POST', path: '/mcp', headers }, call);
        assert.ok(status >= 400 && status < 500, `${type}: ${status}`);
      }
    }));

  test('other methods are refused with 405', () =>
    server.untouched(async () => {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const { status } = await raw(
          server,
          { method, headers: { 'content-type': 'application/json' } },
          JSON.stringify({ query: pull }),
        );
        assert.equal(status, 405, method);
      }
    }));

  test('a page of another origin cannot use the REST routes either', () =>
    server.untouched(async () => {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', undefined]) {
        const headers = { origin: 'https://evil.example', ...(type && { 'content-type': type }) };
        const req = { method: 'POST', path: '/api/v1/models/pull', headers };
        assert.equal((await raw(server, req, '{"model":"x"}')).status, 403);
      }
    }));
});

test('check 33: a mutation by GET is refused with 405', () =>
  server.untouched(async () => {
    for (const accept of ['*/*', 'application/graphql-response+json', 'text/html, */*', 'text/event-stream']) {
      const answer = await send(`${server.graphqlUrl}?query=${encodeURIComponent(pull)}`, undefined, {
        headers: { accept },
      });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), 'POST');
    }
  }));

test('check 30: no origin is told that it may read answers', async () => {
  for (const origin of ['https://evil.example', 'null', server.url]) {
    for (const path of ['/graphql', '/api/v1/models', '/mcp', '/healthz', '/api/v1/openapi.yaml']) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
        const headers = { origin, 'content-type': 'application/json', ...(method === 'OPTIONS' && preflight) };
        const { headers: answered } = await raw(
          server,
          { method, path, headers },
          method === 'POST' ? '{"query":"{__typename}"}' : undefined,
        );
        assert.doesNotMatch(JSON.stringify(answered), /access-control/i, `${method} ${path} ${origin}`);
      }
    }
  }
});

test('check 30: a page of an allowed origin may ask and read, and no other', async () => {
  const portal = 'https://portal.example';
  await using open = await startGuarded({ allowedOrigins: [portal] });
  const json = { 'content-type': 'application/json' };
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
  for (const path of ['/graphql', '/api/v1/models', '/mcp', '/healthz']) {
    const asked = await raw(open, { method: 'OPTIONS', path, headers: { origin: portal, ...preflight } });
    assert.equal(asked.status, 204, path);
    assert.equal(asked.headers['access-control-allow-origin'], portal);
    assert.equal(asked.headers.vary, 'Origin');
    assert.equal(asked.headers['access-control-allow-credentials'], undefined);
    for (const origin of [
      'https://evil.example',
      'https://portal.example.evil.example',
      'http://portal.example',
      'null',
    ]) {
      const refused = await raw(open, { method: 'OPTIONS', path, headers: { origin, ...preflight } });
      assert.notEqual(refused.status, 204, `${path} ${origin}`);
      assert.equal(refused.headers['access-control-allow-origin'], undefined);
      assert.equal(refused.headers.vary, 'Origin');
    }
  }
  const body = '{"query":"{ __typename }"}';
  const answer = await raw(open, { method: 'POST', headers: { ...json, origin: portal } }, body);
  assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, portal]);
  const foreign = await raw(open, { method: 'POST', headers: { ...json, origin: 'https://evil.example' } }, body);
  assert.deepEqual([foreign.status, foreign.headers['access-control-allow-origin']], [403, undefined]);
  assert.equal(await upgradeFrom(open, { origin: portal }), 'HTTP/1.1 101 Switching Protocols');
  assert.equal(await upgradeFrom(open, { origin: 'https://evil.example' }), 'HTTP/1.1 403 Forbidden');
});

/** Sends the request of a browser that wants a WebSocket, and gives the status line of the answer. */
async function upgradeFrom(server: TestServer, headers: Record<string, string>, path = '/graphql'): Promise<string> {
  const socket = connect(server.port, '127.0.0.1');
  const all = {
    host: `127.0.0.1:${server.port}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-version': '13',
    'sec-websocket-protocol': 'graphql-transport-ws',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.on('error', reject);
  socket.once('data', chunk => resolve(String(chunk).split('\r\n', 1)[0] as string));
  const status = await within(promise, 'an answer');
  socket.destroy();
  return status;
}

test('check 31: a page of another origin gets no socket: 403', async () => {
  for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${server.port + 1}`, 'http://localhost']) {
    assert.equal(await upgradeFrom(server, { origin }), 'HTTP/1.1 403 Forbidden', origin);
  }
  const own = await upgradeFrom(server, { origin: server.url });
  assert.equal(own, 'HTTP/1.1 101 Switching Protocols');
  assert.equal(await upgradeFrom(server, { host: 'evil.example' }), 'HTTP/1.1 403 Forbidden');
  assert.equal(await upgradeFrom(server, {}, '/mcp'), 'HTTP/1.1 404 Not Found');
});

describe('check 32: a server on this machine only answers to names of this machine', () => {
  const hosts: Array<[host: string, status: number]> = [
    ['evil.example', 403],
    [`evil.example:${server.port}`, 403],
    ['127.0.0.1.evil.example', 403],
    ['localhost.evil.example', 403],
    [`127.0.0.1:${server.port}`, 200],
    ['localhost', 200],
    ['[::1]:80', 200],
  ];
  for (const [host, status] of hosts) {
    test(`Host: ${host} → ${status}`, async () => {
      for (const path of ['/graphql?query={__typename}', '/healthz', '/api/v1/models', '/api/v1/openapi.yaml']) {
        assert.equal((await raw(server, { path, headers: { host } })).status, status, path);
      }
    });
  }

  test('no Host at all → 403', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.end('GET /healthz HTTP/1.0\r\n\r\n');
    assert.match(await within(text(socket), 'an answer'), /^HTTP\/1\.1 403 /);
  });

  test('Host is not asked of a server that listens on every address', async () => {
    await using open = await startServer({ host: '0.0.0.0' });
    const req = request(`http://127.0.0.1:${open.port}/healthz`, {
      agent: false,
      headers: { host: 'gateway.example' },
    });
    req.end();
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      req.on('response', resolve).on('error', reject),
    );
    assert.equal(response.statusCode, 200);
    response.resume();
  });
});
test('check 34: a batch is refused with 400', () =>
  server.untouched(async () => {
    const { status, json } = await send(server.graphqlUrl, [{ query: pull }, { query: pull }]);
    assert.equal(status, 400);
    assert.equal(json.errors[0].extensions.code, 'invalid_request');
  }));
