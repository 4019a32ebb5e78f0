import type { Call } from '../call.ts';
import type { Model, ModelConfigRef, WiringInfo } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { conflict, GatewayError, invalidRequest, unsupported } from '../errors.ts';
import type { Actions } from './actions.ts';
import type { Backend } from './backend.ts';
import { backendNamed, findBackend, namedOrOnly, type Registry } from './registry.ts';
import { resolveModel } from './resolve.ts';

/** How agents show a backend who they are. */
interface ApiKey {
  /** By the token of their own caller. */
  readonly passthrough: boolean;
  /** By a key that is in a Secret. */
  readonly secret?: { readonly name: string; readonly key: string } | undefined;
}

/** Makes models known to agents: for each a ModelConfig. */
export interface Wiring {
  readonly info: WiringInfo;
  /** Writes the ModelConfig of a model, or refreshes it. Throws `conflict` when somebody else's has its name. */
  wire(call: Call, driver: Driver, model: Model, apiKey: ApiKey): Promise<ModelConfigRef>;
  /** Removes the ModelConfig that we made of a model; one that is not there is no error. */
  unwire(call: Call, driver: Driver, model: string): Promise<void>;
  /** What our ModelConfigs of a reference name as their backend; undefined for one that names none. */
  wiredOn(call: Call, model: string): Promise<readonly (string | undefined)[]>;
}

export const wiringIsOff = () => unsupported('agent wiring is disabled (no Kubernetes access)');

/** The key of a Secret that holds an API key, unless the caller names another. */
export const usualSecretKey = 'OPENAI_API_KEY';

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
export async function wireModel({ registry, wiring }: Actions, call: Call, input: WireInput): Promise<Wired> {
  findBackend(registry, input.backend);
  if (!wiring) throw wiringIsOff();
  const found = await resolveModel(call, registry, input.model.trim(), input.backend);
  const modelConfig = await wiring.wire(call, found.backend.driver, found.model, apiKeyOf(input));
  const facts = { backend: found.backend.name, model: found.model.name, modelConfig: modelConfig.name };
  found.backend.changed();
  call.log.info(facts, 'model wired');
  return { backend: found.backend, modelConfig };
}

function apiKeyOf({ apiKeyPassthrough, apiKeySecret, apiKeySecretKey }: WireInput): ApiKey {
  const name = apiKeySecret?.trim();
  const passthrough = apiKeyPassthrough ?? false;
  if (passthrough && name) throw invalidRequest('apiKeyPassthrough and apiKeySecret are mutually exclusive');
  return { passthrough, ...(name && { secret: { name, key: apiKeySecretKey?.trim() || usualSecretKey } }) };
}

export interface UnwireInput {
  readonly model: string;
  readonly backend?: string | null | undefined;
}

/** Takes that back. Answers the backend that the model was wired on; undefined when it is known nowhere, which is fine. */
export async function unwireModel(
  { registry, wiring }: Actions,
  call: Call,
  input: UnwireInput,
): Promise<Backend | undefined> {
  const named = namedOrOnly(registry, input.backend);
  if (!wiring) throw wiringIsOff();
  const reference = input.model.trim();
  const backend =
    named ?? (await wiredBackend(registry, wiring, call, reference)) ?? (await owner(registry, call, reference));
  if (!backend) return undefined;
  await wiring.unwire(call, backend.driver, backend.driver.canonical(reference));
  backend.changed();
  call.log.info({ backend: backend.name, model: reference }, 'model unwired');
  return backend;
}

/** What is wired says which backend is meant, when one is. What names no backend that there is belongs to the default one. */
async function wiredBackend(
  registry: Registry,
  wiring: Wiring,
  call: Call,
  reference: string,
): Promise<Backend | undefined> {
  const names = await wiring.wiredOn(call, reference);
  const { backends } = registry;
  const meant = new Set(names.map(name => backendNamed(registry, name ?? '') ?? backends[0]));
  const wired = backends.filter(backend => meant.has(backend));
  if (wired.length < 2) return wired[0];
  throw conflict(`${reference} is wired on ${wired.map(({ name }) => name).join(', ')}; name the backend`);
}

async function owner(registry: Registry, call: Call, reference: string): Promise<Backend | undefined> {
  try {
    return (await resolveModel(call, registry, reference, undefined)).backend;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') return undefined;
    throw error;
  }
}
