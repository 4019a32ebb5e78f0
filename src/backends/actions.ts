import { type Call, detached } from '../call.ts';
import type { InventoryRefresh, Job, ModelConfigRef, PullProgress } from '../domain.ts';
import type { FitRequest, LoadRequest, PullRequest, RemovePlan, ServePlan, UnservePlan } from '../drivers/driver.ts';
import { asGatewayError, backendError, invalidRequest, messageOf } from '../errors.ts';
import type { Jobs, JobWork } from '../jobs/runner.ts';
import type { WiringTarget } from '../wiring/wiring.ts';
import { type Backend, isLate } from './backend.ts';
import type { Documents } from './documents/registration.ts';
import { backendOrDefault, findBackend, given, namedOrOnly, type Registry, requireCapability } from './registry.ts';
import { type Found, findOn, resolveModel } from './resolve.ts';
import { serveModel, unserveModel } from './serving.ts';
import { autoWire, makeKnown, requireWiring, takeBack, wirableOf, wiredWhenServed } from './wiring.ts';

/**
 * What callers can have done to models. What is decided comes first, in the contract's order, and changes nothing: it is
 * what a plan is made of. Then each acts.
 */
export interface Actions {
  readonly registry: Registry;
  readonly jobs: Jobs;
  /** Keep-alive of loads that name none. */
  readonly defaultKeepAlive: string;
  /** What makes models known to agents. */
  readonly wiring?: WiringTarget | undefined;
  /** Why there is none. */
  readonly wiringOff?: string | undefined;
  /** Where backends can be registered; absent without Kubernetes or a namespace. */
  readonly documents?: Documents | undefined;
}

export interface PullInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
  readonly wire?: boolean | null | undefined;
  readonly preset?: string | null | undefined;
  readonly node?: string | null | undefined;
}

/** A pull that may begin. */
interface DecidedPull {
  readonly backend: Backend;
  readonly request: PullRequest;
  /** Whether the model is to be known to agents when it is there. */
  readonly wire: boolean;
}

/** Nothing about the model is checked here: an unknown one is a failed job. */
export function decidePull(actions: Actions, input: PullInput): DecidedPull {
  const { registry, wiring } = actions;
  const backend = backendOrDefault(registry, input.backend);
  const { driver, name } = backend;
  requireCapability(backend, 'pull');
  if (input.wire) requireWiring(actions);
  if (input.wire && wiredWhenServed(driver))
    throw invalidRequest(`models on ${name} are wired when loaded (served), not when pulled`);
  return {
    backend,
    request: { model: input.model.trim(), preset: given(input.preset), node: given(input.node) },
    wire: wiring !== undefined && !wiredWhenServed(driver) && (input.wire ?? wiring.info.autoWire),
  };
}

/** Starts a pull, or joins the one that runs. */
export function pullModel(actions: Actions, call: Call, input: PullInput): Promise<{ job: Job; created: boolean }> {
  const { backend, request, wire } = decidePull(actions, input);
  return startPull(actions, call, backend, { request, wire, follow: work => backend.driver.pull?.(work, request) });
}

interface Pulling extends Pick<DecidedPull, 'request' | 'wire'> {
  /** Downloads, or follows the download that goes on. */
  follow(work: Call): AsyncIterable<PullProgress> | undefined;
}

/** The job that a pull is. */
export function jobOfPull({ backend: { name, driver }, request, wire }: DecidedPull) {
  const key = driver.pullKey?.(request) ?? driver.canonical(request.model);
  return { ...request, type: 'pull', backend: name, key, wire } as const;
}

/** Starts the job that follows a download, or joins the one that runs for the same model. */
export function startPull(actions: Actions, call: Call, backend: Backend, { request, wire, follow }: Pulling) {
  return actions.jobs.start(
    call,
    jobOfPull({ backend, request, wire }),
    pullWork(actions, backend, { request, wire, follow }),
  );
}

/** Downloads a model, or follows its download, and makes it known. */
export function pullWork(actions: Actions, backend: Backend, { request, wire, follow }: Pulling): JobWork {
  return async (work, report) => {
    backend.pulls.add(request.model);
    try {
      for await (const progress of follow(work) ?? []) report(progress);
    } finally {
      backend.pulls.delete(request.model);
      backend.changed();
    }
    return wire ? wirePulled(actions, work, backend, request.model) : undefined;
  };
}

/** Makes what was just pulled known to agents. The model stays when that fails. */
async function wirePulled(
  actions: Actions,
  call: Call,
  backend: Backend,
  reference: string,
): Promise<ModelConfigRef | undefined> {
  try {
    const { model } = await findOn(call, backend, reference);
    const wirable = wirableOf(backend.driver, model);
    if (!wirable) return undefined;
    return await makeKnown(requireWiring(actions), call, 'pullModel', wirable);
  } catch (error) {
    if (call.signal.aborted) throw error;
    throw backendError(`pulled ${reference} but wiring failed: ${asGatewayError(error, call.requestId).message}`, {
      cause: error,
    });
  }
}

/**
 * The model to do something to. Who has something done wants it tried: what is only remembered of a backend that failed is
 * no answer to that.
 */
function resolveToAct(
  registry: Registry,
  call: Call,
  reference: string,
  backend: string | null | undefined,
  preset?: string,
) {
  for (const each of registry.backends) if (each.models.current?.value?.errors.length) each.changed();
  return resolveModel(call, registry, reference, backend, preset);
}

