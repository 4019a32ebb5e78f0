import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, configMaps, lab, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };

describe('a watch', bounded, () => {
  test('begins with what is there, when no version is said', async t => {
    for (const query of ['watch=1', 'watch=true&resourceVersion=0']) {
      const { cluster, watch } = await lab(t, { objects: [configMap('b'), configMap('a')] });
      const events = await watch(`${configMaps}?${query}`);
      assert.deepEqual(await events.names(2), ['ADDED a', 'ADDED b']);
      cluster.put(configMap('a', { x: '1' }));
      cluster.remove('configmaps', 'b', 'default');
      assert.deepEqual(await events.names(2), ['MODIFIED a', 'DELETED b']);
    }
  });

  test('goes on from the version of a list, and misses nothing', async t => {
    const { ask, cluster, watch } = await lab(t, { objects: [configMap('a')] });
    const { body } = await ask('GET', configMaps);
    cluster.put(configMap('b'));
    cluster.remove('configmaps', 'a', 'default');
    const events = await watch(`${configMaps}?watch=1&resourceVersion=${body.metadata.resourceVersion}`);
    cluster.put(configMap('c'));
    assert.deepEqual(await events.names(3), ['ADDED b', 'DELETED a', 'ADDED c']);
  });

  test('says of what was deleted how it was last, with the version of the deletion', async t => {
    const { cluster, watch } = await lab(t, { objects: [configMap('a', { x: '1' })] });
    const events = await watch(`${configMaps}?watch=1`);
    const { object: before } = await events.next();
    cluster.remove('configmaps', 'a', 'default');
    const { object } = await events.next();
    assert.deepEqual(object.data, { x: '1' });
    assert.ok(Number(object.metadata.resourceVersion) > Number(before.metadata.resourceVersion));
  });

  test('sees its own namespace, kind and version only', async t => {
    const { cluster, watch } = await lab(t, { objects: [widgets()] });
    const events = await watch('/apis/x.dev/v1beta1/namespaces/default/widgets?watch=1');
    cluster.put(configMap('a'));
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } });
    cluster.put(widget('elsewhere', {}, { namespace: 'n' }));
    cluster.put(widget('a'));
    const { type, object } = await events.next();
    assert.deepEqual([type, object.metadata.name, object.apiVersion], ['ADDED', 'a', 'x.dev/v1beta1']);
  });

  test('of a selection sees objects come into it and leave it', async t => {
    const labelled = (value: string) => configMap('a', {}, { labels: { tier: value } });
    const { cluster, watch } = await lab(t, { objects: [labelled('gold')] });
    const events = await watch(`${configMaps}?watch=1&labelSelector=tier%3Dgold`);
    assert.deepEqual(await events.names(1), ['ADDED a']);
    cluster.put(configMap('other'));
    const left = cluster.put(labelled('tin'));
    const { type, object } = await events.next();
    // As it was when it was still selected.
    assert.deepEqual([type, object.metadata.labels], ['DELETED', { tier: 'gold' }]);
    assert.equal(object.metadata.resourceVersion, left.metadata.resourceVersion);
    cluster.put(configMap('a', { x: '1' }, { labels: { tier: 'tin' } }));
    cluster.put(labelled('gold'));
    cluster.put(configMap('a', { x: '2' }, { labels: { tier: 'gold' } }));
    assert.deepEqual(await events.names(2), ['ADDED a', 'MODIFIED a']);
  });

  test('of one name sees that object', async t => {
    const { cluster, watch } = await lab(t);
    const events = await watch(`${configMaps}?watch=1&fieldSelector=metadata.name%3Db`);
    cluster.put(configMap('a'));
    cluster.put(configMap('b'));
    assert.deepEqual(await events.names(1), ['ADDED b']);
  });

  test('is one of several', async t => {
    const { cluster, watch } = await lab(t);
    const all = await Promise.all([1, 2, 3].map(() => watch(`${configMaps}?watch=1`)));
    cluster.put(configMap('a'));
    for (const events of all) assert.deepEqual(await events.names(1), ['ADDED a']);
  });

  test('says every minute how far it is, when it is asked to', async t => {
    const { clock, cluster, watch } = await lab(t);
    const events = await watch(`${configMaps}?watch=1&allowWatchBookmarks=true`);
    await clock.sleeping(2);
    const { metadata } = cluster.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: 'default' },
    });
    await clock.advance(60_000);
    const { type, object } = await events.next();
    assert.deepEqual([type, object.kind, object.apiVersion], ['BOOKMARK', 'ConfigMap', 'v1']);
    assert.equal(object.metadata.resourceVersion, metadata.resourceVersion);
  });

  test('ends when its time is over, with a bookmark where bookmarks are asked for', async t => {
    const { clock, watch } = await lab(t);
    const plain = await watch(`${configMaps}?watch=1&timeoutSeconds=30`);
    const marked = await watch(`${configMaps}?watch=1&timeoutSeconds=30&allowWatchBookmarks=true`);
    await clock.sleeping(3);
    await clock.advance(30_000);
    assert.equal(await plain.ended, 'in order');
    assert.equal(await marked.ended, 'in order');
    assert.deepEqual(plain.unread, []);
    assert.deepEqual(
      marked.unread.map(({ type }) => type),
      ['BOOKMARK'],
    );
  });

  test('can begin with all there is and a mark behind it', async t => {
    const { watch } = await lab(t, { objects: [configMap('a')] });
    const events = await watch(
      `${configMaps}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`,
    );
    assert.deepEqual(await events.names(1), ['ADDED a']);
    const { type, object } = await events.next();
    assert.deepEqual([type, object.metadata.annotations], ['BOOKMARK', { 'k8s.io/initial-events-end': 'true' }]);
  });

  test('from a version that is forgotten is told so, and ends', async t => {
    const { cluster, watch } = await lab(t);
    const { metadata } = cluster.put(configMap('a'));
    cluster.put(configMap('b'));
    cluster.compact();
    const events = await watch(`${configMaps}?watch=1&resourceVersion=${metadata.resourceVersion}`);
    const { type, object } = await events.next();
    assert.deepEqual([events.status, type, object.code, object.reason], [200, 'ERROR', 410, 'Expired']);
    assert.match(object.message, /^too old resource version: \d+ \(\d+\)$/);
    assert.equal(await events.ended, 'in order');
  });

  test('that is open does not mind what is forgotten', async t => {
    const { cluster, watch } = await lab(t);
    const events = await watch(`${configMaps}?watch=1`);
    await cluster.requested({ verb: 'watch' });
    cluster.compact();
    cluster.put(configMap('a'));
    assert.deepEqual(await events.names(1), ['ADDED a']);
  });

  test('from no version is refused', async t => {
    const { ask } = await lab(t);
    const { status, body } = await ask('GET', `${configMaps}?watch=1&resourceVersion=abc`);
    assert.deepEqual([status, body.reason], [400, 'BadRequest']);
  });

  test('shows rows of a table where they are asked for, and the columns once', async t => {
    const { cluster, watch } = await lab(t);
    const events = await watch(`${configMaps}?watch=1`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    cluster.put(configMap('a', { x: '1' }));
    cluster.put(configMap('b'));
    const rows = [(await events.next()).object, (await events.next()).object] as unknown as readonly {
      columnDefinitions: readonly { name: string }[] | null;
      rows: readonly { cells: readonly unknown[] }[];
    }[];
    assert.deepEqual(
      rows.map(({ columnDefinitions }) => columnDefinitions?.map(({ name }) => name)),
      [['Name', 'Data', 'Age'], undefined],
    );
    assert.deepEqual(
      rows.map(({ rows: [row] }) => row?.cells),
      [
        ['a', 1, '0s'],
        ['b', 0, '0s'],
      ],
    );
  });
});

