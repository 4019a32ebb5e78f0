import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelled, createCall } from '../../../src/call.ts';
import type { PullProgress } from '../../../src/domain.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, within } from '../../support/server.ts';
import { all, failure } from '../scripted.ts';
import { nova, scriptedHub, served, startDriver, tenSeconds, weighing, worldOf } from './driverLab.ts';
import { clusterNodes, discoveryWith, objectsOf, textOf } from './world.ts';

const job = 'mm-pull-nova-4b';
const empty = 'END\n';
const running = { phase: 'Running', containerStatuses: [{ name: 'download', state: { running: {} } }] };
const node = clusterNodes[0]?.metadata.name ?? '';

interface ToolJob {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly env?: readonly object[] }[] } };
  };
}

/** A lab in which a scan finds this in the cache. */
async function labWith({ cache = empty, ...options }: Parameters<typeof startDriver>[0] & { cache?: string } = {}) {
  const lab = await startDriver(options);
  lab.ends('mm-scan-', cache);
  return lab;
}

/** A pull as a job of the gateway makes it: without a deadline, until somebody aborts it. */
function pulling(lab: Awaited<ReturnType<typeof startDriver>>, request: { model: string; preset?: string }) {
  const abort = new AbortController();
  const call = createCall({ log: silent, signal: AbortSignal.any([abort.signal, lab.over]) });
  const pulled = lab.driver.pull?.(call, request) ?? assert.fail('it pulls nothing');
  const seen: PullProgress[] = [];
  const done = (async () => {
    for await (const each of pulled) seen.push(each);
  })();
  done.catch(() => {});
  const status = (wanted: string) => eventually(() => seen.at(-1)?.status === wanted, wanted);
  return { abort, seen, done, status };
}

const pulled = (lab: Awaited<ReturnType<typeof startDriver>>, request: { model: string; preset?: string }) =>
  within(all(lab.driver.pull?.(lab.call, request) ?? assert.fail('it pulls nothing')), 'the pull');

test('a model image is refused before the Hub is asked, whatever else is wrong with it', async () => {
  const { hub, asked } = scriptedHub();
  await using lab = await labWith({ hub, objects: worldOf({ nodes: [] }) });
  const error = await failure(pulled(lab, { model: 'orbit/Lyra-20B', preset: 'lyra-20b-oci' }));
  assert.deepEqual([error.code, asked], ['invalid_request', []]);
  assert.equal(
    error.message,
    'invalid request: orbit/Lyra-20B is served from an OCI model image the platform pre-pulls on its GPU nodes (preset lyra-20b-oci, oci://registry.example.com/models/lyra-20b:2026.09.1); nothing to download',
  );
  assert.deepEqual(lab.requested('jobs.batch', 'create'), []);
});

test('what does not fit is refused before that it is gated, with the reason of the fit', async () => {
  const { hub } = scriptedHub({ [nova]: weighing(nova, 90_000_000_000, true) });
  await using lab = await labWith({ hub });
  const fit = await lab.driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' });
  assert.equal(fit?.fits, false);
  const error = await failure(pulled(lab, { model: nova, preset: 'nova-4b' }));
  assert.deepEqual([error.code, error.message], ['does_not_fit', `model does not fit: ${fit?.reason}`]);
});

test('a gated repository is refused without a token before the cache matters; with one it is downloaded', async () => {
  const { hub } = scriptedHub({ [nova]: weighing(nova, 8_000_000_000, true) });
  const cached = textOf('inventory/scan-output.log');
  await using lab = await labWith({ hub, cache: cached });
  const error = await failure(pulled(lab, { model: nova, preset: 'nova-4b' }));
  assert.equal(error.code, 'invalid_request');
  assert.equal(
    error.message,
    `invalid request: ${nova} is gated; configure a Hugging Face token (kserve.hf.tokenSecret) to download it`,
  );

  await using other = await labWith({ hub, flags: { hfTokenSecret: 'hub-token' } });
  other.ends('mm-pull-', 'DONE\n');
  assert.equal((await pulled(other, { model: nova, preset: 'nova-4b' })).at(-1)?.status, 'downloaded');
});

