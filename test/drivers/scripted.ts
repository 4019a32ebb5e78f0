import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { type Call, type CallOptions, createCall } from '../../src/call.ts';

/** A call of nobody in particular. */
export const callOf = (options: Partial<CallOptions> = {}): Call =>
  createCall({ log: pino({ level: 'silent' }), ...options });

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed; `undefined` when there was none. */
  readonly body: unknown;
}

export type Script = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void;

/** A server on a port of its own that answers by the script and remembers what it was asked. */
export async function serve(t: TestContext, script: Script) {
  const requests: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? undefined : JSON.parse(text);
    const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
    requests.push(seen);
    script(seen, response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}`, requests, server };
}

/** Answers one document and ends. */
export function answer(response: ServerResponse, status: number, body: unknown, contentType = 'application/json') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  if (contentType !== '') response.setHeader('content-type', contentType);
  response.writeHead(status).end(text);
}

/** The promise, or a failure when it takes so long that it would hang the suite. */
export async function soon<T>(promise: Promise<T>, what: string, ms = 8_000): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error a promise ends with. */
export async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('expected a failure');
}

/** Everything an iterable has, in order. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const seen: T[] = [];
  for await (const item of items) seen.push(item);
  return seen;
}
