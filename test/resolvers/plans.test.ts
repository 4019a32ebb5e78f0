/** Dry runs: they tell what would be done, are refused as it would be, and write nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FitResult } from '../../src/domain.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { backendError, conflict, GatewayError, modelNotFound, unavailable } from '../../src/errors.ts';
import { startOnCluster } from '../support/cluster.ts';
import { startEmulated } from '../support/emulated.ts';
import { facesOf, startFaces } from '../support/faces.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { startHosts } from '../support/hosts.ts';
import { type Action, planOn, planRefusal } from '../support/plans.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';

const everyAction: readonly Action[] = ['pull', 'load', 'unload', 'delete'];
const two = { ollama: { models: [{ name: 'a:1b' }] }, lemonade: { models: [{ name: 'b-FLM' }] } };

test('hosts are only read for a plan, and it says how the model stands', async () => {
  await using hosts = await startHosts({ ...two, lmstudio: { models: [{ name: 'c/d', bytes: 1 }] } });
  hosts.ollama.load('a:1b', '5m');
  await using faces = await facesOf(hosts.gateway);
  const { ollama, lemonade, lmstudio } = hosts;
  const plain = { dryRun: true, manifests: [] };

  const onOllama = { ...plain, backend: 'ollama', model: 'a:1b' };
  assert.deepEqual(await planOn(faces, 'load', { model: 'A:1B', keepAlive: ' -1 ' }), {
    ...onOllama,
    present: true,
    loaded: true,
    keepAlive: '-1',
  });
  assert.deepEqual(await planOn(faces, 'unload', { model: 'a:1b' }), { ...onOllama, loaded: true });
  assert.deepEqual(await planOn(faces, 'pull', { model: 'a:1b' }), { ...onOllama, present: true });
  assert.deepEqual(await planOn(faces, 'delete', { model: 'a:1b' }), {
    ...onOllama,
    present: true,
    deletes: [{ kind: 'Model', name: 'a:1b', where: ollama.url }],
  });

  const onLemonade = { ...plain, backend: 'lemonade', model: 'b-FLM' };
  assert.deepEqual(await planOn(faces, 'load', { model: 'b-FLM' }), {
    ...onLemonade,
    present: true,
    loaded: false,
    keepAlive: '5m',
  });
  assert.deepEqual(await planOn(faces, 'unload', { model: 'b-FLM' }), { ...onLemonade, loaded: false });
  assert.deepEqual(await planOn(faces, 'pull', { model: 'new', backend: 'lemonade' }), {
    ...onLemonade,
    model: 'new',
    present: false,
  });
  assert.equal((await planOn(faces, 'delete', { model: 'b-FLM' })).deletes[0].where, lemonade.url);
  assert.equal((await planOn(faces, 'load', { model: 'c/d' })).backend, 'lmstudio');
  assert.equal((await planOn(faces, 'unload', { model: 'c/d' })).loaded, false);

  for (const host of [ollama, lemonade, lmstudio]) {
    assert.ok(host.requests.length > 0);
    assert.deepEqual(
      host.requests.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`),
      [],
    );
  }
  assert.deepEqual(hosts.gateway.jobs.store.list(), []);
  // What was not done can be done.
  assert.equal((await faces.rest.send('DELETE models/a:1b?dryRun=false')).json.deleted, true);
});

test('in a cluster nothing is written, and what is planned is what is written then', async () => {
  await using emulated = await startEmulated({ models: [{ name: 'a:1b' }], registry: [] });
  await using lemonade = await startHosts(two);
  const others = lemonade.gateway.registry.backends.slice(1, 2).map(({ driver }) => driver);
  await using world = await startOnCluster({ drivers: [emulated.driver, ...others], flags: ['--auto-wire'] });
  await using faces = await facesOf(world.gateway);
  const written = () => world.cluster.requests.filter(({ method }) => method !== 'GET');

  const load = await planOn(faces, 'load', { model: 'a:1b' });
  assert.deepEqual(load.wiring, { wired: true });
  assert.deepEqual(
    load.manifests.map(({ kind, metadata }: { kind: string; metadata: object }) => [kind, metadata]),
    [
      [
        'ModelConfig',
        {
          name: 'a-1b',
          namespace: 'kagent',
          labels: { 'app.kubernetes.io/managed-by': 'model-manager', 'model-manager.giantswarm.io/backend': 'ollama' },
          annotations: { 'model-manager.giantswarm.io/model': 'a:1b' },
        },
      ],
    ],
  );
  const [secret, modelConfig] = (await planOn(faces, 'load', { model: 'b-FLM' })).manifests;
  assert.deepEqual([secret.kind, secret.stringData], ['Secret', { OPENAI_API_KEY: 'placeholder' }]);
  assert.equal(modelConfig.spec.apiKeySecret, secret.metadata.name);
  assert.equal(
    (await planOn(faces, 'pull', { model: 'new', backend: 'ollama' })).manifests[0].spec.model,
    'new:latest',
  );
  assert.deepEqual((await planOn(faces, 'pull', { model: 'new', backend: 'ollama', wire: false })).manifests, []);
  assert.deepEqual((await planOn(faces, 'delete', { model: 'b-FLM' })).deletes.length, 1);
  assert.deepEqual(written(), []);

  await faces.rest.send('POST models/load', { model: 'b-FLM' });
  assert.deepEqual(
    written().map(({ body }) => {
      const { kind, spec, stringData } = body as Record<string, unknown>;
      return { kind, spec, stringData };
    }),
    [
      { kind: 'Secret', spec: undefined, stringData: secret.stringData },
      { kind: 'ModelConfig', spec: modelConfig.spec, stringData: undefined },
    ],
  );
  const before = written().length;
  const again = await planOn(faces, 'load', { model: 'b-FLM' });
  assert.deepEqual([again.manifests, again.wiring.reason], [[], 'already wired']);
  assert.equal(again.wiring.modelConfig.name, modelConfig.metadata.name);
  const { deletes } = await planOn(faces, 'delete', { model: 'b-FLM' });
  assert.deepEqual(
    deletes.map(({ kind, namespace, name }: Record<string, string>) => [kind, namespace, name].join(' ')),
    [`ModelConfig kagent ${modelConfig.metadata.name}`, `Secret kagent ${secret.metadata.name}`, 'Model  b-FLM'],
  );
  assert.equal((await planOn(faces, 'delete', { model: 'b-FLM', unwire: false })).deletes.length, 1);
  assert.equal(written().length, before);
  assert.deepEqual(
    [...emulated.ollama.requests, ...lemonade.lemonade.requests]
      .filter(({ method }) => method !== 'GET')
      .map(({ path }) => path),
    ['/api/v1/load'],
  );
});

test('a wiring that would fail is said, and keeps nobody from the load', async () => {
  const wiring = fakeWiring();
  wiring.failure = backendError('the API server is not there');
  await using faces = await startFaces({ drivers: [fakeDriver({ models: ['a:1b'] })], wiring });
  const failed = { wired: false, reason: 'wiring failed', error: 'the API server is not there' };
  assert.deepEqual((await planOn(faces, 'load', { model: 'a:1b' })).wiring, failed);
  assert.deepEqual((await planOn(faces, 'pull', { model: 'a:1b', wire: true })).wiring, failed);
  // A deletion unwires first, and ends there.
  assert.equal(await planRefusal(faces, 'delete', { model: 'a:1b' }), 'backend_error: the API server is not there');
  assert.deepEqual(wiring.asked, []);
});

test('a pull that runs would be joined; one of a backend that is down says nothing of the model', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const end = Promise.withResolvers<void>();
  driver.script.pull = async function* () {
    await end.promise;
    yield { status: 'success', bytesCompleted: 1, bytesTotal: 1 };
  };
  const down = fakeDriver({ name: 'lemonade' });
  down.script.models = async (): Promise<never> => {
    throw unavailable('connection refused');
  };
  const gateway = testGateway({ drivers: [driver, down] });
  await using faces = await facesOf(gateway);
  const { json } = await faces.rest.send('POST models/pull', { model: 'a:1b' });
  const joined = { dryRun: true, backend: 'ollama', model: 'a:1b', joins: json.job.id, manifests: [] };
  assert.deepEqual(await planOn(faces, 'pull', { model: 'a:1b' }), joined);
  end.resolve();
  const unknown = { dryRun: true, backend: 'lemonade', model: 'x', manifests: [] };
  assert.deepEqual(await planOn(faces, 'pull', { model: 'x', backend: 'lemonade' }), unknown);
  assert.equal(gateway.jobs.store.list().length, 1);
});

test('whatever is refused is refused as a plan in the same words, and by the same status', async () => {
  const able = { pull: true, delete: true, load: true, unload: true };
  const down = fakeDriver({ name: 'lemonade', kind: 'lemonade', models: ['a:1b', 'c:1b'] });
  const weak = fakeDriver({
    name: 'lmstudio',
    kind: 'lmstudio',
    models: ['d:1b'],
    capabilities: { pull: false, delete: false, load: false, unload: false },
  });
  const kserve = servingDriver({ capabilities: able, models: ['k'] });
  await using host = await startEmulated({
    models: [{ name: 'a:1b' }, { name: 'e:1b-cloud' }],
    others: [down, weak, kserve],
  });
  await using faces = await facesOf(host.gateway);
  const both = async (action: Action, asks: Record<string, unknown>) => {
    const refused = await planRefusal(faces, action, asks);
    assert.notEqual(refused, 'not: refused', `${action} ${JSON.stringify(asks)}`);
    assert.equal(await faces.refusal(`${action}Model`, asks), refused);
    return refused.slice(0, refused.indexOf(':'));
  };

  for (const action of everyAction) {
    assert.equal(await both(action, { model: 'a', backend: 'nope' }), 'invalid_request');
    assert.equal(await both(action, { model: '../a' }), 'invalid_request');
    assert.equal(await both(action, { model: 'd:1b', backend: 'lmstudio' }), 'unsupported');
    if (action === 'pull') continue;
    assert.equal(await both(action, { model: 'nope' }), 'not_found');
    assert.equal(await both(action, { model: 'a:1b' }), 'conflict');
  }
  assert.equal(await both('pull', { model: 'a:1b', wire: true }), 'unsupported');
  assert.equal(await both('load', { model: 'a:1b', backend: 'ollama', keepAlive: '0m' }), 'invalid_request');
  assert.equal(await both('load', { model: 'e:1b-cloud', backend: 'ollama' }), 'invalid_request');
  down.script.models = async (): Promise<never> => {
    throw unavailable('connection refused');
  };
  for (const backend of host.gateway.registry.backends) backend.changed();
  for (const action of ['load', 'unload', 'delete'] as const)
    assert.equal(await both(action, { model: 'c:1b' }), 'unavailable');
  assert.deepEqual(
    host.ollama.requests.filter(({ method }) => method !== 'GET'),
    [],
  );

  await using empty = await startFaces({ drivers: [] });
  for (const action of everyAction) {
    assert.equal(
      await planRefusal(empty, action, { model: 'a' }),
      await empty.refusal(`${action}Model`, { model: 'a' }),
    );
  }
});

const fit: FitResult = { backend: 'kserve', model: 'acme/m', fits: true, tokenConfigured: true, freeBytes: 5 };
const service = {
  apiVersion: 'serving.kserve.io/v1alpha2',
  kind: 'LLMInferenceService',
  metadata: { name: 'm', namespace: 'model-serving' },
  spec: { replicas: 1 },
};

/** A backend that serves from objects: what it was asked to do, and what it refuses. */
function serving(more: Partial<Driver> = {}) {
  const base: FakeDriver = servingDriver({
    capabilities: { pull: true, delete: true, load: true, unload: true },
    models: [{ name: 'acme/m', downloaded: true }],
  });
  const done: string[] = [];
  const served = { backend: 'kserve', name: 'acme/m', resource: 'm', kind: 'LLMInferenceService' };
  const driver: Driver = {
    ...base,
    planServe: async (_call, { node }) => {
      if (node === 'small') {
        const small = { ...fit, fits: false, reason: 'too small' };
        throw new GatewayError('does_not_fit', 'too small', { details: { fit: small } });
      }
      const model = { backend: 'kserve', name: 'acme/m', downloaded: true };
      const access = { protocol: 'openai', url: 'http://m/v1', model: 'm', key: 'placeholder', object: 'm' } as const;
      const isServed = node === 'served';
      return {
        model,
        preset: 'm',
        fit,
        manifests: isServed ? [] : [service],
        access,
        ...(isServed && { serving: served }),
      };
    },
    serve: async () => {
      done.push('serve');
      return served;
    },
    planUnserve: async (_call, reference) => {
      if (reference !== 'acme/m') throw modelNotFound(`nothing serves ${reference}`);
      return { serving: [served], objects: [{ namespace: 'model-serving', name: served.resource, uid: 'u' }] };
    },
    unserve: async () => {
      done.push('unserve');
      return { gone: [served], inventory: { refreshing: false, reason: 'because' } };
    },
    ...more,
  };
  return { driver, done };
}

