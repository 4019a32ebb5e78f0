/** What the tests of refusals share: requests that `fetch` would not send, and a backend that nothing reaches. */
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { Lexer, TypeInfo } from 'graphql';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { type ServerSetup, send, startServer, type TestServer, within } from '../support/server.ts';

export const pull = 'mutation { pullModel(model: "x") { created } }';

export interface GuardedServer extends TestServer {
  readonly driver: FakeDriver;
  /** Nothing is asked of the backend and no job begins while this runs. */
  untouched(run: () => Promise<void>): Promise<void>;
}

export async function startGuarded(setup: ServerSetup = {}): Promise<GuardedServer> {
  const driver = fakeDriver({ models: ['a'] });
  const server = await startServer({ gateway: testGateway({ drivers: [driver] }), ...setup });
  return {
    ...server,
    driver,
    async untouched(run) {
      const before = driver.asked.length;
      const jobs = server.gateway.jobs.store.list().length;
      await run();
      assert.equal(driver.asked.length, before);
      assert.equal(server.gateway.jobs.store.list().length, jobs);
    },
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

/** A request with headers that fetch does not let through. */
export async function raw(server: TestServer, options: RequestOptions, body?: string): Promise<RawAnswer> {
  const req = request(server.graphqlUrl, { agent: false, ...options });
  // Some methods have no body unless one is announced.
  if (body !== undefined && !req.hasHeader('transfer-encoding'))
    req.setHeader('content-length', Buffer.byteLength(body));
  req.end(body);
  const response = await within(
    new Promise<IncomingMessage>((resolve, reject) => req.on('response', resolve).on('error', reject)),
    'an answer',
  );
  return { status: response.statusCode ?? 0, text: await text(response), headers: response.headers };
}

/** Sends bytes, and gives all that comes until the server ends the connection. */
export async function untilClosed(server: TestServer, bytes: string): Promise<string> {
  const socket = connect(server.port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', chunk => chunks.push(chunk));
  // A server that refuses may do so before it has read everything.
  socket.on('error', () => {});
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
  socket.write(bytes);
  await within(closed, 'the end of the connection');
  return Buffer.concat(chunks).toString();
}

export interface Refused {
  readonly status: number;
  /** Of every error of the answer. */
  readonly codes: readonly string[];
  /** Tokens that were read, and nodes that were looked at to validate: the work that the refusal was, on any machine. */
  readonly tokens: number;
  readonly nodes: number;
}

/** How a question is refused, and what it costs to do so. */
export async function refusal(t: TestContext, server: TestServer, query: string, headers = {}): Promise<Refused> {
  const advance = t.mock.method(Lexer.prototype, 'advance');
  const enter = t.mock.method(TypeInfo.prototype, 'enter');
  const { status, json } = await send(server.graphqlUrl, { query }, { headers });
  const [tokens, nodes] = [advance.mock.callCount(), enter.mock.callCount()];
  advance.mock.restore();
  enter.mock.restore();
  // biome-ignore lint/suspicious/noExplicitAny: an error of an answer
  return { status, codes: (json?.errors ?? []).map((error: any) => error.extensions?.code), tokens, nodes };
}

export const nested = (levels: number) => `${'{ a '.repeat(levels)}${'}'.repeat(levels)}`;
export const numbered = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index));
