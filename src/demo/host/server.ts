import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Clock } from './clock.ts';
import { type Fault, faultPlan } from './faults.ts';
import { listenOnLoopback } from './loopback.ts';
import { createRecording, parsedBody } from './recording.ts';
import type { Reply } from './reply.ts';
import { send } from './sending.ts';

/** A request whose body is here. */
export interface Incoming {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
}

/** A request as it came. */
interface RecordedRequest extends Incoming {
  /** The parsed document, or the text when it is none; undefined when empty. */
  readonly body: unknown;
  /** By the emulator's clock. */
  readonly at: number;
  /** How it ended, once nothing is left of it: the answer went out whole, or the connection was lost before. */
  readonly ended: Promise<'answered' | 'cut'>;
}

/** The signals that a handler may listen to. */
export interface Signals {
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  /** Aborts when the server stops. */
  readonly life: AbortSignal;
}

export interface HostOptions {
  /** Any free one when absent. */
  readonly port?: number | undefined;
  readonly clock: Clock;
  /** The answer to a request that meets no fault, or a later one only. */
  answer(incoming: Incoming, signals: Signals): Reply | Promise<Reply>;
  /** Forgets what a killed process forgets. */
  forget(): void;
  /** Becomes another version of itself. */
  become(version: string): void;
}

/** What every emulated server has. */
export interface Host extends AsyncDisposable {
  readonly url: string;
  /** All so far, oldest first; those that met a fault too. */
  readonly requests: readonly RecordedRequest[];
  /** The nth request to a path, counted from 1, once it has come. */
  requested(path: string, nth?: number): Promise<RecordedRequest>;

  fault(fault: Fault): () => void;
  /** Ends like a killed process: connections break, and what was in memory is gone. */
  stop(): Promise<void>;
  /** Listens again, on the same port; as another version when one is given. */
  start(version?: string): Promise<void>;
  restart(downMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** A real HTTP server on loopback, which meets faults, records what it is asked, and can be stopped and started. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { clock } = options;
  const faults = faultPlan();
  const recording = createRecording<RecordedRequest>();
  const closing = new AbortController();

  const server = createServer((request, response) => void take(request, response));
  let life = new AbortController();
  const loopback = await listenOnLoopback(server, options.port);

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    response.once('close', () => {
      gone.abort();
      close();
    });
    const raw = await textOf(request);
    if (raw === undefined) return;

    const { method = 'GET', url = '/', headers } = request;
    const [path = '/', query] = url.split(/\?(.*)/s);
    const incoming = { method, path, query: new URLSearchParams(query), headers, raw };
    const ended = respond(incoming, response, { gone: gone.signal, life: life.signal }).then(async () => {
      await closed;
      return response.writableFinished ? ('answered' as const) : ('cut' as const);
    });
    recording.add({ ...incoming, body: parsedBody(raw), at: clock.now(), ended });
  }

  async function respond(incoming: Incoming, response: ServerResponse, signals: Signals): Promise<void> {
    const { gone } = signals;
    const fault = faults.meet(incoming.method, incoming.path);
    try {
      if (fault?.kind === 'hang') return;
      if (fault?.kind === 'delay') await clock.sleep(fault.ms, gone);
      if (fault?.kind === 'drop' && fault.afterBytes === undefined) return void response.destroy();
      const reply = fault?.kind === 'answer' ? scripted(fault) : await options.answer(incoming, signals);
      await send(response, reply, fault && fault.kind !== 'delay' ? fault : {}, clock, gone);
    } catch (error) {
      // Whoever is gone cannot be told.
      if (!gone.aborted && !signals.life.aborted) throw error;
    }
  }

  async function start(version?: string): Promise<void> {
    if (version !== undefined) options.become(version);
    life = new AbortController();
    await loopback.start();
  }

  const stop = () =>
    loopback.stop(() => {
      life.abort();
      options.forget();
    });

  async function close(): Promise<void> {
    closing.abort();
    await stop();
  }

  return {
    url: `http://127.0.0.1:${loopback.port}`,
    requests: recording.requests,
    requested: (path, nth = 1) => recording.requested(request => request.path === path, nth),
    fault: faults.add,
    stop,
    start,
    async restart(downMs = 0) {
      await stop();
      try {
        await clock.sleep(downMs, closing.signal);
      } catch {
        return; // Closed meanwhile: it stays down.
      }
      await start();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The body, or nothing when the client left before it was whole. */
async function textOf(request: IncomingMessage): Promise<string | undefined> {
  try {
    return await text(request);
  } catch {
    return undefined;
  }
}

/** A part of a path as text; as it is when it is no valid encoding. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function scripted({ status = 200, contentType = 'application/json', headers = {}, body }: Fault & { kind: 'answer' }) {
  return { status, headers: { ...(contentType && { 'content-type': contentType }), ...headers }, body };
}
