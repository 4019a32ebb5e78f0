import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServePlan, UnservePlan } from '../../../src/drivers/driver.ts';
import { requestsBeyond } from '../../support/permitted.ts';
import { eventually, within } from '../../support/server.ts';
import { failure } from '../scripted.ts';
import { type DriverLab, nova, served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes, discoveryWith } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const services = 'llminferenceservices.serving.kserve.io';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape
type Any = any;

const plan = async ({ driver }: DriverLab, reference: string) =>
  (await driver.planUnserve?.(tenSeconds(), reference)) as UnservePlan;
const unload = async (lab: DriverLab, reference: string) =>
  lab.driver.unserve?.(tenSeconds(), await plan(lab, reference));
/** What is told of the cache after it. */
const counted = async (lab: DriverLab, reference: string) => (await unload(lab, reference))?.inventory;
const left = ({ cluster }: DriverLab) =>
  cluster.list<Any>(services, 'model-serving').map(({ metadata }) => metadata.name);

/** An object of its own making: no preset, and whose it is said to be. */
function handMade(name: string, labels: object) {
  const [object, pod] = served(name, node) as Any[];
  return [{ ...object, metadata: { ...object.metadata, labels } }, pod];
}

test('a reference means objects by their model, their name or their preset, and nothing else', async () => {
  const objects = worldOf({
    more: [...served('nova-4b', node), ...served('twin', node), ...served('atlas-70b-x4', node, { spec: {} })],
  });
  await using lab = await startDriver({ objects });
  const meant = async (reference: string) => (await plan(lab, reference)).serving.map(({ resource }) => resource);
  assert.deepEqual(await meant(nova), ['nova-4b', 'twin']);
  assert.deepEqual(await meant(`${nova.toUpperCase()}:main`), ['nova-4b', 'twin']);
  assert.deepEqual(await meant('twin'), ['twin']);
  assert.deepEqual(await meant('atlas-70b-x4'), ['atlas-70b-x4']);
  for (const reference of ['nope', 'acme-labs/Nope', 'Twin']) {
    const { code, message } = await failure(plan(lab, reference));
    assert.equal(`${code}: ${message}`, `not_found: model not found: no LLMInferenceService serves ${reference}`);
  }
  assert.deepEqual(lab.jobs(), [], 'the cache is not looked into for it');
});

test("when one of them is somebody's own nothing goes", async () => {
  for (const [labels, by] of [
    [{ 'app.kubernetes.io/managed-by': 'Helm' }, 'Helm'],
    [{}, ''],
    [{ 'agent-platform.giantswarm.io/preset': '' }, ''],
  ] as const) {
    const objects = worldOf({ more: [...served('nova-4b', node), ...handMade('own', labels)] });
    await using lab = await startDriver({ objects });
    const { code, message } = await failure(plan(lab, nova));
    assert.equal(
      `${code}: ${message}`,
      `conflict: conflict: LLMInferenceService model-serving/own was not created from a serving preset (managed by "${by}"); delete it where it was created`,
    );
    assert.deepEqual(lab.requested(services, 'delete'), []);
    assert.deepEqual(left(lab), ['nova-4b', 'own']);
  }
});

test('all of them go, dependents first, and a count of the cache begins that nobody waits for', async () => {
  const objects = worldOf({ more: [...served('nova-4b', node), ...served('twin', node)] });
  await using lab = await startDriver({ objects });
  assert.deepEqual(await within(counted(lab, nova), 'the end'), { refreshing: true });
  assert.deepEqual(left(lab), []);
  assert.deepEqual(
    lab.requested(services, 'delete').map(({ name, body }: Any) => [name, body.propagationPolicy]),
    [
      ['nova-4b', 'Foreground'],
      ['twin', 'Foreground'],
    ],
  );
  await lab.job('mm-scan-');
});

test('a load and an unload ask for nothing that the table of permissions has not got', async () => {
  await using lab = await startDriver();
  const serve = (await lab.driver.planServe?.(tenSeconds(), { model: nova })) as ServePlan;
  await lab.driver.serve?.(tenSeconds(), serve);
  await counted(lab, nova);
  assert.deepEqual(requestsBeyond(lab.cluster.requests, { serving: 'model-serving', discovery: 'agent-platform' }), []);
});

