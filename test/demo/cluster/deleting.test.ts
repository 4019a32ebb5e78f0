import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, configMaps, lab, namespace, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const inDefault = '/apis/x.dev/v1/namespaces/default/widgets';
const merge = { 'content-type': 'application/merge-patch+json' };

describe('deleting', bounded, () => {
  test('says that it is done, and then that nothing is there', async t => {
    const { ask } = await lab(t, { objects: [configMap('a')] });
    const { body } = await ask('DELETE', `${configMaps}/a`);
    assert.deepEqual([body.kind, body.status], ['Status', 'Success']);
    assert.equal((await ask('DELETE', `${configMaps}/a`)).status, 404);
  });

  test('is of the very object, where one is named', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a')] });
    const { uid, resourceVersion } = cluster.get('configmaps', 'a', 'default')?.metadata ?? {};
    for (const preconditions of [{ uid: 'another' }, { uid, resourceVersion: '1' }]) {
      const { status, body } = await ask('DELETE', `${configMaps}/a`, { preconditions });
      assert.deepEqual([status, body.reason], [409, 'Conflict']);
      assert.match(body.message, /Precondition failed: (UID|ResourceVersion) in precondition/);
    }
    const { status } = await ask('DELETE', `${configMaps}/a`, { preconditions: { uid, resourceVersion } });
    assert.equal(status, 200);
  });

  test('waits for finalizers', async t => {
    const { ask, cluster, watch } = await lab(t, {
      objects: [widgets(), widget('a', {}, { finalizers: ['x.dev/hold'] })],
    });
    const { body } = await ask('DELETE', `${inDefault}/a`);
    assert.equal(body.metadata.deletionTimestamp, '2026-08-22T08:00:00Z');
    const added = await ask(
      'PATCH',
      `${inDefault}/a`,
      { metadata: { finalizers: ['x.dev/hold', 'x.dev/more'] } },
      merge,
    );
    assert.equal(added.status, 422);
    assert.match(added.body.message, /no new finalizers can be added if the object is being deleted/);
    const events = await watch(`${inDefault}?watch=1&resourceVersion=${body.metadata.resourceVersion}`);
    assert.equal((await ask('PATCH', `${inDefault}/a`, { metadata: { finalizers: null } }, merge)).status, 200);
    assert.equal(cluster.get('widgets.x.dev', 'a', 'default'), undefined);
    assert.deepEqual(await events.names(1), ['DELETED a']);
  });

  test('of a pod on a node waits for its grace period', async t => {
    const pod = (name: string, spec: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec,
    });
    const objects = [pod('waiting', {}), pod('running', { nodeName: 'n', terminationGracePeriodSeconds: 20 })];
    const { ask, cluster, clock } = await lab(t, { objects });
    const pods = '/api/v1/namespaces/default/pods';
    await ask('DELETE', `${pods}/waiting`);
    assert.equal(cluster.get('pods', 'waiting', 'default'), undefined);
    const { body } = await ask('DELETE', `${pods}/running`);
    assert.deepEqual(
      [body.metadata.deletionTimestamp, body.metadata.deletionGracePeriodSeconds],
      ['2026-08-22T08:00:20Z', 20],
    );
    await clock.advance(19_999);
    assert.ok(cluster.get('pods', 'running', 'default'));
    await clock.advance(1);
    assert.equal(cluster.get('pods', 'running', 'default'), undefined);
  });

  test('of a collection takes what is selected', async t => {
    const { ask, cluster } = await lab(t, {
      objects: [configMap('a', {}, { labels: { x: '1' } }), configMap('b'), configMap('c', {}, { labels: { x: '1' } })],
    });
    const { body } = await ask('DELETE', `${configMaps}?labelSelector=x%3D1`);
    assert.deepEqual(
      body.items.map(({ metadata }) => metadata.name),
      ['a', 'c'],
    );
    assert.deepEqual(
      cluster.list('configmaps', 'default').map(({ metadata }) => metadata.name),
      ['b'],
    );
  });

  test('of a namespace ends with its content', async t => {
    const held = configMap('held', {}, { namespace: 'n', finalizers: ['x.dev/hold'] });
    const { ask, cluster } = await lab(t, {
      objects: [namespace('n'), held, configMap('free', {}, { namespace: 'n' })],
    });
    const { body } = await ask('DELETE', '/api/v1/namespaces/n');
    assert.deepEqual([body.kind, body.status], ['Namespace', { phase: 'Terminating' }]);
    assert.deepEqual(
      cluster.list('configmaps', 'n').map(({ metadata }) => metadata.name),
      ['held'],
    );
    const late = await ask('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'late' } });
    assert.equal(late.status, 403);
    assert.match(late.body.message, /unable to create new content in namespace n because it is being terminated/);
    await ask('PATCH', '/api/v1/namespaces/n/configmaps/held', { metadata: { finalizers: null } }, merge);
    assert.equal(cluster.get('namespaces', 'n'), undefined);
    assert.equal((await ask('DELETE', '/api/v1/namespaces/default')).status, 403);
  });
});
