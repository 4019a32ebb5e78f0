import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createCall } from '../../src/call.ts';
import type { GatewayError } from '../../src/errors.ts';
import { networkOf } from '../../src/http/guard.ts';
import { limitMutations } from '../../src/http/mutations.ts';
import { callTool, request } from '../mcp/muster.ts';
import { silent } from '../support/gateway.ts';
import { ask, openSocket, send } from '../support/server.ts';
import { type GuardedServer, startGuarded } from './lab.ts';

const load = 'mutation { loadModel(model: "a") { name } }';

/** A server on which its one caller may not change anything for the rest of the minute. */
async function exhausted(): Promise<GuardedServer> {
  const server = await startGuarded({ limits: { mutations: 60 } });
  const rounds = 60 / 4;
  for (let round = 0; round < rounds; round++) {
    assert.equal((await ask(server, load)).status, 200);
    assert.equal((await send(`${server.url}/api/v1/models/load`, { model: 'a' })).status, 200);
    assert.equal((await callTool(`${server.url}/mcp`, 'load_model', { model: 'a' })).isError, false);
    const two = await send(server.graphqlUrl, { query: load }, { headers: { accept: 'text/event-stream' } });
    assert.equal(two.status, 200);
  }
  return server;
}

test('check 50: the 61st mutation of a minute is refused on every face, before the backend is asked', async () => {
  await using server = await exhausted();
  await server.untouched(async () => {
    for (const accept of ['*/*', 'application/graphql-response+json', 'text/event-stream']) {
      const answer = await send(server.graphqlUrl, { query: load }, { headers: { accept } });
      assert.equal(answer.status, 429, accept);
      const seconds = Number(answer.headers.get('retry-after'));
      assert.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${answer.headers.get('retry-after')}`);
      const { code, http } = answer.json.errors[0].extensions;
      assert.deepEqual([code, http], ['rate_limited', { status: 429 }]);
      assert.equal(answer.json.data, undefined);
    }
    const rest = await send(`${server.url}/api/v1/models/load`, { model: 'a' });
    assert.equal(rest.status, 429);
    assert.ok(Number(rest.headers.get('retry-after')) >= 1);
    assert.equal(rest.json.error.code, 'rate_limited');

    const tool = await callTool(`${server.url}/mcp`, 'load_model', { model: 'a' });
    assert.deepEqual([tool.isError, tool.code], [true, 'rate_limited']);
    assert.match(tool.text, /^rate_limited: .*60 in a minute; ask again in \d+ s$/);

    const socket = await openSocket(server.socketUrl);
    socket.send({ id: '1', type: 'subscribe', payload: { query: load } });
    const { type, payload } = await socket.next();
    assert.deepEqual([type, payload[0].extensions.code], ['error', 'rate_limited']);
    socket.raw.terminate();
  });
  assert.deepEqual(server.refused, Array(6).fill('mutations'));
});

test('check 50: reads, dry runs and what MCP begins with go on', async () => {
  await using server = await exhausted();
  assert.equal((await ask(server, '{ models { totalCount } }')).json.errors, undefined);
  assert.equal((await send(`${server.url}/api/v1/models`)).status, 200);
  assert.equal((await send(`${server.url}/api/v1/models/pull`, { model: 'x', dryRun: true })).status, 200);
  const begun = await request(`${server.url}/mcp`, 'initialize', {
    protocolVersion: '2024-11-05',
    capabilities: {},
    clientInfo: { name: 'muster-aggregator', version: '1.0.0' },
  });
  assert.equal(begun.status, 200);
  assert.equal((await request(`${server.url}/mcp`, 'tools/list')).status, 200);
  assert.equal((await callTool(`${server.url}/mcp`, 'list_models')).isError, false);
  assert.equal((await callTool(`${server.url}/mcp`, 'pull_model', { model: 'x', dryRun: true })).isError, false);
  const removal = await callTool(`${server.url}/mcp`, 'remove_backend', { kind: 'lmstudio', dryRun: true });
  assert.match(removal.text, /^unsupported: /, 'refused for what it is, not for how many there were');
  assert.deepEqual(server.refused, []);
});

test('check 50: a mutation of several fields is several', async () => {
  await using server = await startGuarded({ limits: { mutations: 3 } });
  const two =
    'mutation { a: loadModel(model: "a") { name } ...F } fragment F on Mutation { b: loadModel(model: "a") { name } }';
  assert.equal((await ask(server, two)).status, 200);
  assert.equal((await ask(server, two)).status, 429);
  assert.equal((await ask(server, load)).status, 200, 'one is left');
  assert.equal((await ask(server, load)).status, 429);
});

describe('check 50: each caller has a minute of its own', () => {
  const by = (name: string) =>
    createCall({ log: silent, caller: { name, anonymous: false, subject: name, scope: '' }, address: '192.0.2.1' });
  const from = (address: string) => createCall({ log: silent, address });

  function limited(limit: number) {
    let time = 1_000_000;
    const { admit } = limitMutations({ limit, now: () => time });
    return {
      pass: (ms: number) => {
        time += ms;
      },
      /** 0 when admitted, else the milliseconds to wait. */
      ask(call: ReturnType<typeof by>, count?: number): number {
        try {
          admit(call, count);
          return 0;
        } catch (error) {
          return (error as GatewayError).details?.retryAfterMs as number;
        }
      },
    };
  }

  test('one caller is refused, others are not, at the same address too', () => {
    const { ask } = limited(2);
    assert.deepEqual([ask(by('a')), ask(by('a'))], [0, 0]);
    assert.ok(ask(by('a')) > 0);
    assert.equal(ask(by('b')), 0);
    assert.equal(ask(from('192.0.2.1')), 0);
    assert.equal(ask(from('192.0.2.2')), 0);
  });

  test('in no minute are there more than allowed, and who comes when told to is let in', () => {
    const { ask, pass } = limited(3);
    const caller = by('a');
    assert.equal(ask(caller), 0);
    pass(20_000);
    assert.equal(ask(caller, 2), 0);
    pass(10_000);
    const wait = ask(caller);
    assert.equal(wait, 30_000);
    pass(wait - 1);
    assert.equal(ask(caller), 1);
    pass(1);
    assert.equal(ask(caller), 0);
    assert.equal(ask(caller, 2), 20_000);
  });

  test('more at once than a minute has is never let in', () => {
    const { ask, pass } = limited(3);
    assert.equal(ask(by('a'), 4), 60_000);
    pass(60_000);
    assert.equal(ask(by('a'), 4), 60_000);
  });

  test('an IPv6 caller is a network, an IPv4 caller an address', () => {
    assert.equal(networkOf('2001:db8:1:2:3:4:5:6'), networkOf('2001:db8:1:2:ffff::1'));
    assert.notEqual(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:3::1'));
    assert.equal(networkOf('2001:db8::1'), '2001:db8:0:0::/64');
    assert.equal(networkOf('::1'), '0:0:0:0::/64');
    assert.equal(networkOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
    assert.equal(networkOf('::ffff:192.0.2.1'), '192.0.2.1');
    assert.notEqual(networkOf('192.0.2.1'), networkOf('192.0.2.2'));
  });
});
