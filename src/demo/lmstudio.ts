/**
 * An emulated LM Studio: a real HTTP server on loopback that speaks the app's management API and what it has of
 * OpenAI's, and keeps its state in memory.
 *
 * It is deterministic, like its siblings: what is downloaded and loaded follows from the scripted models, the requests
 * and the clock alone. Failures of downloads and of loads belong to the models, failures of the wire are `fault`s. What
 * people do in the app, past every API, are methods: pausing a download, loading a model under a name of their own.
 *
 * Not emulated: its own chat API, `/v1/responses`, plain completions, the WebSocket of its SDK, other machines.
 *
 * The app is closed, so this is made from what is documented and reported. `test/demo/lmstudio.test.ts` can put a real
 * one in its place: run that file with `LMSTUDIO_REAL_URL=http://127.0.0.1:1234` and, where the server wants one, a
 * token in `LMSTUDIO_REAL_TOKEN`. It only reads there, and changes nothing.
 */

import { type Clock, realClock } from './host/clock.ts';
import { type Host, startHost } from './host/server.ts';
import { answerTo } from './lmstudio/api.ts';
import { type DownloadTimings, type Job, pause, resume, settle, standingOf } from './lmstudio/downloads.ts';
import { featuresOf } from './lmstudio/features.ts';
import { instancesOf, leavesAt, place, type Use } from './lmstudio/instances.ts';
import type { Machine } from './lmstudio/machine.ts';
import { type EmulatedModel, emptyState, publish, type RegistryModel, store } from './lmstudio/models.ts';

export { manualClock } from './host/clock.ts';
export type { EmulatedModel, RegistryModel } from './lmstudio/models.ts';

/** How long things take, in milliseconds; models may say otherwise for themselves. */
export interface Timings extends DownloadTimings {
  readonly loadMs: number;
  readonly unloadMs: number;
  /** Between two words of a completion. */
  readonly tokenMs: number;
}

/** Like a small model on a good line. */
const usual: Timings = {
  firstByteMs: 90,
  pullMs: 3000,
  finalizeMs: 200,
  loadMs: 400,
  unloadMs: 100,
  tokenMs: 20,
};

/** Nothing takes any time, unless a model says so. */
export const instant: Timings = {
  firstByteMs: 0,
  pullMs: 0,
  finalizeMs: 0,
  loadMs: 0,
  unloadMs: 0,
  tokenMs: 0,
};

export interface LmstudioOptions {
  /** Decides which fields and routes there are: before 0.4.0 there is no management API. */
  readonly version?: string;
  /** What is on disk. */
  readonly models?: readonly EmulatedModel[];
  /** What can be downloaded. */
  readonly registry?: readonly RegistryModel[];
  /** Any free one when absent. */
  readonly port?: number;
  readonly clock?: Clock;
  readonly timings?: Partial<Timings>;
  /** Tokens of context for models that are loaded. */
  readonly contextLength?: number;
  /** One of which every request must bring; none is wanted when absent. */
  readonly tokens?: readonly string[];
  /** Whether completions load what they need; they do when absent. */
  readonly onDemand?: boolean;
  /** How long a model that was loaded on demand stays idle; an hour when absent. */
  readonly ttlMs?: number;
  /** Whether a model that is loaded on demand takes the place of another such one; it does when absent. */
  readonly autoEvict?: boolean;
  /** What a model says. */
  readonly complete?: Machine['complete'];
}

/** A model in memory. */
interface Loaded {
  readonly id: string;
  readonly name: string;
  readonly contextLength: number;
  /** Undefined while it is busy, and for ever. */
  readonly expiresAt: Date | undefined;
  /** Requests that use it. */
  readonly busy: number;
}

interface Download {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly bytes: number;
}

export interface EmulatedLmstudio extends Host {
  /** Keys in the library. */
  models(): string[];
  addModel(model: EmulatedModel): void;
  removeModel(name: string): void;
  /** Puts a model into the catalog, in place of one of its name. */
  publish(model: RegistryModel): void;

  downloads(): Download[];
  pauseDownload(id: string): void;
  /** A part of which some bytes are lost is downloaded again. */
  resumeDownload(id: string, lostBytes?: number): void;

  loaded(): Loaded[];
  /** Loads at once, as a person does in the app; returns the instance's identifier. */
  load(name: string, use?: Use): string;
  /** Unloads an instance. */
  unload(id: string): void;
}

export async function startLmstudio(options: LmstudioOptions = {}): Promise<EmulatedLmstudio> {
  const { clock = realClock } = options;
  const timings = { ...usual, ...options.timings };
  const state = emptyState();
  for (const model of options.models ?? []) store(state, model);
  for (const model of options.registry ?? []) publish(state, model);

  let machine = machineOf(options.version ?? '0.4.20');
  const host = await startHost({
    port: options.port,
    clock,
    answer: (incoming, signals) => answerTo(incoming, machine, signals),
    // Downloads live in the app's memory: after a restart nobody knows their ids.
    forget() {
      settle(machine);
      state.jobs.clear();
      state.instances.clear();
    },
    become(version) {
      machine = machineOf(version);
    },
  });

  function machineOf(version: string): Machine {
    return {
      features: featuresOf(version),
      state,
      clock,
      timings,
      loadMs: timings.loadMs,
      unloadMs: timings.unloadMs,
      tokenMs: timings.tokenMs,
      contextLength: options.contextLength ?? 4096,
      tokens: options.tokens ?? [],
      onDemand: options.onDemand ?? true,
      ttlMs: options.ttlMs ?? 3_600_000,
      autoEvict: options.autoEvict ?? true,
      complete: options.complete ?? (model => `This is ${model}, emulated: every question gets this answer.`),
    };
  }

  function job(id: string): Job {
    const found = state.jobs.get(id);
    if (!found) throw new Error(`no such download: ${id}`);
    return found;
  }

  return {
    ...host,

    models() {
      settle(machine);
      return [...state.library.keys()];
    },
    addModel: model => store(state, model),
    removeModel(name) {
      settle(machine);
      state.library.delete(name);
    },
    publish: model => publish(state, model),

    downloads: () =>
      [...state.jobs.values()].map(each => {
        const { status, bytes } = standingOf(machine, each);
        return { id: each.id, name: each.published.model.name, status, bytes };
      }),
    pauseDownload: id => pause(machine, job(id)),
    resumeDownload: (id, lostBytes = 0) => resume(machine, job(id), lostBytes),

    loaded: () =>
      instancesOf(machine).map(instance => ({
        id: instance.id,
        name: instance.model.name,
        contextLength: Number(instance.config.context_length),
        expiresAt: leavesAt(instance),
        busy: instance.busy,
      })),
    load(name, use = {}) {
      const model = state.library.get(name);
      if (!model) throw new Error(`not in the library: ${name}`);
      return place(machine, model, use).id;
    },
    unload: id => void state.instances.delete(id),
  };
}
