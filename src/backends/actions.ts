import { type Call, detached } from '../call.ts';
import type { Job } from '../domain.ts';
import { messageOf } from '../errors.ts';
import type { Jobs } from '../jobs/runner.ts';
import { unlessAborted } from '../live/source.ts';
import { isTimeUp } from './backend.ts';
import { backendOrDefault, findBackend, given, type Registry, requireCapability } from './registry.ts';
import { type Found, findOn, resolveModel } from './resolve.ts';
import { type Wiring, wiringIsOff } from './wiring.ts';

/** What callers can have done to models: each checks in the contract's order, acts, and leaves one line in the log. */
export interface Actions {
  readonly registry: Registry;
  readonly jobs: Jobs;
  /** Keep-alive of loads that name none. */
  readonly defaultKeepAlive: string;
  /** What makes models known to agents; absent without Kubernetes. */
  readonly wiring?: Wiring | undefined;
}

export interface PullInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
  readonly wire?: boolean | null | undefined;
  readonly preset?: string | null | undefined;
  readonly node?: string | null | undefined;
}

/** Starts a pull, or joins the one that runs. Nothing about the model is checked here: an unknown one is a failed job. */
export function pullModel({ registry, jobs }: Actions, call: Call, input: PullInput): { job: Job; created: boolean } {
  const backend = backendOrDefault(registry, input.backend);
  requireCapability(backend, 'pull');
  if (input.wire) throw wiringIsOff();
  const request = { model: input.model.trim(), preset: given(input.preset), node: given(input.node) };
  const spec = {
    ...request,
    type: 'pull',
    backend: backend.name,
    key: backend.driver.canonical(request.model),
    wire: false,
  } as const;
  return jobs.start(call, spec, async (work, report) => {
    backend.pulls.add(request.model);
    try {
      for await (const progress of backend.driver.pull?.(work, request) ?? []) report(progress);
    } finally {
      backend.pulls.delete(request.model);
      backend.changed();
    }
  });
}

/**
 * The model to do something to. Who has something done wants it tried: what is only remembered of a backend that failed is
 * no answer to that.
 */
function resolveToAct(registry: Registry, call: Call, reference: string, backend: string | null | undefined) {
  for (const each of registry.backends) if (each.models.current?.value?.errors.length) each.changed();
  return resolveModel(call, registry, reference, backend);
}

export interface LoadInput {
  /** A model reference, or the name of a preset that stands for one. */
  readonly reference: string;
  readonly backend?: string | null | undefined;
  readonly keepAlive?: string | null | undefined;
}

/**
 * Brings a model into memory and answers it as it then is. The load goes on when the caller leaves or its deadline passes;
 * a caller whose deadline passes gets the model as it is by then.
 */
export async function loadModel({ registry, defaultKeepAlive }: Actions, call: Call, input: LoadInput): Promise<Found> {
  const named = findBackend(registry, input.backend);
  if (named) requireCapability(named, 'load');
  const found = await resolveToAct(registry, call, input.reference.trim(), input.backend);
  const { backend, model } = found;
  requireCapability(backend, 'load');
  const keepAlive = input.keepAlive?.trim() || defaultKeepAlive;

  const key = JSON.stringify([model.name, keepAlive]);
  let load = backend.loads.get(key);
  if (!load) {
    const work = detached(call, new AbortController().signal);
    load = (async () => {
      const facts = { backend: backend.name, model: model.name, keepAlive };
      try {
        await backend.driver.load?.(work, { model: model.name, keepAlive, listed: model });
        work.log.info(facts, 'model loaded');
      } catch (error) {
        work.log.warn({ ...facts, error: messageOf(error) }, 'model load failed');
        throw error;
      } finally {
        backend.changed();
      }
    })().finally(() => backend.loads.delete(key));
    // It may fail when all who waited have left: it is in the log, and nobody is to be told.
    load.catch(() => {});
    backend.loads.set(key, load);
  }
  const late = await isLate(load, call);
  if (late) return found;
  return findOn(call, backend, model.name).catch(() => found);
}

/** Waits for the work until the call's deadline; true when that came first. */
async function isLate(work: Promise<void>, call: Call): Promise<boolean> {
  try {
    await unlessAborted(work, call.signal);
    return false;
  } catch (error) {
    if (isTimeUp(error) && error === call.signal.reason) return true;
    throw error;
  }
}

export async function unloadModel(
  { registry }: Actions,
  call: Call,
  input: { readonly model: string; readonly backend?: string | null | undefined },
): Promise<Found> {
  const found = await resolveToAct(registry, call, input.model.trim(), input.backend);
  requireCapability(found.backend, 'unload');
  await found.backend.driver.unload?.(call, found.model);
  found.backend.changed();
  call.log.info({ backend: found.backend.name, model: found.model.name }, 'model unloaded');
  return found;
}

export async function deleteModel(
  { registry }: Actions,
  call: Call,
  input: { readonly model: string; readonly backend?: string | null | undefined },
): Promise<Found> {
  const found = await resolveToAct(registry, call, input.model, input.backend);
  requireCapability(found.backend, 'delete');
  await found.backend.driver.remove?.(call, found.model);
  found.backend.changed();
  call.log.info({ backend: found.backend.name, model: found.model.name }, 'model deleted');
  return found;
}
