import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type ClusterOptions, startCluster } from '../../src/demo/cluster.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { type ConfigMap, configMaps, type Resource } from '../../src/kubernetes/resource.ts';
import { callOf, failure, soon } from '../drivers/scripted.ts';
import { callWith, reply, startApi } from './apiLab.ts';

async function onCluster(t: TestContext, options: ClusterOptions = {}) {
  const cluster = await startCluster(options);
  t.after(() => cluster.close());
  return { cluster, client: createKubernetesClient(openServer(`${cluster.url}/`)) };
}

const namespace = 'default';
const object = (name: string, data: Readonly<Record<string, string>> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels: { app: name } },
  data,
});
const namesOf = (items: readonly ConfigMap[]) => items.map(({ metadata }) => metadata.name);
const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

test('an object is created, read, replaced, patched and removed', async t => {
  const { cluster, client } = await onCluster(t);
  const call = callOf();
  assert.equal(client.server, cluster.url, 'without a slash at its end');
  const created = await client.create(call, configMaps, object('a', { one: '1' }));
  assert.deepEqual(await client.get(call, configMaps, 'a', namespace), created);
  const replaced = await client.replace(call, configMaps, { ...created, data: { two: '2' } });
  assert.deepEqual(replaced.data, { two: '2' });
  const patched = await client.patch(call, configMaps, 'a', namespace, { data: { two: null, three: '3' } });
  assert.deepEqual(patched.data, { three: '3' });
  assert.equal(await client.remove(call, configMaps, 'a', namespace), true);
  assert.equal(await client.remove(call, configMaps, 'a', namespace), false);
  assert.equal((await failure(client.get(call, configMaps, 'a', namespace))).code, 'not_found');
  const written = cluster.requests.filter(({ verb }) => ['create', 'update', 'patch'].includes(verb));
  assert.deepEqual(
    written.map(({ query }) => query.get('fieldManager')),
    ['model-manager', 'model-manager', 'model-manager'],
  );
});

test('what is taken or has changed is a conflict', async t => {
  const { client } = await onCluster(t);
  const call = callOf();
  const first = await client.create(call, configMaps, object('a'));
  await assert.rejects(client.create(call, configMaps, object('a')), {
    code: 'conflict',
    message: 'cannot create configmaps a in namespace default: configmaps "a" already exists',
    details: { reason: 'AlreadyExists' },
  });
  const second = await client.replace(call, configMaps, { ...first, data: { a: '1' } });
  await assert.rejects(client.replace(call, configMaps, { ...first, data: { a: '2' } }), {
    code: 'conflict',
    details: { reason: 'Conflict' },
  });
  await assert.rejects(client.remove(call, configMaps, 'a', namespace, { uid: 'another' }), { code: 'conflict' });
  const { uid, resourceVersion } = first.metadata;
  await assert.rejects(client.remove(call, configMaps, 'a', namespace, { uid, resourceVersion }), { code: 'conflict' });
  assert.equal(await client.remove(call, configMaps, 'a', namespace, second.metadata), true);
});

test('a list has what is selected, however many pages it takes', async t => {
  const objects = Array.from({ length: 1_203 }, (_, index) => object(`c-${String(index).padStart(4, '0')}`));
  const { cluster, client } = await onCluster(t, { objects });
  const call = callOf();
  const { items, resourceVersion } = await client.list(call, configMaps, { namespace });
  assert.deepEqual(namesOf(items), namesOf(objects));
  assert.equal(cluster.requests.filter(({ verb }) => verb === 'list').length, 3);
  assert.match(resourceVersion, /^\d+$/);
  const some = await client.list(call, configMaps, { namespace, labelSelector: 'app in (c-0007, c-0009)' });
  assert.deepEqual(namesOf(some.items), ['c-0007', 'c-0009']);
  const one = await client.list(call, configMaps, { fieldSelector: 'metadata.name=c-0100' });
  assert.deepEqual(namesOf(one.items), ['c-0100']);
});

