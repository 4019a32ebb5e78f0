/** The emulated API server, as the official client for Node sees it: over TLS, with a token. */
import assert from 'node:assert/strict';
import { EventEmitter, on } from 'node:events';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import {
  ApiException,
  ApisApi,
  CoreV1Api,
  CustomObjectsApi,
  EventsV1Api,
  KubeConfig,
  KubernetesObjectApi,
  Log,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  VersionApi,
} from '@kubernetes/client-node';
import { type ClusterOptions, startCluster } from '../../../src/demo/cluster.ts';
import { kagentDefinition } from '../../../src/demo/kagent.ts';
import { within } from '../../support/server.ts';

const namespace = 'default';

async function started(t: TestContext, options: ClusterOptions = {}) {
  const cluster = await startCluster({ tls: true, users: {}, ...options });
  t.after(() => cluster.close());
  const configOf = (user?: string) => {
    const config = new KubeConfig();
    config.loadFromString(cluster.kubeconfig(user));
    return config;
  };
  const config = configOf();
  return { cluster, config, configOf, core: config.makeApiClient(CoreV1Api) };
}

const configMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels },
  data,
});

/** The words of the Status that an act is refused with. */
async function refusal(act: Promise<unknown>): Promise<string> {
  try {
    await act;
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    const { code, reason, message } = JSON.parse(error.body);
    return `${code} ${reason}: ${message}`;
  }
  return 'no refusal';
}

test('what is served is found', async t => {
  const { config } = await started(t, { objects: [kagentDefinition()] });
  assert.match((await config.makeApiClient(VersionApi).getCode()).gitVersion, /^v1\.\d+\.\d+$/);
  const { groups } = await config.makeApiClient(ApisApi).getAPIVersions();
  const kagent = groups.find(({ name }) => name === 'kagent.dev');
  assert.equal(kagent?.preferredVersion?.version, 'v1alpha3');
});

test('a server that its authority does not vouch for is not trusted', async t => {
  const [one, two] = [await started(t), await started(t)];
  const config = new KubeConfig();
  const mixed = { ...one.config.getCurrentCluster(), caData: two.config.getCurrentCluster()?.caData } as never;
  config.loadFromClusterAndUser(mixed, one.config.getCurrentUser() as never);
  await assert.rejects(config.makeApiClient(CoreV1Api).listNamespace(), ({ cause }: { cause: { code: string } }) => {
    assert.match(cause.code, /CERT|SIGNATURE/);
    return true;
  });
  assert.deepEqual(one.cluster.requests, []);
});

