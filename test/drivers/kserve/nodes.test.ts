import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reservationsOf } from '../../../src/drivers/kserve/nodes/reservations.ts';
import { type NodeListing, nodeInfos } from '../../../src/drivers/kserve/nodes.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { workedMs } from '../../support/eventLoop.ts';
import { clusterNodes, jsonOf, locationOf, plain, presets, settingsWith } from './world.ts';

/** Later than all nodes come up. */
const now = Date.parse('2026-12-01T00:00:00Z');

interface Variant {
  readonly variant: string;
  readonly about: string;
  readonly settings: object;
  readonly cache: { enabled: boolean; redirectPolicy: boolean; claim: string; storage: string | null };
  readonly served: readonly { object: string; node: string; preset: string }[];
  readonly nodes: readonly Record<string, unknown>[];
}

for (const { variant, about, settings: spec, cache, served, nodes } of jsonOf('cluster/expected-nodes.json')
  .variants as Variant[]) {
  test(`nodes: ${variant}: ${about}`, () => {
    const { enabled, redirectPolicy, claim } = cache;
    const settings = settingsWith({ ...spec, cache: { enabled, redirectPolicy, claimName: claim } });
    const listed = nodeInfos(clusterNodes, {
      backend: 'kserve',
      settings,
      now,
      location: locationOf(settings, cache.storage),
      reserved: reservationsOf(served, presets),
    });
    // Nobody looked into the cache.
    const uncounted = { models: 0, bytesUsed: 0 };
    const expected = nodes.map(node => ({
      backend: 'kserve',
      ...node,
      ...(node.cache ? { cache: { ...uncounted, ...node.cache } } : {}),
    }));
    assert.deepEqual(plain(listed), expected);
  });
}

const node = (name: string, more: object = {}): KubernetesObject => ({ metadata: { name }, ...more });
type Labels = Readonly<Record<string, string>>;
interface NodeParts {
  readonly labels?: Labels;
  readonly annotations?: Labels;
  readonly allocatable?: object;
  readonly capacity?: object;
  readonly conditions?: object[];
}
const gpuNode = (name: string, { labels = {}, annotations = {}, ...status }: NodeParts = {}) => ({
  metadata: { name, labels, annotations },
  status: {
    capacity: { 'nvidia.com/gpu': '1', memory: '64Gi' },
    allocatable: { 'nvidia.com/gpu': '1', memory: '60Gi' },
    conditions: [{ type: 'Ready', status: 'True' }],
    ...status,
  },
});
const listing = (more: Partial<NodeListing> = {}): NodeListing => ({
  backend: 'kserve',
  now,
  settings: settingsWith({ cache: { enabled: false } }),
  ...more,
});
const only = (object: KubernetesObject, more?: Partial<NodeListing>) => {
  const [info, ...others] = nodeInfos([object], listing(more));
  assert.deepEqual(others, []);
  return info ?? assert.fail('the node is not listed');
};

test('what makes a node an accelerator node', () => {
  const isListed = (object: KubernetesObject) => nodeInfos([object], listing()).length === 1;
  const labelled = (labels: Labels) => isListed({ metadata: { name: 'n', labels } });
  assert.equal(isListed(node('n')), false);
  assert.equal(isListed(node('n', { status: { capacity: { 'nvidia.com/gpu': '2' } } })), true);
  assert.equal(isListed(node('n', { status: { allocatable: { 'nvidia.com/gpu': 1 } } })), true);
  assert.equal(isListed(node('n', { status: { capacity: { 'nvidia.com/gpu': '0', 'amd.com/gpu': '8' } } })), false);
  assert.equal(isListed(node('n', { status: { capacity: { 'nvidia.com/gpu': '-1' } } })), false);
  for (const value of ['', 'false', 'False']) assert.equal(labelled({ 'nvidia.com/gpu.present': value }), false, value);
  for (const value of ['true', 'yes']) assert.equal(labelled({ 'nvidia.com/gpu.present': value }), true, value);
  for (const value of ['', '0', '-1', 'one', '1.5', 'NaN']) {
    assert.equal(labelled({ 'nvidia.com/gpu.count': value }), false, value);
  }
  assert.equal(labelled({ 'nvidia.com/gpu.count': '2' }), true);
  assert.equal(labelled({ 'nvidia.com/gpu.product': 'NVIDIA-L4' }), true);
});

test('a resource of another name makes nodes of another maker accelerator nodes', () => {
  const settings = settingsWith({ gpuResourceName: 'amd.com/gpu', cache: { enabled: false } });
  const info = only(node('n', { status: { capacity: { 'amd.com/gpu': '8' } } }), { settings });
  assert.equal(info.gpuCount, 8);
});

test('nodes are listed by name, with the backend and its target', () => {
  const target = { cluster: 'east' };
  const infos = nodeInfos(
    ['b', 'a', 'B', 'a1'].map(name => gpuNode(name)),
    listing({ target }),
  );
  assert.deepEqual(
    infos.map(({ name }) => name),
    ['B', 'a', 'a1', 'b'],
  );
  assert.ok(infos.every(info => info.backend === 'kserve' && info.target === target));
});

