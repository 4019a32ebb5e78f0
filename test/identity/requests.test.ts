import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { callTool } from '../mcp/muster.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { eventually, openSocket, openStream, send, textOf, within } from '../support/server.ts';
import { baseUrl, bearer, serveLab } from './lab.ts';

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const challenge = (path: string) =>
  `Bearer resource_metadata="${baseUrl}/.well-known/oauth-protected-resource${path}", error="invalid_token", ` +
  'error_description="sign in: send a token as Authorization: Bearer TOKEN"';

const faces: readonly (readonly [string, string, readonly (readonly [string, unknown])[]])[] = [
  [
    'check 1: without a token REST answers 401 and says where to sign in',
    '',
    [
      ['/api/v1/models', undefined],
      ['/api/v1/openapi.yaml', undefined],
      ['/api/v1/nothing', undefined],
      ['/api/v1/models/pull', { model: 'qwen3:8b' }],
    ],
  ],
  [
    'check 2: without a token GraphQL answers 401, not 200 with errors, and says where to sign in',
    '',
    [
      ['/graphql', { query: '{ models { items { name } } }' }],
      ['/graphql', { query: 'mutation { pullModel(model: "qwen3:8b") { created } }' }],
      ['/graphql?query=%7B__typename%7D', undefined],
    ],
  ],
  [
    'check 3: without a token MCP answers 401, to initialize too, and says where to sign in',
    '/mcp',
    [
      ['/mcp', initialize],
      ['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    ],
  ],
];
for (const [title, metadata, asks] of faces) {
  test(title, async () => {
    const driver = fakeDriver({ models: ['qwen3:8b'] });
    await using lab = await serveLab({ gateway: testGateway({ drivers: [driver] }) });
    driver.asked.length = 0;
    for (const accept of ['*/*', 'application/graphql-response+json', 'text/event-stream']) {
      for (const [path, body] of asks) {
        const { status, headers, json } = await send(`${lab.server.url}${path}`, body, { headers: { accept } });
        assert.equal(status, 401, path);
        assert.equal(headers.get('www-authenticate'), challenge(metadata), path);
        assert.deepEqual(json, {
          error: 'invalid_token',
          error_description: 'sign in: send a token as Authorization: Bearer TOKEN',
        });
      }
    }
    assert.deepEqual(driver.asked, [], 'nothing was executed');
    assert.deepEqual(lab.server.gateway.jobs.store.list(), []);
  });
}

test('with a token every face answers', async () => {
  const driver = fakeDriver({ models: ['qwen3:8b'] });
  await using lab = await serveLab({ gateway: testGateway({ drivers: [driver] }) });
  const { url, graphqlUrl } = lab.server;
  const headers = bearer(await lab.issuer.token());
  const rest = await send(`${url}/api/v1/models`, undefined, { headers });
  assert.equal(rest.json.models[0].name, 'qwen3:8b');
  const graphql = await send(graphqlUrl, { query: '{ models { items { name } } }' }, { headers });
  assert.deepEqual(graphql.json.data.models.items, [{ name: 'qwen3:8b' }]);
  assert.equal((await send(`${url}/mcp`, initialize, { headers })).status, 200);
  const socket = await openSocket(lab.server.socketUrl, { payload: { Authorization: headers.authorization } });
  socket.send({ type: 'subscribe', id: '1', payload: { query: '{ models { items { name } } }' } });
  assert.deepEqual((await socket.next()).payload.data.models.items, [{ name: 'qwen3:8b' }]);
  socket.raw.terminate();
});

test('check 4: a WebSocket without a good token is closed before anything is executed', async () => {
  const driver = fakeDriver({ models: ['qwen3:8b'] });
  await using lab = await serveLab({ gateway: testGateway({ drivers: [driver] }) });
  const key = lab.issuer.keys[0];
  const now = Math.floor(Date.now() / 1000);
  driver.asked.length = 0;
  const cases: readonly (readonly [object | undefined, number, string])[] = [
    [undefined, 4401, 'sign in: '],
    [{}, 4401, 'sign in: '],
    [{ authorization: 'Bearer nonsense' }, 4401, 'the bearer is no id_token'],
    [{ authorization: 7 }, 4401, 'sign in: '],
    [bearer(await lab.issuer.token({ aud: 'other' })), 4401, 'the bearer is an id_token for audience [other]'],
    [bearer(await lab.issuer.token({ iss: 'https://other' })), 4401, 'the token was not issued by'],
    // These clients may have a better one when they come again.
    [bearer(await lab.issuer.token({ exp: now - 31 })), 4403, 'the token has expired'],
    [
      bearer(await lab.issuer.token({}, { ...(key && { key: { ...key, kid: 'next' } }) })),
      4403,
      'the token is not signed',
    ],
  ];
  for (const [payload, code, reason] of cases) {
    const socket = await openSocket(lab.server.socketUrl, { init: false });
    socket.send({ type: 'connection_init', payload });
    socket.send({ type: 'subscribe', id: '1', payload: { query: '{ models { items { name } } }' } });
    const closed = await within(socket.closed, 'the end of the socket');
    assert.ok([code, 4401].includes(closed.code), `${closed.code} ${closed.reason}`);

    const waiting = await openSocket(lab.server.socketUrl, { init: false });
    waiting.send({ type: 'connection_init', payload });
    const { code: closedWith, reason: because } = await within(waiting.closed, 'the end of the socket');
    assert.equal(closedWith, code, because);
    assert.ok(because.startsWith(reason), because);
  }
  assert.deepEqual(driver.asked, [], 'nothing was executed');
});

test('check 16: a token in the query is no token', async () => {
  await using lab = await serveLab();
  const token = await lab.issuer.token();
  for (const name of ['access_token', 'token', 'authorization']) {
    assert.equal((await send(`${lab.server.url}/api/v1/models?${name}=${token}`)).status, 401);
    assert.equal((await send(`${lab.server.graphqlUrl}?query=%7B__typename%7D&${name}=${token}`)).status, 401);
  }
  assert.ok(!lab.server.logged.join('').includes(token));
});

test('check 18: the metadata is public, names what clients dial, and has no secret', async () => {
  await using lab = await serveLab();
  for (const [path, resource] of [
    ['', baseUrl],
    ['/mcp', `${baseUrl}/mcp`],
  ] as const) {
    const url = `${lab.server.url}/.well-known/oauth-protected-resource${path}`;
    const { status, headers, json } = await send(url);
    assert.equal(status, 200);
    assert.deepEqual(json, {
      resource,
      resource_name: 'model-manager',
      authorization_servers: [lab.issuer.url],
      scopes_supported: ['openid', 'profile', 'email'],
      bearer_methods_supported: ['header'],
    });
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.equal(headers.get('access-control-allow-credentials'), null);
    assert.match(headers.get('cache-control') ?? '', /public/);
    assert.equal((await send(url, undefined, { method: 'OPTIONS' })).headers.get('access-control-allow-headers'), '*');
    assert.equal((await send(url, {})).status, 405);
  }
});

test('probes are public, and what is not there is not there', async () => {
  await using lab = await serveLab();
  for (const path of ['/healthz', '/readyz', '/backendz']) {
    assert.equal((await send(`${lab.server.url}${path}`)).status, 200, path);
  }
  for (const path of ['/.well-known/oauth-authorization-server', '/oauth/token']) {
    assert.equal((await send(`${lab.server.url}${path}`)).status, 404, path);
  }
  assert.equal((await send(`${lab.server.url}/mcp`, undefined, { method: 'DELETE' })).status, 405);
  // No spelling of a path is one without a guard.
  for (const path of ['//api/v1/models', '/API/v1/models', '/api/v1/models/', '/healthz/../api/v1/models', '/mcp/']) {
    const { status } = await send(`${lab.server.url}${path}`);
    assert.ok(status === 401 || status === 404, `${path}: ${status}`);
  }
});

test('check 28: who asked is in the line of the log and in the job', async () => {
  const logged: string[] = [];
  const log = pino({}, { write: line => logged.push(line) });
  await using lab = await serveLab({ gateway: testGateway({ log }) });
  const { url, graphqlUrl } = lab.server;
  const people = [
    [{}, 'jane@example.com'],
    [{ sub: 'robot', email: undefined }, 'robot'],
    [{ sub: 'anna', email: 'anna@example.com' }, 'anna@example.com'],
  ] as const;
  for (const [index, [claims, name]] of people.entries()) {
    const token = await lab.issuer.token(claims);
    const headers = bearer(token);
    const model = `model-${index}`;
    if (index === 0) await send(`${url}/api/v1/models/pull`, { model }, { headers });
    if (index === 1) await callTool(`${url}/mcp`, 'pull_model', { model }, { headers });
    if (index === 2) {
      const socket = await openSocket(lab.server.socketUrl, { payload: { authorization: headers.authorization } });
      socket.send({ type: 'subscribe', id: '1', payload: { query: textOf('pullModel'), variables: { model } } });
      await socket.next('the job');
      socket.raw.terminate();
    }
    const { json } = await send(graphqlUrl, { query: '{ jobs { items { reference requestedBy } } }' }, { headers });
    const job = json.data.jobs.items.find((each: { reference: string }) => each.reference.includes(model));
    assert.equal(job?.requestedBy, name, JSON.stringify(json));
    const lines = logged.filter(line => line.includes('pull started') && line.includes(model));
    assert.equal(lines.length, 1, logged.join(''));
    assert.equal(JSON.parse(lines[0] as string).caller, name);
    assert.ok(![...logged, ...lab.server.logged, ...lab.logged].join('').includes(token), 'no token is logged');
  }
});

test('check 30: what a page asks before its request carries no token, and a refusal can be read by the page', async () => {
  const origin = 'https://portal.example';
  await using lab = await serveLab({ allowedOrigins: [origin] });
  const asks = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  const preflight = await fetch(lab.server.graphqlUrl, { method: 'OPTIONS', headers: asks });
  assert.equal(preflight.status, 204);
  assert.match(String(preflight.headers.get('access-control-allow-headers')), /authorization/i);
  const refused = await send(lab.server.graphqlUrl, { query: '{ __typename }' }, { headers: { origin } });
  assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [401, origin]);
});

test('check 50: the mutations of a person are counted whatever token they send, those of others are theirs', async () => {
  await using lab = await serveLab({ limits: { mutations: 1 } });
  const unload = async (claims: Record<string, unknown>) => {
    const headers = bearer(await lab.issuer.token(claims));
    return (await send(`${lab.server.url}/api/v1/models/unload`, { model: 'x' }, { headers })).status;
  };
  await unload({ sub: 'a', jti: '1' });
  assert.equal(await unload({ sub: 'a', jti: '2' }), 429);
  assert.notEqual(await unload({ sub: 'b' }), 429);
});

test('check 41: streams take a seat as sockets do; one too many is refused with 429 before anything is done for it', async () => {
  const driver = fakeDriver({ models: ['qwen3:8b'] });
  const limits = { socketsPerCaller: 3 };
  await using lab = await serveLab({ gateway: testGateway({ drivers: [driver] }), limits });
  const { graphqlUrl, socketUrl, counts, refused } = lab.server;
  const query = textOf('watchModels');
  const jane = bearer(await lab.issuer.token());
  const [first] = [await openStream(graphqlUrl, { query }, jane), await openStream(graphqlUrl, { query }, jane)];
  // Another token of the same person is the same person.
  const again = bearer(await lab.issuer.token({ jti: 'again' }));
  const socket = await openSocket(socketUrl, { payload: again });
  await eventually(() => counts.members === 2, 'both follow');

  driver.asked.length = 0;
  const other = 'subscription { jobs { revision } }';
  const accept = 'text/event-stream';
  const fourth = await send(graphqlUrl, { query: other }, { headers: { ...again, accept } });
  assert.deepEqual([fourth.status, fourth.headers.get('retry-after')], [429, '5']);
  assert.equal(fourth.json.errors[0].extensions.code, 'rate_limited');
  assert.deepEqual([counts.members, driver.asked], [2, []]);
  const more = await openSocket(socketUrl, { init: false });
  more.send({ type: 'connection_init', payload: jane });
  assert.equal((await within(more.closed, 'the end of the socket')).code, 1013);
  assert.deepEqual(refused, ['sockets_per_caller', 'sockets_per_caller']);

  // What is answered at once takes no seat, and others have their own.
  const single = await send(graphqlUrl, { query: '{ __typename }' }, { headers: { ...jane, accept } });
  assert.equal(single.status, 200);
  const anna = await openStream(graphqlUrl, { query }, bearer(await lab.issuer.token({ sub: 'anna' })));
  await anna.next('the state');
  first.leave();
  await eventually(() => counts.members === 2, 'one has left');
  const instead = await openStream(graphqlUrl, { query }, jane);
  assert.equal(instead.response.statusCode, 200);
  socket.raw.terminate();
});
