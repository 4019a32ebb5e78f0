import { STATUS_CODES } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import type { Call } from '../call.ts';
import { guardedConnector, refusedAddress } from '../egress.ts';
import { backendError, GatewayError, invalidRequest, messageOf, systemCodeOf, timedOut } from '../errors.ts';

/**
 * HTTP as the drivers of host backends need it: small JSON documents, and streams that may be silent for minutes.
 *
 * Nothing of the caller travels: no header of theirs, no cookie, no credential; only a token that the operator set for
 * this server. Redirects are not followed. Every failure to get an answer is a `backend_error` that says what to look at;
 * what an answer means is the driver's to say.
 */
export interface HttpClient {
  readonly endpoint: string;
  /** One whole answer, of any status. */
  document(call: Call, request: HttpRequest): Promise<HttpAnswer>;
  /** An answer that is read while it comes. No bound but the call's signal. */
  stream(call: Call, request: HttpRequest): Promise<HttpStream>;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the endpoint, such as `/api/tags`. */
  readonly path: string;
  /** What it asks, where the path has more in it than that. `method` and `path`, without its query, when absent. */
  readonly op?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Milliseconds the whole answer may take; the call's deadline may make it less. `readBudgetMs` when absent. */
  readonly budgetMs?: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Lower case, without parameters; '' when the server named none. */
  readonly contentType: string;
  /** Where a redirect points, without its query. */
  readonly location?: string | undefined;
  /** The body; of a refusal (a status outside 200–299) its first 64 KiB. */
  readonly text: string;
}

/** How a request ended: with an answer of success, with another, or with none. */
type RequestOutcome = 'ok' | 'refused' | 'failed';

/** Told of every request that was made: what was asked, such as `GET /api/tags`, how it ended, how long it took, and for whom. */
export type OnRequest = (op: string, outcome: RequestOutcome, seconds: number, call: Call) => void;

/** Whom requests are counted for that go to no backend; the API server is that of the gateway itself. */
export const others = { apiServer: 'kubernetes', hub: 'hub', cacheAgents: 'cache-agents' } as const;

interface HttpStream {
  readonly answer: HttpAnswer;
  /** The body, when the status is 2xx and it is not a web page; otherwise `answer.text` holds its beginning. */
  readonly chunks?: AsyncIterable<Uint8Array>;
}

export interface HttpOptions {
  /** The backend kind; every message begins with it. */
  readonly kind: string;
  /** What people call the server: `Ollama`. */
  readonly product: string;
  /** As `parseEndpoint` answers it. */
  readonly endpoint: string;
  /** Sent with every request as `Authorization: Bearer`; blank is none. */
  readonly apiToken?: string | undefined;
  readonly onRequest?: OnRequest | undefined;
  /** Absent: its own. */
  readonly connections?: Connections | undefined;
}

/**
 * Connections to servers, shared by clients. Two pools for each server, so that downloads which hold their connection for
 * hours never keep a health check waiting. A connection that nobody uses closes after seconds, and a pool with its last one.
 */
export interface Connections {
  readonly quick: Agent;
  readonly patient: Agent;
}

/** Below the ten seconds a request has, so that a hanging host costs its own rows and not the answer. */
export const readBudgetMs = 8_000;
const documentLimit = 32 * 1024 * 1024;
const refusalLimit = 64 * 1024;

/**
 * undici ends a request by itself after 300 s without headers or without body bytes. A load answers after minutes and a
 * pull is silent while it verifies, so both timers are off; our own budgets bound what must be bounded.
 */
const timeouts = { headersTimeout: 0, bodyTimeout: 0 } as const;
const connectTimeoutMs = 5_000;

export function createConnections(): Connections {
  const pools = (connections: number) =>
    new Agent({ ...timeouts, connections, connect: guardedConnector({ timeout: connectTimeoutMs }) });
  return { quick: pools(8), patient: pools(32) };
}

