/** The inventory on an emulated cluster. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import type { KserveFlags } from '../../../src/config/kserve.ts';
import { createAgents } from '../../../src/drivers/kserve/inventory/agent.ts';
import { scanScript } from '../../../src/drivers/kserve/inventory/scripts.ts';
import { type CacheSurroundings, createInventory } from '../../../src/drivers/kserve/inventory.ts';
import { servedModels } from '../../../src/drivers/kserve/serving/served.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { createCell } from '../../../src/live/cell.ts';
import { silent } from '../../support/gateway.ts';
import { requestsBeyond, rulesOf } from '../../support/permitted.ts';
import { eventually, within } from '../../support/server.ts';
import { failure } from '../scripted.ts';
import { type JobLab, serving, startLab } from './jobLab.ts';
import { clusterNodes, jsonOf, locationOf, objectsOf, plain, presets, settingsWith, textOf } from './world.ts';

const expected = jsonOf('inventory/expected.json');
const index = 'model-manager-cache-index';
const output = textOf('inventory/scan-output.log');
const served = servedModels({
  objects: objectsOf('inventory/served.yaml'),
  pods: [],
  presets,
  gpuResource: 'nvidia.com/gpu',
});

function inventoryOn(lab: JobLab, claim = 'cache-pinned.yaml', flags: Partial<Record<keyof KserveFlags, string>> = {}) {
  const settings = settingsWith({ cache: { enabled: true } }, flags);
  const around = createCell<CacheSurroundings>({ settings, presets, served, location: locationOf(settings, claim) });
  const inventory = createInventory({
    ...lab,
    agents: createAgents(lab),
    backend: 'kserve',
    target: undefined,
    around,
    settings: createCell(settings),
    nodes: createCell<readonly KubernetesObject[]>(clusterNodes),
  });
  return { inventory, around, settings };
}

const indexed = (lab: JobLab) =>
  Object.keys(lab.cluster.get<{ data?: object }>('configmaps', index, serving)?.data ?? {}).sort();
const codeAndText = ({ code, message }: { code?: string | undefined; message: string }) => [code, message];

test('a pod counts the cache, what is served is put on record, and the list is the one of the fixture', async () => {
  await using lab = await startLab({ objects: [] });
  for (const object of objectsOf('inventory/index-configmap.yaml')) lab.cluster.put(object);
  const { inventory, around } = inventoryOn(lab);
  const reading = inventory.read(lab.call);
  const job = await lab.job('mm-scan-spark-01-');
  assert.equal(job.spec.template.spec.nodeName, 'spark-01');
  assert.equal(job.spec.template.spec.containers[0].command[2], scanScript());
  lab.pod(job, 'scan-1', { phase: 'Pending' });
  lab.pod(job, 'scan-1', { phase: 'Running' });
  lab.pod(job, 'scan-1', { phase: 'Succeeded' }, output);
  const { value } = await within(reading, 'the count');
  if (!value) assert.fail('nothing is known');

  const rows = plain(value.modelsWith({ presets, served })).map(({ backend, ...row }) => row);
  assert.deepEqual(JSON.parse(JSON.stringify(rows).replaceAll('.000Z"', 'Z"')), expected.models);
  const { models, bytesUsed, error, scannedAt } = value.countOn('spark-01') ?? {};
  assert.deepEqual({ models, bytesUsed }, expected.nodeCache);
  assert.ok(scannedAt instanceof Date && error === undefined);
  assert.equal(value.countOn('another'), undefined);
  assert.deepEqual(value.refresh, { refreshing: false, reason: undefined });
  assert.equal(value.contentOn('spark-01').entries?.length, 6);
  assert.equal(value.contentOn('another').entries, undefined);
  assert.equal(value.contentOn(undefined).entries?.length, 6);
  await eventually(() => lab.jobs().length === 0, 'the Job is removed once it is read');
  await eventually(() => indexed(lab).includes('hand-made'), 'what is served is on record');
  assert.deepEqual(indexed(lab), ['atlas-70b-x4', 'hand-made', 'nova-4b', 'old-one']);

  const before = lab.cluster.requests.length;
  await inventory.read(lab.call);
  around.set({ ...(around.current?.value as CacheSurroundings) });
  await inventory.read(lab.call);
  assert.equal(lab.cluster.requests.length, before, 'what is known and watched is not asked for again');
});

const failures: [string, (lab: JobLab, job: never) => void, string | RegExp][] = [
  [
    'a pod that fails',
    (lab, job) =>
      lab.pod(
        job,
        'p',
        {
          phase: 'Failed',
          containerStatuses: [{ name: 'tool', state: { terminated: { exitCode: 1, reason: 'Error', message: 'm' } } }],
        },
        'one\ntwo\n',
      ),
    'pod failed: Error (exit 1) m one | two',
  ],
  [
    'a pod that was evicted',
    (lab, job) => lab.pod(job, 'p', { phase: 'Failed', reason: 'Evicted', message: 'disk pressure' }, ''),
    'pod failed: Evicted disk pressure',
  ],
  [
    'an image that is not there',
    (lab, job) =>
      lab.pod(job, 'p', {
        phase: 'Pending',
        containerStatuses: [{ name: 'tool', state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } } }],
      }),
    'pod cannot start: ErrImagePull: no such image',
  ],
  [
    'a claim that is gone',
    (lab, job) =>
      lab.pod(job, 'p', {
        phase: 'Pending',
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            reason: 'Unschedulable',
            message: 'persistentvolumeclaim "hf-cache" not found',
          },
        ],
      }),
    'pod cannot start: persistentvolumeclaim "hf-cache" not found',
  ],
  [
    'a Job that fails without a pod',
    (lab, job) => lab.end(job, 'Failed', { reason: 'BackoffLimitExceeded', message: 'limit' }),
    'its Job failed: BackoffLimitExceeded limit',
  ],
  [
    'a Job that somebody removes',
    (lab, job: { metadata: { name: string } }) => lab.cluster.remove('jobs.batch', job.metadata.name, serving),
    'its Job was removed before it was through',
  ],
  [
    'an output without its end',
    (lab, job) => lab.pod(job, 'p', { phase: 'Succeeded' }, textOf('inventory/scan-truncated.log')),
    'scan output truncated (no END line)',
  ],
];

for (const [what, happen, reason] of failures) {
  test(`${what} is why there is no count`, async () => {
    await using lab = await startLab();
    const { inventory } = inventoryOn(lab);
    const reading = inventory.read(lab.call);
    happen(lab, (await lab.job('mm-scan-')) as never);
    const { value } = await within(reading, 'the count');
    assert.equal(value?.countOn('spark-01')?.error, `scan cache on spark-01: ${reason}`);
    assert.equal(value?.contentOn('spark-01').entries, undefined);
    await eventually(() => lab.jobs().length === 0, 'the Job is removed');
  });
}

test('a count that takes too long says what its pod was doing', async () => {
  await using lab = await startLab();
  const { inventory } = inventoryOn(lab, 'cache-shared.yaml', { inventoryTimeout: '300ms' });
  const reading = inventory.read(lab.call);
  const job = await lab.job('mm-scan-');
  const message = '0/3 nodes are available: 3 Insufficient memory.';
  lab.pod(job, 'p', {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
  const { value } = await within(reading, 'the count');
  assert.equal(
    value?.countOn('any')?.error,
    `scan cache on any node: no result within 300ms: its pod is Pending, ${message}`,
  );
});

test('with the rights of the table all is done, and without one of them it is named', async () => {
  const places = { serving };
  const users = { gateway: { rules: rulesOf(places) } };
  await using lab = await startLab({ users, user: 'gateway' });
  const { inventory } = inventoryOn(lab);
  const reading = inventory.read(lab.call);
  lab.pod(await lab.job('mm-scan-'), 'p', { phase: 'Succeeded' }, output);
  assert.equal((await within(reading, 'the count')).value?.countOn('spark-01')?.models, 3);
  const removing = inventory.remove(lab.call, 'nova-4b', 'spark-01');
  lab.pod(await lab.job('mm-rm-'), 'r', { phase: 'Succeeded' }, 'REMOVED\n');
  await within(removing, 'the removal');
  await eventually(() => lab.jobs().length === 0, 'the Jobs are removed');
  assert.deepEqual(requestsBeyond(lab.cluster.requests, places), []);

  const poor = rulesOf(places).filter(({ resources }) => !resources.includes('jobs'));
  await using other = await startLab({ users: { gateway: { rules: poor } }, user: 'gateway' });
  const { value } = await within(inventoryOn(other).inventory.read(other.call), 'the count');
  assert.match(
    value?.countOn('spark-01')?.error ?? '',
    /^scan cache on spark-01: cannot create jobs\.batch mm-scan-\S+ in namespace model-serving: .*this is needed to download models, and look into the cache$/,
  );
  const noLogs = rulesOf(places).filter(({ resources }) => !resources.includes('pods/log'));
  await using third = await startLab({ users: { gateway: { rules: noLogs } }, user: 'gateway' });
  const blind = inventoryOn(third).inventory.read(third.call);
  third.pod(await third.job('mm-scan-'), 'p', { phase: 'Succeeded' }, output);
  assert.match(
    (await within(blind, 'the count')).value?.countOn('spark-01')?.error ?? '',
    /^scan cache on spark-01: cannot get pods\/log p in namespace model-serving/,
  );
});

test('a removal runs its Job, forgets the record and counts again; it goes on without its caller', async () => {
  await using lab = await startLab();
  for (const object of objectsOf('inventory/index-configmap.yaml')) lab.cluster.put(object);
  const { inventory } = inventoryOn(lab);
  const left = new AbortController();
  const removing = inventory.remove(createCall({ log: silent, signal: left.signal }), 'nova-4b', 'spark-01');
  const job = await lab.job('mm-rm-nova-4b-');
  assert.equal(job.spec.template.spec.nodeName, 'spark-01');
  left.abort(new Error('left'));
  assert.equal((await failure(removing)).message, 'left');
  lab.pod(job, 'p', { phase: 'Succeeded' }, 'REMOVED\n');
  await eventually(() => !indexed(lab).includes('nova-4b'), 'the record is forgotten');
  assert.deepEqual(indexed(lab), ['old-one']);
});

test('a removal that fails says so, and what must not go is refused before anything is done', async () => {
  await using lab = await startLab();
  const { inventory } = inventoryOn(lab);
  const removing = inventory.remove(lab.call, 'nova-4b', undefined);
  const terminated = { exitCode: 1, reason: 'Error' };
  lab.pod(
    await lab.job('mm-rm-'),
    'p',
    { phase: 'Failed', containerStatuses: [{ name: 'tool', state: { terminated } }] },
    'there is no directory nova-4b in the cache\n',
  );
  assert.deepEqual(codeAndText(await failure(removing)), [
    'backend_error',
    'remove nova-4b from the cache on any node: pod failed: Error (exit 1) there is no directory nova-4b in the cache',
  ]);
  assert.equal((await failure(inventory.remove(lab.call, '../x', undefined))).code, 'invalid_request');
  await eventually(() => lab.jobs().length === 0, 'the Jobs are removed');
});

test('the index goes with its last record, survives races, and is not in the way when it cannot be written', async t => {
  await using lab = await startLab();
  const { inventory, around, settings } = inventoryOn(lab, 'cache-pinned.yaml', { inventoryTimeout: '1s' });
  const value = around.current?.value as CacheSurroundings;
  t.after(inventory.subscribe(() => {}));
  await eventually(() => indexed(lab).length === 2, 'what is served is on record');

  lab.cluster.fault({ kind: 'answer', resource: 'configmaps', verb: 'update', status: 409, times: 1 });
  around.set({ ...value, location: { ...locationOf(settings, 'cache-pinned.yaml'), volume: 'pv-new' } });
  const written = () => JSON.stringify(lab.cluster.get<{ data?: object }>('configmaps', index, serving)?.data ?? {});
  await eventually(() => written().split('pv-new').length === 3, 'a conflict is tried again');

  around.set({ ...value, served: [], location: locationOf(settings, 'cache-pinned.yaml') });
  await inventory.unloaded(lab.call, { name: 'hand-made', directory: 'hand-made' });
  assert.deepEqual(indexed(lab), ['atlas-70b-x4']);
  await inventory.unloaded(lab.call, { name: 'atlas-70b-x4', directory: 'atlas-70b-x4' });
  assert.equal(lab.cluster.get('configmaps', index, serving), undefined);
});