test('what is in the cache is not downloaded again', async () => {
  await using lab = await labWith({ cache: textOf('inventory/scan-output.log') });
  const seen = await pulled(lab, { model: nova, preset: 'nova-4b' });
  assert.deepEqual(
    seen.map(({ status, preset, bytesCompleted }) => [status, preset, bytesCompleted]),
    [['already cached', 'nova-4b', 8_000_001_000]],
  );
  assert.deepEqual(
    lab.jobs().filter(name => name.startsWith('mm-pull')),
    [],
  );
});

test('a pull judges the whole budget: what is served beside it does not count', async () => {
  await using lab = await labWith({ objects: worldOf({ more: served('nova-4b', node) }) });
  lab.ends('mm-pull-', 'DONE\n');
  assert.equal((await pulled(lab, { model: nova, preset: 'nova-4b' })).at(-1)?.status, 'downloaded');
});

test('a pull is one Job, which the next one joins, and what it brought is counted', async () => {
  await using lab = await labWith();
  const first = pulling(lab, { model: nova, preset: 'nova-4b' });
  await first.status('waiting for the download pod');
  const created = await lab.job(job);
  const { annotations } = created.metadata;
  const said = (name: string) => annotations[`model-manager.giantswarm.io/${name}`];
  assert.deepEqual(['model', 'preset', 'cache-dir', 'bytes-total'].map(said), [
    nova,
    'nova-4b',
    'nova-4b',
    '8000001000',
  ]);
  const second = pulling(lab, { model: nova, preset: 'nova-4b' });
  await second.status('waiting for the download pod');
  assert.equal(lab.jobs().filter(name => name.startsWith('mm-pull')).length, 1);
  lab.pod(created, 'p', running, textOf('pull-job/03-downloading.log'));
  await first.status('downloading');
  await second.status('downloading');
  assert.deepEqual(
    [first, second].map(({ seen }) => seen.at(-1)?.bytesCompleted),
    [1_610_612_736, 1_610_612_736],
  );
  lab.end(created, 'Complete');
  await within(Promise.all([first.done, second.done]), 'the end of both');
  assert.equal(first.seen.at(-1)?.status, 'downloaded');
  // What is in the cache is another now: the next reader has it counted again.
  const scans = () => lab.requested('jobs.batch', 'create').length;
  const before = scans();
  await lab.driver.nodes?.(tenSeconds());
  await eventually(() => scans() === before + 1, 'another scan');
});

test('who cancels a pull has its Job removed; who leaves it does not', async () => {
  await using lab = await labWith();
  const left = pulling(lab, { model: nova, preset: 'nova-4b' });
  await left.status('waiting for the download pod');
  left.abort.abort(new Error('stopped'));
  await assert.rejects(left.done);
  const again = pulling(lab, { model: nova, preset: 'nova-4b' });
  await again.status('waiting for the download pod');
  await lab.job(job);
  again.abort.abort(cancelled);
  await assert.rejects(again.done, cancelled);
  await eventually(() => !lab.jobs().includes(job), 'the removal of the Job');
});

test('who cancels a pull that somebody else follows takes it from nobody', async () => {
  await using lab = await labWith();
  const first = pulling(lab, { model: nova, preset: 'nova-4b' });
  await first.status('waiting for the download pod');
  const created = await lab.job(job);
  const second = pulling(lab, { model: 'nova-4b' });
  await second.status('waiting for the download pod');
  first.abort.abort(cancelled);
  await assert.rejects(first.done, cancelled);
  lab.pod(created, 'p', running, 'PROGRESS 5\n');
  await second.status('downloading');
  assert.ok(lab.jobs().includes(job), 'its Job is still there');
  second.abort.abort(cancelled);
  await assert.rejects(second.done, cancelled);
  await eventually(() => !lab.jobs().includes(job), 'the removal of the Job');
});