test('one that is going already goes', async () => {
  const [object, pod] = served('nova-4b', node) as Any[];
  const held = { ...object, metadata: { ...object.metadata, finalizers: ['example.com/held'] } };
  await using lab = await startDriver({ objects: worldOf({ more: [held, pod] }) });
  await counted(lab, 'nova-4b');
  await counted(lab, 'nova-4b');
  const [row] = (await lab.driver.loaded?.(tenSeconds())) ?? [];
  assert.deepEqual([row?.resource, row?.status], ['nova-4b', 'Terminating']);
});

test('another of the same name, made meanwhile, is not the one that was meant', async () => {
  await using lab = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
  const meant = await plan(lab, 'nova-4b');
  lab.cluster.remove(services, 'nova-4b', 'model-serving');
  const [object] = served('nova-4b', node) as [object];
  lab.cluster.put(object);
  await assert.rejects(async () => lab.driver.unserve?.(tenSeconds(), meant), { code: 'conflict' });
  assert.deepEqual(left(lab), ['nova-4b']);
});

test('why nothing is counted is told', async () => {
  const spec = { namespace: 'model-serving', cache: { enabled: false } };
  const off = [{ apiVersion: 'v1', kind: 'ConfigMap', ...discoveryWith(spec) }];
  const more = served('nova-4b', node);
  for (const [parts, reason] of [
    [{ discovery: off }, 'no cache claim is configured; there is no inventory to rescan'],
    [{ storage: 'cache-unbound.yaml' }, 'cache claim hf-cache is not bound yet; the first predictor binds it'],
    [{ storage: null }, 'cache claim hf-cache does not exist'],
  ] as const) {
    await using lab = await startDriver({ objects: worldOf({ ...parts, more }) });
    assert.deepEqual(await counted(lab, 'nova-4b'), { refreshing: false, reason });
  }
  await using lab = await startDriver({ objects: worldOf({ more }) });
  const claims = { kind: 'answer', status: 403, resource: 'persistentvolumeclaims' } as const;
  lab.cluster.fault(claims);
  const told = await counted(lab, 'nova-4b');
  assert.equal(told?.refreshing, false);
  assert.match(told?.reason ?? '', /^cannot locate the cache claim: .*cannot list persistentvolumeclaims/);
});

test('that one of several cannot be deleted keeps none of the others', async () => {
  const objects = worldOf({ more: [...served('a', node), ...served('b', node), ...served('c', node)] });
  await using lab = await startDriver({ objects });
  lab.cluster.fault({ kind: 'answer', status: 403, verb: 'delete', resource: services, name: 'b' });
  const { gone = [], failure } = (await unload(lab, nova)) ?? {};
  assert.deepEqual(
    gone.map(({ resource }) => resource),
    ['a', 'c'],
  );
  assert.equal(failure?.code, 'forbidden');
  assert.match(
    failure.message,
    /^b is not deleted: cannot delete llminferenceservices.* b in .*; a is being deleted; c is being deleted$/,
  );
  assert.deepEqual(left(lab), ['b']);
});

test('a deletion whose answer is lost is one, and one that was not done is none', async () => {
  const objects = worldOf({ more: [...served('a', node), ...served('b', node)] });
  await using lab = await startDriver({ objects });
  lab.cluster.fault({ kind: 'drop', afterBytes: 10, verb: 'delete', resource: services, name: 'a' });
  lab.cluster.fault({ kind: 'answer', status: 503, verb: 'delete', resource: services, name: 'b' });
  const { gone = [] } = (await unload(lab, 'a')) ?? {};
  assert.deepEqual(
    gone.map(({ resource }) => resource),
    ['a'],
  );
  assert.match((await failure(unload(lab, 'b'))).message, /^cannot delete llminferenceservices.* b in /);
  assert.deepEqual(left(lab), ['b']);
});

test('what is on record of an object that served from another claim goes with it', async () => {
  const record = {
    model: nova,
    revision: '',
    dir: 'nova-4b',
    preset: 'nova-4b',
    inferenceService: 'nova-4b',
    claim: 'gone',
    recordedAt: '2026-01-01T00:00:00Z',
  };
  const index = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'model-manager-cache-index', namespace: 'model-serving' },
    data: { 'nova-4b': JSON.stringify(record) },
  };
  await using lab = await startDriver({
    objects: worldOf({ storage: null, more: [index, ...served('nova-4b', node)] }),
  });
  await unload(lab, 'nova-4b');
  const gone = () => lab.cluster.get('configmaps', 'model-manager-cache-index', 'model-serving') === undefined;
  await eventually(gone, 'the end of the index');
});
