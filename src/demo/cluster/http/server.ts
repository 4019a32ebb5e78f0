import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { listenOnLoopback } from '../../host/loopback.ts';
import { createRecording, parsedBody } from '../../host/recording.ts';
import { document, type Reply } from '../../host/reply.ts';
import { send } from '../../host/sending.ts';
import { failure, reasons, StatusError } from '../status.ts';
import { type Api, answerTo, PlainError } from './api.ts';
import type { ClusterFault, FaultPlan } from './faults.ts';
import { type Target, targetOf } from './paths.ts';

/** A request as it came. */
export interface RecordedRequest {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `discovery`, `health`, `other`. */
  readonly verb: string;
  /** `configmaps`, `pods/log`, `modelconfigs.kagent.dev`; '' when it is about none. */
  readonly resource: string;
  /** '' for all, and for what has none. */
  readonly namespace: string;
  /** '' for all. */
  readonly name: string;
  /** '' when nobody is known by its token. */
  readonly user: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The parsed document, or the text when it is none; undefined when empty. */
  readonly body: unknown;
  /** By the cluster's clock. */
  readonly at: number;
  /** How it ended, once nothing is left of it: the answer went out whole, or the connection was lost before. */
  readonly ended: Promise<'answered' | 'cut'>;
}

export interface ServerOptions {
  readonly api: Api;
  readonly faults: FaultPlan;
  /** Any free one when absent. */
  readonly port?: number | undefined;
  /** Speaks HTTPS with these, in PEM. */
  readonly tls?: { readonly key: string; readonly cert: string } | undefined;
}

export interface ApiServer {
  readonly port: number;
  /** The last 10,000, oldest first; those that met a fault too. */
  readonly requests: readonly RecordedRequest[];
  /** The nth request that has these fields, counted from 1, once it has come. */
  requested(match: Partial<RecordedRequest>, nth?: number): Promise<RecordedRequest>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Requests that are kept. */
const remembered = 10_000;

/** A real server on loopback, which meets faults, records what it is asked, and can be stopped and started. */
export async function startServer({ api, faults, tls, ...options }: ServerOptions): Promise<ApiServer> {
  const { clock } = api;
  const recording = createRecording<RecordedRequest>(remembered);
  const take = (request: IncomingMessage, response: ServerResponse) => void taken(request, response);
  const server = tls ? createTlsServer(tls, take) : createServer(take);
  const loopback = await listenOnLoopback(server, options.port);

  async function taken(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    response.once('close', () => {
      gone.abort();
      close();
    });
    const raw = await bodyOf(request);
    if (raw === undefined) return;

    const { method = 'GET', url = '/', headers } = request;
    const [path = '/', search] = url.split(/\?(.*)/s);
    const query = new URLSearchParams(search);
    const target = targetOf(method, path, query);
    const user = knownUser(headers);
    const { promise: ended, resolve: end } = Promise.withResolvers<'answered' | 'cut'>();
    const recorded = {
      ...pick(target),
      resource: resourceIn(target),
      user,
      method,
      path,
      query,
      headers,
      body: parsedBody(raw.toString()),
      at: clock.now(),
      ended,
    };
    recording.add(recorded);

    const fault = faults.meet(recorded);
    const cut = () => void response.destroy();
    const answer = () => answerTo(api, { ...target, method, path, query, headers, raw, user, gone: gone.signal, cut });
    try {
      await respond(response, fault, answer, gone.signal);
    } catch (error) {
      // Whoever is gone cannot be told.
      if (!gone.signal.aborted) throw error;
    }
    await closed;
    end(response.writableFinished ? 'answered' : 'cut');
  }

  function knownUser(headers: IncomingHttpHeaders): string {
    try {
      return api.rights.userOf(headers.authorization);
    } catch (error) {
      if (error instanceof StatusError) return '';
      throw error;
    }
  }

  async function respond(
    response: ServerResponse,
    fault: ClusterFault | undefined,
    answer: () => Promise<Reply>,
    gone: AbortSignal,
  ): Promise<void> {
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'delay') await clock.sleep(fault.ms, gone);
    if (fault?.kind === 'drop' && fault.afterBytes === undefined) return void response.destroy();
    const reply = scripted(fault) ?? (await refusable(answer));
    const shape = fault?.kind === 'drop' ? { afterBytes: fault.afterBytes } : {};
    await send(response, reply, shape, clock, gone);
  }

  return {
    get port() {
      return loopback.port;
    },
    requests: recording.requests,
    requested(match, nth = 1) {
      const wanted = Object.entries(match) as [keyof RecordedRequest, unknown][];
      return recording.requested(request => wanted.every(([field, value]) => request[field] === value), nth);
    },
    start: loopback.start,
    stop: () => loopback.stop(),
  };
}

const pick = ({ verb, namespace, name }: Target) => ({ verb, namespace, name });

function resourceIn({ group, plural, subresource }: Target): string {
  const resource = group === '' || plural === '' ? plural : `${plural}.${group}`;
  return subresource ? `${resource}/${subresource}` : resource;
}

/** The body, or nothing when the client left before it was whole. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  try {
    return await buffer(request);
  } catch {
    return undefined;
  }
}

/** The answer, be it a refusal. */
async function refusable(answer: () => Promise<Reply>): Promise<Reply> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof PlainError) {
      return { status: error.status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: error.message };
    }
    if (!(error instanceof StatusError)) throw error;
    const { status } = error;
    const seconds = status.details?.retryAfterSeconds;
    const reply = document(status, status.code, 'application/json');
    return { ...reply, headers: { ...reply.headers, ...(seconds && { 'retry-after': String(seconds) }) } };
  }
}

/** What a fault answers, if it answers. */
function scripted(fault: ClusterFault | undefined): Reply | undefined {
  if (fault?.kind === 'error event') {
    const event = { type: 'ERROR', object: said(fault.status ?? 410) };
    return { status: 200, headers: { 'content-type': 'application/json' }, body: `${JSON.stringify(event)}\n` };
  }
  if (fault?.kind !== 'answer') return undefined;
  const { status, headers, body = said(status) } = fault;
  const isText = typeof body === 'string';
  return {
    status,
    headers: { 'content-type': isText ? 'text/plain' : 'application/json', ...headers },
    body: isText ? body : JSON.stringify(body),
  };
}

const said = (code: number) => {
  const reason = reasons[code] ?? 'Unknown';
  return failure(code, reason, code === 410 ? 'too old resource version: 1 (2)' : `scripted failure: ${reason}`);
};
