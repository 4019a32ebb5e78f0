/**
 * An emulated Lemonade Server: a real HTTP server on loopback that speaks Lemonade's API, and what it has of OpenAI's
 * and Ollama's, and keeps its state in memory.
 *
 * It is deterministic, like its siblings: what is downloaded and loaded follows from the scripted models, the requests
 * and the clock alone. Failures of the registry and of loads belong to the models, failures of the wire are `fault`s.
 *
 * Not emulated: registering models, aliases, cloud models, the options of a model, images and sound, `/internal`.
 *
 * It is only worth what it shares with a real server, so `test/demo/lemonade.test.ts` can put one in its place: run that
 * file with `LEMONADE_REAL_URL=http://127.0.0.1:13305`. It only reads there, and changes nothing.
 */

import { type Clock, realClock } from './host/clock.ts';
import { type Host, startHost } from './host/server.ts';
import { answerTo } from './lemonade/api.ts';
import type { PullTimings } from './lemonade/downloads/pulls.ts';
import { featuresOf } from './lemonade/features.ts';
import type { Machine } from './lemonade/machine.ts';
import { place, statusOf, type Use } from './lemonade/memory.ts';
import {
  type EmulatedModel,
  emptyState,
  findEntry,
  publicName,
  publish,
  type RegistryModel,
  remove,
  store,
} from './lemonade/models.ts';

export { manualClock } from './host/clock.ts';
export type { EmulatedModel, RegistryModel } from './lemonade/models.ts';

/** How long things take, in milliseconds; models may say otherwise for themselves. */
export interface Timings extends PullTimings {
  readonly loadMs: number;
  /** How long a model that has to go is still listed. */
  readonly unloadMs: number;
  /** Between two words of a completion. */
  readonly tokenMs: number;
  /** Until the devices of the machine are found, the first time. */
  readonly probeMs: number;
}

/** Like a small model on a good line. */
const usual: Timings = {
  tickMs: 60,
  firstByteMs: 90,
  manifestMs: 120,
  pullMs: 3000,
  verifyMs: 200,
  retryMs: 2000,
  listedMs: 600_000,
  loadMs: 400,
  unloadMs: 0,
  tokenMs: 20,
  probeMs: 500,
};

/** Nothing takes any time, unless a model says so. */
export const instant: Timings = {
  tickMs: 1,
  firstByteMs: 0,
  manifestMs: 0,
  pullMs: 0,
  verifyMs: 0,
  retryMs: 0,
  listedMs: 600_000,
  loadMs: 0,
  unloadMs: 0,
  tokenMs: 0,
  probeMs: 0,
};

export interface LemonadeOptions {
  /** Decides which fields and routes there are. */
  readonly version?: string;
  /** What is on disk. */
  readonly models?: readonly EmulatedModel[];
  /** The rest of the catalog: what can be pulled. */
  readonly registry?: readonly RegistryModel[];
  /** Any free one when absent. */
  readonly port?: number;
  readonly clock?: Clock;
  readonly timings?: Partial<Timings>;
  /** As `ctx_size`: tokens of context for models that are loaded; -1 leaves it to their backends. */
  readonly contextLength?: number;
  /** As `max_loaded_models`: how many models of each type there is room for. */
  readonly maxModels?: number;
  /** As `LEMONADE_API_KEY`. */
  readonly apiKey?: string;
  /** Allowed besides the local ones. */
  readonly origins?: readonly string[];
  readonly offline?: boolean;
  /** Whether a model is listed as `loading`, which a real server seldom manages. */
  readonly listsLoading?: boolean;
  /** What makes every other request wait until it is done, as on servers with too few threads; nothing when absent. */
  readonly blocks?: Machine['blocks'];
  /** Fields of the machine's description that are not as usual. */
  readonly system?: Machine['system'];
  /** What a model says. */
  readonly complete?: Machine['complete'];
}

/** A model in memory. */
interface Loaded {
  readonly name: string;
  readonly status: string;
  readonly pinned: boolean;
  readonly contextLength: number;
  /** Requests that use it. */
  readonly busy: number;
}

export interface EmulatedLemonade extends Host {
  /** Names on disk, as the list has them. */
  models(): string[];
  addModel(model: EmulatedModel): void;
  removeModel(name: string): void;
  /** Puts a model into the catalog, in place of one of its name. */
  publish(model: RegistryModel): void;
  /** Bytes of interrupted downloads, by `model/file`. */
  partials(): ReadonlyMap<string, number>;

  loaded(): Loaded[];
  /** Loads at once, as if somebody else had; in a state such as `downsized` when one is given. */
  load(name: string, use?: Use, status?: string): void;
  unload(name: string): void;
  /** Its backend process dies: it is no longer listed, and unloading it is no error. */
  crash(name: string): void;
}

export async function startLemonade(options: LemonadeOptions = {}): Promise<EmulatedLemonade> {
  const { clock = realClock } = options;
  const timings = { ...usual, ...options.timings };
  const state = emptyState();
  for (const model of options.models ?? []) store(state, model);
  for (const model of options.registry ?? []) publish(state, model);

  let machine = machineOf(options.version ?? '11.7.0');
  const host = await startHost({
    port: options.port,
    clock,
    answer: (incoming, signals) => answerTo(incoming, machine, signals),
    // Partial downloads stay on the disk, and the next pull goes on from there.
    forget() {
      state.jobs.clear();
      state.residents.clear();
      state.crashed.clear();
      state.probed = false;
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
      probeMs: timings.probeMs,
      contextLength: options.contextLength ?? 4096,
      maxModels: options.maxModels ?? 1,
      apiKey: options.apiKey,
      origins: options.origins ?? [],
      offline: options.offline ?? false,
      listsLoading: options.listsLoading ?? false,
      blocks: options.blocks ?? [],
      system: options.system ?? {},
      complete: options.complete ?? (model => `This is ${model}, emulated: every question gets this answer.`),
    };
  }

  function known(name: string) {
    const entry = findEntry(state, name);
    if (!entry) throw new Error(`not in the catalog: ${name}`);
    return entry;
  }

  return {
    ...host,

    models: () => [...state.catalog.values()].filter(each => each.downloaded).map(each => publicName(state, each)),
    addModel: model => store(state, model),
    removeModel: name => remove(state, known(name)),
    publish: model => void publish(state, model),
    partials: () => new Map(state.partials),

    loaded: () =>
      [...state.residents.values()].map(resident => ({
        name: publicName(state, resident.entry),
        status: statusOf(resident),
        pinned: resident.pinned,
        contextLength: resident.contextLength,
        busy: resident.uses.held,
      })),
    load: (name, use = {}, status) => void place(machine, known(name), use, status),
    unload: name => void state.residents.delete(known(name).id),
    crash(name) {
      if (state.residents.delete(known(name).id)) state.crashed.add(known(name).id);
    },
  };
}
