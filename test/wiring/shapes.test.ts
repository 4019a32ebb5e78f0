import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WirableModel } from '../../src/domain.ts';
import { GatewayError } from '../../src/errors.ts';
import { checkKey, modelConfigOf, placeholderSecret, specOf } from '../../src/wiring/kagent/shapes.ts';
import type { ApiKey } from '../../src/wiring/wiring.ts';
import { lemonadeModel, modelConfig, ollamaModel, resource, servedModel } from './modelConfigs.ts';

const callers: ApiKey = { passthrough: false, secret: { name: 'team-key', key: 'TOKEN' } };
const passed: ApiKey = { passthrough: true };

test('the spec of a model', () => {
  const baseUrl = 'http://172.21.0.1:13305/api/v1';
  const gateway = 'https://models.example.com/model-serving/qwen3-4b-instruct/v1';
  const ollama = { provider: 'Ollama', model: 'qwen2.5:0.5b', ollama: { host: 'http://172.21.0.1:11434' } };
  const lemonade = { provider: 'OpenAI', model: 'qwen3-4b-FLM', openAI: { baseUrl } };
  const served = { provider: 'OpenAI', model: 'qwen3-4b', openAI: { baseUrl: gateway } };
  const placeholder = { apiKeySecret: 'name-api-key', apiKeySecretKey: 'OPENAI_API_KEY' };
  const secret = { apiKeySecret: 'team-key', apiKeySecretKey: 'TOKEN' };
  const table: [WirableModel, ApiKey | undefined, object][] = [
    [ollamaModel(), undefined, ollama],
    [ollamaModel(), { passthrough: false }, ollama],
    [ollamaModel(), passed, { ...ollama, apiKeyPassthrough: true }],
    [ollamaModel(), callers, { ...ollama, ...secret }],
    [lemonadeModel(), undefined, { ...lemonade, ...placeholder }],
    [lemonadeModel(), passed, { ...lemonade, apiKeyPassthrough: true }],
    [lemonadeModel(), callers, { ...lemonade, ...secret }],
    [servedModel(), undefined, { ...served, apiKeyPassthrough: true }],
    [servedModel({ key: 'placeholder' }), undefined, { ...served, ...placeholder }],
  ];
  for (const [model, apiKey, expected] of table) assert.deepEqual(specOf('name', model, apiKey), expected);
});

test('a Secret is refused where agents pass the token of their caller on', () => {
  checkKey(servedModel(), passed);
  checkKey(servedModel({ key: 'placeholder' }), callers);
  checkKey(ollamaModel(), callers);
  assert.throws(
    () => checkKey(servedModel(), callers),
    (error: unknown) =>
      error instanceof GatewayError &&
      error.code === 'invalid_request' &&
      /^invalid request: apiKeySecret "team-key" cannot be used for Qwen\/Qwen3-4B-Instruct: .*apiKeyPassthrough/.test(
        error.message,
      ),
  );
});

test('the object carries whose it is, which backend’s and which model’s', () => {
  const place = { resource, namespace: 'kagent' };
  assert.deepEqual(modelConfigOf(place, 'qwen2-5-0-5b', ollamaModel(), specOf('qwen2-5-0-5b', ollamaModel())), {
    apiVersion: 'kagent.dev/v1alpha3',
    kind: 'ModelConfig',
    metadata: {
      name: 'qwen2-5-0-5b',
      namespace: 'kagent',
      labels: {
        'app.kubernetes.io/managed-by': 'model-manager',
        'model-manager.giantswarm.io/backend': 'ollama',
      },
      annotations: { 'model-manager.giantswarm.io/model': 'qwen2.5:0.5b' },
    },
    spec: { provider: 'Ollama', model: 'qwen2.5:0.5b', ollama: { host: 'http://172.21.0.1:11434' } },
  });
});

test('over one that is there, the spec is new as a whole and the rest stays', () => {
  const old = modelConfig({
    name: 'x',
    model: 'old',
    spec: { provider: 'OpenAI', model: 'x', defaultHeaders: { a: 'b' } },
  });
  const before = {
    ...old,
    metadata: {
      ...old.metadata,
      uid: 'u-1',
      resourceVersion: '7',
      labels: { ...old.metadata.labels, team: 'a' },
      annotations: { ...old.metadata.annotations, note: 'by hand' },
      finalizers: ['example.com/f'],
    },
    status: { conditions: [] },
  };
  const spec = specOf('x', ollamaModel());
  const after = modelConfigOf({ resource, namespace: 'kagent' }, 'x', ollamaModel(), spec, before);
  assert.deepEqual(after, {
    ...before,
    metadata: {
      ...before.metadata,
      labels: { ...before.metadata.labels, 'model-manager.giantswarm.io/backend': 'ollama' },
      annotations: { note: 'by hand', 'model-manager.giantswarm.io/model': 'qwen2.5:0.5b' },
    },
    spec,
  });
});

test('the placeholder Secret holds one word', () => {
  assert.deepEqual(placeholderSecret('x-api-key', 'kagent'), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'x-api-key',
      namespace: 'kagent',
      labels: { 'app.kubernetes.io/managed-by': 'model-manager' },
    },
    type: 'Opaque',
    stringData: { OPENAI_API_KEY: 'placeholder' },
  });
});
