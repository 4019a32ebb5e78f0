import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import type { NodeInfo } from '../../../src/domain.ts';
import { silent } from '../../support/gateway.ts';
import { within } from '../../support/server.ts';
import { novaOnHub, scriptedHub, served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { discoveryWith, jsonOf, objectsOf, plain, textOf } from './world.ts';

const { variants } = jsonOf('cluster/expected-nodes.json');
const background = "the caller's deadline leaves less than 2m0s for a scan pod; scanning in the background";
const node = variants[0].served[0].node as string;

// biome-ignore lint/suspicious/noExplicitAny: fixtures of every shape
type Fixture = any;

/** The rows as they are answered while nothing was counted yet, which `error` has the reason of. */
const rowsOf = (nodes: readonly Fixture[], error: string | undefined) =>
  nodes.map(({ cache, ...row }: Fixture) => ({
    backend: 'kserve',
    ...row,
    ...(cache && { cache: { models: 0, bytesUsed: 0, ...cache, inventory: 'pod', error } }),
  }));

function published({ settings, cache }: Fixture): readonly object[] {
  const { enabled, claim: claimName, redirectPolicy } = cache;
  const spec = {
    namespace: 'model-serving',
    ...settings,
    cache: { enabled, claimName, mountPath: '/mnt/models', redirectPolicy },
  };
  return [{ apiVersion: 'v1', kind: 'ConfigMap', ...discoveryWith(spec) }];
}

/** Without what is counted in pods, which has tests of its own. */
const rowsIn = (nodes: readonly NodeInfo[] = []) => plain(nodes).map(({ freeGpus, ...row }) => row);

for (const variant of variants) {
  test(`nodes at once, and why nothing was counted in their cache: ${variant.variant}`, async () => {
    const isPublished = variant.variant !== 'no-document';
    const objects = worldOf({
      discovery: isPublished ? published(variant) : [],
      storage: variant.cache.storage,
      more: variant.served.flatMap((each: Fixture) => served(each.object, each.node)),
    });
    await using lab = await startDriver({ objects });
    // Who waits for a pod waits for ever: none runs here.
    const call = createCall({ log: silent, timeoutMs: 120_000 });
    const rows = rowsIn(await within(lab.driver.nodes?.(call) ?? assert.fail(), 'the nodes'));
    const why =
      variant.variant === 'unbound'
        ? 'cache claim hf-cache is not bound yet; the first predictor binds it'
        : background;
    assert.deepEqual(rows, rowsOf(variant.nodes, why));
    const { healthy, message } = await lab.driver.describe(tenSeconds());
    const none = 'no discovery ConfigMap agent-platform/agent-platform-model-serving; using flags and defaults';
    assert.deepEqual([healthy, message], [true, isPublished ? undefined : none]);
  });
}

const bare = variants.find(({ variant }: Fixture) => variant === 'no-document').nodes;
for (const [file, message] of [
  ['discovery-minimal.yaml', undefined],
  [
    'discovery-no-key.yaml',
    'discovery: discovery ConfigMap agent-platform/agent-platform-model-serving has no config.yaml key',
  ],
  [
    'discovery-wrong-kind.yaml',
    'discovery: discovery ConfigMap agent-platform/agent-platform-model-serving: kind "ServingPreset", want ModelServingConfig',
  ],
] as const) {
  test(`what a cluster is by ${file}`, async () => {
    const isRead = message === undefined;
    // The cache is off where the document says so; the defaults have one.
    await using lab = await startDriver({ objects: worldOf({ discovery: objectsOf(`cluster/${file}`) }) });
    const status = await lab.driver.describe(tenSeconds());
    assert.deepEqual([status.healthy, status.message, status.gpuPool], [true, message, undefined]);
    const rows = (await lab.driver.nodes?.(tenSeconds())) ?? [];
    assert.deepEqual(
      rowsIn(rows).map(({ cache, ...row }: Fixture) => row),
      rowsOf(bare, undefined),
    );
    assert.deepEqual([...new Set(rows.map(({ cache }) => cache === undefined))], [isRead]);
    if (isRead) assert.deepEqual(lab.jobs(), []);
    else await lab.job('mm-scan-');
  });
}

test('presets are those of the fixtures, in full, and a broken one takes nothing from the others', async () => {
  const expected = jsonOf('cluster/expected-presets.json').presets;
  for (const [more, names] of [
    [[], []],
    [objectsOf('cluster/presets-broken.yaml'), ['lenient']],
  ] as const) {
    await using lab = await startDriver({ objects: worldOf({ more }) });
    const presets = plain((await lab.driver.presets?.(tenSeconds())) ?? []);
    const rows = presets.map(({ backend, ...row }) => {
      assert.equal(backend, 'kserve');
      return { ...row, requiredBytes: (row.weightsBytes ?? 0) + (row.overheadBytes ?? 0) };
    });
    assert.deepEqual(
      rows.filter(({ name }) => !(names as readonly string[]).includes(name)),
      expected,
    );
    assert.deepEqual(
      rows.map(({ name }) => name),
      [...expected.map(({ name }: Fixture) => name), ...names].sort(),
    );
  }
});

test('models, those in memory, the status, and how agents reach a model', async () => {
  await using lab = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
  const { driver } = lab;
  const status = await driver.describe(tenSeconds());
  assert.deepEqual([status.healthy, status.message, status.version], [true, undefined, 'serving.kserve.io/v1alpha2']);
  assert.equal(driver.endpoint, 'llminferenceservices.serving.kserve.io/model-serving');
  const [model, ...others] = await driver.models(tenSeconds());
  assert.deepEqual([model?.preset, model?.node, model?.downloaded, others], ['nova-4b', node, false, []]);
  assert.deepEqual(model && driver.agentAccess(model), {
    protocol: 'openai',
    url: 'https://models.demo.example.com/model-serving/nova-4b/v1',
    model: 'acme-labs/Nova-4B-Instruct',
    key: 'passthrough',
    object: 'nova-4b',
    shared: true,
  });
  const [loaded] = (await driver.loaded?.(tenSeconds())) ?? [];
  assert.deepEqual([loaded?.instance, loaded?.node, loaded?.status], ['nova-4b', node, 'Pending']);
});

test('the cache of the fixtures, once it was counted', async () => {
  const expected = jsonOf('inventory/expected.json');
  const discovery = published({
    settings: {},
    cache: { enabled: true, claim: 'hf-cache', redirectPolicy: true },
  });
  const more = [...objectsOf('inventory/served.yaml'), ...objectsOf('inventory/index-configmap.yaml')];
  const { hub } = scriptedHub(novaOnHub);
  await using lab = await startDriver({ objects: worldOf({ discovery, storage: 'cache-pinned.yaml', more }), hub });
  lab.ends('mm-scan-', textOf('inventory/scan-output.log'));
  // Who has all the time there is gets what was counted for them.
  const models = await within(lab.driver.models(lab.call), 'models');
  // The API server says itself when an object was created.
  const untimed = (rows: readonly Fixture[]) =>
    rows.map(({ modifiedAt, ...row }) => (row.downloaded ? { ...row, modifiedAt } : row));
  assert.deepEqual(
    untimed(plain(models).map(({ backend, ...row }: Fixture) => ({ ...row, ...whole(row) }))),
    untimed(expected.models),
  );
  const rows = (await lab.driver.nodes?.(tenSeconds())) ?? [];
  const { scannedAt, ...cache } = rows.find(({ name }) => name === 'spark-01')?.cache ?? assert.fail('no cache');
  assert.ok(scannedAt && Date.now() - scannedAt.getTime() < 60_000);
  assert.deepEqual(plain(cache), {
    claim: 'hf-cache',
    mountPath: '/mnt/models',
    shared: false,
    inventory: 'pod',
    ...expected.nodeCache,
  });
  assert.equal(lab.requested('jobs.batch', 'create').length, 1);
  const fit = await lab.driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' });
  assert.deepEqual([fit?.fits, fit?.cached, fit?.cacheSource, fit?.node], [true, true, 'scan', 'spark-01']);
});

/** Times as the fixtures write them: whole seconds. */
const whole = ({ modifiedAt }: Fixture) => (modifiedAt ? { modifiedAt: modifiedAt.replace('.000Z', 'Z') } : {});
