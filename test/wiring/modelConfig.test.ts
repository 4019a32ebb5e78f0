import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ModelConfig, rowOf } from '../../src/wiring/kagent/modelConfig.ts';
import { modelConfig, openAI, resource } from './modelConfigs.ts';

const read = (object: unknown) => rowOf(object as ModelConfig, resource, 'kagent');

test('a ModelConfig is read', () => {
  const spec = { ...openAI('https://Models.Example.com/a/b/v1', 'served'), apiKeyPassthrough: true };
  const status = { conditions: [{ type: 'Accepted', status: 'True', message: 'fine' }] };
  assert.deepEqual(read(modelConfig({ name: 'x', backend: 'kserve', model: 'Org/Repo', spec, status })), {
    ref: {
      name: 'x',
      namespace: 'kagent',
      apiVersion: 'kagent.dev/v1alpha3',
      provider: 'OpenAI',
      model: 'Org/Repo',
      ready: true,
      message: 'fine',
      managed: true,
      providerModel: 'served',
      endpoint: 'https://Models.Example.com/a/b/v1',
      apiKeyPassthrough: true,
      apiKeySecret: undefined,
      backend: 'kserve',
    },
    annotated: 'Org/Repo',
    host: 'models.example.com',
    leaving: false,
  });
});

test('what it says nothing of is not there', () => {
  const { ref, annotated, host } = read(
    modelConfig({ name: 'x', backend: false, spec: { provider: 'Ollama', model: 'm', apiKeyPassthrough: false } }),
  );
  assert.equal(ref.managed, false);
  assert.equal(ref.backend, undefined);
  assert.equal(ref.model, 'm', 'without an annotation it is the model of the spec');
  assert.equal(ref.apiKeyPassthrough, undefined);
  assert.deepEqual([ref.endpoint, annotated, host], [undefined, undefined, undefined]);
});

test('the group is named also when the object does not say it', () => {
  assert.equal(read({ metadata: { name: 'x' }, spec: { model: 'm' } }).ref.apiVersion, 'kagent.dev/v1alpha3');
  assert.equal(
    read({ apiVersion: 'kagent.dev/v1alpha2', metadata: { name: 'x' }, spec: { model: 'm' } }).ref.apiVersion,
    'kagent.dev/v1alpha2',
  );
});

test('a broken one is not ready and says why', () => {
  const status = { conditions: [{ type: 'Accepted', status: 'True' }] };
  const table: [spec: unknown, message: string][] = [
    [undefined, 'malformed: it has no spec'],
    [null, 'malformed: its spec is not an object'],
    ['text', 'malformed: its spec is not an object'],
    [[], 'malformed: its spec is not an object'],
    [{ provider: 'Ollama' }, 'malformed: its spec.model names no model'],
    [{ model: { name: 'm' } }, 'malformed: its spec.model names no model'],
    [{ model: 'm', openAI: 'http://h' }, 'malformed: its spec.openAI is not an object'],
    [{ model: 'm', ollama: ['http://h'] }, 'malformed: its spec.ollama is not an object'],
  ];
  for (const [spec, message] of table) {
    const { ref } = read({ metadata: { name: 'x' }, spec, status });
    assert.deepEqual([ref.name, ref.ready, ref.message], ['x', false, message]);
  }
});

test('whatever else is in it costs nobody anything', () => {
  const odd = [undefined, null, 0, true, 'text', [], [null], {}, { a: { b: 1 } }];
  for (const value of odd) {
    const metadata = { name: 'x', namespace: value, labels: value, annotations: value, deletionTimestamp: undefined };
    const spec = { model: 'm', provider: value, openAI: value, ollama: { host: value }, apiKeySecret: value };
    const { ref, host } = read({ apiVersion: value, kind: value, metadata, spec, status: value });
    assert.equal(ref.name, 'x');
    assert.equal(ref.ready, false);
    assert.equal(ref.managed, false);
    for (const each of [ref.namespace, ref.apiVersion]) assert.equal(typeof each, 'string');
    for (const each of [ref.provider, ref.endpoint, ref.apiKeySecret, host])
      assert.ok(each === undefined || typeof each === 'string');
  }
});

test('an endpoint that is no address has a host all the same', () => {
  for (const [endpoint, host] of [
    ['models.example.com:8080/v1', 'models.example.com'],
    ['http://[FD00::1]:80/v1', 'fd00::1'],
    ['%%%', '%%%'],
  ] as const)
    assert.equal(read(modelConfig({ name: 'x', spec: openAI(endpoint, 'm') })).host, host);
});