describe('watches from outside', bounded, () => {
  test('are cut, those of a resource or all', async t => {
    const { cluster, watch } = await lab(t);
    const maps = await watch(`${configMaps}?watch=1`);
    const pods = await watch('/api/v1/pods?watch=1');
    cluster.put(configMap('a'));
    assert.deepEqual(await maps.names(1), ['ADDED a']);
    cluster.cutWatches('configmaps');
    assert.equal(await maps.ended, 'broken');
    cluster.put({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'default' } });
    assert.deepEqual(await pods.names(1), ['ADDED p']);
    cluster.cutWatches();
    assert.equal(await pods.ended, 'broken');
  });

  test('are frozen: open, and without a word until they thaw', async t => {
    const { clock, cluster, watch } = await lab(t);
    const frozen = await watch(`${configMaps}?watch=1&timeoutSeconds=600`);
    await clock.sleeping(1);
    const thaw = cluster.freezeWatches('configmaps');
    const fresh = await watch(`${configMaps}?watch=1`);
    cluster.put(configMap('a'));
    assert.deepEqual(await fresh.names(1), ['ADDED a']);
    await clock.advance(600_000);
    assert.deepEqual(frozen.unread, []);
    thaw();
    assert.deepEqual(await frozen.names(1), ['ADDED a']);
    assert.equal(await frozen.ended, 'in order');
  });

  test('are over when the server stops, and begin again where they were', async t => {
    const { cluster, watch } = await lab(t);
    const { metadata } = cluster.put(configMap('a'));
    const path = `${configMaps}?watch=1&resourceVersion=${metadata.resourceVersion}`;
    const before = await watch(path);
    await cluster.stop();
    assert.equal(await before.ended, 'broken');
    await assert.rejects(watch(path));
    cluster.put(configMap('b'));
    await cluster.start();
    const after = await watch(path);
    assert.deepEqual(await after.names(1), ['ADDED b']);
  });
});