test('a watch goes on where the list ended', async t => {
  const { cluster, client } = await onCluster(t, { objects: [object('a')] });
  const { resourceVersion } = await client.list(callOf(), configMaps, { namespace });
  const watch = client.watch(callOf(), configMaps, { namespace }, { resourceVersion, timeoutSeconds: 300 });
  const read = watch[Symbol.asyncIterator]();
  cluster.put(object('b'));
  cluster.put(object('a', { changed: 'yes' }));
  cluster.remove('configmaps', 'b', namespace);
  const seen: unknown[] = [];
  while (seen.length < 3) {
    const { value } = await soon(read.next(), 'an event');
    if (value?.type !== 'BOOKMARK') seen.push([value?.type, value?.object.metadata.name]);
  }
  assert.deepEqual(seen, [
    ['ADDED', 'b'],
    ['MODIFIED', 'a'],
    ['DELETED', 'b'],
  ]);
  cluster.compact();
  await read.return?.();
  cluster.put(object('c'));
  const late = client.watch(callOf(), configMaps, { namespace }, { resourceVersion: '1', timeoutSeconds: 300 });
  const { code, details } = (await failure(late[Symbol.asyncIterator]().next())) as { code?: string; details?: object };
  assert.equal(code, 'backend_error');
  assert.deepEqual(details, { reason: 'Expired' });
});

test('rights are those of who calls, and a refusal says what they are needed for', async t => {
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['configmaps'], namespaces: [namespace] }];
  const { cluster, client } = await onCluster(t, { objects: [object('a')], users: { jane: { rules }, john: {} } });
  const jane = callWith(cluster.tokenOf('jane'));
  assert.equal((await client.get(jane, configMaps, 'a', namespace)).metadata.name, 'a');
  const denied = await failure(client.remove(jane, configMaps, 'model-backend-ollama', namespace));
  assert.equal(denied.code, 'forbidden');
  assert.match(
    denied.message,
    /^cannot delete configmaps model-backend-ollama in namespace default: .*User "jane" cannot delete .*; this is needed to/,
  );
  const john = callWith(cluster.tokenOf('john'));
  assert.equal((await failure(client.get(john, configMaps, 'a', namespace))).code, 'forbidden');
  assert.equal((await failure(client.get(callOf(), configMaps, 'a', namespace))).code, 'backend_error');
  cluster.expireToken('jane');
  assert.equal((await failure(client.get(jane, configMaps, 'a', namespace))).code, 'unauthenticated');
});

test('names never lead anywhere else', async t => {
  const { cluster, client } = await onCluster(t, { objects: [object('a')] });
  const call = callOf();
  for (const name of ['', '.', '..']) {
    for (const attempt of [
      client.get(call, configMaps, name, namespace),
      client.remove(call, configMaps, name, namespace),
      client.remove(call, configMaps, 'a', name),
      client.patch(call, configMaps, name, namespace, {}),
      client.replace(call, configMaps, object(name)),
      client.logs(call, name, namespace, {}),
    ]) {
      const error = await failure(attempt);
      assert.equal(error.code, 'invalid_request', name);
      assert.match(error.message, /is no name of an object|needs the name of a namespace/);
    }
  }
  for (const attempt of [
    client.get(call, configMaps, 'a'),
    client.create(call, configMaps, { metadata: { name: 'a' } }),
  ])
    assert.match((await failure(attempt)).message, /configmaps a.*: it needs the name of a namespace$/);
  assert.equal(cluster.requests.length, 0);

  const strange = '../../kube-system/secrets?watch=true#%2e';
  assert.match(
    (await failure(client.get(call, configMaps, strange, namespace))).code ?? '',
    /not_found|invalid_request/,
  );
  const [{ path, query } = assert.fail()] = cluster.requests;
  assert.equal(path.split('/').length, '/api/v1/namespaces/default/configmaps/x'.split('/').length);
  assert.equal(query.size, 0);
  assert.equal(cluster.get<ConfigMap>('configmaps', 'a', namespace)?.metadata.name, 'a');
});

test('resources without namespaces have none in their path, whatever is given', async t => {
  const api = await startApi(t, (_, response) => reply(response, { metadata: { name: 'n1' } }));
  const client = createKubernetesClient(openServer(api.url));
  await client.get(callOf(), nodes, 'n1', 'ignored');
  await client.create(callOf(), nodes, { metadata: { name: 'n1', namespace: 'ignored' } });
  assert.deepEqual(
    api.asked.map(({ path }) => path),
    ['/api/v1/nodes/n1', '/api/v1/nodes'],
  );
});

test('what a removal takes along is collected, and not waited for', async t => {
  const { cluster, client } = await onCluster(t, { objects: [object('a')] });
  await client.remove(callOf(), configMaps, 'a', namespace);
  assert.deepEqual(cluster.requests.at(-1)?.body, { propagationPolicy: 'Background' });
});

