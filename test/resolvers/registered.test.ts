import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentMap, documentText, namespace, startOnCluster } from '../support/cluster.ts';
import { facesOf } from '../support/faces.ts';
import { fakeDriver } from '../support/gateway.ts';
import { ask, eventually, openStream, textOf, within } from '../support/server.ts';

const lemonade = { kind: 'lemonade', endpoint: 'http://gpu-host:13305' };
const invalid = (what: string) => `invalid_request: invalid request: ${what}`;

test('adding a backend writes its document, and it is there', async () => {
  await using world = await startOnCluster({ drivers: [fakeDriver()] });
  await using faces = await facesOf(world.gateway);
  const add = async (asks: object) => {
    const { json } = await ask(faces.rest.server, textOf('addBackend'), asks);
    return json.errors ? json.errors[0].message : json.data.addBackend;
  };

  const planned = await add({ ...lemonade, dryRun: true });
  assert.equal(planned.dryRun, true);
  assert.deepEqual([planned.created, planned.registered, planned.backend], [null, null, null]);
  assert.equal(world.cluster.get('configmaps', 'model-backend-lemonade', namespace), undefined);

  const added = await add(lemonade);
  assert.equal(added.document, planned.document);
  assert.deepEqual([added.created, added.registered, added.error], [true, true, null]);
  assert.equal(added.backend.backend, 'lemonade');
  assert.equal(added.backend.source, 'PERSON');
  assert.deepEqual(added.configMap, {
    namespace,
    name: 'model-backend-lemonade',
    labels: [
      { key: 'agent-platform.giantswarm.io/model-backend', value: 'true' },
      { key: 'agent-platform.giantswarm.io/model-backend-source', value: 'person' },
    ],
  });
  const written = world.cluster.get<{ data: object }>('configmaps', 'model-backend-lemonade', namespace);
  assert.deepEqual(written?.data, { 'backend.yaml': added.document });

  const again = await add({ ...lemonade, source: 'cluster-manager' });
  assert.deepEqual([again.created, again.registered, again.backend.source], [false, true, 'CLUSTER_MANAGER']);
});

test('a registered backend is like any other', async () => {
  await using world = await startOnCluster({ drivers: [fakeDriver({ models: ['a:1b'] })] });
  await using faces = await facesOf(world.gateway);
  const { send } = faces.rest;
  world.cluster.put(documentMap('lmstudio', documentText('lmstudio')));
  await eventually(() => world.gateway.registry.backends.length === 2, 'the backend is registered');
  const { json } = await send('GET models');
  assert.deepEqual(
    json.models.map(({ backend, name }: { backend: string; name: string }) => `${backend}/${name}`),
    ['ollama/a:1b', 'lmstudio/a:1b', 'lmstudio/b:1b'],
  );
  assert.equal((await send('POST models/load', { model: 'b:1b' })).json.loaded, true);
  assert.match((await send('POST models/load', { model: 'a:1b' })).text, /exists on ollama, lmstudio/);
  // A kept answer is not kept over a registration.
  world.cluster.remove('configmaps', 'model-backend-lmstudio', namespace);
  await eventually(() => world.gateway.registry.backends.length === 1, 'the backend is gone');
  assert.equal((await send('GET models')).json.models.length, 1);
  assert.equal(
    await faces.refusal('getBackend', { backend: 'lmstudio' }),
    invalid('unknown backend "lmstudio" (configured: ollama)'),
  );
});

test('who watches sees backends come, their models too, and what is wrong with a document, in one event each', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  const { graphqlUrl } = faces.rest.server;
  const backends = await openStream(graphqlUrl, { query: textOf('watchBackends') });
  const models = await openStream(graphqlUrl, { query: textOf('watchModels') });
  const seen = async () => {
    const { items, removed, invalid } = (await backends.nextPayload()).data.backends;
    return [items.map((item: { backend: string }) => item.backend), removed.length, invalid];
  };
  assert.deepEqual(await seen(), [[], 0, []]);
  assert.deepEqual((await models.nextPayload()).data.models.items, []);

  world.cluster.put(documentMap('ollama', documentText('ollama')));
  assert.deepEqual(await seen(), [['ollama'], 0, []]);
  assert.equal((await models.nextPayload()).data.models.items.length, 2);

  world.cluster.put(documentMap('ollama', documentText('ollama', 'ftp://x')));
  const error = 'spec.endpoint: must be an http(s) URL, got "ftp://x"';
  assert.deepEqual(await seen(), [[], 1, [{ configMap: 'model-backend-ollama', error }]]);
  assert.equal((await models.nextPayload()).data.models.removed.length, 2);
  const listed = await faces.rest.send('GET backends');
  assert.deepEqual(listed.json, { backends: [], invalid: [{ configMap: 'model-backend-ollama', error }] });

  world.cluster.put(documentMap('ollama', documentText('ollama')));
  assert.deepEqual(await seen(), [['ollama'], 0, []]);
});

