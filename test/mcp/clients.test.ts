/** The clients people have: the SDKs of both generations. They check structured content against the output schemas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { fakeDriver } from '../support/gateway.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';
import { toolReply } from './muster.ts';
import { serveTools } from './serving.ts';

const inTime = { timeout: 10_000 };
const me = { name: 'test', version: '1' };
const oneModel = () => [fakeDriver({ models: [{ name: 'a:1b', sizeBytes: 5, modifiedAt: new Date(0) }] })];

/** A fetch that sends every request to the next of several endpoints. */
function byTurns(urls: readonly string[]) {
  let turn = 0;
  return (_url: string | URL, init?: RequestInit) => fetch(urls[turn++ % urls.length] as string, init);
}

const generations = {
  'the first generation': {
    version: '2025-11-25',
    async connect(urls: readonly string[]) {
      const client = new OldClient(me);
      const transport = new OldTransport(new URL(urls[0] as string), { fetch: byTurns(urls) });
      // Its types know no exact optional properties.
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      return { client, version: () => transport.protocolVersion };
    },
  },
  'the second generation with the handshake': {
    version: '2025-11-25',
    async connect(urls: readonly string[]) {
      const client = new Client(me);
      await client.connect(new StreamableHTTPClientTransport(new URL(urls[0] as string), { fetch: byTurns(urls) }));
      return { client, version: () => client.getNegotiatedProtocolVersion() };
    },
  },
  'the second generation without a handshake': {
    version: '2026-07-28',
    async connect(urls: readonly string[]) {
      const client = new Client(me, { versionNegotiation: { mode: 'auto' } });
      await client.connect(new StreamableHTTPClientTransport(new URL(urls[0] as string), { fetch: byTurns(urls) }));
      return { client, version: () => client.getNegotiatedProtocolVersion() };
    },
  },
};

for (const [generation, { version, connect }] of Object.entries(generations)) {
  test(`${generation}: lists, calls, is refused, by turns on two processes and over a restart`, inTime, async t => {
    const first = await serveTools(t, { drivers: oneModel() });
    const second = await serveTools(t, { drivers: oneModel() });
    const { client, version: negotiated } = await connect([first.url, second.url]);
    t.after(() => client.close());
    assert.equal(negotiated(), version);
    assert.equal(client.getServerVersion()?.name, 'model-manager');
    assert.match(client.getInstructions() ?? '', /list_backends/);

    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(tool => tool.name),
      first.mcp.toolNames,
    );

    const call = async (name: string, args: Record<string, unknown> = {}) =>
      toolReply(await client.callTool({ name, arguments: args }));
    for (let round = 0; round < 4; round++) {
      const { data, structuredContent } = await call('list_models');
      assert.equal(data.models[0].name, 'a:1b');
      assert.deepEqual(structuredContent, data);
    }
    assert.equal((await call('get_model', {})).code, 'backend_error');
    await assert.rejects(client.callTool({ name: 'x' }), { code: -32602 });

    await first.close();
    await serveTools(t, { drivers: oneModel(), port: first.port });
    for (let round = 0; round < 2; round++) assert.equal((await call('list_models')).isError, false);

    const many = await Promise.all(Array.from({ length: 20 }, () => call('get_model', { model: 'a:1b' })));
    assert.deepEqual(new Set(many.map(({ data }) => data.name)), new Set(['a:1b']));
  });
}

test('every tool passes the check of its output that the client makes by itself', inTime, async t => {
  const { url, mcp } = await serveTools(t, { drivers: [...oneModel(), servingDriver()], wiring: fakeWiring() });
  const { client } = await generations['the first generation'].connect([url]);
  t.after(() => client.close());
  await client.listTools();
  const pulled = toolReply(await client.callTool({ name: 'pull_model', arguments: { model: 'b:1b' } }));
  // Those that take the model away come last.
  const last = ['unload_model', 'delete_model'];
  // Refused where there is no Kubernetes.
  const refused = ['add_backend', 'remove_backend'];
  const args = { model: 'a:1b', query: 'a', id: pulled.data.job.id };
  for (const name of ['load_model', 'pull_model', ...last]) {
    const { isError, text, structuredContent } = toolReply(
      await client.callTool({ name, arguments: { model: 'a:1b', dryRun: true } }),
    );
    assert.equal(isError, false, `${name}: ${text}`);
    assert.equal((structuredContent as { dryRun: boolean }).dryRun, true, name);
  }
  for (const name of [...mcp.toolNames.filter(each => ![...last, ...refused].includes(each)), ...last]) {
    const reply = toolReply(await client.callTool({ name, arguments: args }));
    assert.equal(reply.isError, false, `${name}: ${reply.text}`);
  }
});