test('what is served as objects shows them, with the fit and what agents would know', async () => {
  const { driver, done } = serving();
  await using faces = await startFaces({ drivers: [driver], wiring: fakeWiring() });
  const load = await planOn(faces, 'load', { model: 'acme/m' });
  assert.deepEqual(
    load.manifests.map(({ kind }: { kind: string }) => kind),
    ['LLMInferenceService', 'ModelConfig'],
  );
  assert.deepEqual(load.manifests[0], service);
  assert.deepEqual([load.fit.freeBytes, load.alreadyServing, load.present, load.loaded], [5, undefined, true, false]);
  const again = await planOn(faces, 'load', { model: 'acme/m', node: 'served' });
  assert.deepEqual([again.alreadyServing, again.loaded, again.manifests.length], [true, true, 1]);
  assert.deepEqual(await planOn(faces, 'unload', { model: 'acme/m' }), {
    dryRun: true,
    backend: 'kserve',
    model: 'acme/m',
    loaded: true,
    manifests: [],
    deletes: [{ kind: 'LLMInferenceService', namespace: 'model-serving', name: 'm' }],
  });
  assert.deepEqual(done, []);

  const served = (await faces.rest.send('POST models/load', { model: 'acme/m' })).json;
  assert.deepEqual([served.loaded, served.running.resource, served.fit.freeBytes], [true, 'm', 5]);
  const unloaded = (await faces.rest.send('POST models/unload', { model: 'acme/m' })).json;
  assert.deepEqual(unloaded.inventory, { refreshing: false, reason: 'because' });
  assert.deepEqual(done, ['serve', 'unserve']);
});