test('a process that starts finds the downloads of the one before, and follows them to their end', async () => {
  await using lab = await labWith();
  const before = pulling(lab, { model: `${nova}:v2`, preset: 'nova-4b' });
  await before.status('waiting for the download pod');
  before.abort.abort(new Error('stopped'));
  const created = await lab.job(job);

  const next = lab.restarted();
  const [found, ...others] = (await next.unfinished?.(tenSeconds())) ?? [];
  assert.deepEqual(others, []);
  assert.deepEqual(found?.request, { model: `${nova}:v2`, preset: 'nova-4b', node: undefined });
  const seen = all(found?.follow(lab.call) ?? assert.fail('nothing to follow'));
  lab.pod(created, 'p', running, 'PROGRESS 5\n');
  lab.end(created, 'Complete');
  assert.deepEqual((await within(seen, 'the end')).at(-1)?.status, 'downloaded');
  assert.deepEqual(await next.unfinished?.(tenSeconds()), [], 'what is over is not unfinished');
});

test('a model that a restarted process pulls again is the Job that runs', async () => {
  await using lab = await labWith();
  const before = pulling(lab, { model: nova, preset: 'nova-4b' });
  await before.status('waiting for the download pod');
  before.abort.abort(new Error('stopped'));
  const { uid } = (await lab.job(job)).metadata;
  const again = pulling({ ...lab, driver: lab.restarted() }, { model: nova, preset: 'nova-4b' });
  await again.status('waiting for the download pod');
  assert.equal((await lab.job(job)).metadata.uid, uid);
  again.abort.abort(new Error('over'));
});

test('a download goes where the claim is: to its node when it is pinned', async () => {
  const spec = { namespace: 'model-serving', cache: { enabled: true, claimName: 'hf-cache', redirectPolicy: true } };
  const discovery = [{ apiVersion: 'v1', kind: 'ConfigMap', ...discoveryWith(spec) }];
  await using lab = await labWith({ objects: worldOf({ discovery, storage: 'cache-pinned.yaml' }) });
  const { abort, status, seen } = pulling(lab, { model: nova, preset: 'nova-4b' });
  await status('waiting for the download pod');
  assert.equal((await lab.job(job)).spec.template.spec.nodeName, 'spark-01');
  assert.equal(seen.at(-1)?.node, 'spark-01');
  abort.abort(cancelled);
});

test('what is not in the cache cannot be deleted, what is served must not be, the rest is', async () => {
  await using lab = await labWith({
    cache: textOf('inventory/scan-output.log'),
    objects: worldOf({ more: [...served('nova-4b', node), ...objectsOf('inventory/index-configmap.yaml')] }),
  });
  const { driver } = lab;
  const models = await within(driver.models(lab.call), 'models');
  const named = (name: string) => driver.find(models, name) ?? assert.fail(`no model ${name}`);
  const remove = (model: Parameters<NonNullable<typeof driver.remove>>[1]) =>
    driver.remove?.(lab.call, model) ?? assert.fail('it removes nothing');

  const refused = await failure(remove(named(nova)));
  assert.equal(refused.code, 'conflict');
  assert.equal(refused.message, `conflict: ${nova} is served by LLMInferenceService nova-4b; unload it first`);
  const unknown = await failure(remove({ ...named('acme-labs/Pico-1B'), path: undefined }));
  assert.deepEqual(
    [unknown.code, unknown.message],
    ['not_found', 'model not found: acme-labs/Pico-1B is not in the cache'],
  );
  assert.equal(lab.requested('jobs.batch', 'create').length, 1, 'only the scan');

  lab.ends('mm-rm-', 'REMOVED\n');
  await within(remove(named('acme-labs/Pico-1B')), 'the removal');
  const [, removal] = lab.requested('jobs.batch', 'create');
  const body = removal?.body as ToolJob | undefined;
  const [tool] = body?.spec.template.spec.containers ?? [];
  assert.deepEqual(tool?.env, [{ name: 'MM_DIRNAME', value: 'pico-1b-cpu' }]);
  await eventually(() => !lab.jobs().some(name => name.startsWith('mm-rm')), 'the Job of the removal goes');
});

