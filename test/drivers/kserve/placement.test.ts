import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cacheLocation,
  declaredLocation,
  isPinned,
  mayHoldClaim,
  volumeOf,
} from '../../../src/drivers/kserve/nodes/cacheLocation.ts';
import { readNode } from '../../../src/drivers/kserve/nodes/node.ts';
import { reservationsOf } from '../../../src/drivers/kserve/nodes/reservations.ts';
import { poolToleration, printedTaints, repellingTaints } from '../../../src/drivers/kserve/nodes/taints.ts';
import { locationOf, objectsOf, presets, settingsWith } from './world.ts';

const settings = settingsWith({ cache: { enabled: true, claimName: 'weights' } });
const claim = { metadata: { name: 'weights' }, spec: { volumeName: 'pv-1' } };
const nodeOf = (name: string) => readNode({ metadata: { name } });

/** A volume that only nodes with these labels can mount: each term is a list of expressions. */
const volumeFor = (...terms: unknown[]) => ({
  metadata: { name: 'pv-1' },
  spec: { nodeAffinity: { required: { nodeSelectorTerms: terms.map(matchExpressions => ({ matchExpressions })) } } },
});
const where = (key: string, ...values: unknown[]) => ({ key, operator: 'In', values });

test("the operator's word on the nodes of the cache spares a look at the claim", () => {
  const declared = settingsWith({ cache: { enabled: true } }, { cacheNodes: 'n2, n1,,n2' });
  const location = cacheLocation(declared, undefined, undefined);
  assert.deepEqual(location, declaredLocation(declared));
  assert.deepEqual([location.state, location.nodes, location.shared], ['bound', ['n1', 'n2'], false]);
  assert.ok(isPinned(location));
  assert.equal(declaredLocation(settings), undefined);
});

test('a volume that is not there, or must not be read, can be mounted everywhere as far as anybody knows', () => {
  const { state, shared, volume, volumeRead } = cacheLocation(settings, claim, undefined);
  assert.deepEqual([state, shared, volume, volumeRead], ['bound', true, 'pv-1', false]);
});

test('nodes and zones of a volume are those of all its terms, once and sorted', () => {
  const hosts = volumeFor(
    [where('kubernetes.io/hostname', 'n2', 'n1'), where('topology.kubernetes.io/zone', 'b')],
    [where('kubernetes.io/hostname', 'n1'), { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['n9'] }],
  );
  const { nodes, zones, shared } = cacheLocation(settings, claim, hosts);
  assert.deepEqual([nodes, zones, shared], [['n1', 'n2'], ['b'], false]);
});

test('zones of the old label count where there are none of the new one', () => {
  const old = where('failure-domain.beta.kubernetes.io/zone', 'old');
  const zonesOf = (...terms: unknown[]) => cacheLocation(settings, claim, volumeFor(...terms)).zones;
  assert.deepEqual(zonesOf([old]), ['old']);
  assert.deepEqual(zonesOf([old, where('topology.kubernetes.io/zone', 'new')]), ['new']);
});

test('a claim and a volume that make no sense say nothing', () => {
  for (const spec of [undefined, null, 5, [], {}, { volumeName: '' }, { volumeName: 7 }]) {
    const strange = { ...claim, spec };
    assert.equal(volumeOf(strange), undefined);
    assert.equal(cacheLocation(settings, strange, undefined).state, 'unbound', JSON.stringify(spec));
  }
  const affinity = (nodeAffinity: unknown) => ({ metadata: { name: 'pv-1' }, spec: { nodeAffinity } });
  const strange = [
    { metadata: { name: 'pv-1' } },
    affinity(null),
    affinity({ required: { nodeSelectorTerms: 'all' } }),
    volumeFor('x', null, [null, 5, { key: 'kubernetes.io/hostname' }, where('kubernetes.io/hostname', 5)]),
  ];
  for (const volume of strange) {
    const { shared, nodes, state } = cacheLocation(settings, claim, volume);
    assert.deepEqual([state, shared, nodes], ['bound', true, []], JSON.stringify(volume));
  }
  const partly = volumeFor(null, [5, where('kubernetes.io/hostname', 'n1')]);
  assert.deepEqual(cacheLocation(settings, claim, partly).nodes, ['n1'], 'a term that makes none spoils no other');
});

