import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, configMaps, lab } from './lab.ts';

const bounded = { timeout: 10_000 };

describe('a fault', bounded, () => {
  test('answers in words of its own, for so many requests', async t => {
    const { ask, cluster } = await lab(t);
    cluster.fault({
      kind: 'answer',
      verb: 'list',
      resource: 'configmaps',
      status: 429,
      headers: { 'retry-after': '7' },
      times: 2,
    });
    for (let count = 0; count < 2; count++) {
      const { status, headers, body } = await ask('GET', configMaps);
      assert.deepEqual([status, headers.get('retry-after'), body.reason], [429, '7', 'TooManyRequests']);
    }
    assert.equal((await ask('GET', configMaps)).status, 200);
  });

  test('can be a page, or anything else, until it is cleared', async t => {
    const { ask, cluster } = await lab(t);
    const headers = { 'content-type': 'text/html' };
    const page = '<!doctype html><title>Sign in</title>';
    const clear = cluster.fault({ kind: 'answer', status: 200, headers, body: page });
    const answer = await ask('GET', '/api/v1/pods');
    assert.deepEqual([answer.status, answer.headers.get('content-type'), answer.body], [200, 'text/html', page]);
    clear();
    assert.equal((await ask('GET', '/api/v1/pods')).status, 200);
  });

  test('meets only the requests it names', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a'), configMap('b')] });
    cluster.fault({
      kind: 'answer',
      verb: 'get',
      resource: 'configmaps',
      namespace: 'default',
      name: 'a',
      status: 500,
    });
    assert.equal((await ask('GET', `${configMaps}/a`)).status, 500);
    assert.equal((await ask('GET', `${configMaps}/b`)).status, 200);
    assert.equal((await ask('DELETE', `${configMaps}/a`)).status, 200);
  });

  test('drops the connection, before or within the answer', async t => {
    const { ask, cluster } = await lab(t);
    const clear = cluster.fault({ kind: 'drop' });
    await assert.rejects(ask('GET', configMaps), TypeError);
    clear();
    cluster.fault({ kind: 'drop', afterBytes: 10, times: 1 });
    await assert.rejects(ask('GET', configMaps), TypeError);
    const [, second] = cluster.requests;
    assert.equal(await second?.ended, 'cut');
    assert.equal((await ask('GET', configMaps)).status, 200);
  });

  test('takes a request and never answers', async t => {
    const { cluster } = await lab(t);
    cluster.fault({ kind: 'hang', times: 1 });
    const leaving = new AbortController();
    const hanging = fetch(cluster.url + configMaps, { signal: leaving.signal });
    const request = await cluster.requested({ verb: 'list' });
    leaving.abort();
    await assert.rejects(hanging);
    assert.equal(await request.ended, 'cut');
  });

  test('answers late', async t => {
    const { ask, clock, cluster } = await lab(t);
    cluster.fault({ kind: 'delay', ms: 5_000 });
    const late = ask('GET', configMaps);
    await clock.sleeping();
    await clock.advance(5_000);
    assert.equal((await late).status, 200);
  });

  test('expires every watch, as an event or as an answer', async t => {
    const { cluster, watch } = await lab(t);
    const clear = cluster.fault({ kind: 'error event', verb: 'watch' });
    for (let count = 0; count < 2; count++) {
      const events = await watch(`${configMaps}?watch=1`);
      const { type, object } = await events.next();
      assert.deepEqual([events.status, type, object.code, object.reason], [200, 'ERROR', 410, 'Expired']);
      assert.equal(await events.ended, 'in order');
    }
    clear();
    cluster.fault({ kind: 'answer', verb: 'watch', status: 410 });
    assert.equal((await watch(`${configMaps}?watch=1`)).status, 410);
  });
});

describe('requests', bounded, () => {
  test('are recorded as what they are about', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a')] });
    const merge = { 'content-type': 'application/merge-patch+json' };
    await ask('PATCH', `${configMaps}/a?fieldManager=me`, { data: { x: '1' } }, merge);
    await ask('GET', '/apis/apps/v1/deployments?watch=1&timeoutSeconds=1&resourceVersion=abc');
    await ask('GET', '/api/v1/namespaces/default/pods/p/log');
    await ask('PUT', '/apis/x.dev/v1/namespaces/n/widgets/w/status', {});
    await ask('GET', '/api/v1/namespaces/default');
    await ask('DELETE', configMaps);
    await ask('GET', '/apis/apps/v1');
    const seen = cluster.requests.map(({ verb, resource, namespace, name }) => [verb, resource, namespace, name]);
    assert.deepEqual(seen, [
      ['patch', 'configmaps', 'default', 'a'],
      ['watch', 'deployments.apps', '', ''],
      ['get', 'pods/log', 'default', 'p'],
      ['update', 'widgets.x.dev/status', 'n', 'w'],
      ['get', 'namespaces', 'default', 'default'],
      ['deletecollection', 'configmaps', 'default', ''],
      ['discovery', '', '', ''],
    ]);
    const [first] = cluster.requests;
    assert.deepEqual(
      [first?.body, first?.query.get('fieldManager'), first?.user],
      [{ data: { x: '1' } }, 'me', 'admin'],
    );
    assert.equal(await first?.ended, 'answered');
  });

  test('are waited for, the nth of them', async t => {
    const { ask, cluster } = await lab(t);
    const second = cluster.requested({ verb: 'list', resource: 'configmaps' }, 2);
    await ask('GET', configMaps);
    await ask('GET', '/api/v1/pods');
    await ask('GET', '/api/v1/configmaps');
    assert.equal((await second).path, '/api/v1/configmaps');
  });
});

describe('the server', bounded, () => {
  test('goes down and comes back with its objects, at the same place', async t => {
    const { ask, cluster } = await lab(t);
    cluster.put(configMap('a'));
    await cluster.stop();
    await assert.rejects(ask('GET', configMaps));
    await cluster.stop();
    cluster.put(configMap('b'));
    await cluster.start();
    const { body } = await ask('GET', configMaps);
    assert.deepEqual(
      body.items.map(({ metadata }) => metadata.name),
      ['a', 'b'],
    );
  });
});
