import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FitFacts, fitOf, questionOf } from '../../../src/drivers/kserve/fit.ts';
import type { ServingPreset } from '../../../src/drivers/kserve/presets.ts';
import { type Explanation, whyNot } from '../../../src/drivers/kserve/whyNot.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { clusterNodes, jsonOf, locationOf, presets, settingsWith } from './world.ts';

const gib = 2 ** 30;
const { sizes } = jsonOf('fit/fit-cases.json') as { sizes: Record<string, object[]> };
const gpuPool = {
  taint: { key: 'nvidia.com/gpu', effect: 'NoSchedule' },
  nodeSelector: { 'giantswarm.io/machine-pool': 'demo-gpu-l4' },
};
const facts = (more: Partial<FitFacts> = {}): FitFacts => ({
  backend: 'kserve',
  settings: settingsWith({ gpuPool, cache: { enabled: false } }),
  nodes: clusterNodes,
  hub: { weights: { bytes: 8 * gib, source: 'tree' } },
  tokenConfigured: true,
  against: 'free',
  ...more,
});
const explain = (more: Partial<FitFacts> = {}, request: Parameters<typeof questionOf>[1] = { preset: 'nova-4b' }) =>
  whyNot(questionOf(presets, request), facts(more));
/** Codes by place. */
const codes = (places: Explanation['nodes'] | Explanation['sizes']) =>
  Object.fromEntries(
    places.map(place => {
      const name = 'node' in place ? place.node.split('.')[0] : place.size;
      assert.equal(place.fits, place.obstacles.length === 0);
      return [name, place.obstacles.map(({ code }) => code)];
    }),
  );

test('every node is told of, with all that stands in the way there', () => {
  const { nodes, sizes: none, obstacles } = explain();
  assert.deepEqual(codes(nodes), {
    'ip-10-0-10-11': [],
    'ip-10-0-10-12': ['taint'],
    'ip-10-0-10-13': ['not-ready', 'taint'],
    'ip-10-0-3-9': ['no-accelerator'],
    'rack-07': ['pool-selector'],
    'spark-01': ['pool-selector'],
  });
  assert.deepEqual([none, obstacles], [[], []]);
  const plain = nodes.find(({ node }) => node.startsWith('ip-10-0-3-9'));
  assert.deepEqual(plain?.obstacles, [
    {
      code: 'no-accelerator',
      text: 'not an accelerator node (no nvidia.com/gpu resource, no nvidia.com/gpu.present label)',
      change: 'install the GPU operator or its device plugin on the node, or choose a preset that runs on the CPU',
    },
  ]);
});

test('every obstacle says in words what it is, and what would take it away', () => {
  const settings = settingsWith({
    gpuPool: { ...gpuPool, instances: sizes['sizes-1'] },
    nodeSelector: { role: 'gpu' },
    cache: { enabled: true, redirectPolicy: true },
  });
  const location = locationOf(settings, 'cache-pinned.yaml');
  const hub: FitFacts['hub'] = {
    repository: { id: 'x', gated: true, private: false },
    weights: { bytes: 900 * gib, source: 'tree' },
  };
  const found = explain({ settings, location, hub, tokenConfigured: false }, { preset: 'atlas-70b-x4' });
  const all = [...found.obstacles, ...[...found.nodes, ...found.sizes].flatMap(({ obstacles }) => obstacles)];
  const seen = new Set(all.map(({ code }) => code));
  for (const code of [
    'gated',
    'serving-selector',
    'pool-selector',
    'taint',
    'cache-claim',
    'preset-selector',
    'memory',
    'pool-has-nodes',
    'gpu-memory',
  ] as const) {
    assert.ok(seen.has(code), code);
  }
  for (const { code, text, change } of all) {
    assert.match(text, /^\S.*\S$/, code);
    assert.match(change, /^\S.*\S$/, code);
    assert.notEqual(text, change);
  }
});

test('only a pool without a taint can be given the one of a node', () => {
  const change = (pool: object, name: string) => {
    const node = `${name}.eu-central-1.compute.internal`;
    const { nodes } = explain({ settings: settingsWith({ gpuPool: pool }) }, { preset: 'nova-4b', node });
    return nodes[0]?.obstacles.find(({ code }) => code === 'taint')?.change;
  };
  const { taint: _, ...untainted } = gpuPool;
  const [gpu, research] = ['nvidia.com/gpu:NoSchedule', 'dedicated=research:NoSchedule'];
  assert.equal(change(untainted, 'ip-10-0-10-11'), `take ${gpu} off the node, or make it the GPU pool's`);
  assert.equal(change(untainted, 'ip-10-0-10-12'), `take ${research}, ${gpu} off the node`);
  assert.equal(change(gpuPool, 'ip-10-0-10-12'), `take ${research} off the node`);
});

