import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { eventually, within } from '../../support/server.ts';
import { all } from '../scripted.ts';
import { nova, served, shows, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes, discoveryRef, objectsOf, textOf } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const serving = 'model-serving';

/** The driver, and what its subscribers were told so far. */
async function listening(objects = worldOf(), kind: 'nodes' | 'presets' | 'models' | 'loaded' | 'status' = 'nodes') {
  const lab = await startDriver({ objects });
  const observed = lab.driver.observed ?? assert.fail('nothing is observed');
  let told = 0;
  const stop = observed[kind].subscribe(() => told++);
  return { lab, observed, stop, told: () => told };
}

test('a change of a node reaches who listens, once', async () => {
  const { lab, observed, told } = await listening(worldOf({ storage: 'cache-unbound.yaml' }));
  await using _ = lab;
  const row = () => observed.nodes.current?.value?.find(({ name }) => name === node);
  await eventually(() => row()?.eligible === true && row()?.cache?.error !== undefined, 'the node is listed');
  const others = () => observed.nodes.current?.value?.filter(({ name }) => name !== node) ?? [];
  const [before, rows] = [told(), others()];
  lab.cluster.update<KubernetesObject>('nodes', node, undefined, object => {
    Object.assign(object.metadata, { labels: { 'nvidia.com/gpu.present': 'true' } });
  });
  await eventually(() => row()?.eligible === false, 'the node is out of the pool');
  assert.equal(told(), before + 1);
  assert.ok(
    others().every((each, at) => each === rows[at]),
    'the others are the same rows',
  );
});

test('nothing is watched when nobody looks: not before, and half a minute after the last look', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  // The gate is closed, so there is no scan that has watches of its own.
  const { lab, observed, stop } = await listening(worldOf({ storage: 'cache-unbound.yaml' }));
  await using _ = lab;
  await shows(observed.nodes, rows => rows.some(({ cache }) => cache?.error), 'the gate is known to be closed');
  assert.deepEqual(lab.requested('jobs.batch'), []);
  const watched = () => [...new Set(lab.watches.states().map(({ resource }) => resource))].sort();
  assert.ok(watched().length >= 5);
  t.mock.timers.tick(60_000);
  assert.ok(watched().length >= 5, 'who listens keeps them');
  stop();
  t.mock.timers.tick(31_000);
  assert.deepEqual(watched(), []);
});

test('presets come, change and go', async () => {
  const { lab, observed } = await listening(worldOf(), 'presets');
  await using _ = lab;
  const name = 'agent-platform-serving-preset-nova-4b';
  const { namespace } = discoveryRef;
  const row = () => observed.presets.current?.value?.find(each => each.name === 'nova-4b');
  await eventually(() => row() !== undefined, 'the preset');
  lab.cluster.update<ConfigMap & { data: Record<string, string> }>('configmaps', name, namespace, object => {
    const text = object.data['preset.yaml'] ?? '';
    object.data['preset.yaml'] = text.replace('Nova 4B Instruct', 'Nova, the newer');
  });
  await eventually(() => row()?.displayName === 'Nova, the newer', 'its new name');
  lab.cluster.remove('configmaps', name, namespace);
  await eventually(() => row() === undefined, 'that it is gone');
  assert.equal(observed.presets.current?.value?.length, 3);
});

test('an object that serves is a model, one in memory, and memory taken on its node', async () => {
  const { lab, observed } = await listening();
  await using _ = lab;
  for (const source of [observed.models, observed.loaded]) source.subscribe(() => {});
  await shows(observed.loaded, rows => rows.length === 0, 'nothing is served');
  for (const object of served('nova-4b', node)) lab.cluster.put(object);
  await shows(observed.models, rows => rows.some(({ name, node: on }) => name === nova && on === node), 'the model');
  await shows(observed.loaded, ([row]) => row?.instance === 'nova-4b' && row.status === 'Pending', 'its server');
  await shows(
    observed.nodes,
    rows => rows.some(({ name, reservedBytes }) => name === node && reservedBytes === 20 * 2 ** 30),
    'the memory that is taken',
  );
  lab.cluster.update<KubernetesObject & { status?: object }>(
    'llminferenceservices.serving.kserve.io',
    'nova-4b',
    serving,
    object => {
      object.status = { conditions: [{ type: 'Ready', status: 'True' }], url: 'http://nova.example:80' };
    },
  );
  await shows(observed.loaded, ([row]) => row?.status === 'Ready', 'that it is ready');
  lab.cluster.remove('llminferenceservices.serving.kserve.io', 'nova-4b', serving);
  await shows(observed.loaded, rows => rows.length === 0, 'that it is gone');
  await shows(observed.models, rows => rows.length === 0, 'no model');
});

test('the claim getting bound has it counted, and what is found shows', async () => {
  const { lab, observed } = await listening(worldOf({ storage: 'cache-unbound.yaml' }), 'models');
  await using _ = lab;
  observed.nodes.subscribe(() => {});
  lab.ends('mm-scan-', textOf('inventory/scan-output.log'));
  const cacheOf = (
    rows: readonly { readonly name: string; readonly cache?: { readonly error?: string | undefined } | undefined }[],
  ) => rows.find(({ name }) => name === node)?.cache;
  await shows(observed.nodes, rows => cacheOf(rows)?.error?.includes('not bound yet') === true, 'that it is not bound');
  assert.deepEqual(lab.requested('jobs.batch'), []);
  for (const object of objectsOf('cluster/cache-shared.yaml')) lab.cluster.put(object);
  await shows(observed.models, rows => rows.some(({ name }) => name === nova), 'a model of the cache');
  await shows(observed.nodes, rows => cacheOf(rows)?.error === undefined, 'no reason any more');
});

test('a finished download shows among the models of who listens', async () => {
  const { lab, observed } = await listening(worldOf(), 'models');
  await using _ = lab;
  const stop = lab.ends('mm-scan-', 'END\n');
  await shows(observed.models, rows => rows.length === 0, 'an empty cache');
  lab.ends('mm-pull-', 'DONE\n');
  const pulled = lab.driver.pull?.(lab.call, { model: nova, preset: 'nova-4b' }) ?? assert.fail();
  const iterator = pulled[Symbol.asyncIterator]();
  await within(iterator.next(), 'the begin of the download');
  stop();
  lab.ends('mm-scan-', textOf('inventory/scan-output.log'));
  await within(all({ [Symbol.asyncIterator]: () => iterator }), 'the end of the download');
  await shows(observed.models, rows => rows.some(({ name, downloaded }) => name === nova && downloaded), 'the model');
});

test('the document and the control plane change the status', async () => {
  const { lab, observed } = await listening(worldOf(), 'status');
  await using _ = lab;
  const message = () => observed.status.current?.value?.message;
  await shows(observed.status, ({ message }) => message === undefined, 'all is well');
  lab.cluster.remove('llminferenceserviceconfigs.serving.kserve.io', 'kserve-config-llm-template', 'kserve');
  await eventually(() => message()?.includes('controller is not installed') === true, 'why nothing would come of it');
  for (const object of objectsOf('cluster/control-plane.yaml')) lab.cluster.put(object);
  await eventually(() => message() === undefined, 'that it is there again');
  lab.cluster.remove('configmaps', discoveryRef.name, discoveryRef.namespace);
  await eventually(() => message()?.startsWith('no discovery ConfigMap') === true, 'that there is no document');
  assert.equal((await lab.driver.describe(tenSeconds())).gpuPool, undefined);
});
