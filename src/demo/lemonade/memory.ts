import { createLatch, type Latch } from '../host/latch.ts';
import { Refusal } from '../host/reply.ts';
import { type Puller, pull, unsupported } from './downloads/pulls.ts';
import { type Entry, publicName, recipeOf, type SlotType, typeOf } from './models.ts';

/** A model in memory. */
export interface Resident {
  readonly entry: Entry;
  /** Tokens of context it was started with; -1 when the backend decides. */
  readonly contextLength: number;
  pinned: boolean;
  lastUse: number;
  /** Held by the requests that use it. */
  readonly uses: Latch;
  /** Of these, those that stream. */
  streams: number;
  leaving: boolean;
  /** A state that nobody is to guess: `downsized`, say. */
  readonly status?: string | undefined;
}

export interface Use {
  /** As it is, when absent. */
  readonly pinned?: boolean | undefined;
  readonly contextLength?: number | undefined;
}

export interface Memory extends Puller {
  /** Tokens of context a model gets when nobody says. */
  readonly contextLength: number;
  /** How many models of each type there is room for. */
  readonly maxModels: number;
  readonly loadMs: number;
  /** How long a model that has to go is still listed. */
  readonly unloadMs: number;
}

/** The word that the server has for the state of a model. */
export function statusOf({ leaving, uses, status }: Resident): string {
  if (leaving) return 'evicting';
  return uses.held > 0 ? 'in_use' : (status ?? 'ready');
}

/**
 * The model in memory, loaded if it must be. Loads come one after the other, and belong to the server: a client that
 * goes away does not end them. What is missing on disk is downloaded first, without a word.
 */
export async function load(memory: Memory, entry: Entry, use: Use, life: AbortSignal): Promise<Resident> {
  const current = reusable(memory, entry, use);
  if (current) return adopt(memory, current, use);
  const release = await memory.state.loads.take(life);
  const open = memory.blocks.includes('load') ? memory.state.door.hold() : undefined;
  try {
    const meanwhile = reusable(memory, entry, use);
    return meanwhile ? adopt(memory, meanwhile, use) : await loadAnew(memory, entry, use, life);
  } finally {
    memory.state.coming = undefined;
    open?.();
    release();
  }
}

function reusable({ state }: Memory, { id }: Entry, { contextLength }: Use): Resident | undefined {
  const resident = state.residents.get(id);
  if (!resident || resident.leaving) return undefined;
  return contextLength === undefined || contextLength === resident.contextLength ? resident : undefined;
}

function adopt({ clock }: Memory, resident: Resident, { pinned }: Use): Resident {
  resident.pinned = pinned ?? resident.pinned;
  resident.lastUse = clock.now();
  return resident;
}

async function loadAnew(memory: Memory, entry: Entry, use: Use, life: AbortSignal): Promise<Resident> {
  const { state, clock } = memory;
  if (entry.facts.supported === false) {
    throw refusal(404, 'model_not_supported', unsupported(entry.id), publicName(state, entry));
  }
  if (!entry.downloaded) await download(memory, entry, life);
  const before = state.residents.get(entry.id);
  const victims = victimsOf(memory, entry);
  for (const resident of before ? [before, ...victims] : victims) await evict(memory, resident, life);

  state.coming = entry;
  await clock.sleep(entry.facts.loadMs ?? memory.loadMs, life);
  if (entry.facts.loadError !== undefined) {
    // The server makes all the room it can and tries once more.
    for (const resident of [...state.residents.values()]) await evict(memory, resident, life);
    throw loadFailed(memory, entry, entry.facts.loadError);
  }
  return place(memory, entry, { ...use, pinned: use.pinned ?? before?.pinned });
}

async function download(memory: Memory, entry: Entry, life: AbortSignal): Promise<void> {
  for await (const { event, data } of pull(memory, entry, life)) {
    if (event === 'error') throw loadFailed(memory, entry, data.error);
  }
}

/** Puts a model into memory as it is. */
export function place(memory: Memory, entry: Entry, use: Use, status?: string): Resident {
  const { state, clock, contextLength } = memory;
  const resident: Resident = {
    entry,
    contextLength: use.contextLength ?? contextLength,
    pinned: use.pinned ?? false,
    lastUse: clock.now(),
    uses: createLatch(),
    streams: 0,
    leaving: false,
    status,
  };
  state.crashed.delete(entry.id);
  state.residents.set(entry.id, resident);
  return resident;
}

/** Who has to go for a model: the least recently used one of a full slot, and those that the NPU cannot hold beside it. */
function victimsOf({ state, maxModels }: Memory, entry: Entry): Resident[] {
  const others = [...state.residents.values()].filter(resident => resident.entry !== entry);
  const peers = others.filter(resident => typeOf(resident.entry) === typeOf(entry));
  const free = peers.filter(({ pinned }) => !pinned).sort((a, b) => a.lastUse - b.lastUse);
  const tooMany = Math.max(0, peers.length + 1 - maxModels);
  if (free.length < tooMany) {
    const text = `All loaded models of type ${poolOf(typeOf(entry))} are pinned. Unload a model first.`;
    throw refusal(409, 'slots_pinned_error', text, publicName(state, entry));
  }
  const rivals = onNpu(entry) ? others.filter(resident => onNpu(resident.entry)) : [];
  return [...new Set([...free.slice(0, tooMany), ...rivals])];
}

const onNpu = (entry: Entry) => ['flm', 'ryzenai-llm'].includes(recipeOf(entry));

export const poolOf = (type: SlotType) => `standard/${type}`;

/** Lets go of a model, once nobody uses it. */
export async function evict(memory: Memory, resident: Resident, life: AbortSignal): Promise<void> {
  const { state, clock, unloadMs } = memory;
  await resident.uses.free(life);
  resident.leaving = true;
  await clock.sleep(unloadMs, life);
  // Somebody may have been faster, or it is back already.
  if (state.residents.get(resident.entry.id) === resident) state.residents.delete(resident.entry.id);
}

/** A refusal as most routes word it. */
export const refusal = (status: number, code: string, message: string, name: string) =>
  new Refusal(status, { error: { code, message, param: 'model', requested_model: name, type: code } });

const loadFailed = ({ state }: Memory, entry: Entry, words: string) => {
  const name = publicName(state, entry);
  return refusal(500, 'model_load_error', `Failed to load model '${name}': ${words}`, name);
};
