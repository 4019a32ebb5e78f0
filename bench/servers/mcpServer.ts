/** The MCP SDK's bare `Server` with a prepared tool list and a prepared result, a new one for every request. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CallToolResult,
  Server,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { answerParent } from '../child.ts';

let listed: { tools: Tool[] } = { tools: [] };
let result: CallToolResult = { content: [] };

async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const server = new Server({ name: 'reference', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => listed);
  server.setRequestHandler('tools/call', () => result);
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  const { host, ...headers } = req.headers as Record<string, string>;
  const request = new Request(`http://${host}${req.url}`, { method: 'POST', headers });
  const parsedBody = JSON.parse(Buffer.concat(chunks).toString());
  const response = await transport.handleRequest(request, { parsedBody });
  res.statusCode = response.status;
  res.setHeaders(response.headers);
  res.end(await response.text());
}

const server = createServer((req, res) => void respond(req, res));
server.listen(0, '127.0.0.1');
await once(server, 'listening');

answerParent({
  port: () => (server.address() as AddressInfo).port,
  prepare(prepared: { tools: Tool[]; result: CallToolResult }) {
    listed = { tools: prepared.tools };
    result = prepared.result;
  },
});