test('memory that is missing comes by unloading, or not at all', () => {
  const node = 'ip-10-0-10-11.eu-central-1.compute.internal';
  const memory = (more: Partial<FitFacts>) => {
    const [found] = explain(more, { preset: 'nova-4b', node }).nodes;
    return found?.obstacles.map(({ code, change }) => [code, change]);
  };
  assert.deepEqual(memory({ reserved: new Map([[node, 10 * gib]]) }), [
    ['memory', 'unload models there: they reserve 10.0 GiB'],
  ]);
  assert.deepEqual(memory({ reserved: new Map([[node, 10 * gib]]), against: 'budget' }), []);
  assert.deepEqual(memory({ hub: { weights: { bytes: 80 * gib, source: 'tree' } } }), [
    ['memory', 'a node with 92.0 GiB for models, or a smaller model'],
  ]);
  const settings = settingsWith({ gpuPool, cache: { enabled: false } }, { budgetSource: 'gpu-labels' });
  const unlabelled = explain({ settings }, { preset: 'nova-4b', node: 'rack-07' }).nodes[0];
  assert.deepEqual(unlabelled?.obstacles.at(-1), {
    code: 'no-budget',
    text: 'node rack-07 reports no memory budget (gpu-labels)',
    change: 'annotate the node with model-manager.giantswarm.io/memory-budget-gib, in GiB',
  });
});

test('every size of the pool is told of, the smallest first, with all that stands in the way there', () => {
  const settings = settingsWith({
    gpuPool: { ...gpuPool, instances: sizes['sizes-1']?.toReversed() },
    cache: { enabled: false },
  });
  const at = (preset: string, nodes: readonly KubernetesObject[] = []) =>
    explain({ settings, nodes }, { preset }).sizes;
  assert.deepEqual(codes(at('nova-4b')), { '4xlarge': [], '12xlarge': [] });
  assert.deepEqual(
    at('nova-4b').map(({ size, instanceType }) => [size, instanceType]),
    [
      ['4xlarge', 'g6e.4xlarge'],
      ['12xlarge', 'g6e.12xlarge'],
    ],
  );
  assert.equal(at('pico-1b-cpu').length, 0, 'a model that needs no GPU waits for no pool');
  const grown = at('nova-4b', clusterNodes);
  assert.ok(grown.every(({ obstacles }) => obstacles[0]?.code === 'pool-has-nodes'));
  assert.equal(
    grown[0]?.obstacles[0]?.text,
    'the GPU pool has nodes (giantswarm.io/machine-pool=demo-gpu-l4): only what it has counts',
  );
  assert.deepEqual(explain({ settings, nodes: [] }, { preset: 'nova-4b', node: 'x' }).sizes, []);
});

test('what a size is short of, in words', () => {
  const instances = [
    {
      instanceType: 'g6.xlarge',
      vcpu: 4,
      memoryGiB: 16,
      gpus: 1,
      gpuMemoryGiB: 16,
      usableVcpu: 3.5,
      usableMemoryGiB: 11.9,
    },
  ];
  const settings = settingsWith({ gpuPool: { ...gpuPool, instances }, cache: { enabled: false } });
  const hub: FitFacts['hub'] = { weights: { bytes: 68 * gib, source: 'tree' } };
  const [size] = explain({ settings, nodes: [], hub }, { preset: 'atlas-70b-x4' }).sizes;
  assert.deepEqual(size?.obstacles, [
    {
      code: 'cpu',
      text: '24 vCPU requested, 3.5 vCPU left for the predictor',
      change: 'a size that leaves 24 vCPU, or a preset that requests less',
    },
    {
      code: 'memory',
      text: '96 GiB requested, 11.9 GiB left for the predictor',
      change: 'a size that leaves 96 GiB, or a preset that requests less',
    },
    { code: 'gpus', text: '4 GPU requested, it has 1', change: 'a size with 4 GPU, or a preset that requests fewer' },
    {
      code: 'gpu-memory',
      text: '68.0 GiB weights (tree) + 40.0 GiB overhead = 108.0 GiB exceed the 64.0 GiB on the 4 GPU the predictor requests',
      change: 'a size with 27.0 GiB on each GPU, or a smaller model',
    },
  ]);
  const broken = [{ ...(presets[2] as ServingPreset), requests: { cpu: 'lots' } }];
  const question = questionOf(broken, { preset: 'nova-4b' });
  const [told] = whyNot(question, facts({ settings, nodes: [] })).sizes;
  assert.deepEqual(
    told?.obstacles.map(({ code, text }) => [code, text]),
    [['requests', 'preset nova-4b: resources.requests.cpu "lots": want a Kubernetes quantity such as 500m, 4 or 16Gi']],
  );
  const unknown = settingsWith({ gpuPool: { instances }, cache: { enabled: false } });
  assert.deepEqual(codes(explain({ settings: unknown, nodes: [] }).sizes), {
    xlarge: ['pool-unknown', 'cpu', 'memory', 'gpu-memory'],
  });
});

