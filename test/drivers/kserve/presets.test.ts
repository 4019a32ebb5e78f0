import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answeredPreset,
  choosePreset,
  isCpuPreset,
  isModelImage,
  presetsIn,
} from '../../../src/drivers/kserve/presets.ts';
import { GatewayError } from '../../../src/errors.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { jsonOf, objectsOf, overhead, plain, presetMap, presetMaps, presets } from './world.ts';

const base = { metadata: { name: 'p' }, spec: { model: { id: 'a/b' } } };
const withSpec = (spec: object) => ({ ...base, spec: { ...base.spec, ...spec } });
const withModel = (model: object) => withSpec({ model: { ...base.spec.model, ...model } });

function only(document: unknown) {
  const { presets: found, warnings } = presetsIn([presetMap(document)], overhead);
  assert.deepEqual(warnings, []);
  return found[0] ?? assert.fail('no preset');
}
const skipped = (document: unknown) => {
  const { presets: found, warnings } = presetsIn([presetMap(document)], overhead);
  assert.deepEqual([found.length, warnings.length], [0, 1], JSON.stringify(found));
  const [, words] = /^skipping preset ConfigMap agent-platform\/p: (.*)$/s.exec(warnings[0] ?? '') ?? [];
  return words ?? assert.fail(warnings[0]);
};

test('the presets of the fixtures, as they are answered', () => {
  const { presets: found } = presetsIn(presetMaps, overhead);
  const answered = found.map(preset => {
    const { backend, ...row } = plain(answeredPreset(preset, 'kserve', undefined));
    assert.equal(backend, 'kserve');
    return { ...row, requiredBytes: row.weightsBytes + row.overheadBytes };
  });
  assert.deepEqual(answered, jsonOf('cluster/expected-presets.json').presets);
  assert.deepEqual(answeredPreset(found[0] ?? assert.fail(), 'kserve', { cluster: 'east' }).target, {
    cluster: 'east',
  });
});

test('broken presets are skipped with a warning each, the others stand', () => {
  const { presets: found, warnings } = presetsIn(objectsOf('cluster/presets-broken.yaml'), overhead);
  const [lenient, ...others] = found;
  assert.deepEqual(others, []);
  const { name, format, storageUri, gpus, overheadBytes, weightsBytes, source } = lenient ?? assert.fail();
  assert.deepEqual(
    { name, format, storageUri, gpus, overheadBytes, weightsBytes, source },
    {
      name: 'lenient',
      format: 'vLLM',
      storageUri: 'hf://acme-labs/Lenient',
      gpus: 1,
      overheadBytes: 30 * 2 ** 30,
      weightsBytes: 2 ** 30,
      source: 'shipped',
    },
  );
  const said = (each: string) => `skipping preset ConfigMap agent-platform/agent-platform-serving-preset-${each}`;
  assert.match(warnings[0] ?? '', new RegExp(`^${said('broken-yaml')}: .`));
  assert.deepEqual(warnings.slice(1), [
    `${said('no-key')}: no preset.yaml key`,
    `${said('no-model')}: spec.model.id is required`,
    `${said('no-name')}: metadata.name is required`,
    `${said('other-kind')}: kind "SomethingElse", want ServingPreset`,
  ]);
});

