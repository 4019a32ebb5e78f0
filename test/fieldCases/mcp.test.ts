/** F11 and F16: MCP clients behind a gateway of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectMuster, type Json, request, type ToolReply, toolReply } from '../mcp/muster.ts';
import { caseOf, startCaseWorld, toolArgumentsOf } from '../support/cases.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { operations, startServer } from '../support/server.ts';

const inTime = { timeout: 30_000 };

test('F11: after the server was started anew, a client calls on with whatever session it has', inTime, async () => {
  const start = () => startServer({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a'] })] }) });
  let server = await start();
  const client = await connectMuster(() => `${server.url}/mcp`);
  assert.equal(client.session, null, 'there is no session to lose');
  assert.equal((await client.call('list_models')).isError, false);

  await server.close();
  server = await start();
  await using _ = server;
  assert.equal((await client.call('list_models')).data.models[0].name, 'a');
  for (const session of ['stale', crypto.randomUUID(), '']) {
    const options = { headers: { 'mcp-session-id': session, 'mcp-protocol-version': '2024-11-05' } };
    for (const [method, params] of [
      ['tools/list', {}],
      ['tools/call', { name: 'list_models', arguments: {} }],
      ['ping', {}],
    ] as const) {
      const { status, error, result } = await request(`${server.url}/mcp`, method, params, options);
      assert.deepEqual([status, error], [200, undefined], `${method} with the session ${JSON.stringify(session)}`);
      assert.doesNotMatch(JSON.stringify(result), /session/i);
    }
  }
});

/** What is left of a result in an envelope that keeps text and structured content, and in an older one that keeps text. */
const envelopes: readonly [string, (result: Json) => Json][] = [
  [
    'text and structured content',
    ({ isError, content, structuredContent }) => ({
      isError,
      content: content.filter(({ type }: Json) => type === 'text').map(({ text }: Json) => ({ type: 'text', text })),
      structuredContent,
    }),
  ],
  [
    'text',
    ({ isError, content }) => ({
      isError,
      content: content.filter(({ type }: Json) => type === 'text').map(({ text }: Json) => ({ type: 'text', text })),
    }),
  ],
];

test(
  'F16: an envelope that keeps nothing but text and structured content loses nothing, of any tool',
  inTime,
  async () => {
    await using world = await startCaseWorld();
    await using server = await startServer({ gateway: world.gateway });
    const call = async (name: string, args: object): Promise<{ sent: Json; arrived: ToolReply[] }> => {
      const { result } = await request(`${server.url}/mcp`, 'tools/call', { name, arguments: args });
      const arrived = envelopes.map(([, keep]) => toolReply(JSON.parse(JSON.stringify(keep(result)))));
      return { sent: result, arrived };
    };
    let called = 0;
    for (const operation of operations.filter(({ tool }) => tool)) {
      const name = operation.tool?.name ?? '';
      const { prepare, asks, refusal } = caseOf(operation);
      if (asks) {
        const { sent, arrived } = await call(
          name,
          toolArgumentsOf(operation, { ...asks, ...(await prepare?.(world)) }),
        );
        for (const { isError, data } of arrived) {
          assert.equal(isError, false, name);
          assert.deepEqual(data, sent.structuredContent, name);
        }
        assert.deepEqual(arrived[0]?.structuredContent, sent.structuredContent);
        assert.ok(
          Object.keys(sent).every(key =>
            ['content', 'structuredContent', 'isError', '_meta', 'resultType'].includes(key),
          ),
          name,
        );
        called++;
      }
      if (refusal) {
        const { sent, arrived } = await call(name, toolArgumentsOf(operation, refusal.asks));
        for (const { isError, code, text } of arrived)
          assert.deepEqual([isError, code, text], [true, refusal.code, sent.content[0].text], name);
      }
    }
    assert.ok(called > 15, `${called} tools were called`);
  },
);