test('a node that is passed over for one with the cache', () => {
  const settings = settingsWith({ cache: { enabled: true } });
  const location = locationOf(settings, 'cache-pinned.yaml');
  const nodes = clusterNodes.filter(({ metadata }) => ['rack-07', 'spark-01'].includes(metadata.name));
  const reserved = new Map([['spark-01', 90 * gib]]);
  const found = explain({ settings, location, nodes, reserved });
  assert.deepEqual(codes(found.nodes), { 'rack-07': ['claim-elsewhere'], 'spark-01': ['memory'] });
  assert.deepEqual(found.nodes[0]?.obstacles[0], {
    code: 'claim-elsewhere',
    text: 'passed over for spark-01, where the cache claim hf-cache is',
    change: 'name this node in the request',
  });
  const named = explain({ settings, location, nodes, reserved }, { preset: 'nova-4b', node: 'rack-07' });
  assert.deepEqual(codes(named.nodes), { 'rack-07': [] });
  const image = explain({ settings, location, nodes, reserved }, { preset: 'lyra-20b-oci' });
  assert.deepEqual(codes(image.nodes), { 'rack-07': [], 'spark-01': ['memory'] });
});

test('what concerns no node of its own', () => {
  const none = explain({ nodes: [], withoutDocument: 'the document is away' });
  assert.deepEqual(
    none.obstacles.map(({ code, text }) => [code, text]),
    [
      ['no-document', 'the document is away'],
      ['no-node', 'no accelerator node: no node advertises nvidia.com/gpu or carries the nvidia.com/gpu.present label'],
    ],
  );
  assert.deepEqual(explain({ withoutDocument: 'the document is away' }).obstacles, [], 'it stands in no way');
  const gone = explain({ withoutDocument: 'away' }, { preset: 'nova-4b', node: 'gone' });
  assert.deepEqual(gone.nodes, []);
  assert.match(gone.obstacles[0]?.text ?? '', /^node "gone" not found: /);
});

test('the explanation and the fit say the same', () => {
  const reserved = new Map(clusterNodes.map(({ metadata }, place) => [metadata.name, place * 15 * gib]));
  for (const preset of presets) {
    for (const budgetSource of ['auto', 'gpu-labels', 'allocatable']) {
      for (const cacheFile of [null, 'cache-pinned.yaml', 'cache-shared.yaml']) {
        for (const [redirectPolicy, against] of [
          [true, 'free'],
          [false, 'free'],
          [false, 'budget'],
        ] as const) {
          for (const pool of [undefined, { taint: gpuPool.taint }, { ...gpuPool, instances: sizes['sizes-1'] }]) {
            for (const nodes of [clusterNodes, clusterNodes.slice(2, 3), clusterNodes.slice(4)]) {
              const settings = settingsWith(
                { gpuPool: pool, cache: { enabled: true, redirectPolicy } },
                { budgetSource },
              );
              const given = facts({ settings, nodes, location: locationOf(settings, cacheFile), reserved, against });
              const question = questionOf(presets, { preset: preset.name });
              const fit = fitOf(question, given, {});
              const { nodes: places, sizes } = whyNot(question, given);
              const about = JSON.stringify({
                preset: preset.name,
                budgetSource,
                cacheFile,
                redirectPolicy,
                pool,
                reason: fit.reason,
              });
              const fitting = [...places, ...sizes].filter(({ fits }) => fits);
              assert.equal(fit.fits, fitting.length > 0, about);
              if (fit.fits && fit.node)
                assert.ok(
                  places.some(({ node, fits }) => fits && node === fit.node),
                  about,
                );
              if (fit.fits && fit.instanceType) {
                assert.equal(sizes.find(({ fits }) => fits)?.instanceType, fit.instanceType, about);
              }
              for (const node of places) {
                const alone = fitOf({ ...question, node: node.node }, given, {});
                const why = whyNot({ ...question, node: node.node }, given).nodes[0];
                assert.equal(alone.fits, why?.fits, `${about} on ${node.node}: ${alone.reason}`);
              }
            }
          }
        }
      }
    }
  }
});
