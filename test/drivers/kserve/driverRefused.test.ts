import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHub } from '../../../src/demo/hub.ts';
import { within } from '../../support/server.ts';
import { all, failure } from '../scripted.ts';
import { nova, served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes, textOf } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';

/** All that the driver does with the cluster, without `verb resource` of some. */
function rulesWithout(...refused: readonly string[]) {
  const may = (group: string, resource: string, verbs: readonly string[]) => ({
    apiGroups: [group],
    resources: [resource],
    verbs: verbs.filter(verb => !refused.includes(`${verb} ${resource}`)),
  });
  const read = ['get', 'list', 'watch'];
  const write = ['create', 'update', 'patch', 'delete'];
  return [
    ...['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes'].map(resource => may('', resource, read)),
    may('', 'configmaps', [...read, ...write]),
    may('', 'pods/log', ['get']),
    may('', 'secrets', ['get']),
    may('batch', 'jobs', [...read, ...write]),
    may('serving.kserve.io', 'llminferenceservices', read),
    may('serving.kserve.io', 'llminferenceserviceconfigs', read),
  ];
}

const reads = (resource: string) => ['get', 'list', 'watch'].map(verb => `${verb} ${resource}`);
const labWithout = (refused: readonly string[], options: Parameters<typeof startDriver>[0] = {}) =>
  startDriver({
    objects: worldOf({ more: served('nova-4b', node) }),
    ...options,
    users: { gateway: { rules: rulesWithout(...refused) } },
    user: 'gateway',
  });

test('with all its rights nothing is missing', async () => {
  await using lab = await labWithout([]);
  lab.ends('mm-scan-', 'END\n');
  const rows = (await lab.driver.nodes?.(lab.call)) ?? [];
  assert.deepEqual([rows[0]?.message, rows[0]?.cache?.error], [undefined, undefined]);
  assert.equal((await lab.driver.describe(tenSeconds())).message, undefined);
});

for (const resource of ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'configmaps']) {
  test(`where ${resource} must not be read, only what needs them suffers, and says so`, async () => {
    await using lab = await labWithout(reads(resource));
    const { driver } = lab;
    assert.equal((await within(driver.models(tenSeconds()), 'models')).length, 1);
    const nodes = async () => driver.nodes?.(tenSeconds());
    if (resource === 'nodes') {
      await assert.rejects(nodes, { code: 'forbidden' });
      return;
    }
    const rows = (await nodes()) ?? [];
    assert.ok(rows.length > 0);
    assert.match(rows[0]?.message ?? '', new RegExp(resource));
    if (resource === 'configmaps') {
      assert.match((await driver.describe(tenSeconds())).message ?? '', /^discovery: read .*configmaps/);
      await assert.rejects(async () => driver.presets?.(tenSeconds()), { code: 'forbidden' });
    } else {
      assert.match((await driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' }))?.reason ?? '', new RegExp(resource));
    }
  });
}

test('served models that must not be read: the backend is not healthy, nodes say it, the cache is still listed', async () => {
  await using lab = await labWithout(reads('llminferenceservices'));
  const { driver } = lab;
  lab.ends('mm-scan-', textOf('inventory/scan-output.log'));
  const { healthy, message } = await driver.describe(tenSeconds());
  assert.equal(healthy, false);
  assert.match(message ?? '', /^LLMInferenceService API not available in model-serving: .*llminferenceservices/);
  await assert.rejects(async () => driver.loaded?.(tenSeconds()), { code: 'forbidden' });
  const models = await within(driver.models(lab.call), 'models');
  assert.ok(models.some(({ name, downloaded }) => name === nova && downloaded));
  assert.match(driver.observed?.models.current?.error?.message ?? '', /llminferenceservices/);
  assert.match((await driver.nodes?.(tenSeconds()))?.[0]?.message ?? '', /^served models: .*llminferenceservices/);
});

test('where the control plane cannot be looked for, the status says that it cannot tell', async () => {
  await using lab = await labWithout(reads('llminferenceserviceconfigs'));
  const { healthy, message } = await lab.driver.describe(tenSeconds());
  assert.equal(healthy, true);
  assert.match(
    message ?? '',
    /^cannot tell whether the llm-d control plane serves this cluster: .*list llminferenceserviceconfigs cluster-wide$/,
  );
});

test('an API server that does not know the kind at all: nothing is served, and the status says why', async () => {
  const objects = worldOf().filter(
    object => !['CustomResourceDefinition', 'LLMInferenceServiceConfig'].includes((object as { kind: string }).kind),
  );
  await using lab = await startDriver({ objects });
  assert.deepEqual(await lab.driver.loaded?.(tenSeconds()), []);
  assert.deepEqual(await lab.driver.models(tenSeconds()), []);
  const { healthy, message } = await lab.driver.describe(tenSeconds());
  assert.equal(healthy, false);
  assert.match(message ?? '', /^LLMInferenceService API not available in model-serving: /);
  assert.equal((await lab.driver.nodes?.(tenSeconds()))?.[0]?.message, undefined);
});

test('where no Job may be created, the cache says so and a pull is refused with it', async () => {
  await using lab = await labWithout(['create jobs']);
  const rows = (await within(lab.driver.nodes?.(lab.call) ?? assert.fail(), 'nodes')) ?? [];
  assert.match(rows[0]?.cache?.error ?? '', /^scan cache on any node: .*jobs/);
  const pulled = all(lab.driver.pull?.(lab.call, { model: nova, preset: 'nova-4b' }) ?? assert.fail());
  const error = await failure(within(pulled, 'the refusal'));
  assert.deepEqual([error.code, /jobs/.test(error.message)], ['forbidden', true]);
});

test('where logs must not be read, the cache says so; a download goes on to its end', async () => {
  await using lab = await labWithout(['get pods/log']);
  lab.ends('mm-', 'END\n');
  const rows = (await within(lab.driver.nodes?.(lab.call) ?? assert.fail(), 'nodes')) ?? [];
  assert.match(rows[0]?.cache?.error ?? '', /^scan cache on any node: .*pods\/log/);
  const pulled = all(lab.driver.pull?.(lab.call, { model: nova, preset: 'nova-4b' }) ?? assert.fail());
  assert.equal((await within(pulled, 'the download')).at(-1)?.status, 'downloaded');
});

test('a token that must not be read: the Hub is asked without it', async t => {
  const hub = await startHub({ models: [{ id: nova, files: [{ path: 'model.safetensors', bytes: 1_000 }] }] });
  t.after(() => hub.close());
  await using lab = await labWithout(['get secrets'], {
    flags: { hfEndpoint: hub.url, hfTokenSecret: 'hub-token' },
    hub: undefined,
  });
  const fit = await lab.driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' });
  assert.deepEqual([fit?.fits, fit?.weightsBytes, fit?.weightsSource], [true, 1_000, 'tree']);
  assert.equal(lab.requested('secrets', 'get').length, 1);
  assert.deepEqual(
    hub.requests.map(({ headers }) => headers.authorization),
    hub.requests.map(() => undefined),
  );
});

test('what goes on is not told before it is known where to look', async () => {
  await using lab = await labWithout(reads('configmaps'));
  await assert.rejects(async () => lab.driver.unfinished?.(tenSeconds()), {
    code: 'unavailable',
    message: /^backend unavailable: discovery: read discovery ConfigMap agent-platform\/agent-platform-model-serving: /,
  });
});