test('everything that a load needs of a preset is read', () => {
  const [atlas, lyra, nova, pico] = presets;
  assert.deepEqual(atlas?.chatTemplate, {
    configMap: 'agent-platform-chat-template-atlas-70b-x4',
    key: 'chat-template.jinja',
    mountPath: '/mnt/chat-template',
  });
  assert.deepEqual(atlas?.tolerations, [
    { key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' },
    { key: 'dedicated', operator: 'Equal', value: 'llm', effect: 'NoSchedule' },
  ]);
  assert.deepEqual([nova?.requests, nova?.limits], [{ cpu: '4', memory: '16Gi' }, { memory: '24Gi' }]);
  assert.deepEqual(nova?.env, [{ name: 'VLLM_LOGGING_LEVEL', value: 'INFO' }]);
  assert.deepEqual(nova?.template, { terminationGracePeriodSeconds: 60 });
  assert.deepEqual(pico?.baseRefs, [{ name: 'demo-cpu-single-node' }]);
  assert.deepEqual([atlas, lyra, nova, pico].map(isCpuPreset), [false, false, false, true]);
  assert.deepEqual([atlas, lyra, nova, pico].map(isModelImage), [false, true, false, false]);
  assert.deepEqual([isCpuPreset(undefined), isModelImage(undefined)], [false, false]);
});

test('what YAML takes for a number or a truth is a text where Kubernetes wants one', () => {
  const { requests, args, env, nodeSelector, tolerations, scheduler } = only(
    withSpec({
      args: ['--port', 8000, true],
      env: [
        { name: 'N', value: 1 },
        { name: 'S', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      ],
      resources: { requests: { cpu: 0.5, memory: '1Gi' } },
      scheduling: {
        nodeSelector: { gpu: true, count: 4 },
        tolerations: [{ key: 'a', value: true, tolerationSeconds: 5 }],
      },
      router: { scheduler: false },
    }),
  );
  assert.deepEqual(requests, { cpu: '0.5', memory: '1Gi' });
  assert.deepEqual(args, ['--port', '8000', 'true']);
  assert.deepEqual(env, [
    { name: 'N', value: '1' },
    { name: 'S', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
  ]);
  assert.deepEqual(nodeSelector, { gpu: 'true', count: '4' });
  assert.deepEqual(tolerations, [{ key: 'a', value: 'true', tolerationSeconds: 5 }]);
  assert.equal(scheduler, false);
});

test('what a preset leaves out', () => {
  const preset = only({
    ...base,
    apiVersion: '',
    kind: '',
    spec: { ...base.spec, predictor: {}, runtime: 5, requirements: { overheadGiB: 0 } },
  });
  assert.equal(preset.displayName, 'p', 'a preset without a name to show has its own');
  assert.deepEqual(
    [preset.weightsBytes, preset.overheadBytes, preset.gpus, preset.scheduler],
    [undefined, 0, 1, undefined],
  );
  const { capabilities, args, nodeSelector, weightsBytes, source } = answeredPreset(preset, 'kserve', undefined);
  assert.deepEqual(
    [capabilities, args, nodeSelector, source, weightsBytes],
    [undefined, undefined, undefined, undefined, 0],
  );
});

test('what is no preset, and what of it is wrong', () => {
  const table: [unknown, string | RegExp][] = [
    ['- a', 'the whole must be a mapping, got a list'],
    ['just words', 'the whole must be a mapping, got "just words"'],
    ['', 'metadata.name is required'],
    ['a: [', /./],
    [{ ...base, apiVersion: 'v2' }, 'apiVersion "v2", want agent-platform.giantswarm.io/v1alpha1'],
    [{ ...base, metadata: { name: ' ' } }, 'metadata.name is required'],
    [{ ...base, metadata: { name: 5 } }, 'metadata.name must be a string, got 5'],
    ...['Upper', '../x', 'a_b', '-a', 'a-', 'x'.repeat(31)].map((name): [unknown, string] => [
      { ...base, metadata: { name } },
      `metadata.name "${name}": want at most 30 lower-case letters, digits and inner dashes`,
    ]),
    [withModel({ id: '' }), 'spec.model.id is required'],
    ...['bare', 'a/b/c', '../..', 'a/ b', 'a/b:c', '/b'].map((id): [unknown, string] => [
      withModel({ id }),
      `spec.model.id "${id}": want owner/name`,
    ]),
    [
      withModel({ storageUri: 'file:///etc' }),
      'spec.model.storageUri "file:///etc": want hf://, pvc://, s3://, gs://, oci://, http:// or https://',
    ],
    [withModel({ contextLength: -1 }), 'spec.model.contextLength is out of range'],
    [withSpec({ args: '--a' }), 'spec.args must be a list, got "--a"'],
    [withSpec({ args: [{}] }), 'spec.args[0] must be a plain value'],
    [withSpec({ resources: { gpus: -1 } }), 'spec.resources.gpus is out of range'],
    [withSpec({ resources: { gpus: 0.5 } }), 'spec.resources.gpus must be an integer, got 0.5'],
    [withSpec({ requirements: { weightsGiB: -1 } }), 'spec.requirements.weightsGiB must be above 0'],
    [withSpec({ requirements: { weightsGiB: 0 } }), 'spec.requirements.weightsGiB must be above 0'],
    [withSpec({ requirements: { weightsGiB: 1e300 } }), 'spec.requirements.weightsGiB is out of range'],
    [withSpec({ requirements: { overheadGiB: -1 } }), 'spec.requirements.overheadGiB must not be below 0'],
    [
      'metadata: {name: p}\nspec: {model: {id: a/b}, requirements: {weightsGiB: .nan}}',
      /^spec\.requirements\.weightsGiB must be a number, got NaN$/,
    ],
    [
      'metadata: {name: p}\nspec: {model: {id: a/b}, requirements: {weightsGiB: .inf}}',
      /^spec\.requirements\.weightsGiB/,
    ],
  ];
  for (const [document, words] of table) {
    const problem = skipped(document);
    if (typeof words === 'string') assert.equal(problem, words);
    else assert.match(problem, words);
  }
});

test('ConfigMaps that are none cost nobody else anything', () => {
  const strange = [
    { metadata: { name: 'a', labels: [] } },
    { metadata: { name: 'b' }, data: 'x' },
    { metadata: { name: 'c' }, data: { 'preset.yaml': 5 } },
    { metadata: { name: 'd' }, data: null },
  ] as unknown as KubernetesObject[];
  const { presets: found, warnings } = presetsIn([...strange, presetMap(base)], overhead);
  assert.deepEqual(
    found.map(({ name }) => name),
    ['p'],
  );
  assert.deepEqual(
    warnings,
    ['a', 'b', 'c', 'd'].map(name => `skipping preset ConfigMap ${name}: no preset.yaml key`),
  );
});

test('of two presets of one name the one in the first ConfigMap counts', () => {
  const second = presetMap(withModel({ id: 'a/second' }), 'z');
  const { presets: found, warnings } = presetsIn([second, presetMap(base, 'a')], overhead);
  assert.deepEqual(
    found.map(({ model }) => model),
    ['a/b'],
  );
  assert.deepEqual(warnings, ['skipping preset ConfigMap agent-platform/z: another one has the preset p']);
});

const refusal = (choice: Parameters<typeof choosePreset>[1], from = presets) => {
  try {
    choosePreset(from, choice);
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return [error.code, error.message];
  }
  return assert.fail('nothing is refused');
};

test('which preset a request means', () => {
  const chosen = (choice: Parameters<typeof choosePreset>[1]) => choosePreset(presets, choice)?.name;
  assert.equal(chosen({ preset: 'nova-4b' }), 'nova-4b');
  assert.equal(chosen({ preset: 'nova-4b', model: 'nova-4b' }), 'nova-4b');
  assert.equal(chosen({ preset: 'nova-4b', model: 'ACME-LABS/nova-4b-INSTRUCT' }), 'nova-4b');
  assert.equal(chosen({ model: 'nova-4b' }), 'nova-4b');
  assert.equal(chosen({ model: 'orbit/lyra-20b' }), 'lyra-20b-oci');
  assert.equal(chosen({ model: 'some/other' }), undefined);
  assert.equal(chosen({}), undefined);
});

test('a preset that is not there, serves another model, or is one of several', () => {
  assert.deepEqual(refusal({ preset: 'nope' }), [
    'not_found',
    'model not found: preset "nope" not found (available: atlas-70b-x4, lyra-20b-oci, nova-4b, pico-1b-cpu)',
  ]);
  assert.deepEqual(refusal({ preset: 'nope' }, [])[1], 'model not found: preset "nope" not found (available: none)');
  assert.deepEqual(refusal({ preset: 'nova-4b', model: 'orbit/Lyra-20B' }), [
    'invalid_request',
    'invalid request: preset "nova-4b" serves acme-labs/Nova-4B-Instruct, not orbit/Lyra-20B',
  ]);
  const twins = presets.flatMap(preset => [preset, { ...preset, name: `${preset.name}-2` }]);
  assert.deepEqual(refusal({ model: 'orbit/lyra-20b' }, twins), [
    'invalid_request',
    'invalid request: 2 presets serve orbit/lyra-20b (lyra-20b-oci, lyra-20b-oci-2); pass preset to choose one',
  ]);
  assert.equal(choosePreset(twins, { preset: 'lyra-20b-oci-2', model: 'orbit/Lyra-20B' })?.name, 'lyra-20b-oci-2');
});
