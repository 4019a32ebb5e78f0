import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanGate } from '../../../src/drivers/kserve/inventory/gate.ts';
import { readNodes } from '../../../src/drivers/kserve/nodes.ts';
import { clusterNodes, jsonOf, locationOf, settingsWith } from './world.ts';

const cases = jsonOf('inventory/expected.json').scanGate;
const files: Record<string, string | undefined> = {
  missing: undefined,
  unbound: 'cache-unbound.yaml',
  pinned: 'cache-pinned.yaml',
  shared: 'cache-shared.yaml',
};
const nodeSelector = { 'giantswarm.io/machine-pool': 'demo-gpu-l4' };
const settingsFor = (poolSelector: boolean) =>
  settingsWith({ cache: { enabled: true }, ...(poolSelector && { gpuPool: { nodeSelector } }) });
const all = readNodes(clusterNodes);

for (const { claim, poolSelector, poolNode, reason, allowed } of cases) {
  const pool = poolSelector ? `a pool ${poolNode ? 'with' : 'without'} nodes` : 'no pool';
  test(`a ${claim} claim and ${pool}: ${allowed ? 'a scan' : 'none'}`, async () => {
    const settings = settingsFor(poolSelector);
    const nodes = poolNode ? all : all.filter(({ labels }) => labels['giantswarm.io/machine-pool'] === undefined);
    const found = await scanGate(settings, locationOf(settings, files[claim]), async () => ({ nodes }));
    assert.equal(found, reason);
    assert.equal(found === undefined, allowed === true);
  });
}

test('nodes that cannot be read are named, where they count', async () => {
  const settings = settingsFor(true);
  let asked = 0;
  const nodes = async () => {
    asked++;
    return { problem: 'cannot list nodes: forbidden' };
  };
  const found = await scanGate(settings, locationOf(settings, 'cache-shared.yaml'), nodes);
  assert.equal(found, 'cannot tell whether a node of the GPU pool exists: cannot list nodes: forbidden');
  assert.equal(await scanGate(settings, locationOf(settings, 'cache-pinned.yaml'), nodes), undefined);
  assert.equal(await scanGate(settingsFor(false), locationOf(settings, 'cache-shared.yaml'), nodes), undefined);
  assert.equal(asked, 1);
});
