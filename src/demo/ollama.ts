/**
 * An emulated Ollama: a real HTTP server on loopback that speaks Ollama's API and keeps its state in memory.
 *
 * It is deterministic. What is downloaded, what is loaded and when it leaves follow from the scripted models, the
 * requests and the clock alone; give it a `manualClock()` and nothing moves until a test says so. Everything that goes
 * wrong is scripted too: failures of the registry and of runners belong to the models, failures of the wire are `fault`s.
 *
 * Not emulated, and answered 404: create, copy, push, blobs, `/api/embeddings`, accounts and the `/v1` routes.
 *
 * It is only worth what it shares with a real server, so `test/demo/ollama.test.ts` can put one in its place: start a
 * throw-away Ollama, and run that file with `OLLAMA_REAL_URL=http://127.0.0.1:11434` and, to allow it to pull, load and
 * delete, `OLLAMA_REAL_MODEL=all-minilm:22m` (any tiny embedding model that the server does not have yet).
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { answerTo, type Incoming, type Machine } from './ollama/api.ts';
import { type Clock, realClock } from './ollama/clock.ts';
import { featuresOf } from './ollama/features.ts';
import { type Fault, faultPlan } from './ollama/http/faults.ts';
import { send } from './ollama/http/sending.ts';
import { parseDuration, readKeepAlive } from './ollama/keepAlive.ts';
import {
  type EmulatedModel,
  emptyState,
  findModel,
  newestFirst,
  pruneBlobs,
  type RegistryModel,
  remove,
  type StoredModel,
  store,
  toPublished,
  toStored,
} from './ollama/models.ts';
import { parseName } from './ollama/names.ts';
import type { PullTimings } from './ollama/pulls.ts';
import { expire, expiresAt, preload, runnersOf } from './ollama/runners.ts';

export { manualClock } from './ollama/clock.ts';
export type { EmulatedModel, RegistryModel } from './ollama/models.ts';

/** How long things take, in milliseconds; models may say otherwise for themselves. */
export interface Timings extends PullTimings {
  readonly loadMs: number;
  /** How long an unloaded model is still listed. */
  readonly unloadMs: number;
  /** Between two words of a completion. */
  readonly tokenMs: number;
}

/** Like a small model on a good line. */
const usual: Timings = {
  tickMs: 60,
  firstByteMs: 90,
  manifestMs: 120,
  pullMs: 3000,
  verifyMs: 200,
  loadMs: 400,
  unloadMs: 0,
  tokenMs: 20,
};

/** Nothing takes any time, unless a model says so. */
export const instant: Timings = {
  tickMs: 1,
  firstByteMs: 0,
  manifestMs: 0,
  pullMs: 0,
  verifyMs: 0,
  loadMs: 0,
  unloadMs: 0,
  tokenMs: 0,
};

export interface OllamaOptions {
  /** Decides which fields and routes there are. */
  readonly version?: string;
  /** What is on disk. */
  readonly models?: readonly EmulatedModel[];
  /** What can be pulled besides what is on disk. */
  readonly registry?: readonly RegistryModel[];
  /** Any free one when absent. */
  readonly port?: number;
  readonly clock?: Clock;
  readonly timings?: Partial<Timings>;
  /** As `OLLAMA_KEEP_ALIVE`. */
  readonly keepAlive?: string;
  /** As `OLLAMA_CONTEXT_LENGTH`. */
  readonly contextLength?: number;
  /** Allowed besides the local ones, as `OLLAMA_ORIGINS`. */
  readonly origins?: readonly string[];
  /** False for a server that is not bound to loopback only: it takes any `Host`. */
  readonly checkHost?: boolean;
  readonly cloud?: Machine['cloud'];
  readonly utcOffset?: string;
  /** What a model says. */
  readonly complete?: Machine['complete'];
}

/** A model in memory. */
interface Loaded {
  readonly name: string;
  /** Undefined for ever. */
  readonly expiresAt: Date | undefined;
  readonly contextLength: number;
  /** Requests that use it, a load included. */
  readonly busy: number;
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

export interface EmulatedOllama extends AsyncDisposable {
  readonly url: string;
  /** All so far, oldest first; those that met a fault too. */
  readonly requests: readonly RecordedRequest[];
  /** The nth request to a path, counted from 1, once it has come. */
  requested(path: string, nth?: number): Promise<RecordedRequest>;

  /** Names on disk, newest first. */
  models(): string[];
  addModel(model: EmulatedModel): void;
  removeModel(name: string): void;
  /** Puts a model into the registry, in place of one of its name. */
  publish(model: RegistryModel): void;
  /** Bytes of interrupted downloads, by digest. */
  partials(): ReadonlyMap<string, number>;

  loaded(): Loaded[];
  /** Loads at once, as if somebody else had. */
  load(name: string, keepAlive?: number | string): void;
  unload(name: string): void;

