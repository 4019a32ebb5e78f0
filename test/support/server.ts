/** The real server on a port of its own, over a gateway of a test; and clients that show every byte of it. */
import assert from 'node:assert/strict';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import { type Logger, pino } from 'pino';
import { WebSocket } from 'ws';
import { defaultLimits, type Limits } from '../../src/config/limits.ts';
import type { Metrics } from '../../src/http/metrics.ts';
import type { RefusalReason } from '../../src/http/refusals.ts';
import { createGatewayServer } from '../../src/http/server.ts';
import type { Identity } from '../../src/identity/identity.ts';
import { toolNamesOf } from '../../src/mcp/index.ts';
import { loadOperations, type Operation } from '../../src/operations/load.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { schema as graph } from '../../src/resolvers/schema.ts';
import { testGateway } from './gateway.ts';

// A test may mock the timers; the bounds of waiting are real.
const { setTimeout, clearTimeout, setImmediate } = globalThis;

/** For how long a test waits for what comes at once on a machine that does nothing else: only what never comes takes it. */
const patienceMs = 20_000;

/** Compiled once: no test changes them. */
export const operations = loadOperations(graph);

/** The text of a stored operation, as a client sends it. */
export function textOf(name: string): string {
  const operation = operations.find(each => each.name === name);
  assert.ok(operation, `there is no operation ${name}`);
  return operation.text;
}

/** The promise, or a failure that says what did not come in time. */
export async function within<T>(promise: Promise<T>, what: string, ms = patienceMs): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`did not come within ${ms} ms: ${what}`)), ms).unref();
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until something holds that tells nobody when it does. */
export async function eventually(holds: () => boolean, what: string, ms = patienceMs): Promise<void> {
  const began = performance.now();
  while (!holds()) {
    const waited = performance.now() - began;
    assert.ok(waited < ms, `did not become true within ${ms} ms: ${what}`);
    // What takes longer than a few turns waits for a timer, or for others who need the processor.
    await (waited < 10 ? turn() : new Promise(resolve => setTimeout(resolve, 2)));
  }
}

/** One turn of the event loop, sockets included. */
export const turn = () => new Promise<void>(resolve => setImmediate(resolve));

/** What arrived and was not taken yet. */
export function createInbox<T>() {
  const items: T[] = [];
  const waiting: Array<(item: T) => void> = [];
  return {
    items,
    push(item: T) {
      const taker = waiting.shift();
      if (taker) taker(item);
      else items.push(item);
    },
    next(what = 'the next message', ms?: number): Promise<T> {
      const item = items.shift();
      if (item !== undefined) return Promise.resolve(item);
      return within(new Promise<T>(resolve => waiting.push(resolve)), what, ms);
    },
  };
}

export interface ServerSetup {
  readonly gateway?: Gateway;
  /** A graph of a test instead of ours; it has no operations unless some are given. */
  readonly schema?: GraphQLSchema;
  readonly operations?: readonly Operation[];
  readonly graphiql?: boolean;
  /** Where everybody has to sign in. */
  readonly identity?: Identity;
  readonly host?: string;
  /** Instead of one that keeps its lines in `logged`. */
  readonly log?: Logger;
  readonly introspection?: boolean;
  /** Instead of those that count in `counts` and `refused`. */
  readonly metrics?: Metrics;
  readonly allowedOrigins?: readonly string[];
  readonly limits?: Partial<Limits>;
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly graphqlUrl: string;
  readonly socketUrl: string;
  readonly port: number;
  readonly gateway: Gateway;
  /** What groups of subscribers reported so far. */
  readonly counts: { members: number; events: number; coalesced: number };
  /** What passed a limit so far, by the limit. */
  readonly refused: RefusalReason[];
  /** Log lines so far, as text. */
  readonly logged: string[];
  drain(): void;
  close(graceMs?: number): Promise<void>;
}