test('which nodes have the claim, or may come to have it', () => {
  const holds = (file: string | null, name: string) => mayHoldClaim(locationOf(settings, file), nodeOf(name));
  assert.equal(holds('cache-shared.yaml', 'n'), true);
  assert.equal(holds('cache-zonal.yaml', 'n'), true);
  assert.equal(holds('cache-pinned.yaml', 'n'), false);
  assert.equal(holds('cache-pinned.yaml', 'spark-01'), true);
  assert.equal(holds('cache-unbound.yaml', 'n'), true);
  assert.equal(holds(null, 'n'), false);
});

test('the fixtures of claims name their volumes', () => {
  const [found] = objectsOf('cluster/cache-zonal.yaml');
  assert.equal(volumeOf(found), 'pv-ebs-1');
  assert.equal(volumeOf(undefined), undefined);
});

test("what the pool's taint makes everybody carry", () => {
  assert.equal(poolToleration(undefined), undefined);
  assert.equal(poolToleration({ key: '' }), undefined);
  assert.deepEqual(poolToleration({ key: 'gpu' }), { key: 'gpu', operator: 'Exists' });
  assert.deepEqual(poolToleration({ key: 'gpu', value: '' }), { key: 'gpu', operator: 'Exists' });
  assert.deepEqual(poolToleration({ key: 'gpu', value: 'l4', effect: 'NoExecute' }), {
    key: 'gpu',
    operator: 'Equal',
    value: 'l4',
    effect: 'NoExecute',
  });
});

test('which taints repel', () => {
  const taint = (key: string, effect: string, value?: string) => ({ key, effect, value });
  const repelled = (toleration: Parameters<typeof repellingTaints>[1], ...taints: ReturnType<typeof taint>[]) =>
    printedTaints(repellingTaints(taints, toleration));
  const gpu = taint('gpu', 'NoSchedule', 'l4');
  assert.deepEqual(repelled(undefined), '');
  assert.deepEqual(repelled(undefined, gpu, taint('soft', 'PreferNoSchedule')), 'gpu=l4:NoSchedule');
  assert.deepEqual(repelled({ key: 'gpu', operator: 'Exists' }, gpu, taint('gpu', 'NoExecute')), '');
  assert.deepEqual(repelled({ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }, gpu), 'gpu=l4:NoSchedule');
  assert.deepEqual(repelled({ key: 'gpu', operator: 'Equal', value: 'l4' }, gpu), '');
  assert.deepEqual(repelled({ key: 'gpu', operator: 'Equal', value: 'l40s' }, gpu), 'gpu=l4:NoSchedule');
  assert.deepEqual(repelled({ operator: 'Exists' }, gpu), '', 'a toleration without a key is for all');
  assert.deepEqual(
    repelled({ key: 'other', operator: 'Exists' }, gpu, taint('a', 'NoExecute')),
    'a:NoExecute, gpu=l4:NoSchedule',
  );
});

test('what served models take of their nodes', () => {
  const gib = 2 ** 30;
  const nova = { preset: 'nova-4b', node: 'a' };
  const reserved = (...served: Parameters<typeof reservationsOf>[0][number][]) =>
    Object.fromEntries(reservationsOf(served, presets));
  assert.deepEqual(reserved(), {});
  assert.deepEqual(reserved(nova), { a: 20 * gib });
  assert.deepEqual(reserved(nova, { model: 'ACME-labs/nova-4b-instruct', node: 'a' }), { a: 40 * gib });
  assert.deepEqual(reserved({ preset: 'gone', model: 'orbit/Lyra-20B', node: 'b' }, nova), {
    a: 20 * gib,
    b: 20 * gib,
  });
  assert.deepEqual(reserved({ ...nova, deleting: true }), {}, 'what goes takes nothing');
  assert.deepEqual(reserved({ preset: 'nova-4b' }), {}, 'what is nowhere takes nothing');
  assert.deepEqual(reserved({ model: 'some/other', node: 'a' }, { node: 'a' }), {}, 'nobody knows what it takes');
  assert.deepEqual(
    Object.fromEntries(reservationsOf([nova], presets, 'nova-4b')),
    {},
    'a load takes nothing from itself',
  );
  const twins = [...presets, ...presets.map(preset => ({ ...preset, name: `${preset.name}-b` }))];
  const served = [{ model: 'orbit/Lyra-20B', node: 'a' }];
  assert.deepEqual(Object.fromEntries(reservationsOf(served, twins)), {}, 'which of two presets it is nobody knows');
});