test('who comes and goes is no news of who stays', async () => {
  await using world = await startOnCluster({ drivers: [fakeDriver({ models: ['a:1b'] })] });
  await using faces = await facesOf(world.gateway);
  const { graphqlUrl } = faces.rest.server;
  const backends = await openStream(graphqlUrl, { query: textOf('watchBackends') });
  const named = await openStream(graphqlUrl, {
    query: 'subscription { models(backend: "ollama") { items { name } } }',
  });
  await named.nextPayload();
  const names = async () =>
    (await backends.nextPayload()).data.backends.items.map((item: { backend: string }) => item.backend);
  assert.deepEqual(await names(), ['ollama']);
  world.cluster.put(documentMap('lmstudio', documentText('lmstudio')));
  assert.deepEqual(await names(), ['lmstudio']);
  world.cluster.remove('configmaps', 'model-backend-lmstudio', namespace);
  assert.deepEqual(await names(), []);
  assert.deepEqual(named.unread, []);
});

test('a document that is refused on reading is written all the same, and says why', async () => {
  await using world = await startOnCluster({
    build: () => {
      throw new Error('no such machine');
    },
  });
  await using faces = await facesOf(world.gateway);
  const { json } = await ask(faces.rest.server, textOf('addBackend'), lemonade);
  const { created, registered, error, backend } = json.data.addBackend;
  assert.deepEqual(
    [created, registered, error, backend],
    [true, false, 'build lemonade backend: no such machine', null],
  );
});

test('removing a backend unwires its models, then removes the document', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  const { send } = faces.rest;
  const remove = async (asks: object) =>
    (await ask(faces.rest.server, textOf('removeBackend'), asks)).json.data.removeBackend;
  await ask(faces.rest.server, textOf('addBackend'), lemonade);
  for (const model of ['a:1b', 'b:1b']) assert.equal((await send('POST models/wire', { model })).status, 200);

  const planned = await remove({ kind: 'lemonade', dryRun: true });
  assert.deepEqual(planned.modelConfigs.toSorted(), ['a:1b', 'b:1b']);
  assert.equal(world.cluster.list('modelconfigs.kagent.dev').length, 2);

  const removed = await remove({ kind: 'lemonade' });
  assert.deepEqual(removed.unwired.toSorted(), ['a:1b', 'b:1b']);
  assert.deepEqual([removed.removed, removed.deregistered, removed.modelConfigs], [true, true, null]);
  assert.deepEqual(world.cluster.list('modelconfigs.kagent.dev'), []);
  assert.deepEqual(world.gateway.registry.backends, []);
  assert.equal(
    await faces.refusal('removeBackend', { kind: 'lemonade' }),
    `not_found: model not found: no lemonade backend document in ${namespace}`,
  );
});

test('what can be no name of a document is not asked for', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  for (const kind of ['../secrets/x', 'x'.repeat(300), 'OLLAMA', 'a b']) {
    const refusal = await faces.refusal('removeBackend', { kind });
    assert.equal(
      refusal,
      `not_found: model not found: no ${kind.length < 80 ? JSON.stringify(kind) : `"${kind.slice(0, 80)}…"`} backend document in ${namespace}`,
    );
  }
  assert.ok(!world.cluster.requests.some(({ verb }) => verb === 'get'));
});

test('a ConfigMap that is no document is left alone', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  const foreign = { ...documentMap('lemonade', 'mine'), metadata: { name: 'model-backend-lemonade', namespace } };
  world.cluster.put(foreign);
  const words = `conflict: conflict: ConfigMap ${namespace}/model-backend-lemonade exists but is not labelled as a backend document; label or remove it by hand`;
  assert.equal(await faces.refusal('addBackend', lemonade), words);
  assert.equal(await faces.refusal('removeBackend', { kind: 'lemonade' }), words);
  assert.deepEqual(
    world.cluster.get<typeof foreign>('configmaps', 'model-backend-lemonade', namespace)?.data,
    foreign.data,
  );
});

test('a document that is being deleted is not replaced', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  const document = documentMap('lemonade', documentText('lemonade'));
  world.cluster.put({ ...document, metadata: { ...document.metadata, finalizers: ['example.com/kept'] } });
  world.cluster.remove('configmaps', 'model-backend-lemonade', namespace);
  assert.equal(
    await faces.refusal('addBackend', lemonade),
    `conflict: conflict: ConfigMap ${namespace}/model-backend-lemonade is being deleted; try again when it is gone`,
  );
});

