import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocument } from '../../../src/backends/documents/document.ts';
import {
  type Discovery,
  discoveryNote,
  parseDiscovery,
  readFailure,
  withoutDocument,
} from '../../../src/drivers/kserve/discovery.ts';
import type { ConfigMap, KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { discoveryRef, discoveryWith, documentOf, objectsOf, plain } from './world.ts';

const [name, prefix] = ['agent-platform/agent-platform-model-serving', 'discovery ConfigMap'];
const parsed = (object: KubernetesObject) => parseDiscovery(object, discoveryRef);
const fixture = (file: string) => parsed(objectsOf(`cluster/${file}`)[0] as KubernetesObject);
const written = (yaml: unknown) =>
  parsed({ metadata: discoveryRef, data: { 'config.yaml': yaml } } as KubernetesObject);
const problemOf = (discovery: Discovery) => (discovery.state === 'unreadable' ? discovery.problem : discovery.state);

test('a full document', () => {
  assert.deepEqual(plain(documentOf(fixture('discovery.yaml'))), {
    namespace: 'model-serving',
    gpuResource: 'nvidia.com/gpu',
    runtimeClass: 'nvidia',
    nodeSelector: {},
    gpuPool: {
      taint: { key: 'nvidia.com/gpu', effect: 'NoSchedule' },
      nodeSelector: { 'giantswarm.io/machine-pool': 'demo-gpu-l4' },
    },
    cache: { enabled: true, claim: 'hf-cache', mountPath: '/mnt/models', redirectPolicy: true },
    presets: { namespace: 'agent-platform', selector: 'agent-platform.giantswarm.io/serving-preset=true' },
    gatewayEndpoint: 'https://models.demo.example.com',
    warnings: [],
  });
});

test('a document of what has to be there', () => {
  const { runtimeClass, gpuPool, cache, gatewayEndpoint } = documentOf(fixture('discovery-minimal.yaml'));
  assert.deepEqual([runtimeClass, gpuPool, gatewayEndpoint], [undefined, undefined, undefined]);
  assert.deepEqual(cache, { enabled: false, claim: undefined, mountPath: undefined, redirectPolicy: false });
});

test('the sizes of a pool are the same ones here and in a backend document', () => {
  const found = documentOf(fixture('discovery-with-sizes.yaml')).gpuPool;
  const [map] = objectsOf('cluster/backend-document.yaml') as ConfigMap[];
  const read = parseDocument(map?.data?.['backend.yaml'] ?? '');
  assert.ok('document' in read, 'problem' in read ? read.problem : '');
  assert.deepEqual(plain(found), plain(read.document.spec.kserve?.gpuPool));
  assert.deepEqual(
    found?.instances?.map(({ size }) => size),
    ['xlarge', '2xlarge', '12xlarge'],
  );
});

test('what a document has beside does not matter', () => {
  const spec = { runtime: 'vllm', timeoutSeconds: 5, cache: { enabled: true, future: [] }, gpuPool: { colour: 'red' } };
  assert.equal(documentOf(parsed(discoveryWith(spec))).cache.enabled, true);
  assert.equal(documentOf(written('spec: {namespace: a}')).namespace, 'a', 'a kind is not asked for');
  assert.equal(documentOf(written("kind: ''\nspec:")).namespace, undefined);
  assert.equal(documentOf(written('')).cache.enabled, false, 'nothing is a document that says nothing');
});

test('a ConfigMap that is no document', () => {
  assert.equal(problemOf(fixture('discovery-no-key.yaml')), `${prefix} ${name} has no config.yaml key`);
  assert.equal(problemOf(parsed({ metadata: discoveryRef })), `${prefix} ${name} has no config.yaml key`);
  assert.equal(problemOf(written(5)), `${prefix} ${name} has no config.yaml key`);
  const wrong = `${prefix} ${name}: kind "ServingPreset", want ModelServingConfig`;
  assert.equal(problemOf(fixture('discovery-wrong-kind.yaml')), wrong);
  const failures: [string, RegExp][] = [
    ['spec: {a: b', /^Flow map|Missing|must/],
    ['- a', /^the whole must be a mapping, got a list$/],
    ['text', /^the whole must be a mapping, got "text"$/],
    ['spec: {namespace: [a]}', /^spec\.namespace must be a string, got a list$/],
    ['spec: {nodeSelector: {gpu: true}}', /^spec\.nodeSelector\.gpu must be a string, got true$/],
    ['spec: {cache: {enabled: "yes"}}', /^spec\.cache\.enabled must be true or false, got "yes"$/],
    ['x'.repeat(65 * 1024), /^must not be longer than 64 KiB, got 66560 characters$/],
    [
      `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, place) => `${'bcdefghij'[place]}: &${'bcdefghij'[place]} [${Array(9).fill(`*${'abcdefghi'[place]}`).join()}]`).join('\n')}`,
      /alias/,
    ],
  ];
  for (const [yaml, words] of failures) {
    const problem = problemOf(written(yaml));
    const start = `parse ${prefix} ${name}: `;
    assert.ok(problem.startsWith(start), problem);
    assert.match(problem.slice(start.length), words);
    assert.doesNotMatch(problem, /\n/);
  }
});

test('a pool with something wrong in it loses that part, and tells', () => {
  const size = {
    instanceType: 'g6.xlarge',
    vcpu: 4,
    memoryGiB: 16,
    gpus: 1,
    gpuMemoryGiB: 24,
    usableVcpu: 3,
    usableMemoryGiB: 12,
  };
  const pool = (gpuPool: object) => {
    const { gpuPool: found, warnings } = documentOf(
      parsed(discoveryWith({ gpuPool: { nodeSelector: { a: 'b' }, ...gpuPool } })),
    );
    assert.deepEqual(found?.nodeSelector, { a: 'b' }, 'the rest of it stands');
    return { taint: found?.taint, instances: found?.instances, warnings };
  };
  const lost = (part: string, problem: string) => ({
    taint: undefined,
    instances: undefined,
    warnings: [`${prefix} ${name}: spec.gpuPool.${problem}; ignoring gpuPool.${part}`],
  });
  const instances = (...wrong: unknown[]) => pool({ instances: wrong });
  assert.deepEqual(
    instances(size, { ...size, vcpu: 0 }),
    lost('instances', 'instances[1].vcpu: must be positive, got 0'),
  );
  assert.deepEqual(instances({ ...size, instanceType: '' }), lost('instances', 'instances[0].instanceType: required'));
  assert.deepEqual(
    instances({ ...size, usableMemoryGiB: -1 }),
    lost('instances', 'instances[0].usableMemoryGiB: must be positive, got -1'),
  );
  assert.deepEqual(
    instances({ ...size, gpus: 1.5 }),
    lost('instances', 'instances: [0].gpus must be an integer, got 1.5'),
  );
  assert.deepEqual(instances(5), lost('instances', 'instances: [0] must be a mapping, got 5'));
  assert.deepEqual(pool({ instances: 'many' }), lost('instances', 'instances: the whole must be a list, got "many"'));
  assert.deepEqual(
    pool({ taint: { key: 'gpu', effect: 'Never' } }),
    lost('taint', 'taint.effect: must be NoSchedule, PreferNoSchedule or NoExecute, got "Never"'),
  );
  assert.deepEqual(pool({ taint: 'gpu' }), lost('taint', 'taint: the whole must be a mapping, got "gpu"'));
  assert.deepEqual(pool({ taint: { effect: 'NoSchedule' } }), { taint: undefined, instances: undefined, warnings: [] });
  assert.deepEqual(pool({ taint: null, instances: null }).warnings, []);
  const nan = documentOf(written(`spec: {gpuPool: {instances: [{instanceType: a, vcpu: .nan}]}}`));
  assert.match(nan.warnings[0] ?? '', /instances: \[0\]\.vcpu must be/);
});

test('why a request cannot be answered without the document, and what the backend says of itself', () => {
  const unreadable: Discovery = { state: 'unreadable', problem: readFailure(discoveryRef, 'configmaps is forbidden') };
  assert.equal(unreadable.problem, `read ${prefix} ${name}: configmaps is forbidden`);
  const missing: Discovery = { state: 'missing' };
  assert.equal(
    withoutDocument(missing, discoveryRef),
    `the serving layer's discovery document ${name} is not published yet — the slice is still installing; retry in a moment`,
  );
  assert.equal(
    withoutDocument(unreadable, discoveryRef),
    `the serving layer's discovery document could not be read (read ${prefix} ${name}: configmaps is forbidden); retry in a moment`,
  );
  assert.equal(discoveryNote(missing, discoveryRef), `no ${prefix} ${name}; using flags and defaults`);
  assert.equal(discoveryNote(unreadable, discoveryRef), `discovery: ${unreadable.problem}`);
  const present = fixture('discovery.yaml');
  assert.deepEqual(
    [withoutDocument(present, discoveryRef), discoveryNote(present, discoveryRef)],
    [undefined, undefined],
  );
});
