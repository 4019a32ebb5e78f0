import assert from 'node:assert/strict';
import { test } from 'node:test';
import { momentsOf, nodeInfos } from '../../../src/drivers/kserve/nodes.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { clusterNodes, jsonOf, settingsWith } from './world.ts';

const minute = 60_000;
const born = Date.parse('2026-10-05T07:58:00Z');
const taint = (key: string, effect = 'NoSchedule') => ({ key, effect });
const pool = { taint: taint('nvidia.com/gpu'), nodeSelector: { pool: 'l4' } };

interface Parts {
  readonly createdAt?: string | undefined;
  readonly ready?: string;
  readonly taints?: readonly object[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly allocatable?: string;
}

function starting({ ready = 'False', taints = [], labels = {}, allocatable = '0', ...parts }: Parts, ageMs = minute) {
  const creationTimestamp = 'createdAt' in parts ? parts.createdAt : new Date(born).toISOString();
  const node = {
    metadata: { name: 'n', labels: { pool: 'l4', 'nvidia.com/gpu.count': '1', ...labels }, creationTimestamp },
    spec: { taints: [taint('nvidia.com/gpu'), ...taints] },
    status: { conditions: [{ type: 'Ready', status: ready }], allocatable: { 'nvidia.com/gpu': allocatable } },
  } as KubernetesObject;
  const settings = settingsWith({ gpuPool: pool, cache: { enabled: false } });
  const [info] = nodeInfos([node], { backend: 'kserve', settings, now: born + ageMs });
  return [info?.startingReason, info?.startingSince?.getTime()];
}
const notStarting = [undefined, undefined];

test('the node of the cluster that is coming up says so, and only that one', () => {
  const { settings: spec } = jsonOf('cluster/expected-nodes.json').variants[0];
  const listed = nodeInfos(clusterNodes, { backend: 'kserve', settings: settingsWith(spec), now: born + minute });
  const words = listed.filter(node => node.startingReason !== undefined);
  assert.deepEqual(
    words.map(({ name, startingReason, startingSince }) => [name, startingReason, startingSince]),
    [
      [
        'ip-10-0-10-13.eu-central-1.compute.internal',
        'not ready; taint karpenter.sh/unregistered:NoExecute, node.kubernetes.io/not-ready:NoExecute, node.kubernetes.io/not-ready:NoSchedule; nvidia.com/gpu not allocatable yet',
        new Date(born),
      ],
    ],
  );
});

test('a node comes up step by step', () => {
  const initializing = [
    taint('node.cloudprovider.kubernetes.io/uninitialized'),
    taint('ebs.csi.aws.com/agent-not-ready'),
  ];
  assert.deepEqual(starting({ taints: initializing }), [
    'not ready; taint ebs.csi.aws.com/agent-not-ready:NoSchedule, node.cloudprovider.kubernetes.io/uninitialized:NoSchedule; nvidia.com/gpu not allocatable yet',
    born,
  ]);
  const [reason] = starting({ ready: 'True', taints: initializing.slice(1) });
  assert.equal(reason, 'taint ebs.csi.aws.com/agent-not-ready:NoSchedule; nvidia.com/gpu not allocatable yet');
  assert.deepEqual(starting({ ready: 'True' }), ['nvidia.com/gpu not allocatable yet', born]);
  assert.deepEqual(starting({ ready: 'True', allocatable: '1' }), notStarting, 'it is there');
});

test('15 minutes are enough to come up', () => {
  assert.equal(starting({}, 15 * minute - 1)[0], 'not ready; nvidia.com/gpu not allocatable yet');
  assert.deepEqual(starting({}, 15 * minute), notStarting);
  assert.equal(starting({}, -minute)[1], born, 'clocks differ');
  assert.deepEqual(starting({}, -15 * minute), notStarting, 'but not that much');
  assert.deepEqual(starting({ createdAt: undefined }), notStarting);
  assert.deepEqual(starting({ createdAt: 'yesterday' }), notStarting);
});

test('what does not go by itself is no start', () => {
  const unreachable = [taint('node.kubernetes.io/not-ready'), taint('node.kubernetes.io/unreachable', 'NoExecute')];
  assert.deepEqual(starting({ taints: unreachable }), notStarting);
  assert.deepEqual(starting({ taints: [taint('dedicated')] }), notStarting);
  assert.deepEqual(starting({ labels: { pool: 'h100' } }), notStarting, 'outside of the pool');
  assert.equal(starting({ taints: [taint('dedicated', 'PreferNoSchedule')] })[1], born, 'a wish keeps nobody off');
});

test('a listing is another one 15 minutes after each birth', () => {
  const moments = momentsOf([{ metadata: { name: 'n', creationTimestamp: '2026-10-05T07:58:00Z' } }]);
  assert.deepEqual(moments, [born + 15 * minute]);
});
