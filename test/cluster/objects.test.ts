import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMap, inEveryCluster, merging, refused, versionOf } from './lab.ts';

inEveryCluster('objects', lab => {
  test('are created, read, replaced and deleted', async () => {
    const { core, namespace } = lab();
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('crud', { k: '1' }) });
    assert.ok(made.metadata?.uid && made.metadata.creationTimestamp && versionOf(made));
    const read = await core.readNamespacedConfigMap({ namespace, name: 'crud' });
    assert.deepEqual(read, made);
    const body = { ...read, data: { k: '2' } };
    const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'crud', body });
    assert.deepEqual(replaced.data, { k: '2' });
    assert.notEqual(versionOf(replaced), versionOf(made));
    assert.equal(replaced.metadata?.uid, made.metadata.uid);
    await core.deleteNamespacedConfigMap({ namespace, name: 'crud' });
    const message = await refused(core.readNamespacedConfigMap({ namespace, name: 'crud' }), 404, 'NotFound');
    assert.equal(message, 'configmaps "crud" not found');
    await refused(core.deleteNamespacedConfigMap({ namespace, name: 'crud' }), 404, 'NotFound');
  });

  test('keep their version when nothing changes', async () => {
    const { core, namespace } = lab();
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('still', { k: '1' }) });
    const patch = { namespace, name: 'still', body: { data: { k: '1' } }, fieldManager: 'test' };
    assert.equal(versionOf(await core.patchNamespacedConfigMap(patch, merging)), versionOf(made));
  });

  test('are not created twice', async () => {
    const { core, namespace } = lab();
    const create = () => core.createNamespacedConfigMap({ namespace, body: configMap('twice') });
    await create();
    assert.match(await refused(create(), 409, 'AlreadyExists'), /^configmaps "twice" already exists$/);
  });

  test('are not replaced, patched or deleted as what they no longer are', async () => {
    const { core, namespace } = lab();
    const name = 'raced';
    const old = await core.createNamespacedConfigMap({ namespace, body: configMap(name, { k: '1' }) });
    const body = { data: { k: '2' } };
    await core.patchNamespacedConfigMap({ namespace, name, body }, merging);
    const message = await refused(core.replaceNamespacedConfigMap({ namespace, name, body: old }), 409, 'Conflict');
    assert.match(
      message,
      /the object has been modified; please apply your changes to the latest version and try again$/,
    );
    const stale = { metadata: { resourceVersion: versionOf(old) }, data: { k: '3' } };
    await refused(core.patchNamespacedConfigMap({ namespace, name, body: stale }, merging), 409, 'Conflict');
    const preconditions = { uid: '00000000-0000-0000-0000-000000000000' };
    await refused(core.deleteNamespacedConfigMap({ namespace, name, body: { preconditions } }), 409, 'Conflict');
    const unseen = { resourceVersion: versionOf(old) };
    await refused(
      core.deleteNamespacedConfigMap({ namespace, name, body: { preconditions: unseen } }),
      409,
      'Conflict',
    );
    assert.deepEqual((await core.readNamespacedConfigMap({ namespace, name })).data, { k: '2' });
  });

  test('get names of their own from a prefix', async () => {
    const { core, namespace } = lab();
    const body = configMap('', {}, { name: undefined, generateName: 'made-' });
    const made = [1, 2].map(async () => (await core.createNamespacedConfigMap({ namespace, body })).metadata?.name);
    const [one, two] = await Promise.all(made);
    assert.match(`${one} ${two}`, /^made-[a-z0-9]{5} made-[a-z0-9]{5}$/);
    assert.notEqual(one, two);
  });

  test('are refused when they cannot be', async () => {
    const { core, namespace } = lab();
    const create = (body: object) => core.createNamespacedConfigMap({ namespace, body });
    const message = await refused(create(configMap('Not_A_Name')), 422, 'Invalid');
    assert.match(
      message,
      /^ConfigMap "Not_A_Name" is invalid: metadata\.name: Invalid value: "Not_A_Name": a lowercase/,
    );
    await refused(create(configMap('labelled', {}, { labels: { a: 'not a label' } })), 422, 'Invalid');
    await refused(create({ ...configMap('typed'), data: { k: 1 } }), 400, 'BadRequest');
    const elsewhere = { namespace: 'model-manager-test-none', body: configMap('a') };
    await refused(core.createNamespacedConfigMap(elsewhere), 404, 'NotFound');
  });

  test('are merged with a patch; null removes', async () => {
    const { core, namespace } = lab();
    const metadata = { labels: { a: '1', b: '1' }, annotations: { 'x.dev/a': '1' } };
    await core.createNamespacedConfigMap({ namespace, body: configMap('patched', { k: '1', l: '1' }, metadata) });
    const body = { metadata: { labels: { a: null, c: '1' } }, data: { k: null, l: '2' } };
    const patched = await core.patchNamespacedConfigMap({ namespace, name: 'patched', body }, merging);
    assert.deepEqual(patched.data, { l: '2' });
    assert.deepEqual(patched.metadata?.labels, { b: '1', c: '1' });
    assert.deepEqual(patched.metadata?.annotations, { 'x.dev/a': '1' });
    await refused(core.patchNamespacedConfigMap({ namespace, name: 'absent', body }, merging), 404, 'NotFound');
  });

  test('are listed by labels and fields, and in pages', async () => {
    const { core, namespace } = lab();
    const kinds = { x: 'front', y: 'front', z: 'back' };
    for (const [name, tier] of Object.entries(kinds)) {
      const body = configMap(name, {}, { labels: { tier, suite: 'lists' } });
      await core.createNamespacedConfigMap({ namespace, body });
    }
    const names = async (query: { labelSelector?: string; fieldSelector?: string }) =>
      (await core.listNamespacedConfigMap({ namespace, ...query })).items.map(({ metadata }) => metadata?.name);
    assert.deepEqual(await names({ labelSelector: 'suite=lists' }), ['x', 'y', 'z']);
    assert.deepEqual(await names({ labelSelector: 'suite=lists,tier!=back' }), ['x', 'y']);
    assert.deepEqual(await names({ labelSelector: 'suite,tier in (back, other)' }), ['z']);
    assert.deepEqual(await names({ labelSelector: 'suite=lists,!tier' }), []);
    assert.deepEqual(await names({ fieldSelector: 'metadata.name=y' }), ['y']);
    assert.deepEqual(await names({ labelSelector: 'suite=lists', fieldSelector: 'metadata.name!=y' }), ['x', 'z']);
    await refused(names({ labelSelector: 'a=b=c' }), 400, 'BadRequest');
    await refused(names({ fieldSelector: 'data.k=1' }), 400, 'BadRequest');

    const page = (_continue?: string) =>
      core.listNamespacedConfigMap({ namespace, labelSelector: 'suite=lists', limit: 2, _continue });
    const first = await page();
    const last = await page(first.metadata?._continue);
    const found = [first, last].map(({ items }) => items.map(({ metadata }) => metadata?.name));
    assert.deepEqual(found, [['x', 'y'], ['z']]);
    assert.equal(last.metadata?._continue || undefined, undefined);
    assert.equal(last.metadata?.resourceVersion, first.metadata?.resourceVersion, 'a list is of one moment');
  });
});
