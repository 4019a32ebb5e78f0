/**
 * MCP over HTTP without sessions: every POST stands on its own, so a restart or another replica in between is nothing a
 * client could notice. The protocol itself is the SDK's; here is decided which half of it answers, and how.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type CallToolResult,
  createMcpHandler,
  type Implementation,
  isJSONRPCRequest,
  isJsonContentType,
  isLegacyRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  SUPPORTED_PROTOCOL_VERSIONS,
  type Tool,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { Call } from '../call.ts';

export interface ProtocolOptions {
  readonly info: Implementation;
  readonly instructions: string;
  readonly tools: readonly Tool[];
  /**
   * Runs a tool; undefined when there is none of this name. A `ProtocolError` it throws is answered as such; everything else it
   * has to turn into a result. `traceparent` is what the client gave with this call, unchecked.
   */
  callTool(
    name: string,
    args: Readonly<Record<string, unknown>>,
    call: Call,
    traceparent: unknown,
  ): Promise<CallToolResult | undefined>;
}

export interface Protocol {
  /**
   * Answers one request. `body` is the parsed JSON, undefined when it was none. The answer is written before this
   * resolves; a client that left is no error.
   */
  handle(req: IncomingMessage, res: ServerResponse, body: unknown, call: Call): Promise<void>;
  close(): Promise<void>;
}

export function createProtocol({ info, instructions, tools, callTool }: ProtocolOptions): Protocol {
  const listed = { tools: [...tools] };
  /** Whose request a request is, for the SDK hands its own objects through, not ours. */
  const calls = new WeakMap<Request, Call>();

  // A new server every time: one that is used again keeps what hung on the request before.
  function serverFor(call: Call): Server {
    const server = new Server(info, { instructions, capabilities: { tools: { listChanged: false } } });
    server.onerror = error => call.log.debug({ err: error }, 'MCP request refused');
    server.setRequestHandler('tools/list', () => listed);
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: args = {}, _meta } }) => {
      const result = await callTool(name, args, call, _meta?.traceparent);
      if (result) return result;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `tool '${name}' not found: tool not found`);
    });
    // A cancellation can only reach a request of its own batch, and that one would then never be answered.
    server.setNotificationHandler('notifications/cancelled', () => {});
    return server;
  }

  /** The revisions that name themselves in every request: 2026-07-28 and later. */
  const stateless = createMcpHandler(({ requestInfo }) => serverFor(calls.get(requestInfo as Request) as Call), {
    legacy: 'reject',
  });

  /** The revisions that begin with a handshake: 2024-11-05 to 2025-11-25. The answer is one JSON document. */
  async function answerHandshakeRevision(request: Request, body: unknown, call: Call): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await serverFor(call).connect(transport);
    return transport.handleRequest(request, { parsedBody: body });
  }

  /** The answer to a request of a handshake revision that nothing is wrong with: the server alone, without its HTTP. */
  async function answerRequest(message: JSONRPCRequest, call: Call): Promise<JSONRPCMessage> {
    const answer = Promise.withResolvers<JSONRPCMessage>();
    const transport: Transport = {
      start: async () => {},
      send: async sent => answer.resolve(sent),
      close: async () => {},
    };
    await serverFor(call).connect(transport);
    transport.onmessage?.(message);
    return answer.promise;
  }

  return {
    async handle(req, res, body, call) {
      if (req.method !== 'POST') {
        // No stream to listen to, no session to end. A client that asks for one goes on without.
        res.writeHead(405, { allow: 'POST' }).end();
        return;
      }
      const request = toWebRequest(req);
      calls.set(request, call);
      const message = Array.isArray(body) ? body.map(withArguments) : withArguments(body);
      const isLegacy = await isLegacyRequest(request, message);
      if (isLegacy && isPlainRequest(req, message)) {
        const text = JSON.stringify(await answerRequest(message, call));
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
        res.end(text);
        return;
      }
      const response = isLegacy
        ? await answerHandshakeRevision(request, message, call)
        : await stateless.fetch(request, { parsedBody: message });
      res.statusCode = response.status;
      res.setHeaders(response.headers);
      res.end(await response.text());
    },
    close: () => stateless.close(),
  };
}

/** Arguments that are no object are none: clients in Go write null when they have none, and the SDK would refuse it. */
function withArguments(message: unknown): unknown {
  const { params } = (message ?? {}) as { params?: { arguments?: unknown } };
  const args = params?.arguments;
  if (args === undefined || (typeof args === 'object' && args !== null && !Array.isArray(args))) return message;
  return { ...(message as object), params: { ...params, arguments: {} } };
}

/**
 * A request that the SDK's HTTP transport would hand to the server as it is. It does so through web streams, which take longer
 * than a small tool does; whatever it would look at twice goes through it.
 */
function isPlainRequest({ headers }: IncomingMessage, message: unknown): message is JSONRPCRequest {
  const version = headers['mcp-protocol-version'];
  return (
    isJsonContentType(headers['content-type'] ?? null) &&
    (version === undefined || SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) &&
    isJSONRPCRequest(message) &&
    message.method !== 'initialize'
  );
}

/** What the protocol reads of a request's head. Nothing else goes further: no session id, and no credential. */
const protocolHeaders = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

function toWebRequest(req: IncomingMessage): Request {
  // All answers are JSON documents, which is what clients that accept less than the revisions ask for can read too.
  const headers = new Headers({ accept: 'application/json, text/event-stream' });
  for (const name of protocolHeaders) {
    const value = req.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  return new Request('http://localhost/', { method: 'POST', headers });
}
