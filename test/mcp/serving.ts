/** The MCP face on a socket of its own, with as little around it as there can be. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { Logger } from 'pino';
import { createCall } from '../../src/call.ts';
import { createMcp, type McpOptions, toolNamesOf } from '../../src/mcp/index.ts';
import type { Protocol } from '../../src/mcp/protocol.ts';
import { loadOperations } from '../../src/operations/load.ts';
import { createRun } from '../../src/operations/run.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { silent, type TestGatewayOptions, testBuild, testGateway } from '../support/gateway.ts';

// Compiled once: no test changes them.
export const operations = loadOperations(schema);
const run = createRun(schema);

export interface ServingOptions extends TestGatewayOptions {
  /** Milliseconds a request has. */
  readonly timeoutMs?: number;
  readonly onCall?: McpOptions['onCall'];
  readonly run?: McpOptions['run'];
  readonly port?: number;
  readonly keepAlive?: boolean;
}

/** The tools over a test gateway. `url` is the endpoint. */
export async function serveTools(
  t: TestContext,
  { onCall, timeoutMs, port, keepAlive, ...options }: ServingOptions = {},
) {
  const gateway = testGateway({ ...options, tools: toolNamesOf(operations) });
  const mcp = createMcp({
    operations,
    run: options.run ?? run,
    contextFor: call => ({ gateway, call, face: 'mcp' }),
    build: testBuild,
    ...(onCall && { onCall }),
  });
  return { gateway, mcp, ...(await serveProtocol(t, mcp, { ...options, timeoutMs, port, keepAlive })) };
}

interface ProtocolServingOptions {
  readonly log?: Logger;
  readonly timeoutMs?: number | undefined;
  readonly port?: number | undefined;
  /** Connections stay open between requests. */
  readonly keepAlive?: boolean | undefined;
}

/** A protocol behind `POST /mcp` on a port of its own. */
export async function serveProtocol(
  t: TestContext,
  protocol: Protocol,
  { log = silent, timeoutMs = 10_000, port = 0, keepAlive = false }: ProtocolServingOptions = {},
) {
  const server = createServer(async (req, res) => {
    // No client is to pick a connection of a server that is gone by now.
    res.shouldKeepAlive = keepAlive;
    const gone = new AbortController();
    res.on('close', () => gone.abort());
    const body = await bodyOf(req);
    await protocol.handle(req, res, body, createCall({ log, signal: gone.signal, timeoutMs }));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    if (!server.listening) return;
    await protocol.close();
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  t.after(close);
  const address = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${address.port}/mcp`, port: address.port, close };
}

/** The parsed body, or undefined when it is no JSON. */
async function bodyOf(req: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
