/** Field cases of the machines of a cluster: what others met, and how it has to go here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeInfo } from '../../src/domain.ts';
import { minutes, seconds, startLab } from '../chaos/apiServerLab.ts';
import { driverOn, serving, uncachedObjects } from '../drivers/kserve/uncached.ts';
import { start } from '../live/clock.ts';

const node = 'ip-10-0-10-12.eu-central-1.compute.internal';
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'atlas-1', namespace: serving, labels: { 'app.kubernetes.io/part-of': 'llminferenceservice' } },
  spec: {
    nodeName: node,
    containers: [{ name: 'main', image: 'x', resources: { limits: { 'nvidia.com/gpu': '3' } } }],
  },
};
const young = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'young',
    labels: { 'nvidia.com/gpu.count': '1', 'giantswarm.io/machine-pool': 'demo-gpu-l4' },
    creationTimestamp: new Date(start).toISOString(),
  },
  status: { conditions: [{ type: 'Ready', status: 'False' }] },
};

async function startMachines(t: Parameters<typeof startLab>[0]) {
  const lab = await startLab(t, { objects: [...uncachedObjects(), young] });
  const nodes = driverOn(lab).observed?.nodes ?? assert.fail('nothing is observed');
  const subscriber = lab.subscribe<readonly NodeInfo[]>(nodes);
  await lab.pass(10 * seconds);
  const seen = (name: string) => subscriber.last?.value?.find(each => each.name === name);
  return { ...lab, seen };
}

test('F7: machines and pods that change while the watches are silent are seen within 60 s', async t => {
  const { cluster, pass, seen } = await startMachines(t);
  assert.deepEqual([seen(node)?.freeGpus, seen('young')?.ready], [4, false]);
  cluster.freezeWatches();
  cluster.put(pod);
  cluster.remove('nodes', 'young');
  await pass(60 * seconds);
  assert.deepEqual([seen(node)?.freeGpus, seen('young')], [1, undefined]);
});

test('a machine that does not come up within 15 minutes is told to have a fault, though nothing changes', async t => {
  const { pass, seen } = await startMachines(t);
  assert.equal(seen('young')?.startingReason, 'not ready; nvidia.com/gpu not allocatable yet');
  assert.equal(seen('young')?.eligibilityReason, 'not ready');
  await pass(14 * minutes, 5 * seconds);
  assert.equal(seen('young')?.startingSince?.getTime(), start);
  await pass(1 * minutes, 1 * seconds);
  assert.deepEqual([seen('young')?.startingReason, seen('young')?.startingSince], [undefined, undefined]);
  assert.equal(seen('young')?.eligibilityReason, 'not ready');
});
