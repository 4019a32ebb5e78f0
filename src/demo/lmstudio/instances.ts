import type { Clock } from '../host/clock.ts';
import { type EmulatedModel, isEmbedding, type State } from './models.ts';

/** A model in memory, or on its way there; one model may be there several times. */
export interface Instance {
  readonly id: string;
  readonly model: EmulatedModel;
  readonly config: Readonly<Record<string, unknown>>;
  /** Loaded by a request for a completion, which gives it a time to live. */
  readonly onDemand: boolean;
  /** From its last use on; Infinity for ever. */
  ttlMs: number;
  idleSince: number;
  /** Whether its weights are in memory; it is not listed before. */
  ready: boolean;
  /** Requests that use it. */
  busy: number;
}

export interface Memory {
  readonly state: State;
  readonly clock: Clock;
  /** Tokens of context when nobody says. */
  readonly contextLength: number;
  /** Of models that are loaded on demand. */
  readonly ttlMs: number;
  /** Whether a model that is loaded on demand takes the place of another such one. */
  readonly autoEvict: boolean;
  readonly loadMs: number;
}

export interface Use {
  /** Its identifier; the key, or the key with a number, when absent. */
  readonly id?: string | undefined;
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds it stays after its last use; for ever when absent. */
  readonly ttlMs?: number | undefined;
  readonly onDemand?: boolean | undefined;
}

const expiresAt = ({ busy, idleSince, ttlMs }: Instance) => (busy > 0 ? Number.POSITIVE_INFINITY : idleSince + ttlMs);

/** When it leaves, if it does. */
export const leavesAt = (instance: Instance): Date | undefined =>
  Number.isFinite(expiresAt(instance)) ? new Date(expiresAt(instance)) : undefined;

/** What is in memory now; those whose time is over are gone. */
export function instancesOf({ state, clock }: Memory): Instance[] {
  const now = clock.now();
  for (const instance of state.instances.values()) {
    if (now >= expiresAt(instance)) state.instances.delete(instance.id);
  }
  return [...state.instances.values()].filter(({ ready }) => ready);
}

/** Loads one more instance, whatever is there. A load belongs to the app: a client that goes away does not end it. */
export async function load(memory: Memory, model: EmulatedModel, use: Use, life: AbortSignal): Promise<Instance> {
  const { state, clock } = memory;
  const instance = newInstance(memory, model, use);
  state.instances.set(instance.id, instance);
  try {
    await clock.sleep(model.loadMs ?? memory.loadMs, life);
    if (model.loadError !== undefined) throw new LoadError(model.loadError);
  } catch (reason) {
    if (state.instances.get(instance.id) === instance) state.instances.delete(instance.id);
    throw reason;
  }
  return begin(memory, instance);
}

function begin({ clock }: Memory, instance: Instance): Instance {
  instance.ready = true;
  instance.idleSince = clock.now();
  return instance;
}

/** In the app's words. */
export class LoadError extends Error {}

/** An instance that somebody has loaded just now. */
export function place(memory: Memory, model: EmulatedModel, use: Use): Instance {
  const instance = newInstance(memory, model, use);
  memory.state.instances.set(instance.id, instance);
  return begin(memory, instance);
}

function newInstance(memory: Memory, model: EmulatedModel, use: Use): Instance {
  return {
    id: use.id ?? freeId(memory, model.name),
    model,
    config: { ...defaultConfig(memory, model), ...use.config },
    onDemand: use.onDemand ?? false,
    ttlMs: use.ttlMs ?? Number.POSITIVE_INFINITY,
    idleSince: Number.POSITIVE_INFINITY,
    ready: false,
    busy: 0,
  };
}

function defaultConfig({ contextLength }: Memory, model: EmulatedModel) {
  const context = { context_length: Math.min(contextLength, model.contextLength ?? Number.POSITIVE_INFINITY) };
  if (isEmbedding(model)) return context;
  return { ...context, eval_batch_size: 512, flash_attention: true, num_experts: 0, offload_kv_cache_to_gpu: true };
}

/** The key, or the key with the first free number from 2 on. */
function freeId(memory: Memory, key: string): string {
  const { state } = memory;
  instancesOf(memory);
  let id = key;
  for (let number = 2; state.instances.has(id); number++) id = `${key}:${number}`;
  return id;
}

/** The instance that a completion means: the one of that name, else one of that model. */
export function findInstance(memory: Memory, name: string, model: EmulatedModel | undefined): Instance | undefined {
  const there = instancesOf(memory);
  return there.find(({ id }) => id === name) ?? there.find(instance => model && instance.model.name === model.name);
}

/** Loads a model for a completion, in place of another one like it. Completions that come meanwhile do the same. */
export async function loadOnDemand(
  memory: Memory,
  model: EmulatedModel,
  ttlMs: number | undefined,
  life: AbortSignal,
): Promise<Instance> {
  if (memory.autoEvict) {
    for (const { id, onDemand, busy } of instancesOf(memory)) {
      if (onDemand && busy === 0) memory.state.instances.delete(id);
    }
  }
  return load(memory, model, { ttlMs: ttlMs ?? memory.ttlMs, onDemand: true }, life);
}

/** Keeps an instance busy until the returned function is called, which starts its time to live anew. */
export function occupy({ clock }: Memory, instance: Instance): () => void {
  instance.busy++;
  return () => {
    instance.busy--;
    instance.idleSince = clock.now();
  };
}
