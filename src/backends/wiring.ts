import type { Call } from '../call.ts';
import type { ModelConfigRef, WiringInfo } from '../domain.ts';
import { conflict, GatewayError, invalidRequest, unsupported } from '../errors.ts';
import type { Actions } from './actions.ts';
import type { Backend } from './backend.ts';
import { findBackend } from './registry.ts';
import { type Found, resolveModel } from './resolve.ts';

/** How agents show a backend who they are. */
export interface ApiKey {
  /** By the token of their own caller. */
  readonly passthrough: boolean;
  /** By a key that is in a Secret. */
  readonly secret?: { readonly name: string; readonly key: string } | undefined;
}

/** Makes models known to agents: for each a ModelConfig. */
export interface Wiring {
  readonly info: WiringInfo;
  /** Writes the ModelConfig of a model, or refreshes it. Throws `conflict` when somebody else's has its name. */
  wire(call: Call, found: Found, apiKey: ApiKey): Promise<ModelConfigRef>;
  /** Removes the ModelConfig that we made of a model; one that is not there is no error. */
  unwire(call: Call, backend: Backend, model: string): Promise<void>;
  /** The backends for which we made a ModelConfig of a reference, in backend order. */
  wiredOn(call: Call, model: string): Promise<readonly Backend[]>;
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
  const modelConfig = await wiring.wire(call, found, apiKeyOf(input));
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
  const named =
    findBackend(registry, input.backend) ?? (registry.backends.length === 1 ? registry.backends[0] : undefined);
  if (!wiring) throw wiringIsOff();
  const reference = input.model.trim();
  const backend = named ?? (await wiredBackend(wiring, call, reference)) ?? (await owner(registry, call, reference));
  if (!backend) return undefined;
  await wiring.unwire(call, backend, backend.driver.canonical(reference));
  backend.changed();
  call.log.info({ backend: backend.name, model: reference }, 'model unwired');
  return backend;
}

/** What is wired says which backend is meant, when one is. */
async function wiredBackend(wiring: Wiring, call: Call, reference: string): Promise<Backend | undefined> {
  const backends = await wiring.wiredOn(call, reference);
  if (backends.length < 2) return backends[0];
  throw conflict(`${reference} is wired on ${backends.map(({ name }) => name).join(', ')}; name the backend`);
}

async function owner(registry: Actions['registry'], call: Call, reference: string): Promise<Backend | undefined> {
  try {
    return (await resolveModel(call, registry, reference, undefined)).backend;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') return undefined;
    throw error;
  }
}
