import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type GraphQLSchema, OperationTypeNode } from 'graphql';
import type { Logger } from 'pino';
import type { Face } from '../audit/entry.ts';
import { type Call, type Caller, createCall, personOf } from '../call.ts';
import type { Limits } from '../config/limits.ts';
import type { ListenAddress } from '../config/values.ts';
import type { Identity } from '../identity/identity.ts';
import { createMcp } from '../mcp/index.ts';
import type { Operation } from '../operations/load.ts';
import { createRun } from '../operations/run.ts';
import type { Context, Gateway } from '../resolvers/builder.ts';
import { createRest, type RestResponse, bodyLimit as restBodyLimit, textResponse } from '../rest-compat/respond.ts';
import { createAdmission, isOpen } from './admission.ts';
import { bodyOf, noBody, readBody } from './body.ts';
import { connectionsOf, refuseBroken } from './connections.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { createEngine } from './graphql/engine.ts';
import { createGroups } from './graphql/groups.ts';
import { createGraphql, wantsPage } from './graphql/handler.ts';
import { createSeats } from './graphql/seats.ts';
import { createStreams } from './graphql/sse.ts';
import { createWebSockets } from './graphql/websocket.ts';
import {
  allowOrigin,
  isCrossSite,
  isForeignHost,
  isForeignOrigin,
  isForgeable,
  isLoopbackAddress,
  isLoopbackHost,
} from './guard.ts';
import { checkBackends } from './health.ts';
import { listen } from './listen.ts';
import type { Metrics } from './metrics.ts';
import { limitMutations } from './mutations.ts';
import { spanOf, type Traces } from './traces.ts';

export interface ServerOptions {
  readonly gateway: Gateway;
  /** What a caller works on, where work at Kubernetes is done as them; absent where all work on the same. */
  readonly gatewayAs?: ((caller: Caller) => Gateway) | undefined;
  readonly schema: GraphQLSchema;
  readonly operations: readonly Operation[];
  readonly log: Logger;
  /** The text of `GET /api/v1/openapi.yaml`. */
  readonly openApi: string;
  readonly graphiql: boolean;
  readonly limits: Limits;
  readonly introspection: boolean;
  /** Origins whose pages may ask, besides our own. */
  readonly allowedOrigins: readonly string[];
  /** Path of the MCP endpoint; undefined when it is off. */
  readonly mcpPath: string | undefined;
  /** Who has to sign in, and how; undefined where nobody has to. */
  readonly identity?: Identity | undefined;
  readonly metrics?: Metrics | undefined;
  readonly traces?: Traces | undefined;
  /** What the gateway waits for before it is ready; undefined when for nothing (any more). */
  readonly waiting?: (() => string | undefined) | undefined;
}

export interface GatewayServer {
  /** Rejects when the address cannot be had. Resolves to the root URL, by a name of this machine. */
  listen(address: ListenAddress): Promise<string>;
  /** Is not ready from now on, and serves as before; every answer is the last on its connection. */
  drain(): void;
  /** Ends every stream after its newest event, finishes what is under way within `graceMs`, and stops. */
  close(graceMs: number): Promise<void>;
}

const graphqlPath = '/graphql';
const healthPaths = new Set(['/healthz', '/readyz', '/backendz']);
/** A read is answered within this, in milliseconds: the platform's callers give up soon after. */
const readMs = 10_000;
const timeoutOf = (type: OperationTypeNode) => (type === OperationTypeNode.QUERY ? readMs : undefined);
/** A tool call is answered before its callers give up after 10 s. */
const toolMs = 9_000;

