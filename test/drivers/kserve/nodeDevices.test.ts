import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gpusTaken } from '../../../src/drivers/kserve/nodes/devices.ts';
import { nodeInfos } from '../../../src/drivers/kserve/nodes.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { settingsWith } from './world.ts';

const gpu = 'nvidia.com/gpu';
type Amount = string | number;
const requests = (count: Amount) => ({ resources: { requests: { [gpu]: count, cpu: '4' } } });
const limits = (count: Amount) => ({ resources: { limits: { [gpu]: count } } });
const pod = (spec: object, status: object = { phase: 'Running' }): KubernetesObject =>
  ({ metadata: { name: 'p' }, spec: { nodeName: 'n', ...spec }, status }) as KubernetesObject;
const takenBy = (...pods: KubernetesObject[]) => gpusTaken(pods, gpu).get('n') ?? 0;

test('pods have the devices they asked for, until they are over', () => {
  const two = { containers: [requests('2')] };
  for (const phase of ['Running', 'Pending', 'Unknown', undefined])
    assert.equal(takenBy(pod(two, { phase })), 2, phase);
  for (const phase of ['Succeeded', 'Failed']) assert.equal(takenBy(pod(two, { phase })), 0, phase);
  assert.equal(takenBy(pod({ ...two, nodeName: undefined })), 0, 'it is nowhere yet');
  const ending = pod(two);
  const deleted = { ...ending, metadata: { ...ending.metadata, deletionTimestamp: '2026-01-02T03:04:05Z' } };
  assert.equal(takenBy(deleted, pod({ containers: [requests(1)] })), 3, 'until it is gone');
  assert.deepEqual(
    gpusTaken([pod(two), pod({ ...two, nodeName: 'm' }), pod({ containers: [{}], nodeName: 'o' })], gpu),
    new Map([
      ['n', 2],
      ['m', 2],
    ]),
  );
});

test('containers count as the scheduler counts them', () => {
  const containers = (...each: object[]) => ({ containers: each });
  assert.equal(takenBy(pod(containers(requests(1), limits('2'), {}))), 3, 'together; a limit is a request');
  const main = containers(requests(1));
  const always = { restartPolicy: 'Always' };
  assert.equal(takenBy(pod({ ...main, initContainers: [requests(4), requests(2)] })), 4, 'one after the other');
  assert.equal(takenBy(pod({ ...main, initContainers: [requests(1)] })), 1);
  assert.equal(takenBy(pod({ ...main, initContainers: [{ ...requests(2), ...always }] })), 3, 'beside');
  const before = [requests(4), { ...requests(2), ...always }];
  assert.equal(takenBy(pod({ ...main, initContainers: before })), 4, 'before it');
  assert.equal(takenBy(pod({ ...main, initContainers: before.toReversed() })), 6, 'beside it');
});

test('what is no pod as it should be has nothing', () => {
  const broken = [
    { metadata: { name: 'p' } },
    pod({ containers: 'none', initContainers: null }),
    pod({ containers: [null, 5, { resources: [] }, { resources: { requests: { [gpu]: {} } } }] }),
    pod({ containers: [requests('-2'), requests('many')] }),
  ];
  assert.deepEqual(gpusTaken(broken, gpu), new Map());
  const called = pod({ nodeName: 'constructor', containers: [requests(1)] });
  assert.deepEqual([...gpusTaken([called], gpu)], [['constructor', 1]]);
});

test('free is what can be allocated and is not taken, and unknown without a look at the pods', () => {
  const freeOf = (allocatable: object, gpusTaken?: ReadonlyMap<string, number>) => {
    const node = { metadata: { name: 'n' }, status: { capacity: { [gpu]: '4' }, allocatable } };
    const settings = settingsWith({ cache: { enabled: false } });
    return nodeInfos([node], { backend: 'kserve', settings, now: 0, gpusTaken })[0]?.freeGpus;
  };
  assert.equal(freeOf({ [gpu]: '4' }, new Map()), 4);
  assert.equal(freeOf({ [gpu]: '4' }, new Map([['n', 3]])), 1);
  assert.equal(freeOf({ [gpu]: '3' }, new Map([['m', 3]])), 3, 'of capacity a broken one is no part');
  assert.equal(freeOf({ [gpu]: '1' }, new Map([['n', 2]])), 0, 'never below none');
  assert.equal(freeOf({}, new Map()), 0, 'none can be allocated yet');
  assert.equal(freeOf({ [gpu]: '4' }), undefined);
  const broken = { metadata: { name: 'n' }, spec: 'none' } as KubernetesObject;
  const settings = settingsWith(undefined);
  assert.equal(nodeInfos([broken], { backend: 'k', settings, now: 0, gpusTaken: new Map() })[0]?.freeGpus, undefined);
});
