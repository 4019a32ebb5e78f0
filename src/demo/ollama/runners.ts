import type { Clock } from '../host/clock.ts';
import type { Features } from './features.ts';
import { type State, type StoredModel, weightsOf } from './models.ts';
import { ApiError } from './reply.ts';

/** A model in memory, or on its way there. */
export interface Runner {
  /** As it was when it was loaded; its name stays even when the model is deleted. */
  readonly model: StoredModel;
  readonly contextLength: number;
  readonly onCpu: boolean;
  /** When its weights are in memory. */
  readonly readyAt: number;
  /** From its last use on; Infinity for ever. */
  keepAliveMs: number;
  /** When its last request ended, or when it was told to go; undefined until its first request ends. */
  idleSince: number | undefined;
  /** Requests that use it. */
  busy: number;
}

export interface Use {
  readonly keepAliveMs?: number | undefined;
  readonly contextLength?: number | undefined;
  readonly onCpu?: boolean | undefined;
}

export interface Memory {
  readonly state: State;
  readonly clock: Clock;
  readonly features: Features;
  /** The server's own keep-alive. */
  readonly keepAliveMs: number;
  /** The server's own context length. */
  readonly contextLength: number;
  readonly loadMs: number;
  /** How long an unloaded model is still listed. */
  readonly unloadMs: number;
}

export const sizeOf = ({ model }: Runner) => model.facts.memoryBytes ?? Math.round(model.bytes * 1.15);

export const vramOf = (runner: Runner) => (runner.onCpu ? 0 : (runner.model.facts.vramBytes ?? sizeOf(runner)));

export const expiresAt = ({ idleSince, keepAliveMs }: Runner, now: number) => (idleSince ?? now) + keepAliveMs;

const isUsable = (runner: Runner, now: number) => runner.busy > 0 || now < expiresAt(runner, now);

/** Lets the past take effect: runners whose time is over are gone. */
function settle({ state, clock, unloadMs }: Memory): void {
  for (const [weights, runner] of state.runners) {
    if (!isUsable(runner, clock.now() - unloadMs)) state.runners.delete(weights);
  }
}

/** Longest remaining time first, as lists show them. */
export function runnersOf(memory: Memory): Runner[] {
  settle(memory);
  const now = memory.clock.now();
  return [...memory.state.runners.values()].sort((a, b) => {
    const [first, second] = [expiresAt(a, now), expiresAt(b, now)];
    return first === second ? 0 : second - first;
  });
}

/** The model's runner, loaded if it must be, held until `release`. */
export async function acquire(memory: Memory, model: StoredModel, use: Use, signal: AbortSignal): Promise<Runner> {
  const { state, clock, features } = memory;
  const weights = weightsOf(model);
  const current = reusable(memory, state.runners.get(weights), use);
  const runner = current ?? newRunner(memory, model, use);
  runner.busy++;
  if (current) {
    if (use.keepAliveMs !== undefined) runner.keepAliveMs = use.keepAliveMs;
    else if (!features.keepAliveSticks) runner.keepAliveMs = memory.keepAliveMs;
  }
  state.runners.set(weights, runner);
  try {
    await clock.sleep(runner.readyAt - clock.now(), signal);
  } catch (reason) {
    // A load belongs to the request that caused it: when that one goes, the load is cancelled.
    if (!current && state.runners.get(weights) === runner) state.runners.delete(weights);
    release(memory, runner);
    throw reason;
  }
  if (model.facts.loadError !== undefined) {
    state.runners.delete(weights);
    throw new ApiError(500, model.facts.loadError);
  }
  // Whoever waited for a load that was cancelled starts over.
  if (state.runners.get(weights) !== runner) return acquire(memory, model, use, signal);
  return runner;
}

function reusable(memory: Memory, runner: Runner | undefined, use: Use): Runner | undefined {
  if (!runner || !isUsable(runner, memory.clock.now())) return undefined;
  // Other options mean a reload, for which a real server waits until the model is idle; here it serves as it is.
  if (runner.busy > 0) return runner;
  const sameContext = runner.contextLength === contextFor(memory, runner.model, use);
  return sameContext && runner.onCpu === (use.onCpu ?? false) ? runner : undefined;
}

const contextFor = ({ contextLength }: Memory, { facts }: StoredModel, use: Use) =>
  Math.min(use.contextLength ?? contextLength, facts.contextLength ?? Number.POSITIVE_INFINITY);

function newRunner(memory: Memory, model: StoredModel, use: Use): Runner {
  return {
    model,
    contextLength: contextFor(memory, model, use),
    onCpu: use.onCpu ?? false,
    readyAt: memory.clock.now() + (model.facts.loadMs ?? memory.loadMs),
    keepAliveMs: use.keepAliveMs ?? memory.keepAliveMs,
    idleSince: undefined,
    busy: 0,
  };
}

/** Ends one use; the last one starts the keep-alive anew. */
export function release({ clock }: Memory, runner: Runner): void {
  runner.busy--;
  if (runner.busy === 0) runner.idleSince = clock.now();
}

/** Tells a model to go; while requests use it, it stays with an expiry in the past. */
export function expire({ state, clock }: Memory, model: StoredModel): void {
  const runner = state.runners.get(weightsOf(model));
  if (!runner) return;
  runner.keepAliveMs = 0;
  runner.idleSince = clock.now();
}

/** A model that someone else has loaded just now. */
export function preload(memory: Memory, model: StoredModel, use: Use): void {
  const runner = newRunner(memory, model, use);
  memory.state.runners.set(weightsOf(model), { ...runner, readyAt: memory.clock.now(), idleSince: memory.clock.now() });
}
