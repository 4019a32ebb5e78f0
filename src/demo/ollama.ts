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

import { type Clock, realClock } from './host/clock.ts';
import { type Host, startHost } from './host/server.ts';
import { answerTo, type Machine } from './ollama/api.ts';
import { featuresOf } from './ollama/features.ts';
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

export { manualClock } from './host/clock.ts';
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

export interface EmulatedOllama extends Host {
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
}

export async function startOllama(options: OllamaOptions = {}): Promise<EmulatedOllama> {
  const { clock = realClock } = options;
  const timings = { ...usual, ...options.timings };
  const state = emptyState();
  for (const model of options.models ?? []) store(state, toStored(model, clock.now()));
  for (const model of options.registry ?? []) publish(model);

  let machine = machineOf(options.version ?? '0.33.0');
  const host = await startHost({
    port: options.port,
    clock,
    answer: (incoming, { gone }) => answerTo(incoming, machine, gone),
    // Partial downloads too: the server throws them away when it starts.
    forget() {
      state.downloads.clear();
      state.partials.clear();
      state.runners.clear();
      pruneBlobs(state);
    },
    become(version) {
      machine = machineOf(version);
    },
  });

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

  return {
    ...host,

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
  };
}
