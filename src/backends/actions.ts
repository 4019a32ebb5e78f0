import { type Call, detached } from '../call.ts';
import type { InventoryRefresh, Job, ModelConfigRef, PullProgress } from '../domain.ts';
import type { PullRequest } from '../drivers/driver.ts';
import { backendError, invalidRequest, messageOf } from '../errors.ts';
import type { Jobs } from '../jobs/runner.ts';
import type { WiringTarget } from '../wiring/wiring.ts';
import { type Backend, isLate } from './backend.ts';
import type { Documents } from './documents/registration.ts';
import { backendOrDefault, findBackend, given, namedOrOnly, type Registry, requireCapability } from './registry.ts';
import { type Found, findOn, resolveModel } from './resolve.ts';
import { serveModel, unserveModel } from './serving.ts';
import { autoWire, requireWiring, wirableOf, wiredWhenServed } from './wiring.ts';

/** What callers can have done to models: each checks in the contract's order, acts, and leaves one line in the log. */
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

/** Starts a pull, or joins the one that runs. Nothing about the model is checked here: an unknown one is a failed job. */
export function pullModel(actions: Actions, call: Call, input: PullInput): { job: Job; created: boolean } {
  const { registry, wiring } = actions;
  const backend = backendOrDefault(registry, input.backend);
  const { driver, name } = backend;
  requireCapability(backend, 'pull');
  if (input.wire) requireWiring(actions);
  if (input.wire && wiredWhenServed(driver))
    throw invalidRequest(`models on ${name} are wired when loaded (served), not when pulled`);
  const request = { model: input.model.trim(), preset: given(input.preset), node: given(input.node) };
  return startPull(actions, call, backend, {
    request,
    wire: wiring !== undefined && !wiredWhenServed(driver) && (input.wire ?? wiring.info.autoWire),
    follow: work => driver.pull?.(work, request),
  });
}

interface Pulling {
  readonly request: PullRequest;
  /** Whether the model is to be known to agents when it is there. */
  readonly wire: boolean;
  /** Downloads, or follows the download that goes on. */
  follow(work: Call): AsyncIterable<PullProgress> | undefined;
}

/** Starts the job that follows a download, or joins the one that runs for the same model. */
export function startPull(actions: Actions, call: Call, backend: Backend, { request, wire, follow }: Pulling) {
  const { name, driver } = backend;
  const key = driver.pullKey?.(request) ?? driver.canonical(request.model);
  const spec = { ...request, type: 'pull', backend: name, key, wire } as const;
  return actions.jobs.start(call, spec, async (work, report) => {
    backend.pulls.add(request.model);
    try {
      for await (const progress of follow(work) ?? []) report(progress);
    } finally {
      backend.pulls.delete(request.model);
      backend.changed();
    }
    return wire ? wirePulled(actions, work, backend, request.model) : undefined;
  });
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
    const modelConfig = await requireWiring(actions).wire(call, wirable);
    call.log.info({ modelConfig: modelConfig.name }, 'model wired');
    return modelConfig;
  } catch (error) {
    if (call.signal.aborted) throw error;
    throw backendError(`pulled ${reference} but wiring failed: ${messageOf(error)}`, { cause: error });
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

/**
 * Brings a model into memory and answers it as it then is. The load goes on when the caller leaves or its deadline passes;
 * a caller whose deadline passes gets the model as it is by then.
 */
export async function loadModel(actions: Actions, call: Call, input: LoadInput): Promise<Found> {
  const { registry } = actions;
  const [model, preset, node] = [given(input.model), given(input.preset), given(input.node)];
  const reference = model ?? preset;
  if (reference === undefined) throw invalidRequest('model or preset is required');
  const named = findBackend(registry, input.backend);
  if (named) requireCapability(named, 'load');
  const serve = async (backend: Backend): Promise<Found> => ({
    backend,
    model: await serveModel(actions, call, backend, { model, preset, node }),
  });
  const only = namedOrOnly(registry, input.backend);
  if (only?.driver.planServe) return serve(only);
  const found = await resolveToAct(registry, call, reference, input.backend, preset);
  requireCapability(found.backend, 'load');
  return found.backend.driver.planServe ? serve(found.backend) : loadFound(actions, call, found, input.keepAlive);
}

async function loadFound(actions: Actions, call: Call, found: Found, given: LoadInput['keepAlive']): Promise<Found> {
  const { backend, model } = found;
  const keepAlive = given?.trim() || actions.defaultKeepAlive;

  const key = JSON.stringify([model.name, keepAlive]);
  let load = backend.loads.get(key);
  if (!load) {
    const work = detached(call, new AbortController().signal);
    load = (async () => {
      const facts = { backend: backend.name, model: model.name, keepAlive };
      try {
        await backend.driver.load?.(work, { model: model.name, keepAlive, listed: model });
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

/** What became of an unload. */
export interface Unloaded {
  readonly backend: Backend;
  /** Of what was served by objects of its own, which are going now. */
  readonly inventory?: InventoryRefresh | undefined;
}

export async function unloadModel(
  actions: Actions,
  call: Call,
  input: { readonly model: string; readonly backend?: string | null | undefined },
): Promise<Unloaded> {
  const { registry } = actions;
  const reference = input.model.trim();
  const unserve = async (backend: Backend): Promise<Unloaded> => ({
    backend,
    inventory: await unserveModel(actions, call, backend, reference),
  });
  const only = namedOrOnly(registry, input.backend);
  if (only?.driver.planUnserve) return unserve(only);
  const { backend, model } = await resolveToAct(registry, call, reference, input.backend);
  requireCapability(backend, 'unload');
  if (backend.driver.planUnserve) return unserve(backend);
  await backend.driver.unload?.(call, model);
  backend.changed();
  call.log.info({ backend: backend.name, model: model.name }, 'model unloaded');
  return { backend };
}

/** Removes a model; before that, unless `unwire` is false, what makes it known to agents. */
export async function deleteModel(
  { registry, wiring }: Actions,
  call: Call,
  input: {
    readonly model: string;
    readonly backend?: string | null | undefined;
    readonly unwire?: boolean | null | undefined;
  },
): Promise<Found> {
  const found = await resolveToAct(registry, call, input.model, input.backend);
  const { backend, model } = found;
  requireCapability(backend, 'delete');
  await backend.driver.checkRemovable?.(call, model);
  if (input.unwire ?? true) await wiring?.unwire(call, backend.name, model.name);
  await backend.driver.remove?.(call, model);
  backend.changed();
  call.log.info({ backend: backend.name, model: model.name }, 'model deleted');
  return found;
}
