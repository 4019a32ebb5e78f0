import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, within } from '../../support/server.ts';
import { answer, serve } from '../scripted.ts';
import { nova, served, shows, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes, discoveryRef, objectsOf, textOf } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const cacheIn = (
  rows: readonly { readonly name: string; readonly cache?: { readonly error?: string | undefined } | undefined }[] = [],
) => rows.find(({ name }) => name === node)?.cache;

test('a scan pod that cannot start: the first answer is at once, the next one has the reason, the old count stays', async () => {
  await using lab = await startDriver();
  const { driver } = lab;
  const first = cacheIn(await driver.nodes?.(tenSeconds()));
  assert.match(first?.error ?? '', /scanning in the background$/);
  const job = await lab.job('mm-scan-');
  const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"' };
  lab.pod(job, 'p', { phase: 'Pending', containerStatuses: [{ name: 'tool', state: { waiting } }] });
  await eventually(() => !lab.jobs().includes(job.metadata.name), 'the Job goes');
  const error = async () => cacheIn(await driver.nodes?.(tenSeconds()))?.error;
  assert.equal(await error(), 'scan cache on any node: pod cannot start: ImagePullBackOff: Back-off pulling image "x"');
  assert.equal(lab.requested('jobs.batch', 'create').length, 1, 'what failed just now is not tried again');
});

test('a scan pod that never starts holds nobody up who has a deadline, and is only one', async () => {
  await using lab = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
  const { driver } = lab;
  for (let n = 0; n < 20; n++) {
    await Promise.all([driver.nodes?.(tenSeconds()), driver.models(tenSeconds())]);
    await driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' });
  }
  await lab.job('mm-scan-');
  assert.equal(lab.requested('jobs.batch', 'create').length, 1);
});

test('who has no deadline hears of it when the time of a scan is over', async () => {
  await using lab = await startDriver({ flags: { inventoryTimeout: '300ms' } });
  const rows = await within(lab.driver.nodes?.(lab.call) ?? assert.fail(), 'the nodes');
  assert.match(cacheIn(rows)?.error ?? '', /^scan cache on any node: no result within 300ms: /);
  await eventually(() => lab.jobs().length === 0, 'its Job goes');
});

const agentOn = (on: string, ip: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `agent-${on}`,
    namespace: 'model-serving',
    labels: { 'model-manager.giantswarm.io/component': 'cache-agent' },
  },
  spec: { nodeName: on, containers: [{ name: 'agent', image: 'x' }] },
  status: { phase: 'Running', podIP: ip, conditions: [{ type: 'Ready', status: 'True' }] },
});

for (const [what, status, body, expected] of [
  ['no inventory', 200, '<html>hello</html>', /no inventory but/],
  ['another document', 200, '{"entries": 5}', /no inventory but/],
  ['a refusal', 500, 'the disk is gone', /HTTP 500: the disk is gone$/],
] as const) {
  test(`an agent that answers ${what} is named with it; one that answers well is counted by`, async t => {
    let good = false;
    const { endpoint } = await serve(t, (_seen, response) => {
      if (good) answer(response, 200, textOf('inventory/agent-inventory.json'));
      else answer(response, status, body, 'text/html');
    });
    await using lab = await startDriver({
      objects: worldOf({ more: [agentOn(node, '127.0.0.1')] }),
      flags: { inventoryMode: 'daemonset', inventoryAgentPort: new URL(endpoint).port, inventoryTtl: '1ms' },
    });
    const read = async () => cacheIn(await within(lab.driver.nodes?.(tenSeconds()) ?? assert.fail(), 'nodes'));
    const { error = '' } = (await read()) ?? {};
    assert.match(error, expected);
    assert.ok(error.includes(`agent-${node}`), error);
    assert.deepEqual(lab.requested('jobs.batch'), [], 'an agent needs no Job');
    good = true;
    const isCounted = async () => (await read())?.error === undefined;
    const end = performance.now() + 20_000;
    while (!(await isCounted())) assert.ok(performance.now() < end, 'it is asked again');
    const models = await lab.driver.models(tenSeconds());
    assert.ok(models.some(({ downloaded }) => downloaded));
  });
}

test('a cluster without an agent says which mode needs one', async () => {
  await using lab = await startDriver({ flags: { inventoryMode: 'daemonset' } });
  assert.match(
    cacheIn(await lab.driver.nodes?.(tenSeconds()))?.error ?? '',
    /no ready cache-agent pod on any node \(pods matching "model-manager.giantswarm.io\/component=cache-agent" in model-serving\): kserve.inventory.mode is daemonset/,
  );
});

test('a document that appears after the first refusal is found by the next check, before any watch shows it', async () => {
  await using lab = await startDriver({ objects: worldOf({ discovery: [] }) });
  const { driver, cluster } = lab;
  const ask = async () => driver.checkFit?.(tenSeconds(), { preset: 'atlas-70b-x4' });
  // Without a pool nothing tolerates the taint of the nodes that have enough GPUs.
  for (const { metadata } of clusterNodes) {
    if (metadata.name !== node) cluster.remove('nodes', metadata.name);
  }
  const first = await ask();
  assert.deepEqual([first?.fits, first?.retryable], [false, true]);
  const missing = `the serving layer's discovery document ${discoveryRef.namespace}/${discoveryRef.name} is not published yet`;
  assert.ok(first?.reason?.startsWith(missing), first?.reason);
  // The watch says nothing: only who reads it anew can know.
  const thaw = cluster.freezeWatches();
  for (const object of objectsOf('cluster/discovery.yaml')) cluster.put(object);
  const small = await driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' });
  assert.deepEqual([small?.fits, small?.node, small?.retryable], [true, node, undefined]);
  thaw();
  const pool = driver.observed?.status ?? assert.fail();
  pool.subscribe(() => {});
  await shows(pool, ({ gpuPool }) => gpuPool !== undefined, 'the document');
  assert.equal(
    (await driver.presets?.(tenSeconds()))?.some(({ model }) => model === nova),
    true,
  );
});
