/** What a pull and a removal would do, and that looking leaves no trace. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PullRequest } from '../../../src/drivers/driver.ts';
import { within } from '../../support/server.ts';
import { all, failure } from '../scripted.ts';
import { type DriverLab, nova, novaOnHub, scriptedHub, served, startDriver, weighing, worldOf } from './driverLab.ts';
import { clusterNodes, textOf } from './world.ts';

const job = 'mm-pull-nova-4b';
const node = clusterNodes[0]?.metadata.name ?? '';
const request = { model: nova, preset: 'nova-4b' };

/** A lab whose cache was counted, so that looking at it needs no pod. */
async function countedLab({
  cache = 'END\n',
  ...options
}: Parameters<typeof startDriver>[0] & { cache?: string } = {}) {
  const lab = await startDriver(options);
  lab.ends('mm-scan-', cache);
  await within(lab.driver.models(lab.call), 'the first count');
  const written = () =>
    lab.cluster.requests.filter(({ method, name, body }) => {
      const { metadata } = (body ?? {}) as { metadata?: { name: string } };
      // Counting is reading, and what is left of it goes when it goes.
      return method !== 'GET' && !`${metadata?.name ?? name}`.startsWith('mm-scan-');
    });
  const before = written().length;
  return { ...lab, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](), news: () => written().slice(before) };
}

const planned = (lab: DriverLab, wanted: PullRequest = request) =>
  within(lab.driver.planPull?.(lab.call, wanted) ?? assert.fail('it plans nothing'), 'the plan');
const pulled = (lab: DriverLab, wanted: PullRequest = request) =>
  within(all(lab.driver.pull?.(lab.call, wanted) ?? assert.fail('it pulls nothing')), 'the pull');

test('the plan of a pull is the Job that the pull creates, with its fit', async () => {
  await using lab = await countedLab({ hub: scriptedHub(novaOnHub).hub, flags: { hfTokenSecret: 'hub-token' } });
  const { present, fit, joins, manifests, deletes } = await planned(lab);
  assert.deepEqual([present, fit.fits, joins, deletes], [false, true, undefined, []]);
  assert.deepEqual(lab.news(), []);
  lab.ends('mm-pull-', 'DONE\n');
  await pulled(lab);
  assert.deepEqual(
    JSON.parse(JSON.stringify(manifests)),
    lab.news().flatMap(({ body, verb }) => (verb === 'create' ? [body] : [])),
  );
  // The token is named, and never shown.
  const [, ref] = JSON.stringify(manifests).match(/"name":"HF_TOKEN",(.*?\}\})/) ?? [];
  assert.match(ref ?? '', /^"valueFrom":\{"secretKeyRef":\{[^}]*"name":"hub-token"/);

  const over = await planned(lab);
  assert.deepEqual(over.deletes, [{ kind: 'Job', namespace: 'model-serving', name: job }], 'what is over gives way');
});

test('what is cached needs nothing, and what is being downloaded is joined', async () => {
  await using cached = await countedLab({ cache: textOf('inventory/scan-output.log') });
  const there = await planned(cached);
  assert.deepEqual([there.present, there.manifests, there.joins], [true, [], undefined]);

  await using lab = await countedLab();
  const running = lab.driver.pull?.(lab.call, request)[Symbol.asyncIterator]();
  await within(running?.next() ?? assert.fail(), 'the download');
  const before = lab.news().length;
  const joined = await planned(lab);
  assert.deepEqual([joined.present, joined.manifests, joined.joins, joined.deletes], [false, [], job, []]);
  assert.equal(lab.news().length, before);
  await running?.return?.();
});

test('a plan is refused as the pull fails', async () => {
  const foreign = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: job, namespace: 'model-serving' } };
  const spec = { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'x', image: 'x' }] } } };
  for (const [options, wanted, code] of [
    [{ hub: scriptedHub({ [nova]: weighing(nova, 90_000_000_000) }).hub }, request, 'does_not_fit'],
    [{ hub: scriptedHub({ [nova]: weighing(nova, 8_000_000_000, true) }).hub }, request, 'invalid_request'],
    [{}, { model: 'orbit/Lyra-20B', preset: 'lyra-20b-oci' }, 'invalid_request'],
    [{ objects: worldOf({ more: [{ ...foreign, spec }] }) }, request, 'conflict'],
  ] as const) {
    await using lab = await countedLab(options);
    const refused = await failure(planned(lab, wanted));
    assert.equal(refused.code, code, refused.message);
    assert.deepEqual(lab.news(), []);
    assert.equal((await failure(pulled(lab, wanted))).message, refused.message);
    const { details } = refused as { details?: { fit?: { fits: boolean } } };
    assert.equal(details?.fit?.fits, code === 'does_not_fit' ? false : undefined);
  }
});

test('the plan of a removal is the Job that removes, and what is gone then', async () => {
  await using lab = await countedLab({ cache: textOf('inventory/scan-output.log') });
  const models = await within(lab.driver.models(lab.call), 'models');
  const model = lab.driver.find(models, 'acme-labs/Pico-1B') ?? assert.fail('it is not listed');
  const plan = await within(lab.driver.planRemove?.(lab.call, model) ?? assert.fail(), 'the plan');
  assert.deepEqual(plan.deletes[0]?.kind, 'Directory');
  assert.equal(plan.deletes[0]?.name, 'pico-1b-cpu');
  assert.match(plan.deletes[0]?.where ?? '', /^claim model-serving\/\S+/);
  assert.deepEqual(lab.news(), []);
  lab.ends('mm-rm-', 'REMOVED\n');
  await within(lab.driver.remove?.(lab.call, model) ?? assert.fail(), 'the removal');
  const [created] = lab.news().filter(({ verb }) => verb === 'create');
  const unnamed = (manifest: unknown) =>
    JSON.parse(JSON.stringify(manifest).replace(/(mm-rm-[^"]*)-[a-z0-9]{5}"/, '$1"'));
  assert.deepEqual(unnamed(plan.manifests[0]), unnamed(created?.body));
});

test('what is served is not removed, and the plan says so', async () => {
  await using lab = await countedLab({ objects: worldOf({ more: served('nova-4b', node) }) });
  const models = await within(lab.driver.models(lab.call), 'models');
  const model = lab.driver.find(models, nova) ?? assert.fail('it is not listed');
  const refused = await failure(lab.driver.planRemove?.(lab.call, model) ?? assert.fail());
  assert.equal(refused.message, `conflict: ${nova} is served by LLMInferenceService nova-4b; unload it first`);
  assert.deepEqual(lab.news(), []);
});
