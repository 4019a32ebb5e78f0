import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FitFacts, fitOf, judgeFit, questionOf } from '../../../src/drivers/kserve/fit.ts';
import type { HubFacts, Miss } from '../../../src/drivers/kserve/hub/facts.ts';
import type { ServingPreset } from '../../../src/drivers/kserve/presets.ts';
import { GatewayError } from '../../../src/errors.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { workedMs } from '../../support/eventLoop.ts';
import { clusterNodes, locationOf, presets, settingsWith } from './world.ts';

const gib = 2 ** 30;
const size = (type: string, more: object = {}) => ({
  instanceType: type,
  vcpu: 8,
  memoryGiB: 32,
  gpus: 1,
  gpuMemoryGiB: 24,
  usableVcpu: 7,
  usableMemoryGiB: 27.1,
  ...more,
});
const weighing = (amount: number): HubFacts => ({ weights: { bytes: amount * gib, source: 'tree' } });
const missing = (miss: Partial<Miss>): HubFacts => ({ miss: { why: 'failed', words: 'the line is dead', ...miss } });

const gpuNode = (name: string, memory: string, labels: Readonly<Record<string, string>> = {}): KubernetesObject => {
  const object = { metadata: { name, labels: { 'nvidia.com/gpu.present': 'true', ...labels } } };
  const status = { allocatable: { memory }, conditions: [{ type: 'Ready', status: 'True' }] };
  return { ...object, status } as KubernetesObject;
};
const nova = presets.find(({ name }) => name === 'nova-4b') as ServingPreset;
const pico = presets.find(({ name }) => name === 'pico-1b-cpu') as ServingPreset;
const facts = (more: Partial<FitFacts> = {}): FitFacts => ({
  backend: 'kserve',
  settings: settingsWith({ cache: { enabled: false } }),
  nodes: [gpuNode('n', '64Gi')],
  hub: weighing(8),
  tokenConfigured: false,
  against: 'free',
  ...more,
});
const fit = (
  more: Partial<FitFacts> = {},
  request: Parameters<typeof questionOf>[1] = { preset: 'nova-4b' },
  known: readonly ServingPreset[] = presets,
) => fitOf(questionOf(known, request), facts(more), {});
const pool = (gpuPool: object) =>
  settingsWith({ gpuPool: { nodeSelector: { pool: 'p' }, ...gpuPool }, cache: { enabled: false } });

test('what a request is about', () => {
  const asked = (request: Parameters<typeof questionOf>[1], known = presets) => {
    const { model, preset, repository, revision, directory, presets: names } = questionOf(known, request);
    return { model, preset: preset?.name, repository, revision, directory, names };
  };
  const bare = { preset: undefined, names: [] };
  assert.deepEqual(asked({ model: ' hf://Some/Model@v2 ' }), {
    ...bare,
    model: 'Some/Model',
    repository: 'Some/Model',
    revision: 'v2',
    directory: 'some-model',
  });
  assert.deepEqual(asked({ model: 'a/b:c', preset: ' ' }).revision, 'c');
  const atlas = { model: 'north-ai/Atlas-70B-Chat', preset: 'atlas-70b-x4', repository: 'north-ai/Atlas-70B-Chat' };
  const rest = { directory: 'atlas-70b-x4', names: ['atlas-70b-x4'] };
  assert.deepEqual(asked({ preset: 'atlas-70b-x4' }), { ...atlas, ...rest, revision: 'fp8' });
  assert.deepEqual(asked({ model: 'atlas-70b-x4:main' }), { ...atlas, ...rest, revision: 'main' });
  assert.equal(asked({ model: 'NORTH-AI/atlas-70b-chat@x' }).revision, 'x');
  assert.equal(asked({ preset: 'lyra-20b-oci' }).repository, 'orbit/Lyra-20B', 'an image has no repository of its own');
  const moved = [{ ...nova, storageUri: 'hf://mirror/Nova:q4' }];
  assert.deepEqual(asked({ preset: 'nova-4b' }, moved).repository, 'mirror/Nova');
  assert.deepEqual(asked({ preset: 'nova-4b' }, moved).model, 'acme-labs/Nova-4B-Instruct');
});

