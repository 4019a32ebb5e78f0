import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, lab, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const inDefault = '/apis/x.dev/v1/namespaces/default/widgets';
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

describe('the cluster itself', bounded, () => {
  test('writes status and times as it likes', async t => {
    const { cluster } = await lab(t, { objects: [widgets()] });
    const creationTimestamp = '2026-08-22T07:00:00Z';
    cluster.put(widget('a', { status: { phase: 'Ready' } }, { creationTimestamp }));
    cluster.put(widget('a', { spec: { size: 1 } }));
    cluster.update<{ status: { phase: string } }>('Widget', 'a', 'default', ({ status }) => {
      status.phase = 'Gone';
    });
    const object = cluster.get('widgets.x.dev', 'a', 'default');
    assert.deepEqual([object?.spec, object?.status], [{ size: 1 }, { phase: 'Gone' }]);
    assert.deepEqual([object?.metadata.creationTimestamp, object?.metadata.generation], [creationTimestamp, 2]);
  });

  test('keeps to the rules', async t => {
    const { cluster } = await lab(t);
    assert.throws(() => cluster.put(configMap('A')), /is invalid: metadata.name/);
    assert.throws(() => cluster.put(configMap('a', {}, { namespace: 'nope' })), /namespaces "nope" not found/);
    assert.throws(() => cluster.put(widget('a')), /no kind "Widget" of "x.dev\/v1" in the emulated cluster/);
    assert.throws(() => cluster.list('widgets.x.dev'), /no resource or kind "widgets.x.dev"/);
    assert.throws(() => cluster.update('configmaps', 'a', 'default', () => {}), /no configmaps "a"/);
    assert.equal(cluster.remove('configmaps', 'a', 'default'), false);
  });

  test('gives objects that nobody changes by mistake', async t => {
    const { cluster } = await lab(t);
    const object = cluster.put(configMap('a', { x: '1' }));
    assert.throws(() => Object.assign(object.data, { x: '2' }), TypeError);
  });

  test('tells changes in order, also those that a listener makes', async t => {
    const { cluster } = await lab(t);
    const seen: string[] = [];
    const stop = cluster.watch(({ type, object }) => {
      if (type === 'ADDED' && object.metadata.name === 'a') cluster.put(configMap('b'));
    });
    cluster.watch(({ type, object }) => void seen.push(`${type} ${object.metadata.name}`));
    cluster.put(configMap('a'));
    stop();
    cluster.remove('configmaps', 'a', 'default');
    assert.deepEqual(seen, ['ADDED a', 'ADDED b', 'DELETED a']);
  });
});

describe('definitions', bounded, () => {
  test('bring their resources and take them away, with objects and watches', async t => {
    const { ask, watch } = await lab(t);
    assert.deepEqual(await ask('GET', inDefault).then(({ status, body }) => [status, body]), [
      404,
      '404 page not found\n',
    ]);
    const { status, body } = await ask('POST', crds, widgets());
    assert.equal(status, 201);
    const { conditions } = body.status as unknown as { conditions: readonly { type: string; status: string }[] };
    assert.deepEqual(
      conditions.map(({ type, status }) => `${type} ${status}`),
      ['NamesAccepted True', 'Established True'],
    );
    await ask('POST', inDefault, widget('a'));
    const events = await watch(`${inDefault}?watch=1`);
    assert.deepEqual(await events.names(1), ['ADDED a']);
    assert.equal((await ask('DELETE', `${crds}/widgets.x.dev`)).status, 200);
    assert.deepEqual(await events.names(1), ['DELETED a']);
    assert.equal(await events.ended, 'in order');
    assert.equal((await ask('GET', inDefault)).status, 404);
    await ask('POST', crds, widgets());
    assert.deepEqual((await ask('GET', inDefault)).body.items, []);
  });

  test('serve an object in each version', async t => {
    const { ask } = await lab(t, { objects: [widgets()] });
    const old = '/apis/x.dev/v1beta1/namespaces/default/widgets';
    const { body } = await ask('POST', old, { ...widget('a', { spec: { size: 1 } }), apiVersion: 'x.dev/v1beta1' });
    assert.equal(body.apiVersion, 'x.dev/v1beta1');
    const same = (await ask('GET', `${inDefault}/a`)).body;
    assert.deepEqual([same.apiVersion, same.spec], ['x.dev/v1', { size: 1 }]);
    assert.equal((await ask('GET', '/apis/x.dev/v2/widgets')).status, 404);
  });

  test('that change end the watches of their objects', async t => {
    const { watch, cluster } = await lab(t, { objects: [widgets()] });
    const events = await watch('/apis/x.dev/v1/widgets?watch=1');
    cluster.put(widgets({}));
    assert.equal(await events.ended, 'in order');
  });

  test('that are none are refused', async t => {
    const { ask } = await lab(t);
    for (const [object, words] of [
      [
        { ...widgets(), metadata: { name: 'widgets' } },
        /metadata.name: Invalid value: "widgets": must be spec.names.plural\+"."\+spec.group/,
      ],
      [widgets({ storage: false }), /must have exactly one version marked as storage version/],
      [widgets({}, { scope: 'Galaxy' }), /spec.scope: Unsupported value: "Galaxy"/],
    ] as const) {
      const { status, body } = await ask('POST', crds, object);
      assert.equal(status, 422);
      assert.match(body.message, words);
    }
  });

  test('of objects of the whole cluster have no namespaces', async t => {
    const { ask } = await lab(t, { objects: [widgets({}, { scope: 'Cluster' })] });
    const { status, body } = await ask('POST', '/apis/x.dev/v1/widgets', { metadata: { name: 'a' } });
    assert.deepEqual([status, body.metadata.namespace], [201, undefined]);
    assert.equal((await ask('GET', inDefault)).status, 404);
  });
});
