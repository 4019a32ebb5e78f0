import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordOf } from '../../src/demo/cluster/store/object.ts';
import type { KubernetesObject } from '../../src/demo/cluster.ts';
import { serveModel } from '../../src/demo/kserve.ts';
import { servedModels } from '../../src/demo/world/serving.ts';
import { gpuPool, namespace, pace, service, startLab } from './servingLab.ts';

const services = 'llminferenceservices.serving.kserve.io';
const cold = { 'giantswarm.io/machine-pool': 'gpu-h100' };

const node = (name: string, gpus: number) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: cold },
  spec: { taints: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }] },
  status: {
    allocatable: { cpu: '8', memory: '32Gi', 'nvidia.com/gpu': String(gpus) },
    conditions: [{ type: 'Ready', status: 'True' }],
  },
});

test('a pod waits for its node, and for the GPUs of that node', async t => {
  const { cluster, clock, told, pods, reasons } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: cold }));
  await clock.advance(60_000);
  const words =
    "0/6 nodes are available: 6 node(s) didn't match Pod's node affinity/selector. preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling.";
  assert.deepEqual([told('nova').reason, told('nova').message], ['Unschedulable', `Unschedulable ${words}`]);
  assert.deepEqual(reasons('nova'), ['FailedScheduling']);
  assert.equal(recordOf(pods('nova')[0]?.spec).nodeName, undefined);

  cluster.put(node('new', 0));
  await clock.advance(60_000);
  assert.match(told('nova').message ?? '', /0\/7 .*: 1 Insufficient nvidia\.com\/gpu, 6 node\(s\) didn't match/);
  assert.match(told('nova').message ?? '', /: 1 No preemption victims found for incoming pod, 6 Preemption is not/);
  assert.deepEqual(reasons('nova'), ['FailedScheduling', 'FailedScheduling']);

  cluster.put(node('new', 1));
  await clock.advance(pace.startMs);
  assert.deepEqual([told('nova').node, told('nova').phase], ['new', 'downloadingWeights']);
});

test('GPUs that others have are not free, and are when those are gone', async t => {
  const { cluster, clock, told, phases } = await startLab(t);
  const onA = { ...gpuPool, 'kubernetes.io/hostname': 'gpu-l4-a' };
  for (const name of ['first', 'second']) cluster.put(service({ name, nodeSelector: onA }));
  await phases('first', 'ready');
  assert.match(told('second').message ?? '', /1 Insufficient nvidia\.com\/gpu/);
  // Three of the four on the large node are somebody's who trains there.
  cluster.put(service({ name: 'pair', gpus: 2, nodeSelector: gpuPool }));
  await clock.advance(5_000);
  assert.match(told('pair').message ?? '', /0\/6 nodes are available: .* 3 Insufficient nvidia\.com\/gpu\. /);
  cluster.remove('pods', 'fine-tuning-0', 'research');
  cluster.remove(services, 'first', namespace, { propagationPolicy: 'Background' });
  await phases('second', 'ready');
  await phases('pair', 'ready');
  assert.deepEqual([told('second').node, told('pair').node], ['gpu-l4-a', 'gpu-l4-x4']);
});

test('what is deleted ends after a moment, wherever it was', async t => {
  const { cluster, clock, told, phases, object, pods } = await startLab(t);
  cluster.put(service({ name: 'ready', nodeSelector: gpuPool }));
  cluster.put(service({ name: 'waiting', nodeSelector: cold }));
  await phases('ready', 'ready');
  for (const name of ['ready', 'waiting']) {
    cluster.remove(services, name, namespace, { propagationPolicy: 'Foreground' });
  }
  assert.deepEqual([object('waiting'), pods('waiting')], [undefined, []], 'who is on no node is gone at once');
  assert.deepEqual([told('ready').status, told('ready').phase], ['Terminating', 'terminating']);
  const [pod] = pods('ready');
  assert.ok(pod?.metadata.deletionTimestamp);
  assert.deepEqual(object('ready')?.metadata.finalizers, ['foregroundDeletion']);
  await clock.advance(pace.stopMs - 1);
  assert.equal(pods('ready').length, 1);
  await clock.advance(1);
  assert.deepEqual([object('ready'), pods('ready')], [undefined, []]);
  await clock.advance(300_000);
  assert.deepEqual(pods('ready'), [], 'nobody replaces it');
  const events = () => cluster.list('events', namespace).length;
  assert.ok(events() > 5);
  await clock.advance(3_600_000);
  assert.equal(events(), 0, 'after an hour nobody knows of it');
});

test('a download ends with its pod', async t => {
  const { cluster, clock, phases, content } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'downloadingWeights');
  await clock.advance(5_000);
  cluster.remove(services, 'nova', namespace, { propagationPolicy: 'Foreground' });
  const bytes = content('nova')?.bytes ?? 0;
  assert.ok(bytes > 0);
  await clock.advance(60_000);
  assert.equal(content('nova')?.bytes, bytes);
});

test('a pod that goes, or whose node does, is replaced, and the object is not ready meanwhile', async t => {
  const { cluster, clock, told, phases, pods } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'ready');
  const first = pods('nova')[0]?.metadata.name ?? '';
  cluster.remove('pods', first, namespace);
  await clock.advance(2 * pace.controllerMs);
  assert.deepEqual([told('nova').status, pods('nova').length], ['Pending', 1]);
  assert.notEqual(pods('nova')[0]?.metadata.name, first);
  await phases('nova', 'ready');
  assert.equal(told('nova').node, 'gpu-l4-a');
  cluster.remove('nodes', 'gpu-l4-a');
  await clock.advance(pace.controllerMs);
  await phases('nova', 'ready');
  assert.equal(told('nova').node, 'gpu-l4-b');
});

test('after it is stopped nothing happens any more', async t => {
  const { cluster, clock, phases, serving, object, pods } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'loading');
  const before = JSON.stringify([object('nova'), pods('nova')]);
  serving.stop();
  cluster.put(service({ name: 'later', nodeSelector: gpuPool }));
  await clock.advance(600_000);
  assert.deepEqual([JSON.stringify([object('nova'), pods('nova')]), pods('later')], [before, []]);
});

test('what is served from the beginning stays as it is, and ends like everything', async t => {
  const { cluster, clock } = await startLab(t);
  for (const each of servedModels) serveModel(cluster, each);
  const known = () => cluster.list<KubernetesObject>(services).map(({ metadata, status }) => [metadata.uid, status]);
  const before = known();
  await clock.advance(60_000);
  assert.deepEqual(known(), before);
  const [model] = servedModels;
  cluster.remove(services, model?.name ?? '', namespace, { propagationPolicy: 'Foreground' });
  await clock.advance(pace.stopMs);
  assert.equal(known().length, 1);
});
