/** Models that backends serve as objects of their own: having one served, and having it go. */
import { type Call, outliving } from '../call.ts';
import type {
  InventoryRefresh,
  Job,
  LoadedModel,
  Model,
  ModelConfigRef,
  PullProgress,
  WirableModel,
  WiringResult,
} from '../domain.ts';
import type { FitRequest, ServePlan, UnservePlan } from '../drivers/driver.ts';
import { asGatewayError, backendError, GatewayError, modelNotFound } from '../errors.ts';
import type { JobWork } from '../jobs/runner.ts';
import { isFinished } from '../jobs/store.ts';
import type { WiringTarget } from '../wiring/wiring.ts';
import type { Actions, DecidedServe, DecidedUnserve } from './actions.ts';
import { type Backend, isLate, readSource, readValue } from './backend.ts';
import { autoWireMs, makeKnown, requireWiring, takeBack, wirableOf } from './wiring.ts';

/** Having objects created or deleted, and what comes with it, takes no longer than this, in ms, whoever leaves. */
const changeMs = 30_000;

/**
 * Has a model served and answers it as it then is, with what it was allowed by and how agents know it. A job follows it
 * until it is ready. Throws what it is refused with, before anything is created; what is created stays when the caller
 * leaves.
 */
export async function serveModel(
  actions: Actions,
  call: Call,
  { backend, asked: request, serve: plan }: DecidedServe,
): Promise<Model> {
  const { driver } = backend;
  let served: Model = { ...plan.model, fit: plan.fit };
  const work = outliving(call, changeMs);
  const serving = (async () => {
    const running = await driver.serve?.(work, plan);
    if (!running) throw new Error(`${backend.name} has no way to serve what it planned`);
    const facts = { backend: backend.name, model: plan.model.name, object: running.resource };
    if (!plan.serving) work.log.info(facts, 'model served');
    served = { ...served, running };
    const wiring = await wireServed(actions, work, backend, plan, running, request);
    served = { ...served, wiring, modelConfig: wiring?.modelConfig };
  })().finally(backend.changed);
  await isLate(serving, call);
  return served;
}

/** Makes what is coming up known to agents, by the address that it will have, and again as soon as it is ready. */
async function wireServed(
  actions: Actions,
  call: Call,
  backend: Backend,
  plan: ServePlan,
  running: LoadedModel,
  request: FitRequest,
): Promise<WiringResult | undefined> {
  const { wiring, jobs } = actions;
  if (!wiring?.info.autoWire) return undefined;
  const wirable = { backend: backend.name, reference: plan.model.name, access: plan.access };
  const result = await wireNow(wiring, call, wirable, 'wired on load');
  if (running.status === 'Ready') return result;
  const { resource = plan.preset } = running;
  const spec = {
    type: 'load',
    backend: backend.name,
    model: request.model ?? plan.preset,
    key: resource,
    wire: true,
    node: request.node,
    preset: plan.preset,
    resource,
  } as const;
  const following = jobs.start(call, spec, loadWork(actions, wiring, backend, plan, running));
  // It is served all the same, and known by the address that it will have.
  await following.catch((error: unknown) => call.log.warn({ err: error, object: resource }, 'a load is not followed'));
  return result;
}

/** Follows what is served until agents know it by the address that it then has. */
function loadWork(
  actions: Actions,
  wiring: WiringTarget,
  backend: Backend,
  plan: ServePlan,
  running: LoadedModel,
): JobWork {
  const { resource = plan.preset } = running;
  return async (work, report) => {
    try {
      return await followServed(wiring, work, backend, { plan, resource, report });
    } catch (error) {
      // Who unloads takes what agents know. What was written of it after that is nobody else's to take.
      const isGone = error instanceof GatewayError && error.code === 'not_found';
      if (isGone) await unwireGone(actions, work, backend, { serving: [running] });
      throw error;
    }
  };
}

/** The same of a load that somebody else had begun. Fails with `not_found` when what it follows is there no longer. */
export function resumedLoad(actions: Actions, backend: Backend, job: Job): JobWork {
  const { resource, preset, node, model } = job;
  return async (work, report) => {
    const wiring = requireWiring(actions);
    const { rows } = await readValue(backend.loaded, work);
    const running = rows.find(each => each.resource === resource);
    if (!running) throw modelNotFound(`LLMInferenceService ${resource} is not there any more`);
    const plan = await backend.driver.planServe?.(work, { model, preset, node });
    if (!plan) throw new Error(`${backend.name} has no way to serve what is followed`);
    return loadWork(actions, wiring, backend, plan, running)(work, report);
  };
}

interface Following {
  readonly plan: ServePlan;
  readonly resource: string;
  report(progress: PullProgress): void;
}