/** Throws `invalid_request` for a token that cannot be sent. */
export function createHttp({ kind, product, endpoint, ...options }: HttpOptions): HttpClient {
  const apiToken = options.apiToken?.trim() ?? '';
  if (/[^\x21-\x7e]/.test(apiToken))
    throw invalidRequest(`the API token for ${kind} has a blank, a line break or a foreign character in it`);
  const { quick, patient } = options.connections ?? createConnections();
  const { origin, pathname } = new URL(endpoint);
  const base = pathname === '/' ? '' : pathname;

  /** Begins to measure a request; what it returns ends that, once. */
  function measure(call: Call, { method, path, op }: HttpRequest): (outcome: RequestOutcome) => void {
    const { onRequest } = options;
    if (!onRequest) return () => {};
    const began = performance.now();
    const asked = op ?? `${method} ${path.split('?')[0]}`;
    return outcome => onRequest(asked, outcome, (performance.now() - began) / 1000, call);
  }

  async function send(agent: Agent, { method, path, body }: HttpRequest, signal: AbortSignal) {
    signal.throwIfAborted();
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'model-manager' };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (apiToken !== '') headers.authorization = `Bearer ${apiToken}`;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = agent.request({ origin, path: base + path, method, headers, ...sent, signal, ...timeouts });
    return orAborted(answer, signal);
  }

  /** A server that refuses the token may repeat it. What is shorter is no secret, and could be part of any word. */
  const withoutToken = (text: string) => (apiToken.length < 8 ? text : text.replaceAll(apiToken, '…'));

  function failed(call: Call, request: HttpRequest, bounds: Bounds, error: unknown): GatewayError {
    if (error instanceof GatewayError) return error;
    const what = `${kind}: ${request.method} ${request.path}`;
    const options = { cause: error };
    if (bounds.expiredMs !== undefined)
      return timedOut(`${what}: no answer from ${endpoint} within ${seconds(bounds.expiredMs)}`, options);
    if (call.signal.aborted) {
      if (call.signal.reason?.name === 'TimeoutError')
        return timedOut(`${what}: no answer from ${endpoint} before the request's deadline`, options);
      return backendError(`${what}: cancelled by the caller`, options);
    }
    return backendError(`${what}: ${transportWords(error, endpoint, product)}`, options);
  }

  return {
    endpoint,

    async document(call, request) {
      const budgetMs = request.budgetMs ?? readBudgetMs;
      const bounds = boundsOf(call.signal);
      bounds.expireIn(Math.min(budgetMs, call.deadline - Date.now()));
      const began = performance.now();
      const ended = measure(call, request);
      try {
        const { statusCode, headers, body } = await send(
          budgetMs > readBudgetMs ? patient : quick,
          request,
          bounds.signal,
        );
        const fine = isSuccess(statusCode);
        const { text, cut } = await readText(body, fine ? documentLimit : refusalLimit);
        if (fine && cut)
          throw backendError(
            `${kind}: ${request.method} ${request.path}: the answer of ${endpoint} is larger than 32 MiB`,
          );
        const ms = Math.round(performance.now() - began);
        ended(fine ? 'ok' : 'refused');
        call.log.debug({ method: request.method, path: request.path, status: statusCode, ms }, `${kind} answered`);
        return { ...headOf(statusCode, headers), text: fine ? text : withoutToken(text) };
      } catch (error) {
        ended('failed');
        throw failed(call, request, bounds, error);
      } finally {
        bounds.release();
      }
    },

    async stream(call, request) {
      const bounds = boundsOf(call.signal);
      const ended = measure(call, request);
      const fail = (error: unknown) => {
        bounds.release();
        return failed(call, request, bounds, error);
      };
      let isTold = false;
      try {
        const { statusCode, headers, body } = await send(patient, request, bounds.signal);
        const head = headOf(statusCode, headers);
        ended(isSuccess(statusCode) ? 'ok' : 'refused');
        isTold = true;
        if (isSuccess(statusCode) && head.contentType !== 'text/html')
          return { answer: { ...head, text: '' }, chunks: chunksOf(body, fail, bounds.release) };
        bounds.expireIn(readBudgetMs);
        const { text } = await readText(body, refusalLimit);
        bounds.release();
        return { answer: { ...head, text: withoutToken(text) } };
      } catch (error) {
        if (!isTold) ended('failed');
        throw fail(error);
      }
    },
  };
}

export const isSuccess = (status: number) => status >= 200 && status < 300;
export const isRedirect = (status: number) => status >= 300 && status < 400;
/** What to do about a redirect, for its message. */
export const redirectAdvice = 'redirects are not followed, so configure the address it leads to';