test('what counts the GPUs', () => {
  const counted = (labels: Labels, allocatable: object, capacity: object) =>
    only(gpuNode('n', { labels: { 'nvidia.com/gpu.present': 'true', ...labels }, allocatable, capacity })).gpuCount;
  const gpus = (count: string) => ({ 'nvidia.com/gpu': count });
  assert.equal(counted({}, {}, {}), 0);
  assert.equal(counted({}, {}, gpus('4')), 4);
  assert.equal(counted({}, gpus('3'), gpus('4')), 3);
  assert.equal(counted({}, gpus('0'), gpus('4')), 4, 'what is not allocatable yet is there');
  assert.equal(counted({ 'nvidia.com/gpu.count': '2' }, gpus('3'), gpus('4')), 2);
  for (const label of ['0', '-2', 'many', '99999999999999999999']) {
    assert.equal(counted({ 'nvidia.com/gpu.count': label }, gpus('3'), gpus('4')), 3, label);
  }
});

test('a budget is that of all GPUs by their labels, or what is allocatable', () => {
  const labels = { 'nvidia.com/gpu.memory': '1024', 'nvidia.com/gpu.count': '2' };
  const budget = (budgetSource: string, given: Labels = labels, status: NodeParts = {}) => {
    const settings = settingsWith({ cache: { enabled: false } }, { budgetSource });
    const info = only(gpuNode('n', { labels: given, ...status }), { settings });
    return [info.budgetBytes, info.budgetSource, info.freeBytes];
  };
  const [byLabels, allocatable] = [2 * 2 ** 30, 60 * 2 ** 30];
  assert.deepEqual(budget('auto'), [byLabels, 'gpu-labels', byLabels]);
  assert.deepEqual(budget('gpu-labels'), [byLabels, 'gpu-labels', byLabels]);
  assert.deepEqual(budget('allocatable'), [allocatable, 'allocatable', allocatable]);
  assert.deepEqual(budget('auto', {}), [allocatable, 'allocatable', allocatable]);
  assert.deepEqual(budget('gpu-labels', {}), [undefined, 'gpu-labels', undefined]);
  for (const memory of ['NaN', '-1', '0', '1e400', '1e3', '99999999999999', '9007199254740993', 'lots']) {
    const found = budget('auto', { 'nvidia.com/gpu.memory': memory });
    assert.deepEqual(found, [allocatable, 'allocatable', allocatable], memory);
  }
  for (const memory of ['', '-1Gi', 'NaN', '1e400', '5 Gi']) {
    const capacity = { 'nvidia.com/gpu': '1' };
    const found = budget('allocatable', {}, { allocatable: { memory }, capacity });
    assert.deepEqual(found, [undefined, 'allocatable', undefined], memory);
  }
});

test("the operator's word on a budget goes before everything, and what is none is told", () => {
  const annotated = (text: string, budgetSource = 'auto') => {
    const annotations = { 'model-manager.giantswarm.io/memory-budget-gib': text };
    const settings = settingsWith({ cache: { enabled: false } }, { budgetSource });
    return only(gpuNode('n', { annotations }), { settings });
  };
  for (const [text, gib] of [
    ['96', 96],
    [' 0.5 ', 0.5],
    ['1e2', 100],
    ['+7.25', 7.25],
  ] as const) {
    const { budgetBytes, budgetSource, message } = annotated(text, 'gpu-labels');
    assert.deepEqual([budgetBytes, budgetSource, message], [gib * 2 ** 30, 'annotation', undefined], text);
  }
  const nonsense = ['lots', '0', '-4', '1e400', '1e300', 'NaN', 'Infinity', '0x10', '', ' ', '1e-30', '5 GiB'];
  for (const text of nonsense) {
    const { budgetBytes, budgetSource, message } = annotated(text);
    assert.deepEqual([budgetBytes, budgetSource], [60 * 2 ** 30, 'allocatable'], text);
    const expected = `ignoring annotation model-manager.giantswarm.io/memory-budget-gib="${text}": want a positive number of GiB; budget taken from allocatable`;
    assert.equal(message, expected);
  }
  const forced = annotated('no', 'gpu-labels');
  assert.match(forced.message ?? '', /; budget taken from gpu-labels$/);
  assert.ok((annotated('x'.repeat(100_000)).message ?? '').length < 300, 'a message has an end');
});

test('free is never below nothing', () => {
  const reserved = new Map([['n', 100 * 2 ** 30]]);
  const { reservedBytes, freeBytes } = only(gpuNode('n'), { reserved });
  assert.deepEqual([reservedBytes, freeBytes], [100 * 2 ** 30, 0]);
});