test('what is neither a repository nor a preset', () => {
  for (const model of ['nova', 'a/b/c', 'a b/c', '../..', 'a/..', 'hf://', 'a/', '/', `${'x'.repeat(99)}/y`]) {
    assert.throws(
      () => questionOf(presets, { model }),
      (error: GatewayError) => {
        assert.equal(error.code, 'invalid_request');
        assert.match(
          error.message,
          /^invalid request: ".*" is neither a Hugging Face repository \(owner\/name\) nor a preset name$/,
        );
        return true;
      },
      model,
    );
  }
  assert.throws(
    () => questionOf(presets, { model: ' ', preset: '' }),
    /^GatewayError: invalid request: model or preset is required$/,
  );
});

test('where no node comes into question', () => {
  const cpu = { preset: 'pico-1b-cpu' };
  const reason = (...given: Parameters<typeof fit>) => {
    const { fits, reason, cacheSource, node, retryable } = fit(...given);
    assert.deepEqual(
      { fits, cacheSource, node, retryable },
      { fits: false, cacheSource: undefined, node: undefined, retryable: undefined },
    );
    return reason;
  };
  assert.equal(
    reason({ nodes: [] }),
    'no accelerator node: no node advertises nvidia.com/gpu or carries the nvidia.com/gpu.present label',
  );
  assert.equal(reason({ nodes: [] }, cpu), 'no node: the cluster reports none');
  assert.equal(reason({}, { ...cpu, node: 'x' }), 'node "x" not found');
  assert.equal(
    reason({}, { preset: 'nova-4b', node: 'x' }),
    'node "x" not found: it does not exist or is not an accelerator node (no nvidia.com/gpu resource, no nvidia.com/gpu.present label)',
  );
  const broken = { metadata: { name: 'b', labels: 5 } } as unknown as KubernetesObject;
  const unreadable = 'its Node object cannot be read: metadata.labels must be a mapping, got 5';
  assert.equal(reason({ nodes: [broken] }), `no eligible node: b: ${unreadable}`);
  assert.equal(reason({ nodes: [broken] }, { ...cpu, node: 'b' }), `node b is not a serving target: ${unreadable}`);
  const note = "; weights from the preset's requirements: the Hugging Face Hub lookup failed (the line is dead)";
  assert.ok(reason({ nodes: [], hub: missing({}) })?.endsWith(`label${note}`), 'what was compared is told here, too');
});

test('the node with the most free memory wins, of equals the first', () => {
  const nodes = [gpuNode('c', '48Gi'), gpuNode('b', '64Gi'), gpuNode('a', '48Gi')];
  assert.equal(fit({ nodes }).node, 'b');
  assert.equal(fit({ nodes, reserved: new Map([['b', 20 * gib]]) }).node, 'a');
  assert.equal(fit({ nodes }, { preset: 'nova-4b', node: 'c' }).node, 'c');
});

test('a load counts what is free, a pull all there is', () => {
  const reserved = new Map([['n', 50 * gib]]);
  const load = fit({ reserved });
  assert.equal(load.fits, false);
  assert.equal(
    load.reason,
    '8.0 GiB weights (tree) + 12.0 GiB overhead = 20.0 GiB exceed the 14.0 GiB available on n (allocatable budget 64.0 GiB, 50.0 GiB reserved by running models)',
  );
  const pull = fit({ reserved, against: 'budget' });
  assert.deepEqual([pull.fits, pull.reservedBytes, pull.freeBytes], [true, 50 * gib, 14 * gib]);
  assert.equal(
    pull.reason,
    '8.0 GiB weights (tree) + 12.0 GiB overhead = 20.0 GiB fit within 64.0 GiB on n (allocatable)',
  );
});