export interface LoadInput {
  readonly model?: string | null | undefined;
  /** The preset to serve it by, on backends that have presets; alone it stands for its model. */
  readonly preset?: string | null | undefined;
  readonly node?: string | null | undefined;
  readonly backend?: string | null | undefined;
  readonly keepAlive?: string | null | undefined;
}

/** A load that may begin. */
type DecidedLoad = DecidedServe | (Found & { readonly request: LoadRequest; readonly serve?: undefined });

/** One on a backend that serves models as objects of their own. */
export interface DecidedServe {
  readonly backend: Backend;
  readonly asked: FitRequest;
  readonly serve: ServePlan;
}

export async function decideLoad(actions: Actions, call: Call, input: LoadInput): Promise<DecidedLoad> {
  const { registry, defaultKeepAlive } = actions;
  const asked = { model: given(input.model), preset: given(input.preset), node: given(input.node) };
  const reference = asked.model ?? asked.preset;
  if (reference === undefined) throw invalidRequest('model or preset is required');
  const named = findBackend(registry, input.backend);
  if (named) requireCapability(named, 'load');
  const only = namedOrOnly(registry, input.backend);
  const serving = async (backend: Backend) => {
    const serve = await backend.driver.planServe?.(call, asked);
    return serve && { backend, asked, serve };
  };
  // Such a backend looks by its own rules.
  const served = only && (await serving(only));
  if (served) return served;
  const { backend, model } = await resolveToAct(registry, call, reference, input.backend, asked.preset);
  requireCapability(backend, 'load');
  const resolved = await serving(backend);
  if (resolved) return resolved;
  const request = { model: model.name, keepAlive: input.keepAlive?.trim() || defaultKeepAlive, listed: model };
  backend.driver.checkLoad?.(request);
  return { backend, model, request };
}

/**
 * Brings a model into memory and answers it as it then is. The load goes on when the caller leaves or its deadline passes;
 * a caller whose deadline passes gets the model as it is by then.
 */
export async function loadModel(actions: Actions, call: Call, input: LoadInput): Promise<Found> {
  const decided = await decideLoad(actions, call, input);
  const { backend, serve } = decided;
  if (serve) return { backend, model: await serveModel(actions, call, decided) };
  const { model, request } = decided;
  const found = { backend, model };
  const { keepAlive } = request;

  const key = JSON.stringify([model.name, keepAlive]);
  let load = backend.loads.get(key);
  if (!load) {
    const work = detached(call, new AbortController().signal);
    load = (async () => {
      const facts = { backend: backend.name, model: model.name, keepAlive };
      try {
        await backend.driver.load?.(work, request);
        work.log.info(facts, 'model loaded');
        await autoWire(actions, work, backend, model);
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

interface UnloadInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
}

/** An unload that may begin. */
type DecidedUnload = DecidedUnserve | (Found & { readonly unserve?: undefined });

/** One on a backend that serves models as objects of their own. */
export interface DecidedUnserve {
  readonly backend: Backend;
  readonly unserve: UnservePlan;
}

export async function decideUnload({ registry }: Actions, call: Call, input: UnloadInput): Promise<DecidedUnload> {
  const reference = input.model.trim();
  const only = namedOrOnly(registry, input.backend);
  const unserving = async (backend: Backend) => {
    const unserve = await backend.driver.planUnserve?.(call, reference);
    return unserve && { backend, unserve };
  };
  const served = only && (await unserving(only));
  if (served) return served;
  const found = await resolveToAct(registry, call, reference, input.backend);
  requireCapability(found.backend, 'unload');
  return (await unserving(found.backend)) ?? found;
}

/** What became of an unload. */
export interface Unloaded {
  readonly backend: Backend;
  /** The objects that served it, where it was served by objects of its own; they are going now. */
  readonly resources?: readonly string[] | undefined;
  readonly inventory?: InventoryRefresh | undefined;
}

export async function unloadModel(actions: Actions, call: Call, input: UnloadInput): Promise<Unloaded> {
  const decided = await decideUnload(actions, call, input);
  const { backend, unserve } = decided;
  if (unserve) return { backend, ...(await unserveModel(actions, call, decided)) };
  const { model } = decided;
  await backend.driver.unload?.(call, model);
  backend.changed();
  return { backend };
}

interface DeleteInput extends UnloadInput {
  readonly unwire?: boolean | null | undefined;
}

/** A removal that may begin. */
interface DecidedDelete extends Found {
  /** Whether what makes it known to agents goes first. */
  readonly unwire: boolean;
  /** Where there is more to it than the files. */
  readonly remove: RemovePlan | undefined;
}

export async function decideDelete({ registry }: Actions, call: Call, input: DeleteInput): Promise<DecidedDelete> {
  const found = await resolveToAct(registry, call, input.model, input.backend);
  const { backend, model } = found;
  requireCapability(backend, 'delete');
  return { ...found, unwire: input.unwire ?? true, remove: await backend.driver.planRemove?.(call, model) };
}

/** Removes a model; before that, unless `unwire` is false, what makes it known to agents. */
export async function deleteModel(actions: Actions, call: Call, input: DeleteInput): Promise<DecidedDelete> {
  const decided = await decideDelete(actions, call, input);
  const { backend, model, unwire } = decided;
  const { wiring } = actions;
  if (unwire && wiring) await takeBack(wiring, call, 'deleteModel', { backend: backend.name, model: model.name });
  await backend.driver.remove?.(call, model);
  backend.changed();
  return decided;
}
