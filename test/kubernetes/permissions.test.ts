import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMapName } from '../../src/backends/documents/configMap.ts';
import { addBackend, removeBackend } from '../../src/backends/documents/registration.ts';
import { kserveFlags } from '../../src/config/kserve.ts';
import { backendKinds } from '../../src/domain.ts';
import { permissionFor, permissions } from '../../src/kubernetes/permissions.ts';
import { callOf } from '../drivers/scripted.ts';
import { kagentNamespace, namespace, startOnCluster } from '../support/cluster.ts';
import { requestsBeyond, rulesOf, verbsUnused } from '../support/permitted.ts';
import { within } from '../support/server.ts';
import { lemonadeModel } from '../wiring/modelConfigs.ts';

const places = { own: namespace, kagent: kagentNamespace };

test('the gateway does all it does with the rights of the table, and needs each of them', async () => {
  const users = { gateway: { rules: rulesOf(places) } };
  await using world = await startOnCluster({ cluster: { users }, user: 'gateway', flags: ['--auto-wire=false'] });
  const { gateway, connected, cluster } = world;
  const wiring = connected.wiringAs?.() ?? assert.fail('there is no wiring');
  const call = callOf();
  const stop = wiring.known.subscribe(() => {});

  for (const endpoint of ['http://one.example:1', 'http://two.example:1']) {
    const { registered } = await addBackend(gateway, call, { kind: 'lemonade', endpoint });
    assert.equal(registered, true);
  }
  const ref = await wiring.wire(call, lemonadeModel());
  await wiring.wire(call, lemonadeModel(), { passthrough: false, secret: { name: 'theirs', key: 'KEY' } });
  await wiring.wire(call, lemonadeModel());
  await within(cluster.requested({ verb: 'watch', resource: 'modelconfigs.kagent.dev' }), 'a watch of ModelConfigs');
  await wiring.unwire(call, 'lemonade', 'qwen3-4b-FLM');
  assert.equal(cluster.get('modelconfigs.kagent.dev', ref.name, kagentNamespace), undefined);
  const { removed } = await removeBackend(gateway, call, { kind: 'lemonade' });
  assert.equal(removed, true);
  stop();

  assert.deepEqual(requestsBeyond(cluster.requests, places), []);
  assert.deepEqual(verbsUnused(cluster.requests, places), []);
});

test('a request that the table does not allow is found', async () => {
  await using world = await startOnCluster();
  const { cluster, connected } = world;
  const client = connected.kubernetes?.client ?? assert.fail('there is no client');
  const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
  const seen = cluster.requests.length;
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other', namespace } };
  await client.create(callOf(), configMaps, object);
  await client.remove(callOf(), configMaps, 'other', namespace);
  await client.list(callOf(), configMaps, { namespace: 'default' });
  await client.versions(callOf(), 'kagent.dev');
  const news = cluster.requests.slice(seen).filter(({ verb }) => verb !== 'watch');
  assert.deepEqual(requestsBeyond(news, places), [
    `delete configmaps other in ${namespace}`,
    'list configmaps  in default',
  ]);
});

test('the rows name documents as they are named, and each says what for', () => {
  const names = new Set(permissions.flatMap(({ resourceNames = [] }) => resourceNames));
  assert.deepEqual([...names], [...backendKinds.map(configMapName), kserveFlags.cacheIndexConfigmap.default]);
  for (const { why, verbs } of permissions) {
    assert.match(`this is needed to ${why}`, /^this is needed to [a-z].*[a-z]$/i);
    assert.ok(verbs.length > 0);
  }
});

test('a row is found by what is done, where and to what', () => {
  const update = { verb: 'update', group: '', resource: 'configmaps' };
  assert.equal(permissionFor(update)?.why, 'change or remove a registered backend');
  assert.ok(permissionFor({ ...update, scope: 'own', name: 'model-backend-ollama' }));
  assert.equal(permissionFor({ ...update, name: 'kube-root-ca.crt' }), undefined);
  assert.equal(permissionFor({ ...update, scope: 'kagent' }), undefined);
  assert.equal(permissionFor({ ...update, verb: 'deletecollection' }), undefined);
  assert.equal(permissionFor({ ...update, group: 'apps' }), undefined);
});
