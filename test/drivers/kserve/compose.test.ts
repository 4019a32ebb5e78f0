import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServingPreset } from '../../../src/drivers/kserve/presets.ts';
import { presetsIn } from '../../../src/drivers/kserve/presets.ts';
import { composeService } from '../../../src/drivers/kserve/serving/compose.ts';
import { publishedKinds, skip } from '../../support/crds.ts';
import { discoveryRef, jsonOf, objectsOf, overhead, plain, presetMap, presets, settingsWith } from './world.ts';

interface Case {
  readonly about: string;
  readonly preset: string;
  readonly settings: Readonly<Record<string, unknown>> & { readonly routerScheduler?: boolean };
  readonly node?: string;
  readonly expect: unknown;
}

const cases = jsonOf('compose/index.json').cases.map(
  (file: string) => [file, objectsOf(`compose/${file}`)[0] as unknown as Case] as const,
) as readonly (readonly [string, Case])[];

const registeredWith = (scheduler: boolean | undefined) => ({
  registered: { target: { servingNamespace: 'model-serving' }, discovery: discoveryRef, router: { scheduler } },
});

function composed({ preset: name, settings: { routerScheduler, ...spec }, node }: Case) {
  const preset = presets.find(each => each.name === name);
  assert.ok(preset, name);
  return composeService(preset, settingsWith(spec, {}, registeredWith(routerScheduler)), node);
}

/** A preset of one's own, with whatever else it says. */
function presetOf(spec: object = {}): ServingPreset {
  const { presets, warnings } = presetsIn(
    [presetMap({ metadata: { name: 'own' }, spec: { model: { id: 'acme/Own' }, ...spec } })],
    overhead,
  );
  assert.deepEqual(warnings, []);
  return presets[0] as ServingPreset;
}

const pool = { taint: { key: 'gpu', effect: 'NoSchedule' }, nodeSelector: { pool: 'l4' } };
const everything = settingsWith({ runtimeClassName: 'nvidia', nodeSelector: { role: 'serving' }, gpuPool: pool });
const bare = settingsWith({});

describe('composed as', () => {
  for (const [file, one] of cases) test(`${file}: ${one.about}`, () => assert.deepEqual(composed(one), one.expect));
});

test('what is composed is what the published definition says', { skip }, () => {
  const { validate } = publishedKinds('llminferenceservices.serving.kserve.io');
  for (const [file, one] of cases) assert.deepEqual(validate(composed(one)), [], file);
  const wrong = { ...composeService(presetOf(), bare), spec: { replicas: 'one', routes: 1 } };
  assert.equal(validate(wrong).length, 2, 'and what is not is found');
});

test('a preset that says nothing, without a document, is served by what it is alone', () => {
  const { spec } = composeService(presetOf(), bare);
  const gpu = { 'nvidia.com/gpu': '1' };
  assert.deepEqual(spec, {
    model: { uri: 'hf://acme/Own', name: 'acme/Own' },
    replicas: 1,
    router: { route: {} },
    template: { containers: [{ name: 'main', resources: { requests: gpu, limits: gpu } }] },
  });
});

test('a preset without GPUs knows neither pool nor runtime class, and asks for nothing it did not name', () => {
  const { template } = composeService(presetOf({ resources: { gpus: 0 } }), everything).spec;
  assert.deepEqual(template, { containers: [{ name: 'main' }], nodeSelector: { role: 'serving' } });
  const own = presetOf({ resources: { gpus: 0 }, scheduling: { tolerations: [{ key: 'arm', operator: 'Exists' }] } });
  assert.deepEqual(composeService(own, bare, 'n1').spec.template, {
    containers: [{ name: 'main' }],
    nodeSelector: { 'kubernetes.io/hostname': 'n1' },
    tolerations: [{ key: 'arm', operator: 'Exists' }],
  });
});

test("the count of GPUs goes before what a preset's requests and limits say of them", () => {
  const resources = { gpus: 2, requests: { 'nvidia.com/gpu': 8, cpu: 1.5 }, limits: { 'nvidia.com/gpu': '8' } };
  const [main] = composeService(presetOf({ resources }), bare).spec.template.containers;
  assert.deepEqual(main?.resources, {
    requests: { 'nvidia.com/gpu': '2', cpu: '1.5' },
    limits: { 'nvidia.com/gpu': '2' },
  });
});

