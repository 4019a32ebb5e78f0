/** What the tests of refusals share: requests that `fetch` would not send, and a backend that nothing reaches. */
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { longestTurn } from '../support/eventLoop.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { type Answer, ask, type ServerSetup, startServer, type TestServer, within } from '../support/server.ts';

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
  readonly code: string;
  /** Of the fastest of a few times: milliseconds until the answer, and of the longest turn of the event loop. */
  readonly ms: number;
  readonly turnMs: number;
}

/** How a question is refused, and what it costs to do so. */
export async function refusal(server: TestServer, query: string, variables?: object): Promise<Refused> {
  let [ms, turnMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let last: Answer | undefined;
  for (let time = 0; time < 5 && (ms > 50 || turnMs > 100); time++) {
    const begin = performance.now();
    const { answer, ms: longest } = await longestTurn(() => ask(server, query, variables));
    ms = Math.min(ms, performance.now() - begin);
    turnMs = Math.min(turnMs, longest);
    last = answer;
  }
  const { status, json } = last as Answer;
  return { status, code: json?.errors?.[0].extensions.code, ms, turnMs };
}

export const nested = (levels: number) => `${'{ a '.repeat(levels)}${'}'.repeat(levels)}`;
export const numbered = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index));
