import { startChild } from './child.ts';
import { ask, createLoad, requestOf } from './load.ts';
import { compare } from './measure.ts';
import { type Row, rowOf } from './table.ts';

const rounds = 15;

const message = (method: string, params: object) => ({
  path: '/mcp',
  headers: { accept: 'application/json, text/event-stream' },
  body: { jsonrpc: '2.0', id: 1, method, params },
});

/** A small tool call beside the SDK's own server that has its answer ready. */
export async function toolCall(): Promise<Row[]> {
  await using gateway = await startChild('gateway');
  await using sdk = await startChild('mcpServer');
  const port = await gateway.ask<number>('port');
  const sdkPort = await sdk.ask<number>('port');
  const call = message('tools/call', { name: 'get_info', arguments: {} });
  const answerTo = async (request: typeof call) => JSON.parse((await ask(port, request)).text).result;
  const { tools } = await answerTo(message('tools/list', {}));
  await sdk.ask('prepare', { tools, result: await answerTo(call) });

  using ours = await createLoad(gateway, port, [requestOf(call)]);
  using bare = await createLoad(sdk, sdkPort, [requestOf(call)]);
  const found = await compare(ours.measure, bare.measure, rounds);
  return [rowOf("MCP tools/call, small; reference is the SDK's Server", found, { figure: 'wall', most: 1 })];
}