test('the node of a request goes before every selector', () => {
  const preset = presetOf({ scheduling: { nodeSelector: { 'kubernetes.io/hostname': 'n9', pool: 'own' } } });
  const selectorOn = (node?: string) => composeService(preset, everything, node).spec.template;
  assert.deepEqual(plain(selectorOn('n1')), {
    ...plain(selectorOn()),
    nodeSelector: { role: 'serving', pool: 'own', 'kubernetes.io/hostname': 'n1' },
  });
});

test('only a toleration that is the same in every field is dropped', () => {
  const same = { effect: 'NoSchedule', operator: 'Exists', key: 'gpu' };
  const others = [
    { key: 'gpu', operator: 'Exists' },
    { ...same, tolerationSeconds: 5 },
    { key: 'gpu', operator: 'Equal', value: '1', effect: 'NoSchedule' },
  ];
  const preset = presetOf({ scheduling: { tolerations: [others[0], same, ...others, others[2]] } });
  assert.deepEqual(composeService(preset, everything).spec.template, {
    ...composeService(presetOf(), everything).spec.template,
    tolerations: [same, ...others],
  });
});

test('who says whether there is a scheduler: the preset, else the document of the backend', () => {
  const routerOf = (preset: boolean | undefined, registered: boolean | undefined) =>
    composeService(presetOf({ router: { scheduler: preset } }), settingsWith({}, {}, registeredWith(registered))).spec
      .router;
  const without = { route: {} };
  const withOne = { route: {}, scheduler: {} };
  assert.deepEqual(routerOf(undefined, undefined), without);
  assert.deepEqual(routerOf(undefined, true), withOne);
  assert.deepEqual(routerOf(true, undefined), withOne);
  assert.deepEqual(routerOf(true, false), withOne);
  assert.deepEqual(routerOf(false, true), without);
});

test("a preset's extras are laid over the template: containers by their names, all else as a whole", () => {
  const volumes = [{ name: 'shm', emptyDir: { medium: 'Memory' } }];
  const preset = presetOf({
    args: ['--a'],
    env: [{ name: 'A', value: 1 }],
    chatTemplate: { configMap: 'words' },
    template: {
      volumes,
      nodeSelector: { only: 'this' },
      hostIPC: true,
      containers: [
        { name: 'sidecar', image: 'side:1' },
        { name: 'main', image: 'main:1', args: ['--b'], resources: { limits: { cpu: 1 } } },
        { name: 'main', workingDir: '/srv' },
      ],
    },
  });
  assert.deepEqual(composeService(preset, everything, 'n1').spec.template, {
    containers: [
      {
        name: 'main',
        image: 'main:1',
        args: ['--b'],
        env: [{ name: 'A', value: '1' }],
        resources: { limits: { cpu: 1 } },
        volumeMounts: [{ name: 'chat-template', mountPath: '/mnt/chat-template', readOnly: true }],
        workingDir: '/srv',
      },
      { name: 'sidecar', image: 'side:1' },
    ],
    volumes,
    nodeSelector: { only: 'this' },
    tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
    runtimeClassName: 'nvidia',
    hostIPC: true,
  });
});

test('extras that can be laid over nothing cost the preset', () => {
  const warningOf = (template: unknown) =>
    presetsIn([presetMap({ metadata: { name: 'own' }, spec: { model: { id: 'acme/Own' }, template } })], overhead)
      .warnings[0];
  assert.match(warningOf({ containers: 'main' }) ?? '', /spec\.template\.containers/);
  assert.match(warningOf({ containers: [{ image: 'main:1' }] }) ?? '', /spec\.template\.containers\[0\]\.name/);
  assert.match(warningOf('main') ?? '', /spec\.template/);
  for (const template of [{}, null, { containers: null }, { containers: [] }])
    assert.equal(warningOf(template), undefined);
});

test('what is composed is no part of what it is composed of', () => {
  const preset = presetOf({ template: { containers: [{ name: 'main', image: 'main:1' }] } });
  const before = structuredClone(preset);
  assert.deepEqual(composeService(preset, everything, 'n1'), composeService(preset, everything, 'n1'));
  assert.deepEqual(preset, before);
});
