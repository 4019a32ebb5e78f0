/** The emulated API server, as the real `kubectl` sees it: over TLS, with a token. */
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type EmulatedCluster, type KubernetesObject, startCluster } from '../../../src/demo/cluster.ts';
import { type Kubectl, kubectlWith, skip } from '../../support/kubectl.ts';

let cluster: EmulatedCluster;
let kubectl: Kubectl;
let viewer: Kubectl;
let spaces = 0;

before(async () => {
  if (skip) return;
  const reading = { verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] };
  cluster = await startCluster({ tls: true, users: { viewer: { rules: [reading] } } });
  kubectl = await kubectlWith(cluster.kubeconfig());
  viewer = await kubectlWith(cluster.kubeconfig('viewer'));
});
after(async () => {
  await kubectl?.[Symbol.asyncDispose]();
  await viewer?.[Symbol.asyncDispose]();
  await cluster?.close();
});

/** A namespace for a test alone. */
function space(): string {
  const name = `space-${++spaces}`;
  cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}

/** A run of kubectl in a namespace; the words of a text are its arguments. */
const within = (namespace: string, words: string) => ['-n', namespace, ...words.split(' ')];

const configMap = (name: string, data: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
});
const pod = (name: string, labels: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: { containers: [{ name: 'app', image: 'app:1' }] },
});
const widgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.x.dev' },
  spec: {
    group: 'x.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wd'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' } } },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};

const rowsOf = (table: string) =>
  table
    .trimEnd()
    .split('\n')
    .map(row => row.split(/\s{2,}/));

describe('kubectl', { skip }, () => {
  test('finds what is served', async () => {
    assert.match(await kubectl.ok(['version']), /^Server Version: v1\.\d+/m);
    const versions = (await kubectl.ok(['api-versions'])).trim().split('\n');
    for (const version of ['v1', 'apps/v1', 'apiextensions.k8s.io/v1']) assert.ok(versions.includes(version), version);
    const resources = await kubectl.ok(['api-resources', '--verbs=list', '--no-headers']);
    assert.match(resources, /^configmaps +cm +v1 +true +ConfigMap$/m);
    assert.match(resources, /^deployments +deploy +apps\/v1 +true +Deployment$/m);
  });

  test('gets tables, documents and names, by labels and by fields', async () => {
    const namespace = space();
    for (const object of [pod('a', { app: 'x' }), pod('b', { app: 'y' })]) {
      cluster.put({ ...object, metadata: { ...object.metadata, namespace } });
    }
    cluster.update<{ status: { phase?: string } }>('pods', 'b', namespace, ({ status }) => {
      status.phase = 'Running';
    });
    const table = rowsOf(await kubectl.ok(within(namespace, 'get pods')));
    assert.deepEqual(
      table.map(row => row.slice(0, 3)),
      [
        ['NAME', 'READY', 'STATUS'],
        ['a', '0/1', 'Pending'],
        ['b', '0/1', 'Running'],
      ],
    );
    assert.match(await kubectl.ok(within(namespace, 'get pods -A')), new RegExp(`^${namespace} +a +`, 'm'));
    const yaml = await kubectl.ok(within(namespace, 'get pod a -o yaml'));
    assert.match(yaml, /^apiVersion: v1\nkind: Pod\nmetadata:\n/);
    assert.match(yaml, /^ {2}- image: app:1\n {4}name: app$/m);
    const list = await kubectl.json<{ items: KubernetesObject[] }>(within(namespace, 'get pods'));
    assert.deepEqual(
      list.items.map(({ kind, metadata }) => [kind, metadata.name]),
      [
        ['Pod', 'a'],
        ['Pod', 'b'],
      ],
    );
    const names: Readonly<Record<string, string>> = {
      '-l app=x': 'pod/a\n',
      '-l app!=x': 'pod/b\n',
      '--field-selector status.phase=Running': 'pod/b\n',
      '--field-selector metadata.name=a': 'pod/a\n',
    };
    for (const [selector, expected] of Object.entries(names)) {
      assert.equal(await kubectl.ok(within(namespace, `get pods -o name ${selector}`)), expected, selector);
    }
    assert.match(
      await kubectl.refused(within(namespace, 'get pods --field-selector spec.x=1')),
      /^Error from server \(BadRequest\): .*field label not supported: spec\.x$/,
    );
    assert.equal(
      await kubectl.refused(within(namespace, 'get pod none')),
      'Error from server (NotFound): pods "none" not found',
    );
  });

  test('creates from a document and from arguments, once', async () => {
    const namespace = space();
    assert.equal(
      await kubectl.ok(within(namespace, 'create -f -'), configMap('a', { k: '1' })),
      'configmap/a created\n',
    );
    assert.match(
      await kubectl.refused(within(namespace, 'create -f -'), configMap('a', { k: '1' })),
      /^Error from server \(AlreadyExists\): .*configmaps "a" already exists$/,
    );
    await kubectl.ok(within(namespace, 'create configmap b --from-literal=k=1'));
    await kubectl.ok(within(namespace, 'create secret generic s --from-literal=k=1'));
    assert.equal(await kubectl.ok(within(namespace, 'get cm b -o jsonpath={.data.k}')), '1');
    assert.equal(await kubectl.ok(within(namespace, 'get secret s -o jsonpath={.data.k}')), 'MQ==');
    await kubectl.ok(within(namespace, 'create --dry-run=server -f -'), configMap('dry', {}));
    assert.equal(cluster.get('configmaps', 'dry', namespace), undefined);
    const generated = await kubectl.ok(within(namespace, 'create -f -'), {
      ...configMap('', {}),
      metadata: { generateName: 'gen-' },
    });
    assert.match(generated, /^configmap\/gen-[a-z0-9]{5} created\n$/);
    assert.match(
      await kubectl.refused(within(namespace, 'create -f -'), configMap('Bad_Name', {})),
      /The ConfigMap "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/,
    );
  });

  test('applies: what is no longer said goes, what others said stays', async () => {
    const namespace = space();
    const apply = (data: object) => kubectl.ok(within(namespace, 'apply -f -'), configMap('a', data));
    assert.equal(await apply({ k: '1', l: '1' }), 'configmap/a created\n');
    cluster.update<{ data: Record<string, string> }>('configmaps', 'a', namespace, ({ data }) => {
      data.other = '1';
    });
    assert.equal(await apply({ k: '2' }), 'configmap/a configured\n');
    assert.equal(await apply({ k: '2' }), 'configmap/a unchanged\n');
    assert.deepEqual(cluster.get<{ data: object }>('configmaps', 'a', namespace)?.data, { k: '2', other: '1' });

    const containers = (...names: string[]) => ({
      ...pod('p'),
      spec: { containers: names.map(name => ({ name, image: `${name}:1` })) },
    });
    await kubectl.ok(within(namespace, 'apply -f -'), containers('one', 'two'));
    await kubectl.ok(within(namespace, 'apply -f -'), containers('two', 'three'));
    assert.equal(
      await kubectl.ok(within(namespace, 'get pod p -o jsonpath={.spec.containers[*].name}')),
      'two three',
      'a strategic merge patch',
    );
  });

  test('applies server-side: owners of fields, conflicts, force', async () => {
    const namespace = space();
    const apply = (by: string, data: object, ...more: string[]) =>
      kubectl.run(
        [...within(namespace, `apply --server-side --field-manager=${by} -f -`), ...more],
        configMap('a', data),
      );
    const dataNow = () => cluster.get<{ data: object }>('configmaps', 'a', namespace)?.data;
    const version = () => cluster.get('configmaps', 'a', namespace)?.metadata.resourceVersion;
    assert.equal((await apply('one', { k: '1', l: '1' })).stdout, 'configmap/a serverside-applied\n');
    const made = version();
    await apply('one', { k: '1', l: '1' });
    assert.equal(version(), made, 'the same again changes nothing');

    const conflict = await apply('two', { k: '2' });
    assert.equal(conflict.code, 1);
    assert.match(conflict.stderr, /^error: Apply failed with 1 conflict: conflict with "one": \.data\.k$/m);
    assert.equal((await apply('two', { k: '2' }, '--force-conflicts')).code, 0);
    assert.deepEqual(dataNow(), { k: '2', l: '1' });

    assert.equal((await apply('two', { k: '2', l: '1' })).code, 0, 'who wants the same has it together');
    await apply('one', {});
    assert.deepEqual(dataNow(), { k: '2', l: '1' });
    await apply('two', { k: '2' });
    assert.deepEqual(dataNow(), { k: '2' });
  });

  test('applies server-side what it has applied otherwise before', async () => {
    const namespace = space();
    await kubectl.ok(within(namespace, 'apply -f -'), configMap('a', { k: '1', l: '1' }));
    await kubectl.ok(within(namespace, 'apply --server-side -f -'), configMap('a', { k: '2' }));
    assert.deepEqual(cluster.get<{ data: object }>('configmaps', 'a', namespace)?.data, { k: '2' });
  });

  test('patches in every way', async () => {
    const namespace = space();
    await kubectl.ok(within(namespace, 'create -f -'), pod('p', { app: 'x' }));
    const patch = (type: string, body: unknown) =>
      kubectl.run([...within(namespace, `patch pod p --type ${type} -p`), JSON.stringify(body)]);
    await patch('merge', { metadata: { labels: { app: null, by: 'merge' } } });
    await patch('json', [
      { op: 'test', path: '/metadata/labels/by', value: 'merge' },
      { op: 'add', path: '/metadata/labels/also', value: 'json' },
    ]);
    await patch('strategic', { spec: { containers: [{ name: 'side', image: 'side:1' }] } });
    const { metadata, spec } = await kubectl.json<KubernetesObject>(within(namespace, 'get pod p'));
    assert.deepEqual(metadata.labels, { by: 'merge', also: 'json' });
    const { containers } = spec as { containers: { name: string }[] };
    assert.deepEqual(containers.map(({ name }) => name).sort(), ['app', 'side']);
    const failed = await patch('json', [{ op: 'test', path: '/metadata/labels/by', value: 'other' }]);
    assert.equal(failed.code, 1);
    assert.match(
      failed.stderr,
      /The request is invalid: the server rejected our request due to an error in our request/,
    );
  });

  test('labels and annotates, and takes it back', async () => {
    const namespace = space();
    await kubectl.ok(within(namespace, 'create -f -'), configMap('a', {}));
    await kubectl.ok(within(namespace, 'label cm a app=x'));
    await kubectl.ok(within(namespace, 'annotate cm a x.dev/note=hello'));
    const found = () => cluster.get('configmaps', 'a', namespace)?.metadata;
    assert.deepEqual([found()?.labels, found()?.annotations], [{ app: 'x' }, { 'x.dev/note': 'hello' }]);
    assert.match(await kubectl.refused(within(namespace, 'label cm a app=y')), /already has a value \(x\)/);
    await kubectl.ok(within(namespace, 'label cm a app-'));
    assert.deepEqual(found()?.labels ?? {}, {});
  });

  test('deletes, waits for finalizers, and takes dependents along or leaves them', async () => {
    const namespace = space();
    const exists = (name: string) => cluster.get('configmaps', name, namespace) !== undefined;
    await kubectl.ok(within(namespace, 'create -f -'), configMap('held', {}, { finalizers: ['x.dev/hold'] }));
    await using deleting = kubectl.start(within(namespace, 'delete cm held'));
    await cluster.requested({ verb: 'watch', resource: 'configmaps', namespace, name: 'held' });
    assert.ok(cluster.get('configmaps', 'held', namespace)?.metadata.deletionTimestamp);
    await kubectl.ok([...within(namespace, 'patch cm held --type merge -p'), '{"metadata":{"finalizers":null}}']);
    assert.equal(await deleting.line(), 'configmap "held" deleted');
    assert.ok(!exists('held'));

    for (const [cascade, left] of [
      ['background', false],
      ['foreground', false],
      ['orphan', true],
    ] as const) {
      const owner = cluster.put(configMap(`owner-${cascade}`, {}, { namespace }));
      const { apiVersion, kind, metadata } = owner;
      const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, blockOwnerDeletion: true }];
      cluster.put(configMap(`child-${cascade}`, {}, { namespace, ownerReferences }));
      await kubectl.ok(within(namespace, `delete cm owner-${cascade} --cascade=${cascade}`));
      assert.deepEqual([exists(`owner-${cascade}`), exists(`child-${cascade}`)], [false, left], cascade);
    }
    assert.equal(await kubectl.ok(within(namespace, 'delete cm --all')), 'configmap "child-orphan" deleted\n');
    assert.equal(await kubectl.ok(['delete', 'ns', namespace]), `namespace "${namespace}" deleted\n`);
  });

  test('watches', async () => {
    const namespace = space();
    await using watching = kubectl.start(within(namespace, 'get cm -o name -w'));
    await cluster.requested({ verb: 'watch', resource: 'configmaps', namespace });
    for (const name of ['a', 'b']) cluster.put(configMap(name, {}, { namespace }));
    assert.deepEqual([await watching.line(), await watching.line()], ['configmap/a', 'configmap/b']);
    await using table = kubectl.start(within(namespace, 'get pods -w'));
    await cluster.requested({ verb: 'watch', resource: 'pods', namespace });
    cluster.put({ ...pod('p'), metadata: { name: 'p', namespace } });
    assert.match(await table.line(), /^NAME +READY +STATUS/);
    assert.match(await table.line(), /^p +0\/1 +Pending/);
    cluster.remove('pods', 'p', namespace);
    assert.match(await table.line(), /^p +/);
  });

  test('reads logs, of the run before too, and follows them', async () => {
    const namespace = space();
    cluster.put({ ...pod('p'), metadata: { name: 'p', namespace } });
    cluster.logs.set(namespace, 'p', 'app', { current: 'one\ntwo\n', previous: 'crashed\n' });
    assert.equal(await kubectl.ok(within(namespace, 'logs p')), 'one\ntwo\n');
    assert.equal(await kubectl.ok(within(namespace, 'logs p --tail=1')), 'two\n');
    assert.equal(await kubectl.ok(within(namespace, 'logs p -p')), 'crashed\n');
    await using following = kubectl.start(within(namespace, 'logs p -f'));
    assert.deepEqual([await following.line(), await following.line()], ['one', 'two']);
    cluster.logs.append(namespace, 'p', 'app', 'three\n');
    assert.equal(await following.line(), 'three');
    assert.match(await kubectl.refused(within(namespace, 'logs p -c other')), /container other is not valid for pod p/);
  });

  test('waits for conditions, for values, and for the end', async () => {
    const namespace = space();
    cluster.put({ ...pod('p'), metadata: { name: 'p', namespace } });
    const waiting = kubectl.ok(within(namespace, 'wait --for=condition=Ready pod/p --timeout=20s'));
    await cluster.requested({ verb: 'watch', resource: 'pods', namespace, name: 'p' });
    cluster.update<{ status: object }>('pods', 'p', namespace, object => {
      object.status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    });
    assert.equal(await waiting, 'pod/p condition met\n');
    await kubectl.ok(within(namespace, 'wait --for=jsonpath={.status.phase}=Running pod/p --timeout=20s'));
    cluster.put({ ...pod('q'), metadata: { name: 'q', namespace } });
    const ending = kubectl.ok(within(namespace, 'wait --for=delete pod/q --timeout=20s'));
    await cluster.requested({ verb: 'watch', resource: 'pods', namespace, name: 'q' });
    cluster.remove('pods', 'q', namespace);
    assert.equal(await ending, 'pod/q condition met\n');
  });

  test('describes an object with its events', async () => {
    const namespace = space();
    const { metadata } = cluster.put({ ...pod('p'), metadata: { name: 'p', namespace } });
    cluster.put({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'p.1', namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'p', namespace, uid: metadata.uid },
      reason: 'FailedScheduling',
      message: 'no node fits',
      type: 'Warning',
      count: 2,
      firstTimestamp: metadata.creationTimestamp,
      lastTimestamp: metadata.creationTimestamp,
      source: { component: 'scheduler' },
    });
    assert.match(await kubectl.ok(within(namespace, 'describe pod p')), /Warning +FailedScheduling .* no node fits/);
    assert.match(await kubectl.ok(within(namespace, 'events --for pod/p')), /FailedScheduling +Pod\/p +no node fits/);
  });

  test('knows custom kinds as soon as they are defined', async () => {
    const namespace = space();
    await kubectl.ok(['apply', '-f', '-'], widgets);
    await kubectl.ok(['wait', '--for=condition=Established', 'crd/widgets.x.dev', '--timeout=20s']);
    const widget = { apiVersion: 'x.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { size: 3 } };
    await kubectl.ok(within(namespace, 'apply -f -'), widget);
    assert.deepEqual(rowsOf(await kubectl.ok(within(namespace, 'get wd'))), [
      ['NAME', 'SIZE'],
      ['w', '3'],
    ]);
    await kubectl.ok([
      ...within(namespace, 'patch widget w --subresource=status --type=merge -p'),
      '{"status":{"ok":true}}',
    ]);
    await kubectl.ok(within(namespace, 'apply --server-side --force-conflicts -f -'), {
      ...widget,
      spec: { size: 4 },
      status: { ok: false },
    });
    const found = cluster.get<{ spec: object; status: object } & KubernetesObject>('widgets.x.dev', 'w', namespace);
    assert.deepEqual([found?.spec, found?.status], [{ size: 4 }, { ok: true }]);
    assert.match(
      await kubectl.refused([...within(namespace, 'patch widget w --type=strategic -p'), '{}']),
      /strategic-merge-patch\+json is not supported by x\.dev\/v1, Kind=Widget/,
    );
    await kubectl.ok(['delete', 'crd', 'widgets.x.dev']);
    assert.match(
      await kubectl.refused(within(namespace, 'get widgets.x.dev')),
      /the server doesn't have a resource type/,
    );
  });

  test('is told what it may not do, and who it is not', async (t: TestContext) => {
    const namespace = space();
    assert.equal(await kubectl.ok(within(namespace, 'auth can-i create pods')), 'yes\n');
    assert.equal(await viewer.ok(within(namespace, 'auth can-i list pods')), 'yes\n');
    const asked = await viewer.run(within(namespace, 'auth can-i create pods'));
    assert.match(asked.stdout, /^no/);
    assert.equal(
      await viewer.refused(within(namespace, 'delete pod p')),
      `Error from server (Forbidden): pods "p" is forbidden: User "viewer" cannot delete resource "pods" in API group "" in the namespace "${namespace}"`,
    );
    const nobody = await kubectlWith(cluster.kubeconfig().replaceAll(cluster.tokenOf('admin'), 'wrong'));
    t.after(() => nobody[Symbol.asyncDispose]());
    assert.match(await nobody.refused(['get', 'pods']), /You must be logged in to the server/);
  });
});
