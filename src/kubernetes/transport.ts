import type { Dispatcher } from 'undici';
import type { Call } from '../call.ts';
import { backendError, GatewayError, messageOf, timedOut } from '../errors.ts';
import { unlessAborted } from '../live/source.ts';
import { isToken } from './access/file.ts';
import type { Access, Identity } from './access.ts';
import {
  type Attempt,
  attemptWords,
  notKubernetes,
  parsedOrUndefined,
  refusalError,
  type Sender,
  transportError,
} from './errors.ts';
import { resourceName } from './resource.ts';
import { contentTypeOf, lastLines, readRefusal, wholeText } from './transport/bodies.ts';
import { type Bounds, boundsOf, pause } from './transport/bounds.ts';
import { createPools, type Use } from './transport/pools.ts';
import { pauseBeforeRetry } from './transport/retry.ts';
import { createServerClock } from './transport/serverClock.ts';

export interface ApiRequest {
  readonly attempt: Attempt;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the server, with its query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: object;
  /** `application/json` when absent. */
  readonly contentType?: string;
}

/** Requests to the API server, each as the one who calls; failures are `GatewayError`s as `KubernetesClient` has them. */
export interface Transport {
  readonly server: string;
  /** Milliseconds since the epoch, by the server's clock. */
  now(): number;
  /** One whole JSON document. */
  document(call: Call, request: ApiRequest): Promise<unknown>;
  /** The last lines of a plain text. */
  text(call: Call, request: ApiRequest, limit: number): Promise<string>;
  /** An answer that is read while it comes; only the call's signal ends it. */
  stream(call: Call, request: ApiRequest): Promise<ApiStream>;
}

export interface ApiStream {
  readonly body: Dispatcher.ResponseData['body'];
  readonly sender: Sender;
  /** What an error of the body means. */
  failed(error: unknown): GatewayError;
  /** To be called when the body is not read any more. */
  release(): void;
}

/** Below the ten seconds a request has, so that a hanging server costs its own rows and not the answer. */
const shortMs = 8_000;
/** Until a watch has begun. The API server says so at once, whether anything changes or not. */
const watchBeginsMs = 10_000;
const documentLimit = 32 * 1024 * 1024;

/** Told of every request that was sent: verb and resource, how it ended, how long it took to be answered, and for whom. */
export type OnApiRequest = (op: string, outcome: 'ok' | 'refused' | 'failed', seconds: number, call: Call) => void;

const opOf = ({ verb, resource, part }: Attempt) => `${verb} ${resourceName(resource)}${part ? `/${part}` : ''}`;

