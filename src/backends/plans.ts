/**
 * What actions on models come to: each plan begins with what its action decides, so that it is refused with the same words,
 * and shows the rest instead of doing it. Nothing is written.
 */
import type { Call } from '../call.ts';
import type { Deletion, Model, Plan } from '../domain.ts';
import type { PullRequest, UnservePlan } from '../drivers/driver.ts';
import { GatewayError, messageOf } from '../errors.ts';
import {
  type Actions,
  decideDelete,
  decideLoad,
  decidePull,
  decideUnload,
  jobOfPull,
  type LoadInput,
  type PullInput,
} from './actions.ts';
import type { Backend } from './backend.ts';
import { findOn } from './resolve.ts';
import { isForgotten } from './serving.ts';
import { planWiring, wirableOf, wiredByLoad } from './wiring.ts';

/** Beyond the refusals of a pull, it throws what its job would fail with before anything is downloaded, where that is known. */
export async function planPull(actions: Actions, call: Call, input: PullInput): Promise<Plan> {
  const pull = decidePull(actions, input);
  const { backend, request, wire } = pull;
  const { driver, name } = backend;
  const names = { backend: name, model: request.model };
  const running = actions.jobs.running(jobOfPull(pull));
  if (running) return { ...names, joins: running.id, manifests: [] };
  const plan = await driver.planPull?.(call, request);
  if (plan) return { ...names, ...plan, deletes: someOf(plan.deletes) };
  const { model = { backend: name, name: driver.canonical(request.model) }, present } = await look(
    call,
    backend,
    request,
  );
  const { manifests, deletes, wiring } = await planWiring(actions, call, wire ? wirableOf(driver, model) : undefined);
  return { ...names, present, manifests, wiring, deletes: someOf(deletes) };
}

export async function planLoad(actions: Actions, call: Call, input: LoadInput): Promise<Plan> {
  const decided = await decideLoad(actions, call, input);
  const { backend, serve } = decided;
  const { driver, name } = backend;
  if (!serve) {
    const { model, request } = decided;
    const { manifests, deletes, wiring } = await planWiring(actions, call, wiredByLoad(actions, driver, model));
    const state = { present: isThere(model), loaded: model.running !== undefined, keepAlive: request.keepAlive };
    return { backend: name, model: model.name, ...state, manifests, wiring, deletes: someOf(deletes) };
  }
  const { fit, serving, access } = serve;
  const wirable = actions.wiring?.info.autoWire && { backend: name, reference: serve.model.name, access };
  const { manifests, deletes, wiring } = await planWiring(actions, call, wirable || undefined);
  return {
    backend: name,
    model: serve.model.name,
    present: serve.model.downloaded,
    loaded: serving !== undefined,
    fit,
    alreadyServing: serving && true,
    manifests: [...serve.manifests, ...manifests],
    wiring,
    deletes: someOf(deletes),
  };
}

export async function planUnload(
  actions: Actions,
  call: Call,
  input: Parameters<typeof decideUnload>[2],
): Promise<Plan> {
  const decided = await decideUnload(actions, call, input);
  const { backend, unserve } = decided;
  const names = { backend: backend.name, model: input.model.trim(), manifests: [] };
  if (!unserve) return { ...names, loaded: decided.model.running !== undefined };
  const objects = unserve.objects.map(({ namespace, name }) => ({ kind: 'LLMInferenceService', namespace, name }));
  return { ...names, loaded: true, deletes: [...objects, ...(await forgotten(actions, call, backend, unserve))] };
}

/** What agents know of what goes. An unload does not wait for that, so what cannot be read is left out. */
async function forgotten({ wiring }: Actions, call: Call, backend: Backend, plan: UnservePlan): Promise<Deletion[]> {
  const models = [...new Set(plan.serving.map(({ name }) => name))].filter(each => isForgotten(backend, plan, each));
  const known = models.map(async model => {
    try {
      return (await wiring?.planUnwire(call, backend.name, model)) ?? [];
    } catch (error) {
      if (call.signal.aborted) throw error;
      call.log.debug({ backend: backend.name, model, error: messageOf(error) }, 'what agents know cannot be read');
      return [];
    }
  });
  return (await Promise.all(known)).flat();
}

export async function planDelete(
  actions: Actions,
  call: Call,
  input: Parameters<typeof decideDelete>[2],
): Promise<Plan> {
  const { backend, model, unwire, remove } = await decideDelete(actions, call, input);
  const wired = unwire ? await actions.wiring?.planUnwire(call, backend.name, model.name) : undefined;
  const files = remove?.deletes ?? [{ kind: 'Model', name: model.name, where: backend.driver.endpoint }];
  return {
    backend: backend.name,
    model: input.model,
    present: isThere(model),
    manifests: remove?.manifests ?? [],
    deletes: [...(wired ?? []), ...files],
  };
}

const isThere = ({ downloaded = true }: Model) => downloaded;
const someOf = (deletes: readonly Deletion[]) => (deletes.length > 0 ? deletes : undefined);

/** The listed model of that name. Nothing is known of it while its backend does not answer: a pull waits for that. */
async function look(
  call: Call,
  backend: Backend,
  { model: reference }: PullRequest,
): Promise<{ readonly model?: Model; readonly present?: boolean }> {
  try {
    const { model } = await findOn(call, backend, reference);
    return { model, present: isThere(model) };
  } catch (error) {
    if (call.signal.aborted || !(error instanceof GatewayError)) throw error;
    return error.code === 'not_found' ? { present: false } : {};
  }
}