test('a user may do what a rule allows, and is told who may not do what', async t => {
  const rules = [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps'], namespaces: [namespace] }];
  const { cluster, configOf } = await started(t, { users: { reader: { rules } } });
  const core = configOf('reader').makeApiClient(CoreV1Api);
  assert.deepEqual((await core.listNamespacedConfigMap({ namespace })).items, []);
  const words = 'configmaps is forbidden: User "reader" cannot create resource "configmaps" in API group ""';
  assert.equal(
    await refusal(core.createNamespacedConfigMap({ namespace, body: configMap('a') })),
    `403 Forbidden: ${words} in the namespace "default"`,
  );
  assert.match(await refusal(core.listConfigMapForAllNamespaces()), /cannot list .* at the cluster scope$/);
  cluster.expireToken('reader');
  await assert.rejects(core.listNamespacedConfigMap({ namespace }), { code: 401 });
});

test('custom objects live like all others', async t => {
  const { config } = await started(t, { objects: [kagentDefinition()] });
  const custom = config.makeApiClient(CustomObjectsApi);
  const place = { group: 'kagent.dev', version: 'v1alpha3', namespace, plural: 'modelconfigs' };
  const body = {
    apiVersion: 'kagent.dev/v1alpha3',
    kind: 'ModelConfig',
    metadata: { name: 'a' },
    spec: { provider: 'Ollama', model: 'm', ollama: { host: 'http://ollama:11434' } },
  };
  await custom.createNamespacedCustomObject({ ...place, body });
  const named = { ...place, name: 'a' };
  const patched = await custom.patchNamespacedCustomObject(
    { ...named, body: { spec: { model: 'n' } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  );
  assert.deepEqual([patched.spec.model, patched.metadata.generation], ['n', 2]);
  const older = await custom.listNamespacedCustomObject({ ...place, version: 'v1alpha2' });
  assert.deepEqual(
    older.items.map((item: { apiVersion: string; spec: object }) => [item.apiVersion, item.spec]),
    [['kagent.dev/v1alpha2', patched.spec]],
  );
  await custom.patchNamespacedCustomObjectStatus(
    { ...named, body: [{ op: 'add', path: '/status', value: { observedGeneration: 2 } }] },
    setHeaderOptions('Content-Type', PatchStrategy.JsonPatch),
  );
  const read = await custom.getNamespacedCustomObject(named);
  assert.deepEqual([read.status.observedGeneration, read.metadata.generation], [2, 2]);
  await custom.deleteNamespacedCustomObject(named);
  assert.match(
    await refusal(custom.getNamespacedCustomObject(named)),
    /^404 NotFound: modelconfigs\.kagent\.dev "a" not found/,
  );
});

test('server-side apply of a status owns the status only, and of the object everything else', async t => {
  const { config, cluster } = await started(t, { objects: [kagentDefinition()] });
  const custom = config.makeApiClient(CustomObjectsApi);
  const place = { group: 'kagent.dev', version: 'v1alpha3', namespace, plural: 'modelconfigs', name: 'a' };
  const body = {
    apiVersion: 'kagent.dev/v1alpha3',
    kind: 'ModelConfig',
    metadata: { name: 'a', labels: { by: 'x' } },
    spec: { provider: 'Ollama', model: 'm' },
    status: { observedGeneration: 7 },
  };
  const applying = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);
  const missing = custom.patchNamespacedCustomObjectStatus({ ...place, body, fieldManager: 'early' }, applying);
  assert.match(await refusal(missing), /^404 NotFound/, 'a status has no object of its own');
  await custom.patchNamespacedCustomObject({ ...place, body, fieldManager: 'owner' }, applying);
  await custom.patchNamespacedCustomObjectStatus({ ...place, body, fieldManager: 'controller' }, applying);
  const { metadata, status } = cluster.get('modelconfigs.kagent.dev', 'a', namespace) ?? {};
  assert.deepEqual(status, { observedGeneration: 7 });
  assert.deepEqual(
    metadata?.managedFields?.map(entry => {
      const { manager, subresource, fieldsV1 } = entry as Record<string, unknown>;
      return [manager, subresource, fieldsV1];
    }),
    [
      ['controller', 'status', { 'f:status': { 'f:observedGeneration': {} } }],
      [
        'owner',
        undefined,
        { 'f:metadata': { 'f:labels': { 'f:by': {} } }, 'f:spec': { 'f:model': {}, 'f:provider': {} } },
      ],
    ],
  );
});

test('objects of any kind are applied and read by what they say they are', async t => {
  const { config } = await started(t);
  const objects = KubernetesObjectApi.makeApiClient(config);
  const body = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace },
    spec: { replicas: 2 },
  };
  await objects.patch(body as never, undefined, undefined, 'me', true, PatchStrategy.ServerSideApply);
  const read = (await objects.read(body)) as unknown as typeof body;
  assert.equal(read.spec.replicas, 2);
});

test('an event is one, by either of its groups', async t => {
  const { config, core, cluster } = await started(t);
  const { metadata } = cluster.put(configMap('a'));
  const involvedObject = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', namespace, uid: metadata.uid };
  const body = { metadata: { name: 'a.1' }, involvedObject, reason: 'Wired', message: 'done', type: 'Normal' };
  await core.createNamespacedEvent({ namespace, body });
  const fieldSelector = 'involvedObject.name=a,reason=Wired';
  assert.equal((await core.listNamespacedEvent({ namespace, fieldSelector })).items.length, 1);
  const [newer] = (await config.makeApiClient(EventsV1Api).listNamespacedEvent({ namespace })).items;
  assert.deepEqual([newer?.regarding?.name, newer?.note, newer?.reason], ['a', 'done', 'Wired']);
});