export function createTransport(access: Access, onRequest?: OnApiRequest): Transport {
  const { server } = access;
  const pools = createPools(access);
  const clock = createServerClock();

  /** As whom and over which connections; with nothing of the gateway where the caller has a token, whatever it is worth. */
  async function senderOf(call: Call, attempt: Attempt, use: Use, bounds: Bounds) {
    const { signal } = bounds;
    const token = call.caller.token?.();
    if (token !== undefined && !isToken(token)) {
      throw new GatewayError(
        'unauthenticated',
        `${attemptWords(attempt)}: the caller has no usable token; sign in again`,
      );
    }
    try {
      signal.throwIfAborted();
      if (token !== undefined) {
        const sender: Sender = { server, asCaller: true, secrets: [token] };
        const headers = { authorization: `Bearer ${token}` };
        return { sender, headers, pool: pools.callers(use, await access.trust()), identity: undefined };
      }
      const [trust, identity] = await Promise.all([access.trust(), unlessAborted(access.identity(signal), signal)]);
      const sender: Sender = { server, asCaller: false, secrets: secretsOf(identity) };
      return { sender, headers: identity.headers, pool: pools.own(use, trust, identity.certificate), identity };
    } catch (error) {
      throw notSent(call, attempt, server, bounds, error);
    }
  }

  /** Sends until there is an answer of success, which `read` reads, or a failure that trying again does not mend. */
  async function exchange<T>(
    call: Call,
    request: ApiRequest,
    use: Use,
    bounds: Bounds,
    read: (answer: Dispatcher.ResponseData, sender: Sender) => Promise<T>,
  ): Promise<T> {
    const { attempt, method, path } = request;
    const { signal } = bounds;
    let isRenewed = false;
    for (let tries = 1; ; tries++) {
      const began = performance.now();
      const { sender, headers, pool, identity } = await senderOf(call, attempt, use, bounds);
      let failure: GatewayError;
      let pauseMs: number | undefined;
      let isAnswered = false;
      try {
        signal.throwIfAborted();
        const answer = await unlessAborted(pool.request(options(server, request, headers, signal)), signal);
        const { statusCode: status } = answer;
        isAnswered = true;
        onRequest?.(opOf(attempt), status < 300 ? 'ok' : 'refused', (performance.now() - began) / 1000, call);
        clock.seen(answer.headers.date);
        call.log.debug({ method, path, status, ms: Math.round(performance.now() - began) }, 'API server answered');
        if (status >= 200 && status < 300) return await read(answer, sender);
        const refusal = await readRefusal(answer);
        failure = refusalError(attempt, sender, refusal);
        if (status === 401 && identity && !isRenewed) {
          isRenewed = true;
          access.refused();
          const next = await access.identity(signal).catch(() => identity);
          pauseMs = isSame(next, identity) ? undefined : 0;
        } else if (use === 'short') pauseMs = pauseBeforeRetry(method, tries, refusal);
      } catch (error) {
        if (!isAnswered) onRequest?.(opOf(attempt), 'failed', (performance.now() - began) / 1000, call);
        failure = failed(call, attempt, sender, bounds, error);
        if (use === 'short' && !(error instanceof GatewayError)) pauseMs = pauseBeforeRetry(method, tries, { error });
      }
      if (pauseMs === undefined || signal.aborted || pauseMs >= bounds.left()) throw failure;
      await pause(pauseMs, signal).catch(() => {
        throw failure;
      });
    }
  }

  /** `exchange`, within the time that a short request has. */
  async function shortly<T>(
    call: Call,
    request: ApiRequest,
    read: (answer: Dispatcher.ResponseData, sender: Sender) => Promise<T>,
  ): Promise<T> {
    const bounds = boundsOf(call, shortMs);
    try {
      return await exchange(call, request, 'short', bounds, read);
    } finally {
      bounds.release();
    }
  }

  return {
    server,
    now: clock.now,

    document: (call, request) =>
      shortly(call, request, async ({ statusCode: status, headers, body }, sender) => {
        const { attempt } = request;
        const text = await wholeText(body, documentLimit);
        if (text === undefined)
          throw backendError(`${attemptWords(attempt)}: the answer of ${server} is larger than 32 MiB`);
        const contentType = contentTypeOf(headers);
        const parsed = contentType.endsWith('json') ? parsedOrUndefined(text) : undefined;
        if (parsed === undefined || parsed === null) throw notKubernetes(attempt, sender, { status, contentType });
        return parsed;
      }),

    text: (call, request, limit) =>
      shortly(call, request, async ({ statusCode: status, headers, body }, sender) => {
        const contentType = contentTypeOf(headers);
        if (contentType !== 'text/plain' && contentType !== '') {
          body.on('error', () => {}).destroy();
          throw notKubernetes(request.attempt, sender, { status, contentType });
        }
        return lastLines(body, limit);
      }),

    async stream(call, request) {
      const { attempt } = request;
      const bounds = boundsOf(call, watchBeginsMs);
      try {
        return await exchange(call, request, 'watch', bounds, ({ statusCode: status, headers, body }, sender) => {
          const contentType = contentTypeOf(headers);
          if (!contentType.endsWith('json')) {
            body.on('error', () => {}).destroy();
            throw notKubernetes(attempt, sender, { status, contentType });
          }
          bounds.unlimit();
          const fail = (error: unknown) => failed(call, attempt, sender, bounds, error);
          return Promise.resolve({ body, sender, failed: fail, release: bounds.release });
        });
      } catch (error) {
        bounds.release();
        throw error;
      }
    },
  };
}

function options(
  server: string,
  { method, path, body, contentType = 'application/json' }: ApiRequest,
  identity: Identity['headers'],
  signal: AbortSignal,
): Dispatcher.RequestOptions & { origin: string } {
  const { origin, pathname } = new URL(server);
  return {
    origin,
    path: (pathname === '/' ? '' : pathname) + path,
    method,
    headers: {
      accept: 'application/json, */*',
      'user-agent': 'model-manager',
      ...(body && { 'content-type': contentType }),
      ...identity,
    },
    ...(body && { body: JSON.stringify(body) }),
    signal,
  };
}

// --- failures --------------------------------------------------------------------------------------------------------

function failed(call: Call, attempt: Attempt, sender: Sender, bounds: Bounds, error: unknown): GatewayError {
  if (error instanceof GatewayError || bounds.expiredMs === undefined)
    return transportError(attempt, sender, call, error);
  const what = `no answer from the API server at ${sender.server} within ${seconds(bounds.expiredMs)}`;
  return timedOut(`${attemptWords(attempt)}: ${what}`, { cause: error });
}

/** Why there was nobody to send it as. */
function notSent(call: Call, attempt: Attempt, server: string, bounds: Bounds, error: unknown): GatewayError {
  if (call.signal.aborted) return transportError(attempt, { server, asCaller: false, secrets: [] }, call, error);
  const what = `${attemptWords(attempt)}: the gateway's credentials for the API server`;
  if (bounds.expiredMs !== undefined)
    return timedOut(`${what} were not there within ${seconds(bounds.expiredMs)}`, { cause: error });
  return new GatewayError('unavailable', `${what} cannot be had: ${messageOf(error)}`, { cause: error });
}

const seconds = (ms: number) => (ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`);

// --- identity --------------------------------------------------------------------------------------------------------

function isSame(one: Identity, other: Identity): boolean {
  return one.headers.authorization === other.headers.authorization && one.certificate?.cert === other.certificate?.cert;
}

/** What of an identity must not be seen, in the forms in which a server may repeat it. */
function secretsOf({ headers: { authorization } }: Identity): string[] {
  if (typeof authorization !== 'string') return [];
  const [scheme, value = ''] = authorization.split(' ');
  if (scheme !== 'Basic') return [value];
  return [
    value,
    Buffer.from(value, 'base64')
      .toString()
      .replace(/^[^:]*:/, ''),
  ];
}
