import { audited, type Occasion } from '../audit/entry.ts';
import { type Call, detached } from '../call.ts';
import type { Model, ModelConfigRef, WirableModel, WiringResult } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { asGatewayError, conflict, invalidRequest, quoted, unlessMissing, unsupported } from '../errors.ts';
import { isObjectName } from '../kubernetes/resource.ts';
import { createTurns } from '../live/turns.ts';
import type { ApiKey, WiringPlan, WiringTarget } from '../wiring/wiring.ts';
import type { Actions } from './actions.ts';
import type { Backend } from './backend.ts';
import { backendNamed, findBackend, given, namedOrOnly, type Registry } from './registry.ts';
import { resolveModel } from './resolve.ts';

/** Why models cannot be made known to agents, where the gateway was started without that. */
export const noKubernetes = 'no Kubernetes access';

/** What makes models known to agents. Throws `unsupported` where nothing does. */
export function requireWiring({ wiring, wiringOff = noKubernetes }: Actions): WiringTarget {
  if (!wiring) throw unsupported(`agent wiring is disabled (${wiringOff})`);
  return wiring;
}

/** The key of a Secret that holds an API key, unless the caller names another. */
export const usualSecretKey = 'OPENAI_API_KEY';

/** Backends that serve models as objects of their own have them wired when they are served; others when they are there. */
export const wiredWhenServed = ({ kind }: Pick<Driver, 'kind'>) => kind === 'kserve';

/** A model as agents are to know it; undefined when nothing serves it. */
export function wirableOf(driver: Driver, model: Model): WirableModel | undefined {
  const access = driver.agentAccess(model);
  return access && { backend: driver.name, reference: model.name, access };
}

/** The same. Throws `conflict` when nothing serves it. */
export function requireWirable(driver: Driver, model: Model): WirableModel {
  const wirable = wirableOf(driver, model);
  if (!wirable)
    throw conflict(`${model.name} is not served on ${driver.name}, so agents cannot reach it; load it first`);
  return wirable;
}

/** What a load makes known to agents by itself. */
export function wiredByLoad({ wiring }: Actions, driver: Driver, model: Model): WirableModel | undefined {
  return wiring?.info.autoWire && !wiredWhenServed(driver) ? wirableOf(driver, model) : undefined;
}

/** Makes a model known that is being used: nobody asked for it, so a failure is nobody's answer. */
export async function autoWire(actions: Actions, call: Call, { driver }: Backend, model: Model): Promise<void> {
  const { wiring } = actions;
  const wirable = wiredByLoad(actions, driver, model);
  if (!wiring || !wirable) return;
  // That it cannot is in the audit trail.
  await makeKnown(wiring, briefly(call), 'loadModel', wirable).catch(() => {});
}

/** One at a time for each model: loads, readers and the reconciler may all want it known at the same moment. */
const turns = createTurns();

function wireInTurn(wiring: WiringTarget, call: Call, wirable: WirableModel, apiKey?: ApiKey): Promise<ModelConfigRef> {
  const key = JSON.stringify([wirable.backend, wirable.reference]);
  return turns(key, call.signal, () => wiring.wire(call, wirable, apiKey));
}

/** Makes a model known to agents without being asked for just that: it has an entry of its own in the audit trail. */
export function makeKnown(
  wiring: WiringTarget,
  call: Call,
  occasion: Occasion,
  wirable: WirableModel,
): Promise<ModelConfigRef> {
  const { backend, reference: model } = wirable;
  const targetOf = (made?: ModelConfigRef) => ({ backend, model, object: made?.name });
  return audited(call, { action: 'wireModel', occasion }, targetOf, () => wireInTurn(wiring, call, wirable));
}

/** Takes that back, likewise. */
export function takeBack(
  wiring: WiringTarget,
  call: Call,
  occasion: Occasion,
  target: { readonly backend: string; readonly model: string },
): Promise<void> {
  const { backend, model } = target;
  return audited(
    call,
    { action: 'unwireModel', occasion },
    () => target,
    () => wiring.unwire(call, backend, model),
  );
}

/** What a load waits for its wiring, in milliseconds. */
export const autoWireMs = 5_000;
const briefly = (call: Call) => detached(call, AbortSignal.any([call.signal, AbortSignal.timeout(autoWireMs)]));

interface PlannedWiring extends Pick<WiringPlan, 'manifests' | 'deletes'> {
  readonly wiring?: WiringResult;
}

/**
 * What wiring a model on the way of something else would write, and that it would. That it cannot is an answer: what it is
 * on the way of is done all the same.
 */