test('an informer keeps up through broken watches and forgotten history', async t => {
  const { cluster, config, core } = await started(t);
  cluster.put(configMap('before', {}, { seen: 'yes' }));
  const told = new EventEmitter();
  const events = on(told, 'event');
  const next = async (what: string) => ((await within(events.next(), what)).value as [string])[0];
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'seen=yes' });
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = makeInformer<V1ConfigMap>(config, path, list, 'seen=yes');
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, ({ metadata, data }) =>
      told.emit('event', `${verb} ${metadata?.name} ${Object.values(data ?? {})}`.trim()),
    );
  }
  let isOver = false;
  informer.on('error', () => {
    if (!isOver) void informer.start();
  });
  // Before the cluster ends: an informer starts anew for ever.
  await using stack = new AsyncDisposableStack();
  stack.defer(() => {
    isOver = true;
    return informer.stop();
  });
  await informer.start();
  const watches = (nth: number) => within(cluster.requested({ verb: 'watch', resource: 'configmaps' }, nth), 'a watch');

  assert.equal(await next('what was there'), 'add before');
  await watches(1);
  cluster.put(configMap('a', { k: '1' }, { seen: 'yes' }));
  cluster.put(configMap('unseen'));
  cluster.put(configMap('a', { k: '2' }, { seen: 'yes' }));
  assert.equal(await next('a new one'), 'add a 1');
  assert.equal(await next('a changed one'), 'update a 2');

  const broken = watches(2);
  cluster.cutWatches('configmaps');
  cluster.put(configMap('a', { k: '3' }, { seen: 'yes' }));
  cluster.remove('configmaps', 'before', namespace);
  cluster.compact();
  const seen = [await next('what happened meanwhile'), await next('what happened meanwhile')].sort();
  assert.deepEqual(seen, ['delete before', 'update a 3']);
  await broken;
  assert.deepEqual(
    informer.list().map(({ metadata }) => metadata?.name),
    ['a'],
  );
});

test('a log is followed to the end of its pod', async t => {
  const { cluster, config } = await started(t);
  const spec = { containers: [{ name: 'app', image: 'app:1' }] };
  cluster.put({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace }, spec });
  cluster.logs.set(namespace, 'p', 'app', { current: 'one\n' });
  const stream = new PassThrough({ encoding: 'utf8' });
  const pieces = on(stream, 'data', { close: ['end'] });
  await new Log(config).log(namespace, 'p', 'app', stream, { follow: true });
  assert.deepEqual((await within(pieces.next(), 'the log so far')).value, ['one\n']);
  cluster.logs.append(namespace, 'p', 'app', 'two\n');
  assert.deepEqual((await within(pieces.next(), 'what is written')).value, ['two\n']);
  cluster.remove('pods', 'p', namespace);
  assert.equal((await within(pieces.next(), 'the end')).done, true);
});

test('faults are met by the official client too', async t => {
  const { cluster, core } = await started(t);
  cluster.fault({
    kind: 'answer',
    status: 429,
    headers: { 'retry-after': '3' },
    verb: 'list',
    resource: 'configmaps',
    times: 1,
  });
  await assert.rejects(core.listNamespacedConfigMap({ namespace }), (error: unknown) => {
    assert.ok(error instanceof ApiException);
    assert.deepEqual([error.code, error.headers['retry-after']], [429, '3']);
    return true;
  });
  cluster.fault({ kind: 'drop', verb: 'list', resource: 'configmaps', times: 1 });
  await assert.rejects(core.listNamespacedConfigMap({ namespace }));
  assert.deepEqual((await core.listNamespacedConfigMap({ namespace })).items, []);
});