  fault(fault: Fault): () => void;
  /** Ends like a killed process: connections break; partial downloads and loaded models are gone. */
  stop(): Promise<void>;
  /** Listens again, on the same port; as another version when one is given. */
  start(version?: string): Promise<void>;
  restart(downMs?: number): Promise<void>;
  close(): Promise<void>;
}

export async function startOllama(options: OllamaOptions = {}): Promise<EmulatedOllama> {
  const { clock = realClock } = options;
  const timings = { ...usual, ...options.timings };
  const state = emptyState();
  for (const model of options.models ?? []) store(state, toStored(model, clock.now()));
  for (const model of options.registry ?? []) publish(model);

  let machine = machineOf(options.version ?? '0.33.0');
  const faults = faultPlan();
  const requests: RecordedRequest[] = [];
  const waiting = new Set<() => void>();
  const closing = new AbortController();

  const server = createServer((request, response) => void answer(request, response));
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  let port = options.port ?? 0;
  await start();

  function machineOf(version: string): Machine {
    return {
      version,
      features: featuresOf(version),
      state,
      clock,
      timings,
      loadMs: timings.loadMs,
      unloadMs: timings.unloadMs,
      tokenMs: timings.tokenMs,
      keepAliveMs: readKeepAlive(options.keepAlive ?? '5m') ?? parseDuration('5m'),
      contextLength: options.contextLength ?? 4096,
      utcOffset: options.utcOffset ?? '+02:00',
      cloud: options.cloud ?? 'signed-out',
      origins: options.origins ?? [],
      checkHost: options.checkHost ?? true,
      complete: options.complete ?? (model => `This is ${model}, emulated: every question gets this answer.`),
    };
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    response.once('close', () => {
      gone.abort();
      close();
    });
    const raw = await textOf(request);
    if (raw === undefined) return;

    const { method = 'GET', url = '/', headers } = request;
    const incoming = { method, path: url.replace(/\?.*$/, ''), headers, raw };
    const ended = respond(incoming, response, gone.signal).then(async () => {
      await closed;
      return response.writableFinished ? ('answered' as const) : ('cut' as const);
    });
    requests.push({ ...incoming, body: parsed(raw), at: clock.now(), ended });
    for (const look of waiting) look();
  }

  async function respond(incoming: Incoming, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const fault = faults.meet(incoming.method, incoming.path);
    try {
      if (fault?.kind === 'hang') return;
      if (fault?.kind === 'delay') await clock.sleep(fault.ms, signal);
      if (fault?.kind === 'drop' && fault.afterBytes === undefined) return void response.destroy();
      const reply = fault?.kind === 'answer' ? scripted(fault) : await answerTo(incoming, machine, signal);
      await send(response, reply, fault && fault.kind !== 'delay' ? fault : {}, clock, signal);
    } catch (error) {
      // Whoever is gone cannot be told.
      if (!signal.aborted) throw error;
    }
  }

  function publish(model: RegistryModel): void {
    const published = toPublished(model);
    state.registry.set(published.model.shown, published);
  }

  function onDisk(reference: string): StoredModel {
    const name = parseName(reference);
    const model = name && findModel(state, name);
    if (!model) throw new Error(`not on disk: ${reference}`);
    return model;
  }

  async function start(version?: string): Promise<void> {
    if (version !== undefined) machine = machineOf(version);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  }

  async function stop(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    state.downloads.clear();
    state.partials.clear();
    state.runners.clear();
    pruneBlobs(state);
    await closed;
  }

  async function close(): Promise<void> {
    closing.abort();
    await stop();
  }

  return {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    requests,
    requested(path, nth = 1) {
      const { promise, resolve } = Promise.withResolvers<RecordedRequest>();
      const look = () => {
        const found = requests.filter(request => request.path === path)[nth - 1];
        if (!found) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      return promise;
    },

    models: () => newestFirst(state.models.values()).map(model => model.shown),
    addModel: model => store(state, toStored(model, clock.now())),
    removeModel: name => void remove(state, onDisk(name).shown),
    publish,
    partials: () => new Map(state.partials),

    loaded: () =>
      runnersOf(machine).map(runner => {
        const expires = expiresAt(runner, clock.now());
        return {
          name: runner.model.shown,
          expiresAt: Number.isFinite(expires) ? new Date(expires) : undefined,
          contextLength: runner.contextLength,
          busy: runner.busy,
        };
      }),
    load: (name, keepAlive) => preload(machine, onDisk(name), { keepAliveMs: readKeepAlive(keepAlive) }),
    unload: name => expire(machine, onDisk(name)),

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

function parsed(raw: string): unknown {
  if (raw === '') return undefined;
  try {
    return JSON.parse(raw);
  } catch {
    return raw;
  }
}

function scripted({ status = 200, contentType = 'application/json', headers = {}, body }: Fault & { kind: 'answer' }) {
  return { status, headers: { ...(contentType && { 'content-type': contentType }), ...headers }, body };
}
