import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/server.ts';
import { callOf } from '../scripted.ts';
import { serving, startUncached } from './uncached.ts';

const node = 'ip-10-0-10-12.eu-central-1.compute.internal';
const labels = { 'app.kubernetes.io/part-of': 'llminferenceservice', 'app.kubernetes.io/name': 'atlas' };
const podOn = (name: string, gpus: number, more: object = { labels }) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: serving, ...more },
  spec: {
    nodeName: node,
    containers: [{ name: 'main', image: 'x', resources: { limits: { 'nvidia.com/gpu': String(gpus) } } }],
  },
});

test('pods that come, end and go are seen in the free GPUs of their node', async () => {
  await using world = await startUncached();
  const { cluster, driver } = world;
  const nodes = driver.observed?.nodes ?? assert.fail('nothing is observed');
  const stop = nodes.subscribe(() => {});
  const free = () => nodes.current?.value?.find(({ name }) => name === node)?.freeGpus;
  await eventually(() => free() === 4, 'all are free');
  cluster.put(podOn('atlas-1', 2));
  await eventually(() => free() === 2, 'two are free');
  cluster.put(podOn('atlas-2', 1));
  await eventually(() => free() === 1, 'one is free');
  cluster.update('pods', 'atlas-1', serving, pod => {
    Object.assign(pod, { status: { phase: 'Succeeded' } });
  });
  await eventually(() => free() === 3, 'what is over has none');
  cluster.remove('pods', 'atlas-2', serving);
  await eventually(() => free() === 4, 'all are free again');
  stop();
});

test('only pods that serve count, and the label says which do', async () => {
  await using world = await startUncached();
  const { cluster, driver } = world;
  cluster.put(podOn('stranger', 4, {}));
  cluster.put(podOn('atlas-1', 1));
  const rows = (await driver.nodes?.(callOf())) ?? [];
  assert.equal(rows.find(({ name }) => name === node)?.freeGpus, 3);
});