/** The JSON of an answer; `undefined` when it is none. */
export function documentIn({ text }: HttpAnswer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// --- bounds ----------------------------------------------------------------------------------------------------------

interface Bounds {
  /** Aborts with the caller's signal, or when the time is up. */
  readonly signal: AbortSignal;
  /** Milliseconds that were allowed, once they are up. */
  readonly expiredMs: number | undefined;
  expireIn(ms: number): void;
  release(): void;
}

function boundsOf(caller: AbortSignal): Bounds {
  const abort = new AbortController();
  const follow = () => abort.abort(caller.reason);
  let timer: NodeJS.Timeout | undefined;
  let expiredMs: number | undefined;
  if (caller.aborted) follow();
  caller.addEventListener('abort', follow, { once: true });
  return {
    signal: abort.signal,
    get expiredMs() {
      return expiredMs;
    },
    expireIn(ms) {
      const allowed = Math.max(0, ms);
      timer = setTimeout(() => {
        if (abort.signal.aborted) return;
        expiredMs = allowed;
        abort.abort(new Error('time is up'));
      }, allowed);
    },
    release() {
      clearTimeout(timer);
      caller.removeEventListener('abort', follow);
    },
  };
}

/** Rejects when the signal aborts, whatever the promise does: undici does not listen while it waits for a connection. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

const seconds = (ms: number) => (ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`);

// --- bodies ----------------------------------------------------------------------------------------------------------

async function readText(body: AsyncIterable<Uint8Array>, limit: number): Promise<{ text: string; cut: boolean }> {
  const decoder = new TextDecoder();
  let text = '';
  let left = limit;
  // Leaving the loop destroys the body, and with it the connection that would bring the rest.
  for await (const chunk of body) {
    text += decoder.decode(chunk.subarray(0, left), { stream: true });
    if (chunk.length > left) return { text, cut: true };
    left -= chunk.length;
  }
  return { text: text + decoder.decode(), cut: false };
}

async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  fail: (error: unknown) => GatewayError,
  release: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw fail(error);
  } finally {
    release();
  }
}

function headOf(status: number, headers: Dispatcher.ResponseData['headers']) {
  const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
  const [contentType = ''] = (first(headers['content-type']) ?? '').toLowerCase().split(';', 1);
  // The query of a login redirect is full of one-time secrets.
  const location = first(headers.location)?.replace(/[?#].*$/s, '');
  return { status, contentType: contentType.trim(), location };
}

// --- words -----------------------------------------------------------------------------------------------------------

/** Foreign text as one line that can stand in a message: no control characters, no markup, at most `limit` long. */
export function oneLine(text: string, limit = 500): string {
  const head = text.slice(0, limit * 8);
  const page = head.search(/<(?:!doctype|html|head|body)\b/i);
  const words = page < 0 ? head : `${head.slice(0, page)} (${pageWords(head.slice(page))})`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const line = words.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** What an answer is, for a message that has to say that it is not what was expected. */
export function answerWords({ status, contentType, location, text }: HttpAnswer): string {
  if (isRedirect(status)) return `a redirect${location ? ` to ${oneLine(location, 200)}` : ''}`;
  const body = text.trim();
  if (body === '') return isSuccess(status) ? 'an empty answer' : (STATUS_CODES[status] ?? 'an empty answer');
  if (contentType === 'text/html' || body.startsWith('<')) return pageWords(body);
  return `${/^[[{]/.test(body) ? 'the document' : 'the text'} ${oneLine(body, 200)}`;
}

function pageWords(markup: string): string {
  const [, title = ''] = /<(?:title|h1)[^<>]*>([^<]+)/i.exec(markup.slice(0, 4096)) ?? [];
  const words = title.replace(/\s+/g, ' ').trim().slice(0, 100);
  return words ? `a web page titled "${words}"` : 'a web page';
}

/** Why no answer came. Own words, because the system's carry addresses the configuration never named. */
export function transportWords(error: unknown, endpoint: string, product: string): string {
  const code = systemCodeOf(error);
  const host = new URL(endpoint).hostname;
  switch (code) {
    case 'ECONNREFUSED':
      return `connection refused at ${endpoint}; is ${product} running there?`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host name ${host} cannot be resolved (${code}); check the endpoint ${endpoint}`;
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return `cannot connect to ${endpoint} in time; is the host up, and does a firewall let us through?`;
    case refusedAddress:
      return `${endpoint} leads to a link-local or metadata address, which is not connected to; configure another`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
      return `no route to ${endpoint} (${code})`;
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
    case 'UND_ERR_ABORTED':
      return `the connection to ${endpoint} was lost before the answer was complete`;
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return `the answer of ${endpoint} is not as long as it said`;
    default:
      if (code.startsWith('HPE_') || (error as Error | undefined)?.name === 'HTTPParserError')
        return `${endpoint} does not speak HTTP; check scheme and port`;
      if (code.startsWith('ERR_SSL_')) return `${endpoint} does not speak TLS (${code}); should it be http://?`;
      if (/CERT|SIGNATURE|TLS/.test(code)) return `the certificate of ${endpoint} is not accepted (${code})`;
      return `no answer from ${endpoint}: ${code || oneLine(messageOf(error), 200)}`;
  }
}