/** Waits until a model is ready, and makes it known by the address that it then has. */
async function followServed(
  wiring: WiringTarget,
  call: Call,
  backend: Backend,
  { plan, resource, report }: Following,
): Promise<ModelConfigRef> {
  const { name } = plan.model;
  let said = '';
  const say = (status: string) => {
    if (status !== said) report({ status, bytesCompleted: 0, bytesTotal: 0 });
    said = status;
  };
  const waiting = `waiting for LLMInferenceService ${resource} to become ready`;
  const sayWhere = () => say([waiting, whereIs(backend, resource)].filter(Boolean).join(': '));
  sayWhere();
  const unsubscribe = backend.loaded.subscribe(sayWhere);
  const access = (await backend.driver.whenServed?.(call, plan).finally(unsubscribe)) ?? plan.access;
  backend.changed();
  say('ready; refreshing the ModelConfig from the published address');
  try {
    const modelConfig = await makeKnown(wiring, call, 'loadModel', { backend: backend.name, reference: name, access });
    say('wired');
    return modelConfig;
  } catch (error) {
    if (call.signal.aborted) throw error;
    const what = `${name} is ready but refreshing its ModelConfig failed: ${asGatewayError(error, call.requestId).message}`;
    throw backendError(what, { cause: error });
  }
}

/** At which step it is, and why, in a few words; undefined while nobody knows. */
function whereIs({ loaded }: Backend, resource: string): string | undefined {
  const { steps = [] } = loaded.current?.value?.rows.find(each => each.resource === resource) ?? {};
  const step = steps.find(({ state }) => state === 'inProgress' || state === 'failed');
  if (!step) return undefined;
  const state = step.state === 'failed' ? `${step.name} failed` : step.name;
  return step.reason ? `${state} (${step.reason})` : state;
}

/** Makes a model known that nobody asked to be: that it fails is an answer. It goes on when the caller leaves. */
export async function wireNow(
  wiring: WiringTarget,
  call: Call,
  wirable: WirableModel,
  reason: 'wired on load' | 'wired on read',
): Promise<WiringResult> {
  const bounded = outliving(call, autoWireMs);
  try {
    // Only for the words of the answer: what stands in the way of that is in the way of wiring too.
    const seen = await readSource(wiring.known, bounded).catch(() => undefined);
    const before = seen?.value?.of(wirable);
    const occasion = reason === 'wired on read' ? 'read' : 'loadModel';
    const modelConfig = await makeKnown(wiring, bounded, occasion, wirable);
    return { wired: true, reason: before || !modelConfig.managed ? 'already wired' : reason, modelConfig };
  } catch (error) {
    const why = bounded.signal.aborted
      ? `not done within ${autoWireMs / 1000} s`
      : asGatewayError(error, call.requestId).message;
    return { wired: false, reason: 'wiring failed', error: why };
  }
}

/**
 * Has everything go that a reference means, with what agents know it by. Does not wait until it is gone. Throws why something
 * of it stays, when all that goes has been seen to.
 */
export async function unserveModel(
  actions: Actions,
  call: Call,
  { backend, unserve: plan }: DecidedUnserve,
): Promise<{ readonly resources: readonly string[]; readonly inventory: InventoryRefresh }> {
  const { driver } = backend;
  let inventory: InventoryRefresh = { refreshing: false, reason: 'the answer was due before the cache was looked at' };
  const work = outliving(call, changeMs);
  const going = (async () => {
    const unserved = await driver.unserve?.(work, plan);
    if (!unserved) throw new Error(`${backend.name} has no way to have go what it planned`);
    inventory = unserved.inventory;
    const gone = { serving: unserved.gone };
    for (const { resource: object, name: model } of gone.serving)
      work.log.info({ backend: backend.name, model, object }, 'model unloaded');
    await endLoads(actions, work, backend, gone);
    await unwireGone(actions, work, backend, gone);
    if (unserved.failure) throw unserved.failure;
  })().finally(backend.changed);
  await isLate(going, call);
  return { resources: plan.serving.flatMap(({ resource }) => resource ?? []), inventory };
}

/** Whether agents forget a model of what goes: nothing else serves it, as far as one can see. */
export function isForgotten({ driver, name }: Backend, plan: Going, model: string): boolean {
  const left = wirableOf(driver, { backend: name, name: model });
  return left === undefined || objectsOf(plan).has(left.access.object);
}

/** What is served and goes. */
type Going = Pick<UnservePlan, 'serving'>;

const objectsOf = ({ serving }: Going) => new Set(serving.map(({ resource }) => resource));

/** Nobody needs to know when what is going is ready. */
async function endLoads({ jobs }: Actions, call: Call, backend: Backend, plan: Going): Promise<void> {
  const gone = objectsOf(plan);
  for (const job of jobs.store.list()) {
    const isIts = job.type === 'load' && job.backend === backend.name && gone.has(job.resource);
    if (!isIts || isFinished(job)) continue;
    // It ends by itself when it sees that its object is gone.
    await jobs
      .cancel(call, job.id)
      .catch((error: unknown) => call.log.warn({ err: error, job: job.id }, 'a load that is to end goes on'));
  }
}

/** Agents forget the models, unless something else serves them still: then they know that. */
async function unwireGone({ wiring }: Actions, call: Call, backend: Backend, plan: Going): Promise<void> {
  if (!wiring) return;
  const { driver, name } = backend;
  const gone = objectsOf(plan);
  const bounded = outliving(call, autoWireMs);
  await Promise.all(
    [...new Set(plan.serving.map(each => each.name))].map(async model => {
      const left = wirableOf(driver, { backend: name, name: model });
      const isServed = left && !gone.has(left.access.object);
      const done: Promise<unknown> = isServed
        ? makeKnown(wiring, bounded, 'unloadModel', left)
        : takeBack(wiring, bounded, 'unloadModel', { backend: name, model });
      // That it cannot is in the audit trail.
      await done.catch(() => {});
    }),
  );
}