test('what would not be served is refused with its fit, and nothing is done', async () => {
  const refused = (code: 'conflict' | 'unavailable') => async (): Promise<never> => {
    throw code === 'conflict' ? conflict('somebody else has that name') : unavailable('nothing would bring it up');
  };
  for (const [more, action, asks, code] of [
    [{}, 'load', { node: 'small' }, 'does_not_fit'],
    [{ planServe: refused('unavailable') }, 'load', {}, 'unavailable'],
    [{ planServe: refused('conflict') }, 'load', {}, 'conflict'],
    [{ planUnserve: refused('conflict') }, 'unload', {}, 'conflict'],
    [{ planRemove: refused('conflict') }, 'delete', {}, 'conflict'],
  ] as const) {
    const { driver, done } = serving(more);
    await using faces = await startFaces({ drivers: [driver] });
    const words = await planRefusal(faces, action, { model: 'acme/m', ...asks });
    assert.ok(words.startsWith(`${code}: `), words);
    assert.equal(await faces.refusal(`${action}Model`, { model: 'acme/m', ...asks }), words);
    assert.deepEqual(done, []);
  }
  await using faces = await startFaces({ drivers: [serving().driver] });
  const query = '{ planLoad(model: "acme/m", node: "small") { model } }';
  const { extensions } = (
    await fetch(faces.rest.server.graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    }).then(answer => answer.json())
  ).errors[0];
  assert.deepEqual([extensions.http.status, extensions.fit.reason], [412, 'too small']);
});

test('a dry run that is asked for in no way at all is refused by name, and nothing is done', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  await using faces = await startFaces({ drivers: [driver] });
  const words = (value: string) => `invalid_request: invalid request: "dryRun" is "${value}", it must be true or false`;
  for (const action of ['pull', 'load', 'unload']) {
    const answer = await faces.rest.send(`POST models/${action}`, { model: 'a:1b', dryRun: 'yes' });
    assert.equal(`${answer.json.error.code}: ${answer.json.error.message}`, words('yes'));
    assert.equal(await faces.toolRefusal(`${action}_model`, { model: 'a:1b', dryRun: 'yes' }), words('yes'));
  }
  assert.equal((await faces.rest.send('DELETE models/a:1b?dryRun=yes')).status, 400);
  assert.equal(await faces.toolRefusal('delete_model', { model: 'a:1b', dryRun: [1] }), words('[1]'));
  assert.deepEqual(driver.asked, []);
});