/** The one server: health, REST, MCP and GraphQL on one port, each at its path. */
export function createGatewayServer(options: ServerOptions): GatewayServer {
  const { gateway, schema, operations, log, metrics, traces, limits, allowedOrigins, identity } = options;
  const { gatewayAs = () => gateway } = options;
  const onRefused = metrics?.onRefused;
  const mutations = limitMutations({ limit: limits.mutations, onRefused: () => onRefused?.('mutations') });
  const run = createRun(schema);
  const contextFor =
    (face: Face) =>
    (call: Call): Context => ({ gateway: gatewayAs(call.caller), call, face });
  const forEvents = contextFor('graphql');
  const forGraphql = (call: Call): Context => ({ ...forEvents(call), refusal: () => mutations.refusal(call) });
  const rest = createRest({
    operations,
    run,
    contextFor: (call, reads) => ({ gateway: gatewayAs(call.caller), call, face: 'rest', reads }),
    admit: mutations.admit,
  });
  const mcp = createMcp({
    operations,
    run,
    contextFor: contextFor('mcp'),
    build: gateway.build,
    admit: mutations.admit,
    onCall: metrics?.onToolCall,
  });
  const engine = createEngine(schema, operations, {
    limits,
    introspection: options.introspection,
    onRefused,
    onOperation: metrics?.onOperation,
    onRejected: metrics?.onRejected,
  });
  const groups = createGroups(
    engine,
    // A group serves everybody who asks the same, so it works on nobody's request.
    ({ call: { caller } }) => forEvents(createCall({ ...(caller.scope !== '' && { caller: personOf(caller) }), log })),
    metrics?.groupHooks,
  );
  const streams = createStreams();
  const seats = createSeats(limits.socketsPerCaller, () => onRefused?.('sockets_per_caller'));
  const graphql = createGraphql({
    engine,
    groups,
    streams,
    seats,
    operations,
    graphiql: options.graphiql,
    asksToken: identity !== undefined,
    admit: mutations.admit,
  });
  const admission =
    identity && createAdmission({ identity, mcpPath: options.mcpPath, log, onRefused: metrics?.onTokenRefused });
  const sockets = createWebSockets({
    engine,
    groups,
    contextFor: (type, signal, peer) => forGraphql(createCall({ ...peer, log, signal, timeoutMs: timeoutOf(type) })),
    rootOf: traces && (({ headers }) => traces.root(headers.traceparent)),
    signIn: admission?.admitSocket,
    admit: mutations.admit,
    limits,
    seats,
    onRefused,
    log,
  });
  let draining = false;
  let stopping = false;
  /** Whether only this machine can ask us. */
  let isLocal = false;

  function readiness(): RestResponse {
    const waiting = draining ? 'stopping' : (identity?.waiting() ?? options.waiting?.());
    return waiting === undefined ? textResponse(200, 'ok') : textResponse(503, waiting);
  }

  /** Asks who it is before any face sees the request. */
  async function admit(exchange: Exchange): Promise<void> {
    const { req, res, path } = exchange;
    if (!admission) return handle(exchange);
    const document = admission.document(req.method, path);
    if (document) return send(req, res, document);
    if (isOpen(path) || isWithoutToken(req, path)) return handle(exchange);
    const admitted = await admission.admit(req, path);
    if ('answer' in admitted) return send(req, res, admitted.answer);
    return handle(exchange.as(admitted.person));
  }

  /** The page that asks for a token, and the end of sessions that there are none of: clients send no token with it. */
  const isWithoutToken = (req: IncomingMessage, path: string) =>
    (path === graphqlPath && options.graphiql && wantsPage(req)) ||
    (path === options.mcpPath && req.method === 'DELETE');

  async function handle(exchange: Exchange): Promise<void> {
    const { req, res, path, query, call } = exchange;
    switch (path) {
      case '/':
        // A person who follows the URL of the log; to programs the root is an unknown path like others.
        if (!options.graphiql || !String(req.headers.accept).includes('text/html')) break;
        return sendGet(req, res, { status: 302, headers: { location: graphqlPath }, body: '' });
      case '/healthz':
        return sendGet(req, res, textResponse(200, 'ok'));
      case '/readyz':
        return sendGet(req, res, readiness());
      case '/backendz':
        return sendGet(req, res, await checkBackends(gateway.registry, log));
      case '/api/v1/openapi.yaml':
        return sendGet(req, res, {
          status: 200,
          headers: { 'content-type': 'application/yaml' },
          body: options.openApi,
        });
      case graphqlPath:
        return handleGraphql(exchange);
      case options.mcpPath:
        return handleMcp(req, res, call);
    }
    const match = rest.match(req.method ?? '', path);
    const route = match && 'route' in match ? match.route : undefined;
    const isMutation = route !== undefined && route.operation.type !== 'query';
    if (isMutation && isForgeable(req, allowedOrigins)) {
      return send(req, res, textResponse(403, 'a page of another origin asks for this; send it as application/json'));
    }
    const read = route && route.rest.method !== 'GET' ? await readBody(req, restBodyLimit) : noBody;
    if (read.over) onRefused?.('body');
    const request = {
      query: new URLSearchParams(query),
      body: read.text,
      ifNoneMatch: req.headers['if-none-match'],
    };
    send(req, res, await rest.respond(match, request, call(isMutation ? undefined : readMs)));
  }

  async function handleGraphql({ req, res, person, call }: Exchange): Promise<void> {
    // A link that leads a person to the page may be anywhere; a question may not.
    if (
      isForeignOrigin(req, allowedOrigins) ||
      (isCrossSite(req) && !isAllowed(req) && (req.url ?? '').includes('?'))
    ) {
      return send(req, res, textResponse(403, 'a page of another origin asks; this server answers its own'));
    }
    const body = await bodyOf(req, limits.graphqlBody);
    if (body.over) return tooLarge(req, res, limits.graphqlBody);
    return graphql({
      req,
      res,
      body: body.text,
      until: person?.expiresAt,
      contextFor: type => forGraphql(call(timeoutOf(type))),
    });
  }

  async function handleMcp(req: IncomingMessage, res: ServerResponse, call: Exchange['call']): Promise<void> {
    if ((isLoopbackAddress(req.socket.localAddress) && isForeignHost(req)) || isForeignOrigin(req, allowedOrigins)) {
      return send(req, res, textResponse(403, 'this server is asked for by another name or page than its own'));
    }
    const body = await bodyOf(req, limits.mcpBody);
    if (body.over) return tooLarge(req, res, limits.mcpBody);
    await mcp.handle(req, res, parseJson(body.text), call(toolMs));
  }

  function tooLarge(req: IncomingMessage, res: ServerResponse, limit: number): void {
    onRefused?.('body');
    // What is still on its way is not waited for.
    res.setHeader('connection', 'close');
    send(req, res, textResponse(413, `the body is larger than ${limit} bytes`));
  }

  const isAllowed = ({ headers }: IncomingMessage) => allowedOrigins.includes(headers.origin ?? '');

  const server = createServer(connectionsOf(limits), (req, res) => {
    const begin = traces && ((path: string) => begun(traces, req, res, path));
    const exchange = createExchange(req, res, log, begin);
    metrics?.onRequest({ surface: surfaceOf(exchange.path), route: routeOf(req, exchange.path), req, res });
    // Whoever asks again does so elsewhere, if there is another by then, and nobody just when we close the connection.
    if (draining) res.setHeader('connection', 'close');
    // While we stop, a connection goes with its last answer; otherwise it would be kept for the next request.
    res.once('close', () => stopping && setImmediate(() => server.closeIdleConnections()));
    if (isLocal && isForeignHost(req)) {
      return send(req, res, textResponse(403, 'this server only answers to local names, such as localhost'));
    }
    if (allowOrigin(req, res, allowedOrigins)) return;
    admit(exchange).catch(error => fail(error, exchange));
  });
  /** Connections on which nobody has asked anything: the server does not count them as idle, and would wait for them. */
  const speechless = new Set<Socket>();
  server.on('connection', socket => {
    speechless.add(socket);
    socket.once('close', () => speechless.delete(socket));
  });
  server.on('request', req => speechless.delete(req.socket));
  server.on('upgrade', req => speechless.delete(req.socket));
  server.on('clientError', refuseBroken(onRefused));

  /** Probes come every few seconds, and say nothing of what anybody waited for. */
  function begun(traces: Traces, req: IncomingMessage, res: ServerResponse, path: string) {
    return healthPaths.has(path) ? undefined : spanOf(traces, { route: routeOf(req, path), req, res });
  }

  function surfaceOf(path: string) {
    if (path === graphqlPath) return 'graphql';
    if (path === options.mcpPath) return 'mcp';
    if (path.startsWith('/api/')) return 'rest';
    return healthPaths.has(path) ? 'health' : 'other';
  }

  /** The path as it is documented, without what callers put into it. */
  function routeOf({ method = '' }: IncomingMessage, path: string): string {
    if (path === graphqlPath || path === options.mcpPath || healthPaths.has(path)) return path;
    const match = rest.match(method, path);
    return match && 'route' in match ? match.route.rest.path : 'other';
  }

  server.on('upgrade', (req, socket, head) => {
    const refused = (isLocal && isForeignHost(req)) || isForeignOrigin(req, allowedOrigins);
    const path = (req.url ?? '').split('?')[0];
    if (refused || path !== graphqlPath) {
      const status = refused ? '403 Forbidden' : '404 Not Found';
      // From here on the connection is ours alone: nobody else notices that it breaks, nor ends it when the client does not.
      socket.on('error', () => {});
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy());
      return;
    }
    sockets.upgrade(req, socket, head);
  });

  return {
    async listen(address) {
      const bound = await listen(server, address);
      const isAny = bound.address === '::' || bound.address === '0.0.0.0';
      const name = isAny ? 'localhost' : bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
      isLocal = !isAny && isLoopbackHost(name);
      return `http://${name}:${bound.port}`;
    },
    drain() {
      draining = true;
    },
    async close(graceMs) {
      draining = true;
      stopping = true;
      const closed = new Promise<void>(resolve => {
        server.close(() => resolve());
      });
      const timer = setTimeout(() => {
        server.closeAllConnections();
        sockets.terminate();
      }, graceMs);
      for (const socket of speechless) socket.destroy();
      identity?.stop();
      // Streams and sockets first: what they say at the end is that we go, not that there is nothing more to tell.
      streams.close();
      const socketsClosed = sockets.close();
      groups.close();
      await Promise.all([socketsClosed, mcp.close(), closed]);
      clearTimeout(timer);
    },
  };
}

/** Undefined when the text is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What nobody expected: it is in the log, and the client learns where to look. */
function fail(error: unknown, { res, call }: Exchange): void {
  const { log, requestId } = call();
  if (res.destroyed) return;
  log.error({ err: error }, 'unexpected error');
  if (res.headersSent) return void res.destroy();
  res.writeHead(500, { 'content-type': 'application/json' });
  const message = `unexpected error; the log has it under request ${requestId}`;
  res.end(`${JSON.stringify({ error: { code: 'internal_error', message } })}\n`);
}

/** Fixed documents take GET and HEAD. */
function sendGet(req: IncomingMessage, res: ServerResponse, response: RestResponse): void {
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  send(req, res, isRead ? response : textResponse(405, 'Method Not Allowed', { allow: 'GET, HEAD' }));
}

function send(req: IncomingMessage, res: ServerResponse, { status, headers, body }: RestResponse): void {
  res.writeHead(status, status === 304 ? headers : { ...headers, 'content-length': Buffer.byteLength(body) });
  res.end(req.method === 'HEAD' || status === 304 ? undefined : body);
}
