/** The emulated API server, as Kubernetes' own client for JavaScript sees it: over TLS, with a token. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import {
  AuthorizationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  VersionApi,
} from '@kubernetes/client-node';
import { type ClusterUser, startCluster } from '../../../src/demo/cluster.ts';
import { createInbox } from '../../support/server.ts';
import { configMap, widget, widgets } from './lab.ts';

const bounded = { timeout: 20_000 };
const namespace = 'default';
const reader: ClusterUser = { rules: [{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }] };

async function started(t: TestContext) {
  const cluster = await startCluster({
    tls: true,
    users: { reader },
    objects: [widgets(), configMap('a', { x: '1' })],
  });
  t.after(() => cluster.close());
  const configOf = (user?: string) => {
    const config = new KubeConfig();
    config.loadFromString(cluster.kubeconfig(user));
    return config;
  };
  return { cluster, configOf, config: configOf() };
}

test('its certificate is of its own authority, for the loopback', bounded, async t => {
  const { cluster } = await started(t);
  const authority = new X509Certificate(cluster.ca);
  assert.ok(authority.ca);
  assert.ok(authority.verify(authority.publicKey));
  assert.match(cluster.url, /^https:/);
  await assert.rejects(fetch(`${cluster.url}/healthz`), TypeError);
});

test('it creates, reads, patches, lists and deletes', bounded, async t => {
  const { config } = await started(t);
  assert.equal((await config.makeApiClient(VersionApi).getCode()).major, '1');
  const core = config.makeApiClient(CoreV1Api);
  const created = await core.createNamespacedConfigMap({
    namespace,
    body: { metadata: { name: 'b' }, data: { x: '1' } },
  });
  assert.ok(created.metadata?.creationTimestamp instanceof Date);
  const strategic = setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch);
  const patched = await core.patchNamespacedConfigMap({ namespace, name: 'b', body: { data: { y: '2' } } }, strategic);
  assert.deepEqual(patched.data, { x: '1', y: '2' });
  const { items } = await core.listConfigMapForAllNamespaces();
  assert.deepEqual(
    items.map(({ metadata }) => metadata?.name),
    ['a', 'b'],
  );
  const gone = await core.deleteNamespacedConfigMap({ namespace, name: 'b' });
  assert.equal(gone.status, 'Success');
  await assert.rejects(core.readNamespacedConfigMap({ namespace, name: 'b' }), { code: 404 });
});

test('it handles custom objects and their status', bounded, async t => {
  const { config } = await started(t);
  const custom = config.makeApiClient(CustomObjectsApi);
  const place = { group: 'x.dev', version: 'v1', namespace, plural: 'widgets' };
  await custom.createNamespacedCustomObject({ ...place, body: widget('w', { spec: { size: 1 } }) });
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
  const body = { status: { phase: 'Ready' } };
  await custom.patchNamespacedCustomObjectStatus({ ...place, name: 'w', body }, merge);
  const { spec, status } = await custom.getNamespacedCustomObject({ ...place, name: 'w' });
  assert.deepEqual([spec, status], [{ size: 1 }, { phase: 'Ready' }]);
});

test('it is told what it may not do', bounded, async t => {
  const { configOf } = await started(t);
  const config = configOf('reader');
  const core = config.makeApiClient(CoreV1Api);
  await assert.rejects(core.deleteNamespacedConfigMap({ namespace, name: 'a' }), { code: 403 });
  const reviews = config.makeApiClient(AuthorizationV1Api);
  const resourceAttributes = { verb: 'delete', resource: 'configmaps', namespace };
  const { status } = await reviews.createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } });
  assert.equal(status?.allowed, false);
});

test('its informer follows every change', bounded, async t => {
  const { cluster, config } = await started(t);
  const core = config.makeApiClient(CoreV1Api);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
  t.after(() => informer.stop());
  const seen = createInbox<string>();
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, ({ metadata }) => seen.push(`${verb} ${metadata?.name}`));
  }
  await informer.start();
  assert.equal(await seen.next(), 'add a');
  await cluster.requested({ verb: 'watch', resource: 'configmaps' });
  cluster.put(configMap('b'));
  cluster.put(configMap('a', { x: '2' }));
  cluster.remove('configmaps', 'b', namespace);
  assert.deepEqual([await seen.next(), await seen.next(), await seen.next()], ['add b', 'update a', 'delete b']);
});
