/** API servers that remember who asked them what, over which connection; and ways to them. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Call, CallOptions } from '../../src/call.ts';
import type { Access, Identity } from '../../src/kubernetes/access.ts';
import { callOf } from '../drivers/scripted.ts';

export const pem = (name: string) => readFileSync(new URL(`../fixtures/kubernetes/${name}`, import.meta.url), 'utf8');

/** A client certificate of the fixtures. */
export const certificateOf = (name: 'gateway' | 'renewed') => ({ cert: pem(`${name}.crt`), key: pem(`${name}.key`) });

/** One request, as the server sees it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Common name of the client certificate on its connection; undefined when there is none. */
  readonly certificate: string | undefined;
  /** Tells connections apart: the port they come from. */
  readonly connection: number;
  /** Parsed; undefined when there was none. */
  readonly body: unknown;
}

export type Script = (asked: Asked, response: ServerResponse, count: number) => void;

/** An API server that answers by a script, on a port of its own. `count` is 1 for the first request. */
export async function startApi(t: TestContext, script: Script, { tls = false } = {}) {
  const asked: Asked[] = [];
  const open = new Set<IncomingMessage['socket']>();
  let watchers: (() => void)[] = [];
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://server');
    const { subject } = tls ? (request.socket as TLSSocket).getPeerCertificate() : {};
    const seen: Asked = {
      method: request.method ?? '',
      path: pathname,
      query: searchParams,
      headers: request.headers,
      certificate: subject?.CN as string | undefined,
      connection: request.socket.remotePort ?? 0,
      body: text === '' ? undefined : JSON.parse(text),
    };
    script(seen, response, asked.push(seen));
    notify();
  };
  const notify = () => {
    const told = watchers;
    watchers = [];
    for (const tell of told) tell();
  };
  const server = tls
    ? createHttpsServer(
        {
          cert: pem('server.crt'),
          key: pem('server.key'),
          ca: pem('ca.crt'),
          requestCert: true,
          rejectUnauthorized: false,
        },
        onRequest,
      )
    : createHttpServer(onRequest);
  server.on(tls ? 'secureConnection' : 'connection', socket => {
    open.add(socket);
    socket.on('close', () => {
      open.delete(socket);
      notify();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    asked,
    open,
    server,
    /** Waits until the server has seen what is described. */
    async until(holds: () => boolean, what: string): Promise<void> {
      const late = Promise.withResolvers<never>();
      const timer = realSetTimeout(() => late.reject(new Error(`not within 5 s: ${what}`)), 5_000);
      try {
        while (!holds()) await Promise.race([new Promise<void>(resolve => watchers.push(resolve)), late.promise]);
      } finally {
        realClearTimeout(timer);
      }
    },
  };
}

// Tests may mock the timers; the bounds of waiting are real.
const { setTimeout: realSetTimeout, clearTimeout: realClearTimeout } = globalThis;

/** Answers a document. */
export function reply(response: ServerResponse, document: unknown, status = 200, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(document));
}

/** Answers a refusal as API servers do. */
export function refuse(
  response: ServerResponse,
  code: number,
  { reason = '', message = `refused with ${code}`, headers = {} }: Refused = {},
) {
  reply(response, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code }, code, headers);
}

interface Refused {
  readonly reason?: string;
  readonly message?: string;
  readonly headers?: Record<string, string>;
}

/** A ConfigMap, or a list of such. */
export const configMap = (name: string, resourceVersion = '1') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'own', uid: `uid-${name}`, resourceVersion },
});

export const listOf = (names: readonly string[], metadata: object = {}) => ({
  kind: 'ConfigMapList',
  metadata: { resourceVersion: '7', ...metadata },
  items: names.map(name => configMap(name)),
});

/** A way to a server, as somebody: with the token `gateway-token-1` unless told otherwise. */
export function accessTo(server: string, given: Partial<Access> & { readonly as?: Identity } = {}): Access {
  const { as = { headers: { authorization: 'Bearer gateway-token-1' } }, ...access } = given;
  return {
    server,
    trust: () => Promise.resolve({ ca: pem('ca.crt') }),
    identity: () => Promise.resolve(as),
    refused() {},
    ...access,
  };
}

/** A call of somebody with a token of their own. */
export const callWith = (token: string, options: Partial<CallOptions> = {}): Call =>
  callOf({ ...options, caller: { name: 'jane@example.com', anonymous: false, scope: 'jane', token: () => token } });
