/** The REST face on a port of its own, and a client that sends every byte of a request line as it is written. */
import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { matchRoute, routesOf } from '../../src/rest-compat/routes.ts';
import { problemOf } from './openapi.ts';
import { operations, type ServerSetup, startServer, type TestServer } from './server.ts';

export interface RestAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when it is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface RestRequest {
  /** A string goes as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends `METHOD /path`. The path is not normalised, which `fetch` would do. */
export function rest(url: string, line: string, { body, headers = {} }: RestRequest = {}): Promise<RestAnswer> {
  const [method = '', path = ''] = line.split(/ (.*)/s);
  const { promise, resolve, reject } = Promise.withResolvers<RestAnswer>();
  const { hostname, port } = new URL(url);
  const req = request({ hostname, port, method, path, agent: false, headers, timeout: 15_000 }, async res => {
    try {
      let text = '';
      res.setEncoding('utf8');
      for await (const chunk of res) text += chunk;
      resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json: parsed(text) });
    } catch (error) {
      reject(error);
    }
  });
  req.once('error', reject);
  req.once('timeout', () => req.destroy(new Error(`no answer to ${line}`)));
  req.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  return promise;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What an error answers: its status, code and message in one line. */
export const refusalOf = ({ status, json }: RestAnswer) => `${status} ${json?.error?.code}: ${json?.error?.message}`;

const routes = routesOf(operations);

function checkDocumented(line: string, { status, json, headers }: RestAnswer): void {
  const [method = '', path = ''] = line.split(/[ ?]/);
  const match = matchRoute(routes, method, path);
  if (!match || !('route' in match) || json === undefined) return;
  assert.equal(problemOf(match.route.operation.name, status, json), '', `${line} answered ${JSON.stringify(json)}`);
  assert.equal(headers['content-type'], 'application/json', line);
}

export interface RestServer extends AsyncDisposable {
  readonly server: TestServer;
  readonly url: string;
  /**
   * Sends one request: `send('GET /api/v1/models')`. Paths that do not begin with `/` are below `/api/v1/`. Whatever is
   * answered as JSON must be what the OpenAPI document says.
   */
  send(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<RestAnswer>;
}

export async function serveRest(setup: ServerSetup = {}): Promise<RestServer> {
  const server = await startServer(setup);
  return {
    server,
    url: server.url,
    async send(line, body, headers) {
      const [method = '', path = ''] = line.split(/ (.*)/s);
      const full = `${method} ${path.startsWith('/') ? path : `/api/v1/${path}`}`;
      const answer = await rest(server.url, full, { body, ...(headers && { headers }) });
      checkDocumented(full, answer);
      return answer;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
