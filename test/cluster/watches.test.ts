import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMap, inEveryCluster, merging, versionOf, watchingIn } from './lab.ts';

inEveryCluster('watches', lab => {
  test('tell what happened after a list, in order', async t => {
    const { core, namespace } = lab();
    const list = await core.listNamespacedConfigMap({ namespace });
    const name = 'story';
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap(name, { k: '1' }) });
    const query = { resourceVersion: list.metadata?.resourceVersion as string, fieldSelector: `metadata.name=${name}` };
    const watch = await watchingIn(t, lab(), 'configmaps', query);
    const patched = await core.patchNamespacedConfigMap({ namespace, name, body: { data: { k: '2' } } }, merging);
    await core.deleteNamespacedConfigMap({ namespace, name });

    const [added, modified, deleted] = [await watch.next(), await watch.next(), await watch.next()];
    assert.deepEqual([added.type, versionOf(added.object), added.object.data], ['ADDED', versionOf(made), { k: '1' }]);
    assert.deepEqual([modified.type, versionOf(modified.object)], ['MODIFIED', versionOf(patched)]);
    assert.deepEqual([deleted.type, deleted.object.data], ['DELETED', { k: '2' }]);
    assert.notEqual(versionOf(deleted.object), versionOf(patched), 'a deletion has a version of its own');
  });

  test('go on from any event', async t => {
    const { core, namespace } = lab();
    const name = 'resumed';
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap(name, { k: '1' }) });
    const versions = [];
    for (const k of ['2', '3']) {
      versions.push(
        versionOf(await core.patchNamespacedConfigMap({ namespace, name, body: { data: { k } } }, merging)),
      );
    }
    const fieldSelector = `metadata.name=${name}`;
    const from = (resourceVersion: string) => watchingIn(t, lab(), 'configmaps', { resourceVersion, fieldSelector });
    assert.equal(versionOf((await (await from(versionOf(made))).next()).object), versions[0]);
    assert.equal(versionOf((await (await from(versions[0] as string)).next()).object), versions[1]);
  });

  test('without a version begin with what is there', async t => {
    const { core, namespace } = lab();
    await core.createNamespacedConfigMap({ namespace, body: configMap('there') });
    const watch = await watchingIn(t, lab(), 'configmaps', { fieldSelector: 'metadata.name=there' });
    const { type, object } = await watch.next();
    assert.deepEqual([type, object.metadata?.name], ['ADDED', 'there']);
  });

  test('tell of what comes into a selection and leaves it', async t => {
    const { core, namespace } = lab();
    const name = 'moving';
    const { metadata } = await core.createNamespacedConfigMap({ namespace, body: configMap(name) });
    const query = { resourceVersion: metadata?.resourceVersion as string, labelSelector: 'stage=on' };
    const watch = await watchingIn(t, lab(), 'configmaps', query);
    const label = (stage: string) =>
      core.patchNamespacedConfigMap({ namespace, name, body: { metadata: { labels: { stage } } } }, merging);
    await label('on');
    const off = await label('off');
    const [added, deleted] = [await watch.next(), await watch.next()];
    assert.deepEqual([added.type, added.object.metadata?.labels], ['ADDED', { stage: 'on' }]);
    assert.deepEqual([deleted.type, versionOf(deleted.object)], ['DELETED', versionOf(off)]);
  });

  test('end after their time, with a bookmark where one is wanted', async t => {
    const { core, namespace } = lab();
    const list = await core.listNamespacedConfigMap({ namespace });
    const watch = await watchingIn(t, lab(), 'configmaps', {
      resourceVersion: list.metadata?.resourceVersion as string,
      allowWatchBookmarks: true,
      timeoutSeconds: 5,
    });
    await lab().pass(5);
    const { type, object } = await watch.next('a bookmark');
    assert.equal(type, 'BOOKMARK');
    assert.ok(Number(versionOf(object)) >= Number(list.metadata?.resourceVersion));
    assert.equal((await watch.ended) ?? null, null);
  });
});
