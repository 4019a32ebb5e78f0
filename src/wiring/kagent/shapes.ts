import type { WirableModel } from '../../domain.ts';
import { invalidRequest } from '../../errors.ts';
import { managedByLabel, manager, modelAnnotation } from '../../kubernetes/ownership.ts';
import { apiVersionOf, type Resource, type Secret } from '../../kubernetes/resource.ts';
import type { ApiKey } from '../wiring.ts';
import { backendLabel, type ModelConfig } from './modelConfig.ts';
import { placeholderNameOf } from './names.ts';

/** What a ModelConfig of ours says, all of it. */
export interface Spec {
  readonly provider: 'Ollama' | 'OpenAI';
  readonly model: string;
  readonly ollama?: { readonly host: string };
  readonly openAI?: { readonly baseUrl: string };
  readonly apiKeyPassthrough?: true;
  readonly apiKeySecret?: string;
  readonly apiKeySecretKey?: string;
}

const placeholderKey = 'OPENAI_API_KEY';

/** Throws `invalid_request` for a Secret where agents pass the token of their caller on. */
export function checkKey({ reference, access }: WirableModel, apiKey: ApiKey | undefined): void {
  if (apiKey?.secret && access.key === 'passthrough')
    throw invalidRequest(
      `apiKeySecret ${JSON.stringify(apiKey.secret.name)} cannot be used for ${reference}: its endpoint ${access.url} takes ` +
        'the token of the caller that an agent works for (apiKeyPassthrough); leave apiKeySecret out',
    );
}

/** The spec of a ModelConfig of that name. */
export function specOf(name: string, { access }: WirableModel, apiKey?: ApiKey): Spec {
  const { url, model } = access;
  const key = keyOf(name, access.key, apiKey);
  return access.protocol === 'ollama'
    ? { provider: 'Ollama', model, ollama: { host: url }, ...key }
    : { provider: 'OpenAI', model, openAI: { baseUrl: url }, ...key };
}

type KeyFields = Pick<Spec, 'apiKeyPassthrough' | 'apiKeySecret' | 'apiKeySecretKey'>;

function keyOf(name: string, usual: WirableModel['access']['key'], apiKey: ApiKey | undefined): KeyFields {
  if (apiKey?.secret) return { apiKeySecret: apiKey.secret.name, apiKeySecretKey: apiKey.secret.key };
  const shape = apiKey?.passthrough ? 'passthrough' : usual;
  if (shape === 'passthrough') return { apiKeyPassthrough: true };
  // Agents refuse to run without a key where the protocol has one, so they are given one that opens nothing.
  if (shape === 'placeholder') return { apiKeySecret: placeholderNameOf(name), apiKeySecretKey: placeholderKey };
  return {};
}

interface Place {
  readonly resource: Resource<ModelConfig>;
  readonly namespace: string;
}

/** The object that says so; over `before`, of which everything stays that is not ours to say. */
export function modelConfigOf(
  { resource, namespace }: Place,
  name: string,
  { backend, reference }: WirableModel,
  spec: Spec,
  before?: ModelConfig,
): ModelConfig {
  const metadata = before?.metadata;
  return {
    ...before,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      ...metadata,
      name,
      namespace,
      labels: { ...metadata?.labels, [managedByLabel]: manager, [backendLabel]: backend },
      annotations: { ...metadata?.annotations, [modelAnnotation]: reference },
    },
    spec,
  };
}

export const placeholderSecret = (name: string, namespace: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace, labels: { [managedByLabel]: manager } },
  type: 'Opaque',
  stringData: { [placeholderKey]: 'placeholder' },
});
