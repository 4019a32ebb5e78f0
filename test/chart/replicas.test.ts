import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gatewayPod, type Manifest, ofKind, render, skip, theOne, type Values } from './helm.ts';

interface Deployment {
  readonly spec: {
    readonly replicas: number;
    readonly strategy: object;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  };
}

interface Budget {
  readonly spec: Readonly<Record<string, unknown>>;
}

const deploymentOf = (manifests: readonly Manifest[]) => theOne<Deployment>(manifests, 'Deployment').spec;
const shared: Values = { jobStore: 'kubernetes' };
const two: Values = { ...shared, replicaCount: 2 };

test('one pod stops before the next starts while it alone knows its jobs; else the next is ready first', {
  skip,
}, () => {
  assert.deepEqual(deploymentOf(render()).strategy, { type: 'Recreate' });
  // Written out, for what is left to its default is not taken away again on the way back to Recreate.
  const rolling = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } };
  for (const values of [shared, two]) assert.deepEqual(deploymentOf(render(values)).strategy, rolling);
  assert.equal(deploymentOf(render(two)).replicas, 2);
});

test('several pods, and no others, leave their nodes one by one', { skip }, () => {
  const budgets = (values: Values) => ofKind<Budget>(render(values), 'PodDisruptionBudget');
  assert.deepEqual(budgets({}), []);
  assert.deepEqual(budgets(shared), [], 'of one pod it would keep the node');
  assert.deepEqual(budgets({ ...shared, replicaCount: 0 }), []);
  assert.deepEqual(budgets({ ...two, podDisruptionBudget: { enabled: false } }), []);
  const manifests = render(two);
  const { spec } = theOne<Budget>(manifests, 'PodDisruptionBudget');
  assert.deepEqual(spec, {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: deploymentOf(manifests).selector,
  });
});

test('several pods are on different nodes where that can be, unless the values have something else', { skip }, () => {
  const spreadOf = (values: Values) => gatewayPod(render(values)).topologySpreadConstraints;
  assert.equal(spreadOf({}), undefined);
  assert.equal(spreadOf(shared), undefined);
  const labelSelector = deploymentOf(render(two)).selector;
  assert.deepEqual(spreadOf(two), [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector,
      matchLabelKeys: ['pod-template-hash'],
    },
  ]);
  const own = [{ maxSkew: 2, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' }];
  assert.deepEqual(spreadOf({ ...two, topologySpreadConstraints: own }), own);
});