export async function startServer(setup: ServerSetup = {}): Promise<TestServer> {
  const { gateway = testGateway(), schema = graph, graphiql = false, host = '127.0.0.1' } = setup;
  const own = setup.operations ?? (schema === graph ? operations : []);
  const logged: string[] = [];
  const refused: RefusalReason[] = [];
  const log = setup.log ?? pino({ level: 'debug' }, { write: line => logged.push(line) });
  const counts = { members: 0, events: 0, coalesced: 0 };
  const metrics: Metrics = setup.metrics ?? {
    onRequest() {},
    onOperation() {},
    onRejected() {},
    table: () => '',
    metrics: async () => '',
    onToolCall() {},
    onRefused: reason => void refused.push(reason),
    onTokenRefused() {},
    groupHooks: {
      onMember: (_field, _transport, change) => {
        counts.members += change;
      },
      onEvent: () => {
        counts.events++;
      },
      onCoalesced: () => {
        counts.coalesced++;
      },
    },
    serve: () => Promise.reject(new Error('not in this test')),
  };
  const server = createGatewayServer({
    gateway: { ...gateway, tools: toolNamesOf(own) },
    schema,
    operations: own,
    log,
    openApi: 'openapi: 3.1.0\n',
    graphiql,
    introspection: setup.introspection ?? true,
    allowedOrigins: setup.allowedOrigins ?? [],
    // Tests that are about something else may change as much as they like.
    limits: { ...defaultLimits, mutations: 1_000_000, ...setup.limits },
    mcpPath: '/mcp',
    identity: setup.identity,
    metrics,
  });
  const url = await server.listen({ host, port: 0 });
  let closing: Promise<void> | undefined;
  const close = (graceMs = 0) => {
    closing ??= server.close(graceMs);
    return closing;
  };
  return {
    url,
    graphqlUrl: `${url}/graphql`,
    socketUrl: `${url.replace('http', 'ws')}/graphql`,
    port: Number(new URL(url).port),
    gateway,
    counts,
    refused,
    logged,
    drain: server.drain,
    close,
    [Symbol.asyncDispose]: () => within(close(), 'the end of the server'),
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined when it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

/** Sends a request and reads all of its answer. A body that is no string goes as JSON. */
export async function send(url: string, body?: unknown, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, {
    ...(body !== undefined && {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
    ...init,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...init.headers },
    signal: AbortSignal.timeout(patienceMs),
  });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {}
  return { status: response.status, headers: response.headers, text, json };
}

/** Asks a question of the graph, as a POST. */
export const ask = (server: TestServer, query: string, variables?: object) =>
  send(server.graphqlUrl, { query, variables });

/** One message of a stream: an event, or a comment. */
export interface Frame {
  readonly event?: string;
  readonly data?: string;
  readonly comment?: string;
}

export interface Stream {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
  /** The next frame that is no comment. */
  next(what?: string): Promise<Frame>;
  /** The payload of the next frame, which must be an event with one. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  nextPayload(what?: string): Promise<any>;
  nextComment(what?: string): Promise<Frame>;
  /** Events that arrived and were not taken yet. */
  readonly unread: readonly Frame[];
  /** Resolves when the server has ended the answer, or the connection broke. */
  readonly ended: Promise<void>;
  /** Stops and goes on reading from the socket. */
  pause(): void;
  resume(): void;
  /** Goes without a word. */
  leave(): void;
}

/** Opens a stream of Server-Sent Events on a socket of its own. */
export async function openStream(url: string, body: object, headers: Record<string, string> = {}): Promise<Stream> {
  const req = request(url, {
    method: 'POST',
    agent: false,
    headers: { accept: 'text/event-stream', 'content-type': 'application/json', ...headers },
  });
  req.end(JSON.stringify(body));
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  req.once('response', resolve);
  req.once('error', reject);
  const response = await within(promise, 'the head of the stream');
  req.on('error', () => {});

  const events = createInbox<Frame>();
  const comments = createInbox<Frame>();
  let rest = '';
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    const frames = (rest + chunk).split('\n\n');
    rest = frames.pop() as string;
    for (const frame of frames.map(toFrame)) (frame.comment === undefined ? events : comments).push(frame);
  });
  response.on('error', () => {});
  const ended = new Promise<void>(done => response.once('close', done));
  return {
    request: req,
    response,
    next: what => events.next(what),
    async nextPayload(what) {
      const frame = await events.next(what);
      assert.equal(frame.event, 'next');
      return JSON.parse(frame.data as string);
    },
    nextComment: what => comments.next(what),
    unread: events.items,
    ended,
    // The socket is paused, not the answer: what is read is parsed at once.
    pause: () => void response.socket.pause(),
    resume: () => void response.socket.resume(),
    leave: () => void req.destroy(),
  };
}

function toFrame(text: string): Frame {
  if (text.startsWith(':')) return { comment: text.slice(1) };
  const fields = text.split('\n').map(line => /^(\w+): ?(.*)$/s.exec(line)?.slice(1) ?? ['other', line]);
  return Object.fromEntries(fields);
}

export interface SocketMessage {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly payload?: any;
}

export interface TestSocket {
  readonly raw: WebSocket;
  send(message: object | string | Buffer): void;
  next(what?: string): Promise<SocketMessage>;
  /** Resolves with the close code. */
  readonly closed: Promise<{ code: number; reason: string }>;
}

export interface SocketOptions {
  /** Says `connection_init` and waits for the acknowledgement. */
  readonly init?: boolean;
  /** What it says there. */
  readonly payload?: object;
  readonly headers?: Record<string, string>;
}

/** A WebSocket that speaks `graphql-transport-ws` by hand. */
export async function openSocket(
  url: string,
  { init = true, headers = {}, payload }: SocketOptions = {},
): Promise<TestSocket> {
  const raw = new WebSocket(url, 'graphql-transport-ws', { headers, perMessageDeflate: false });
  const messages = createInbox<SocketMessage>();
  raw.on('message', data => messages.push(JSON.parse(String(data))));
  const end = Promise.withResolvers<{ code: number; reason: string }>();
  raw.on('close', (code, reason) => end.resolve({ code, reason: String(reason) }));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  raw.once('open', resolve);
  raw.once('error', reject);
  await within(promise, 'the open socket');
  raw.on('error', () => {});
  const socket: TestSocket = {
    raw,
    send: message =>
      raw.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message)),
    next: what => messages.next(what),
    closed: end.promise,
  };
  if (init) {
    socket.send({ type: 'connection_init', payload });
    assert.deepEqual(await socket.next('the acknowledgement'), { type: 'connection_ack' });
  }
  return socket;
}