test('backends that are added and removed at the same time end as the last one said, without an error', async () => {
  await using one = await startOnCluster();
  await using two = await startOnCluster({ cluster: one.cluster });
  await using first = await facesOf(one.gateway);
  await using second = await facesOf(two.gateway);
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, index) => {
      const endpoint = `http://gpu-host-${index}:13305`;
      return ask((index % 2 ? first : second).rest.server, textOf('addBackend'), { ...lemonade, endpoint });
    }),
  );
  for (const { json } of answers)
    assert.ok(!json.errors || /modified|exists/.test(json.errors[0].message), JSON.stringify(json));
  assert.ok(answers.filter(({ json }) => !json.errors).length >= 3);
});

test('what a backend that is gone has left can be unwired, by its name and without', async () => {
  for (const asks of [{ model: 'a:1b', backend: 'lemonade' }, { model: 'a:1b' }]) {
    await using world = await startOnCluster({
      drivers: [fakeDriver(), fakeDriver({ name: 'lmstudio', kind: 'lmstudio' })],
    });
    await using faces = await facesOf(world.gateway);
    await ask(faces.rest.server, textOf('addBackend'), lemonade);
    await faces.rest.send('POST models/wire', { model: 'a:1b', backend: 'lemonade' });
    world.cluster.remove('configmaps', 'model-backend-lemonade', namespace);
    await eventually(() => world.gateway.registry.backends.length === 2, 'the backend is gone');
    assert.equal(world.cluster.list('modelconfigs.kagent.dev').length, 1);
    assert.equal((await faces.rest.send('POST models/unwire', asks)).status, 200);
    assert.deepEqual(world.cluster.list('modelconfigs.kagent.dev'), []);
  }
});

test('asking what would be done never does it', async () => {
  await using world = await startOnCluster();
  await using faces = await facesOf(world.gateway);
  for (const [dryRun, shown] of [
    ['yes', 'yes'],
    ['', ''],
    [[true], '[true]'],
    [{}, '{}'],
  ] as const) {
    const refusal = await faces.toolRefusal('add_backend', { ...lemonade, dryRun });
    assert.equal(refusal, invalid(`"dryRun" is ${JSON.stringify(shown)}, it must be true or false`));
  }
  assert.equal(world.cluster.get('configmaps', 'model-backend-lemonade', namespace), undefined);
});

test('a Secret is named as Secrets are', async () => {
  await using world = await startOnCluster({ drivers: [fakeDriver({ models: ['a:1b'] })] });
  await using faces = await facesOf(world.gateway);
  const refusal = (asks: object) => faces.refusal('wireModel', { model: 'a:1b', ...asks });
  for (const apiKeySecret of ['../../etc/passwd', 'A', 'x'.repeat(300), 'a\u0000b']) {
    assert.match(
      await refusal({ apiKeySecret }),
      /^invalid_request: invalid request: apiKeySecret: must be the name of a Secret, got "/,
    );
  }
  assert.match(
    await refusal({ apiKeySecret: 'a', apiKeySecretKey: 'a b' }),
    /: apiKeySecretKey: must be a key of a Secret/,
  );
});

test('what runs on a backend that is replaced runs on', async () => {
  const gate = Promise.withResolvers<void>();
  let built = 0;
  await using world = await startOnCluster({
    build: ({ spec }) => {
      const driver = fakeDriver({ name: spec.kind, kind: spec.kind, models: ['a:1b'] });
      if (built++ === 0) {
        driver.script.pull = async function* () {
          yield { status: 'downloading', bytesCompleted: 1, bytesTotal: 2 };
          await gate.promise;
          yield { status: 'success', bytesCompleted: 2, bytesTotal: 2 };
        };
      }
      return driver;
    },
  });
  await using faces = await facesOf(world.gateway);
  world.cluster.put(documentMap('ollama', documentText('ollama')));
  await eventually(() => world.gateway.registry.backends.length === 1, 'the backend is registered');
  const [before] = world.gateway.registry.backends;
  const { json } = await faces.rest.send('POST models/pull', { model: 'a:1b', wire: false });
  world.cluster.put(documentMap('ollama', documentText('ollama', 'http://other:1')));
  await eventually(() => world.gateway.registry.backends[0] !== before, 'the backend is replaced');
  const joined = await faces.rest.send('POST models/pull', { model: 'a:1b', wire: false });
  assert.equal(joined.json.created, false, 'a pull of the same model joins it');
  gate.resolve();
  const stream = await openStream(faces.rest.server.graphqlUrl, {
    query: textOf('watchJob'),
    variables: { id: json.job.id },
  });
  await within(
    (async () => {
      while ((await stream.nextPayload()).data.job.job.phase !== 'SUCCEEDED');
    })(),
    'the pull succeeds',
  );
});