test('a pull finds the node that is large enough, also where another one is more free', () => {
  const nodes = [gpuNode('small', '16Gi'), gpuNode('large', '64Gi')];
  const reserved = new Map([['large', 60 * gib]]);
  assert.equal(fit({ nodes, reserved }).node, 'small');
  const pull = fit({ nodes, reserved, against: 'budget' });
  assert.deepEqual([pull.fits, pull.node], [true, 'large']);
});

test('exactly enough is enough', () => {
  const exactly = fit({ nodes: [gpuNode('n', '20Gi')] });
  assert.equal(exactly.fits, true);
  assert.equal(fit({ nodes: [gpuNode('n', String(20 * gib - 1))] }).fits, false);
});

test('a node without a budget', () => {
  const settings = settingsWith({ cache: { enabled: false } }, { budgetSource: 'gpu-labels' });
  const { fits, reason, node, budgetBytes, budgetSource } = fit({ settings, hub: weighing(9) });
  assert.deepEqual([fits, node, budgetBytes, budgetSource], [false, 'n', undefined, 'gpu-labels']);
  assert.equal(reason, 'node n reports no memory budget (gpu-labels)');
});

test('a preset stands in for a Hub that fails, and says so', () => {
  const told = (miss: Partial<Miss>) => {
    const { reason, weightsSource, gated } = fit({ hub: missing(miss) });
    assert.equal(weightsSource, 'preset');
    return { note: /; weights from the preset's requirements: (.*)$/.exec(reason ?? '')?.[1], gated };
  };
  assert.deepEqual(told({}), { note: 'the Hugging Face Hub lookup failed (the line is dead)', gated: false });
  assert.deepEqual(told({ why: 'timeout', withinMs: 2500 }), {
    note: 'the Hugging Face Hub did not answer within 2.5s',
    gated: false,
  });
  assert.deepEqual(told({ why: 'refused' }), {
    note: 'the Hugging Face Hub refused the repository metadata (gated or private)',
    gated: true,
  });
  const listed = fit({
    hub: { ...missing({ why: 'timeout', withinMs: 0 }), repository: { id: 'x', gated: true, private: true } },
  });
  assert.deepEqual([listed.gated, listed.private], [true, true], 'what the Hub did tell is told');
  assert.match(
    listed.reason ?? '',
    /; the repository is gated and no hub token is configured; weights from .* within 0s$/,
  );
  assert.doesNotMatch(fit({ hub: missing({ why: 'refused' }), tokenConfigured: true }).reason ?? '', /no hub token/);
});

test('a preset that declares nothing stands in for nobody', () => {
  const silent = [{ ...nova, weightsBytes: undefined }];
  const failure = (hub: HubFacts) => {
    try {
      fit({ hub }, undefined, silent);
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      return [error.code, error.message];
    }
    return [];
  };
  assert.deepEqual(failure(missing({})), ['backend_error', 'the Hugging Face Hub lookup failed (the line is dead)']);
  assert.deepEqual(failure({}), [
    'invalid_request',
    'invalid request: cannot determine the weight size of acme-labs/Nova-4B-Instruct: it has no files of weights on the hub, and no preset declares it',
  ]);
  const counted = fit({ hub: {} });
  assert.deepEqual([counted.weightsSource, counted.weightsBytes], ['preset', 8 * gib], 'else what it declares counts');
});

test('without the document the answer may be another one soon', () => {
  const withoutDocument = 'the document is away';
  const settings = settingsWith(undefined);
  const asked = { settings, withoutDocument };
  const judged = (more: Partial<FitFacts>, request: Parameters<typeof questionOf>[1] = { preset: 'nova-4b' }) =>
    judgeFit(questionOf(presets, request), facts({ ...asked, ...more }));
  const none = judged({ nodes: [] });
  assert.deepEqual(
    [none.wantsDocument, none.asksCache, none.result.retryable, none.result.reason],
    [true, undefined, true, 'the document is away'],
  );
  const tainted = judged({ nodes: clusterNodes.slice(0, 1) });
  assert.match(tainted.result.reason ?? '', /^the document is away; no eligible node: ip-10-0-10-11\S*: taint /);
  const there = judged({});
  assert.deepEqual([there.wantsDocument, there.result.fits, there.asksCache], [false, true, { node: 'n' }]);
  const named = judged({ nodes: [] }, { preset: 'nova-4b', node: 'x' });
  assert.deepEqual(
    [named.wantsDocument, named.result.retryable],
    [false, undefined],
    'a node that was named is not there',
  );
  const grows = judged({ nodes: [], settings: pool({}) });
  assert.deepEqual([grows.wantsDocument, grows.result.fits, grows.result.retryable], [true, true, undefined]);
  assert.deepEqual(grows.asksCache, { node: undefined }, 'the claim is asked as a whole');
});

test('a pool at zero of unknown sizes fits, unverified', () => {
  const settings = pool({});
  const { fits, reason, budgetSource, budgetBytes } = fit({ settings, hub: weighing(9) });
  assert.deepEqual([fits, budgetSource, budgetBytes], [true, 'pool-scale-from-zero', undefined]);
  assert.equal(
    reason,
    "no node in the GPU pool yet (pool=p): the pool scales from zero — the predictor waits for its node; the fit of 9.0 GiB weights (tree) + 12.0 GiB overhead = 21.0 GiB against the pool's accelerator is unverified; the preset declares 8.0 GiB of weights, the Hub holds 9.0 GiB",
  );
});

test('a pool with a node is not at zero, whatever is wrong with the node', () => {
  const settings = pool({ instances: [size('g6.2xlarge')] });
  const nodes = [gpuNode('n', '4Gi', { pool: 'p' })];
  const small = fit({ settings, nodes });
  assert.deepEqual([small.fits, small.node], [false, 'n']);
  const { reason } = fit({ settings, nodes: nodes.map(node => ({ ...node, status: {} })) });
  assert.equal(reason, 'no eligible node: n: not ready');
  assert.match(
    fit({ settings }, { preset: 'nova-4b', node: 'n' }).reason ?? '',
    /^node n is not a serving target: outside/,
  );
});

test('the smallest size that hosts a model is the one that comes', () => {
  const instances = [
    size('g6.4xlarge', { vcpu: 16, memoryGiB: 64 }),
    size('g6.2xlarge'),
    size('g6.small', { vcpu: 8, memoryGiB: 16, usableMemoryGiB: 15.9 }),
    size('metal', { vcpu: 96, gpuMemoryGiB: 80 }),
  ];
  const settings = pool({ instances });
  assert.equal(fit({ settings }).instanceType, 'g6.2xlarge');
  const large = fit({ settings, hub: weighing(60) });
  assert.deepEqual([large.fits, large.instanceType, large.budgetBytes], [true, 'metal', 80 * gib]);
  assert.match(large.reason ?? '', /the node comes as metal \(metal: 7 vCPU/, 'what has no size goes by its type');
  const none = fit({ settings, hub: weighing(600) });
  assert.deepEqual([none.fits, none.freeBytes, none.budgetBytes], [false, undefined, 80 * gib]);
  assert.match(
    none.reason ?? '',
    /no size of the pool \(small, 2xlarge, 4xlarge, metal\) hosts preset nova-4b: 4 vCPU \/ 16 GiB requested, 1 GPU, 612 GiB of GPU memory; metal, the largest, /,
  );
  assert.match(
    none.reason ?? '',
    /; widen the pool's sizes or pick a smaller preset; the preset declares 8\.0 GiB of weights; the Hub holds 600\.0 GiB, which is what does not fit — correct the preset$/,
  );
  const bare = fit({ settings, hub: weighing(600) }, { model: 'a/b' });
  assert.match(
    bare.reason ?? '',
    /hosts a\/b: 630 GiB of GPU memory on 1 GPU \(no preset: weights and default overhead only\); metal,/,
  );
});

test('each request of a preset counts, to the last bit', () => {
  const hosts = (requests: Record<string, string>, gpus = 1) => {
    const settings = pool({ instances: [size('g6.2xlarge')] });
    return fit({ settings }, undefined, [{ ...nova, requests, gpus }]).fits;
  };
  assert.equal(hosts({ cpu: '7', memory: '27.1Gi' }), true);
  assert.equal(hosts({ cpu: '7001m', memory: '1Gi' }), false);
  assert.equal(hosts({ cpu: '1', memory: '27.2Gi' }), false);
  assert.equal(hosts({}), true, 'what asks for nothing gets 2 vCPU and 8 GiB');
  assert.equal(hosts({ cpu: '1' }, 2), false);
  for (const [resource, text, words] of [
    ['cpu', 'lots', 'want a Kubernetes quantity such as 500m, 4 or 16Gi'],
    ['memory', '16GiB', 'unknown suffix "GiB": want one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei'],
    ['memory', '-1Gi', 'must not be below 0'],
  ] as const) {
    assert.throws(
      () => hosts({ [resource]: text }),
      new GatewayError(
        'invalid_request',
        `invalid request: preset nova-4b: resources.requests.${resource} "${text}": ${words}`,
      ),
    );
  }
});

test('a model that needs no GPU has no pool to wait for', () => {
  const settings = pool({ instances: [size('g6.2xlarge')] });
  const { fits, reason, budgetSource } = fit({ settings, nodes: [] }, { model: pico.model });
  assert.deepEqual([fits, reason, budgetSource], [false, 'no node: the cluster reports none', undefined]);
});

test('whether the weights are there, and what says so', () => {
  const settings = settingsWith({ cache: { enabled: true } });
  const location = locationOf(settings, 'cache-shared.yaml');
  const question = questionOf(presets, { preset: 'nova-4b' });
  const cached = (content: Parameters<typeof fitOf>[2], more: Partial<FitFacts> = {}) => {
    const { cached, cacheSource } = fitOf(question, facts({ settings, location, ...more }), content);
    return [cached, cacheSource];
  };
  const entry = { dir: 'nova-4b', files: 3 };
  const marker = { model: 'ACME-labs/nova-4b-instruct' };
  assert.deepEqual(cached({ entries: [entry] }), [true, 'scan']);
  assert.deepEqual(cached({ entries: [{ ...entry, files: 0 }] }), [false, 'scan']);
  assert.deepEqual(cached({ entries: [{ dir: 'elsewhere', files: 0, marker }] }), [true, 'scan']);
  assert.deepEqual(cached({ entries: [{ dir: 'elsewhere', files: 9 }] }), [false, 'scan']);
  const record = { dir: 'nova-4b', model: 'acme-labs/Nova-4B-Instruct', claim: 'hf-cache', volume: 'pv-hf-cache' };
  assert.deepEqual(cached({ records: [record] }), [true, 'index']);
  assert.deepEqual(cached({ entries: [], records: [record] }), [false, 'scan'], 'who looked knows better');
  for (const other of [{ dir: 'x' }, { model: 'a/b' }, { claim: 'x' }, { volume: 'x' }, { volume: undefined }]) {
    assert.deepEqual(cached({ records: [{ ...record, ...other }] }), [false, 'unknown'], JSON.stringify(other));
  }
  const nowhere = [undefined, locationOf(settings, null), locationOf(settings, 'cache-unbound.yaml')];
  for (const location of nowhere)
    assert.deepEqual(cached({ entries: [entry], records: [record] }, { location }), [false, 'unknown']);
  const off = settingsWith({ cache: { enabled: false } });
  assert.deepEqual(cached({ entries: [entry] }, { settings: off }), [false, 'unknown']);
});

test('a thousand nodes are judged in no time', () => {
  const nodes = Array.from({ length: 1000 }, (_, place) => gpuNode(`n-${place}`, `${(place % 100) + 1}Gi`));
  const began = workedMs();
  assert.equal(fit({ nodes }).node, 'n-199');
  const { reason = '' } = fit({ nodes: nodes.map(node => ({ ...node, status: {} })) });
  const took = workedMs() - began;
  assert.match(reason, /^no eligible node: n-0: not ready; (n-\d+: not ready; ){19}and 980 more nodes$/);
  assert.ok(took < 2_000, `took ${took} ms`);
});
