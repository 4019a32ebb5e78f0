/**
 * What actions on models come to: each plan begins with what its action decides, so that it is refused with the same words,
 * and shows the rest instead of doing it. Nothing is written.
 */
import type { Call } from '../call.ts';
import type { Deletion, LoadedModel, Model, Plan } from '../domain.ts';
import type { PullRequest } from '../drivers/driver.ts';
import { GatewayError } from '../errors.ts';
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
  const { backend, model, request, serve } = await decideLoad(actions, call, input);
  const { driver, name } = backend;
  if (!serve) {
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
  const { backend, model, unserve } = await decideUnload(actions, call, input);
  return {
    backend: backend.name,
    model: input.model.trim(),
    loaded: unserve !== undefined || model.running !== undefined,
    manifests: [],
    deletes: unserve?.serving.map(objectOf),
  };
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

/** The object that serves a model. */
const objectOf = ({ kind = 'LLMInferenceService', resource, instance, name }: LoadedModel): Deletion => ({
  kind,
  name: resource ?? instance ?? name,
});

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