test('what is being downloaded is not deleted under the download', async () => {
  await using lab = await labWith();
  // As a count lists what is half there.
  const model = { backend: 'kserve', name: nova, sizeBytes: 1, path: 'nova-4b' };
  const remove = () => lab.driver.remove?.(lab.call, model) ?? assert.fail('it removes nothing');
  const again = pulling(lab, { model: nova, preset: 'nova-4b' });
  const created = await lab.job(job);

  const refused = await failure(remove());
  assert.equal(refused.code, 'conflict');
  assert.equal(
    refused.message,
    `conflict: nova-4b is being downloaded by Job model-serving/${job}; cancel the download, or wait for it`,
  );
  const before = await failure(lab.driver.planRemove?.(lab.call, model) ?? assert.fail());
  assert.equal(before.message, refused.message, 'and it can be known before');
  assert.ok(!lab.jobs().some(name => name.startsWith('mm-rm')), 'nothing is removed');

  lab.end(created, 'Failed');
  assert.equal((await failure(within(again.done, 'the end'))).code, 'backend_error');
  lab.ends('mm-rm-', 'REMOVED\n');
  await within(remove(), 'the removal once the Job is over');
});

test('who deletes the same model at the same time waits for the one removal', async () => {
  await using lab = await labWith({ cache: textOf('inventory/scan-output.log') });
  const { driver } = lab;
  const models = await within(driver.models(lab.call), 'models');
  const model = driver.find(models, 'acme-labs/Pico-1B') ?? assert.fail('it is not listed');
  const remove = () => driver.remove?.(lab.call, model) ?? assert.fail('it removes nothing');
  const created = () => lab.requested('jobs.batch', 'create').length;
  const before = created();
  lab.ends('mm-rm-', 'REMOVED\n');
  await within(Promise.all([remove(), remove()]), 'both');
  assert.equal(created(), before + 1);
  await within(remove(), 'a later one');
  assert.equal(created(), before + 2, 'a later one is a removal of its own');
});

test('pulls that fill the same directory with the same are one, others are not', async () => {
  await using lab = await labWith();
  const { driver } = lab;
  await within(driver.models(lab.call), 'what is around the cache');
  const keyOf = (request: { model: string; preset?: string; node?: string }) => driver.pullKey?.(request);
  const key = keyOf({ model: nova, preset: 'nova-4b' });
  for (const model of [nova, nova.toUpperCase(), `hf://${nova}`, `${nova}:main`, 'nova-4b']) {
    assert.equal(keyOf({ model }), key, model);
  }
  for (const other of [
    { model: `${nova}:v2` },
    { model: nova, preset: 'other' },
    { model: 'acme-labs/Other' },
    { model: 'pico-1b-cpu' },
  ]) {
    assert.notEqual(keyOf(other), key, JSON.stringify(other));
  }
});

test('what is in the cache of another revision, or broken off, is downloaded', async () => {
  const whole = 'DIR\tnova-4b\t8054072104\t9\t1790500000\t1\n';
  const marker = (revision: string) =>
    `MARKER\tnova-4b\t${JSON.stringify({ model: nova, revision, dir: 'nova-4b' })}\n`;
  for (const [cache, model, status] of [
    [whole, nova, 'already cached'],
    [whole, `${nova}:v2`, 'downloaded'],
    [whole.replace('8054072104', '1000'), nova, 'downloaded'],
    [whole + marker('v2'), `${nova}:v2`, 'already cached'],
    [whole + marker('v2'), nova, 'downloaded'],
    [whole + marker(''), nova, 'already cached'],
  ] as const) {
    await using lab = await labWith({ cache: `${cache}END\n` });
    lab.ends('mm-pull-', 'DONE\n');
    assert.equal((await pulled(lab, { model, preset: 'nova-4b' })).at(-1)?.status, status, cache + model);
  }
});

test('the name of a preset is another word for its model, unless presets share the model', async () => {
  await using lab = await labWith();
  const { driver } = lab;
  assert.equal(driver.canonical('nova-4b'), 'nova-4b', 'not seen yet');
  const presets = (await driver.presets?.(lab.call)) ?? [];
  await within(driver.models(lab.call), 'what is around the cache');
  for (const { name, model } of presets) {
    const isAlone = presets.filter(each => each.model === model).length === 1;
    assert.equal(driver.canonical(name), isAlone ? model.toLowerCase() : name, name);
  }
  assert.equal(driver.canonical('hf://Acme-Labs/Other:v2'), 'acme-labs/other');
});