test('groups, versions and resources are discovered', async t => {
  const { client } = await onCluster(t);
  const call = callOf();
  assert.deepEqual(await client.versions(call, ''), { group: '', versions: ['v1'] });
  assert.equal(await client.versions(call, 'nowhere.example.com'), undefined);
  assert.deepEqual(await client.resources(call, 'nowhere.example.com', 'v1'), []);
  assert.deepEqual(await client.resources(call, '', 'v9'), []);
  const core = await client.resources(call, '', 'v1');
  assert.ok(core.includes('pods') && core.includes('configmaps'));
  assert.ok(!core.some(name => name.includes('/')), 'parts of objects are none');
});

test('the preferred version of a group comes first, and once', async t => {
  const versions = ['v1alpha2', 'v1alpha3', 'v1'].map(version => ({ groupVersion: `kagent.dev/${version}`, version }));
  const api = await startApi(t, (_, response) =>
    reply(response, { kind: 'APIGroup', name: 'kagent.dev', versions, preferredVersion: versions[1] }),
  );
  const client = createKubernetesClient(openServer(api.url));
  assert.deepEqual(await client.versions(callOf(), 'kagent.dev'), {
    group: 'kagent.dev',
    versions: ['v1alpha3', 'v1alpha2', 'v1'],
  });
  assert.equal(api.asked[0]?.path, '/apis/kagent.dev');
});

test('discovery that fails is no group that is not there', async t => {
  const api = await startApi(t, (_, response) => reply(response, { message: 'no' }, 403));
  const client = createKubernetesClient(openServer(api.url));
  const error = await failure(client.versions(callOf(), 'kagent.dev'));
  assert.equal(error.code, 'forbidden');
  assert.equal(error.message, 'cannot discover versions.kagent.dev: no');
});

test('a log is the end of what a container said, in whole lines', async t => {
  const line = (index: number) => `line ${index} ${'ü'.repeat(100)}\n`;
  const lines = Array.from({ length: 20_000 }, (_, index) => line(index)).join('');
  const api = await startApi(t, ({ query }, response, count) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end(count === 1 ? 'first\nsecond\n' : query.get('tailLines') === '0' ? '' : lines);
  });
  const client = createKubernetesClient(openServer(api.url));
  const call = callOf();
  assert.equal(await client.logs(call, 'p', namespace, {}), 'first\nsecond\n');
  const end = await client.logs(call, 'p', namespace, { container: 'main', previous: true, tailLines: 50_000 });
  assert.ok(Buffer.byteLength(end) <= 1024 * 1024);
  assert.ok(Buffer.byteLength(end) > 1024 * 1024 - 500, 'as much of it as may be');
  assert.ok(lines.endsWith(end) && end.startsWith('line '));
  assert.equal(await client.logs(call, 'p', namespace, { tailLines: 0 }), '');
  assert.deepEqual(
    api.asked.map(({ path, query }) => [path, Object.fromEntries(query)]),
    [
      ['/api/v1/namespaces/default/pods/p/log', { tailLines: '10000' }],
      ['/api/v1/namespaces/default/pods/p/log', { container: 'main', previous: 'true', tailLines: '50000' }],
      ['/api/v1/namespaces/default/pods/p/log', { tailLines: '0' }],
    ],
  );
});

test('a log of a container that does not run yet is refused in the words of the server', async t => {
  const words = 'container "main" in pod "p" is waiting to start: ContainerCreating';
  const api = await startApi(t, (_, response) =>
    reply(response, { message: words, reason: 'BadRequest', code: 400 }, 400),
  );
  const error = await failure(createKubernetesClient(openServer(api.url)).logs(callOf(), 'p', namespace, {}));
  assert.equal(error.code, 'invalid_request');
  assert.equal(error.message, `cannot get pods/log p in namespace default: ${words}`);
});

test('the API server goes and comes back', async t => {
  const { cluster, client } = await onCluster(t, { objects: [object('a')] });
  await client.get(callOf(), configMaps, 'a', namespace);
  await cluster.stop();
  const away = await failure(client.list(callOf(), pods, {}));
  assert.equal(away.code, 'unavailable');
  assert.equal(
    away.message,
    `cannot list pods in all namespaces: the API server at ${cluster.url} cannot be reached (ECONNREFUSED)`,
  );
  await cluster.start();
  assert.equal((await client.get(callOf(), configMaps, 'a', namespace)).metadata.name, 'a');
});