export async function planWiring(
  { wiring }: Actions,
  call: Call,
  wirable: WirableModel | undefined,
): Promise<PlannedWiring> {
  if (!wiring || !wirable) return { manifests: [], deletes: [] };
  try {
    const { manifests, deletes, known } = await wiring.plan(briefly(call), wirable);
    const how = known && ({ reason: 'already wired', modelConfig: known } as const);
    return { manifests, deletes, wiring: { wired: true, ...how } };
  } catch (error) {
    if (call.signal.aborted) throw error;
    const failure = asGatewayError(error, call.requestId);
    if (failure.code === 'internal_error') call.log.error({ err: error }, 'unexpected error');
    const failed = { wired: false, reason: 'wiring failed', error: failure.message } as const;
    return { manifests: [], deletes: [], wiring: failed };
  }
}

export interface WireInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
  readonly apiKeyPassthrough?: boolean | null | undefined;
  readonly apiKeySecret?: string | null | undefined;
  readonly apiKeySecretKey?: string | null | undefined;
}

export interface Wired {
  readonly backend: Backend;
  readonly modelConfig: ModelConfigRef;
}

/** Makes a model known to agents. Doing it again refreshes what is there. */
export async function wireModel(actions: Actions, call: Call, input: WireInput): Promise<Wired> {
  const { registry } = actions;
  findBackend(registry, input.backend);
  const wiring = requireWiring(actions);
  const { backend, model } = await resolveModel(call, registry, input.model.trim(), input.backend);
  const apiKey = apiKeyOf(input);
  const wirable = requireWirable(backend.driver, model);
  return { backend, modelConfig: await wireInTurn(wiring, call, wirable, apiKey) };
}

/** How the caller wants agents to show who they are; undefined where the backend's own way will do. */
function apiKeyOf({ apiKeyPassthrough, apiKeySecret, apiKeySecretKey }: WireInput): ApiKey | undefined {
  const name = apiKeySecret?.trim();
  const passthrough = apiKeyPassthrough ?? false;
  if (passthrough && name) throw invalidRequest('apiKeyPassthrough and apiKeySecret are mutually exclusive');
  if (!name) return passthrough ? { passthrough } : undefined;
  const key = apiKeySecretKey?.trim() || usualSecretKey;
  if (!isObjectName(name)) throw invalidRequest(`apiKeySecret: must be the name of a Secret, got ${quoted(name)}`);
  if (!/^[-._a-zA-Z0-9]{1,253}$/.test(key))
    throw invalidRequest(
      `apiKeySecretKey: must be a key of a Secret (letters, digits, -, _ and .), got ${quoted(key)}`,
    );
  return { passthrough, secret: { name, key } };
}

export interface UnwireInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
}

/** Takes that back. Answers the backend that the model was wired on; undefined when it is known nowhere, which is fine. */
export async function unwireModel(actions: Actions, call: Call, input: UnwireInput): Promise<Backend | undefined> {
  const { registry, wiring: present } = actions;
  const reference = input.model.trim();
  const gone = given(input.backend);
  // A backend may be gone and have left what it was wired by.
  if (present && gone && !backendNamed(registry, gone) && (await present.backendsOf(call, reference)).includes(gone)) {
    await present.unwire(call, gone, reference);
    return undefined;
  }
  const named = namedOrOnly(registry, input.backend);
  const wiring = requireWiring(actions);
  const wired = named ? undefined : await wiredBackend(registry, wiring, call, reference);
  const backend = named ?? wired?.backend ?? (await owner(registry, call, reference));
  if (!backend) return undefined;
  for (const label of wired?.labels ?? [backend.name])
    await wiring.unwire(call, label, backend.driver.canonical(reference));
  return backend;
}

/**
 * What is wired says which backend is meant, when one is, and by which names it is wired. What names no backend that there
 * is belongs to the default one.
 */
async function wiredBackend(
  registry: Registry,
  wiring: WiringTarget,
  call: Call,
  reference: string,
): Promise<{ readonly backend: Backend; readonly labels: ReadonlySet<string> } | undefined> {
  const names = await wiring.backendsOf(call, reference);
  const { backends } = registry;
  const meant = new Set(names.map(name => backendNamed(registry, name ?? '') ?? backends[0]));
  const wired = backends.filter(backend => meant.has(backend));
  const [backend] = wired;
  if (!backend) return undefined;
  if (wired.length === 1) return { backend, labels: new Set(names.map(name => name ?? backend.name)) };
  throw conflict(`${reference} is wired on ${wired.map(({ name }) => name).join(', ')}; name the backend`);
}

async function owner(registry: Registry, call: Call, reference: string): Promise<Backend | undefined> {
  return (await unlessMissing(resolveModel(call, registry, reference, undefined)))?.backend;
}