test('what keeps models off a node is told in full, in the order of the rules', () => {
  const settings = settingsWith({
    nodeSelector: { zone: 'b', arch: 'arm64' },
    gpuPool: { nodeSelector: { pool: 'l4' } },
    cache: { enabled: true, claimName: 'weights', redirectPolicy: true },
  });
  const location = { ...locationOf(settings, 'cache-pinned.yaml'), nodes: ['m1', 'm2'] };
  const broken = {
    ...gpuNode('n', { conditions: [{ type: 'Ready', status: 'Unknown' }] }),
    spec: {
      unschedulable: true,
      taints: [
        { key: 'z', effect: 'NoExecute' },
        { key: 'soft', effect: 'PreferNoSchedule' },
        { key: 'a', value: 'b', effect: 'NoSchedule' },
      ],
    },
  };
  const { eligible, eligibilityReason } = only(broken, { settings, location });
  assert.equal(eligible, false);
  assert.equal(
    eligibilityReason,
    'not ready; outside the serving node selector (arch=arm64, zone=b); outside the GPU pool node selector (pool=l4); taint a=b:NoSchedule, z:NoExecute not tolerated (set the GPU pool taint); cache claim weights is pinned to m1, m2',
  );
  const image = only(broken, { settings, location, ignoresClaim: true });
  assert.doesNotMatch(image.eligibilityReason ?? '', /cache claim/, 'a model image needs no claim');
});

test('a claim is pinned to nodes by their names or their host names', () => {
  const settings = settingsWith({ cache: { enabled: true, redirectPolicy: true } });
  const location = locationOf(settings, 'cache-pinned.yaml');
  const eligible = (name: string, labels: Labels = {}) =>
    only(gpuNode(name, { labels }), { settings, location }).eligible;
  assert.equal(eligible('spark-01'), true);
  assert.equal(eligible('spark-01.lab', { 'kubernetes.io/hostname': 'spark-01' }), true);
  assert.equal(eligible('spark-02', { 'kubernetes.io/hostname': 'spark-02' }), false);
});

test('where the claim of the cache lives', () => {
  const settings = settingsWith({ cache: { enabled: true } });
  const at = (file: string | null) => {
    const { state, shared, nodes, zones, volume, volumeRead } = locationOf(settings, file);
    return { state, shared, nodes, zones, volume, volumeRead };
  };
  const nowhere = { shared: false, nodes: [], zones: [], volume: undefined, volumeRead: false };
  assert.deepEqual(at(null), { ...nowhere, state: 'missing' });
  assert.deepEqual(at('cache-unbound.yaml'), { ...nowhere, state: 'unbound' });
  const bound = { state: 'bound', shared: true, nodes: [], zones: [], volumeRead: true };
  assert.deepEqual(at('cache-shared.yaml'), { ...bound, volume: 'pv-hf-cache' });
  assert.deepEqual(at('cache-zonal.yaml'), { ...bound, volume: 'pv-ebs-1', zones: ['eu-central-1b'] });
  assert.deepEqual(at('cache-pinned.yaml'), { ...bound, volume: 'pv-local', shared: false, nodes: ['spark-01'] });
});

test('a node that cannot be read is listed with the reason', () => {
  const malformed: [object, string][] = [
    [{ metadata: { name: 'n', labels: [] } }, 'metadata.labels must be a mapping, got a list'],
    [{ metadata: { name: 'n', annotations: { a: 5 } } }, 'metadata.annotations.a must be a string, got 5'],
    [{ spec: 'none' }, 'spec must be a mapping, got "none"'],
    [{ spec: { taints: [{ effect: 'NoSchedule' }] } }, 'spec.taints[0].key must be a string, got nothing'],
    [{ status: { capacity: { cpu: {} } } }, 'status.capacity.cpu must be a quantity'],
    [{ status: { conditions: [null] } }, 'status.conditions[0] must be a mapping, got null'],
  ];
  for (const [object, problem] of malformed) {
    const info = only({ metadata: { name: 'n' }, ...object });
    const { eligible, ready, eligibilityReason, gpuCount, reservedBytes } = info;
    assert.deepEqual(
      { eligible, ready, gpuCount, reservedBytes },
      { eligible: false, ready: false, gpuCount: 0, reservedBytes: 0 },
    );
    assert.equal(eligibilityReason, `its Node object cannot be read: ${problem}`);
  }
});

test('labels that are called like the insides of objects are labels', () => {
  const settings = settingsWith({ nodeSelector: { constructor: 'x' }, cache: { enabled: false } });
  assert.equal(only(gpuNode('n'), { settings }).eligible, false);
  const labels = JSON.parse('{"constructor":"x","__proto__":"y"}');
  assert.equal(only(gpuNode('n', { labels }), { settings }).eligible, true);
});

test('a thousand nodes are listed in no time', () => {
  const many = Array.from({ length: 1000 }, (_, place) => {
    const object = structuredClone(clusterNodes[place % clusterNodes.length] as KubernetesObject);
    return { ...object, metadata: { ...object.metadata, name: `node-${String(999 - place).padStart(3, '0')}` } };
  });
  const settings = settingsWith({ gpuPool: { taint: { key: 'nvidia.com/gpu' } }, cache: { enabled: true } });
  const location = locationOf(settings, 'cache-pinned.yaml');
  const began = workedMs();
  const infos = nodeInfos(many, listing({ settings, location }));
  const took = workedMs() - began;
  assert.equal(infos.length, 833);
  assert.ok(infos.every(({ name }, place) => place === 0 || name > (infos[place - 1]?.name ?? '')));
  assert.ok(took < 2_000, `took ${took} ms`);
});
