/** ModelConfigs as tests write them, and the models that they are for. */
import type { AgentAccess, WirableModel } from '../../src/domain.ts';
import { type ModelConfig, modelConfigsOf, type Row, rowOf } from '../../src/wiring/kagent/modelConfig.ts';

export const resource = modelConfigsOf('v1alpha3');

/** A model of Ollama. */
export const ollamaModel = (reference = 'qwen2.5:0.5b'): WirableModel => ({
  backend: 'ollama',
  reference,
  access: { protocol: 'ollama', url: 'http://172.21.0.1:11434', model: reference, key: 'none' },
});

/** A model of Lemonade. */
export const lemonadeModel = (reference = 'qwen3-4b-FLM'): WirableModel => ({
  backend: 'lemonade',
  reference,
  access: { protocol: 'openai', url: 'http://172.21.0.1:13305/api/v1', model: reference, key: 'placeholder' },
});

/** A model served by an object of its own, behind the gateway of models. */
export const servedModel = (access: Partial<AgentAccess> = {}): WirableModel => ({
  backend: 'kserve',
  reference: 'Qwen/Qwen3-4B-Instruct',
  access: {
    protocol: 'openai',
    url: 'https://models.example.com/model-serving/qwen3-4b-instruct/v1',
    model: 'qwen3-4b',
    key: 'passthrough',
    object: 'qwen3-4b-instruct',
    shared: true,
    ...access,
  },
});

interface Written {
  readonly name: string;
  /** Label of the backend; false: not ours. */
  readonly backend?: string | false | undefined;
  /** Our annotation. */
  readonly model?: string | undefined;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly deletionTimestamp?: string;
}

export function modelConfig({ name, backend, model, spec, status, deletionTimestamp }: Written): ModelConfig {
  const labels: Record<string, string> =
    backend === false
      ? { team: 'a' }
      : {
          'app.kubernetes.io/managed-by': 'model-manager',
          ...(backend !== undefined && { 'model-manager.giantswarm.io/backend': backend }),
        };
  return {
    apiVersion: 'kagent.dev/v1alpha3',
    kind: 'ModelConfig',
    metadata: {
      name,
      namespace: 'kagent',
      labels,
      ...(model !== undefined && { annotations: { 'model-manager.giantswarm.io/model': model } }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: spec ?? { provider: 'OpenAI', model: `spec of ${name}` },
    ...(status !== undefined && { status }),
  };
}

export const row = (written: Written): Row => rowOf(modelConfig(written), resource, 'kagent');

/** A spec that leads to an endpoint. */
export const openAI = (baseUrl: string, model: string) => ({ provider: 'OpenAI', model, openAI: { baseUrl } });
