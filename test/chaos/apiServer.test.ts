/** Chaos cases 1–14: what watches make of an API server in trouble. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../src/errors.ts';
import { type ConfigMap, configMaps, type Resource, secrets } from '../../src/kubernetes/resource.ts';
import { located } from '../../src/kubernetes/watches.ts';
import { gaps, minutes, seconds, settings, startLab, valuesOf } from './apiServerLab.ts';

test('chaos 1: an API server that is down at the start is why, and comes back within 35 s', async t => {
  const { cluster, watches, call, pass, subscribe } = await startLab(t);
  await cluster.stop();
  const configs = watches.of(call(), located(configMaps));
  const subscriber = subscribe(configs);
  await pass(60 * seconds);
  assert.match(subscriber.last?.error ?? '', /cannot list configmaps.*cannot be reached \(ECONNREFUSED\)/);
  assert.equal(subscriber.last?.value, undefined);
  await cluster.start();
  await pass(35 * seconds);
  assert.equal(subscriber.last?.error, undefined);
  assert.equal(valuesOf(subscriber.last?.value), 'a=1 b=1');
});

test('chaos 2: an API server that restarts under 50 subscribers ends none, and is asked for one list of each', async t => {
  const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
  const subscribers = Array.from({ length: 50 }, (_, place) =>
    place % 2 === 0
      ? subscribe(watches.of(call(), located(configMaps)))
      : subscribe(watches.of(call(), located(secrets))),
  );
  await pass(30 * seconds);
  assert.deepEqual([asked('list').length, asked('list', 'secrets').length], [1, 1]);
  await cluster.stop();
  await pass(10 * seconds);
  cluster.put(settings('a', '2'));
  await cluster.start();
  await pass(35 * seconds);
  for (const { ended, last } of subscribers) assert.deepEqual([ended, last?.error], [false, undefined]);
  assert.equal(valuesOf(subscribers[0]?.last?.value as ConfigMap[]), 'a=2 b=1');
  assert.ok(asked('list').length <= 2, `${asked('list').length} lists`);
  assert.ok(asked('list', 'secrets').length <= 2);
  for (const { seen } of subscribers) {
    const revisions = seen.map(({ revision }) => revision);
    assert.deepEqual(
      revisions.toSorted((a, b) => a - b),
      revisions,
      'revisions only grow',
    );
  }
});

test('chaos 3: a watch that is reset every second for a minute', async t => {
  const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
  const subscriber = subscribe(watches.of(call(), located(configMaps)));
  await pass(30 * seconds);
  for (let second = 1; second <= 60; second++) {
    cluster.put(settings('a', String(second)));
    cluster.cutWatches();
    await pass(1 * seconds);
  }
  for (const gap of gaps(asked('list'))) assert.ok(gap >= 5 * seconds, `${gap} ms between two lists`);
  assert.ok(asked('watch').length <= 12, `${asked('watch').length} watches in a minute`);
  await pass(32 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'a=60 b=1');
  assert.equal(subscriber.last?.error, undefined);
});

for (const [age, quiet] of [
  [10, 0],
  [10, 39],
  [10, 49],
  [41, 0],
  [59, 0],
  [61, 0],
] as const) {
  test(`chaos 4: watches go half-open after ${age} s, a change ${quiet} s later is there within 60 s`, async t => {
    const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
    const configs = watches.of(call(), located(configMaps));
    const subscriber = subscribe(configs);
    await pass(age * seconds);
    cluster.freezeWatches();
    await pass(quiet * seconds);
    cluster.put(settings('a', '2'));
    await pass((60 - quiet) * seconds);
    assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=1');
    assert.equal(subscriber.last?.error, undefined);
    assert.ok(configs.state.restarts >= 1);
    assert.equal(asked('list').length, 1);
  });
}

test('chaos 5: 410 on every watch', async t => {
  const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
  const heal = cluster.fault({ kind: 'error event', verb: 'watch' });
  const subscriber = subscribe(watches.of(call(), located(configMaps)));
  await pass(2 * minutes);
  for (const gap of gaps(asked('list'))) assert.ok(gap >= 5 * seconds, `${gap} ms between two lists`);
  assert.ok(asked('list').length <= 10, `${asked('list').length} lists in two minutes`);
  assert.equal(valuesOf(subscriber.last?.value), 'a=1 b=1', 'what the lists said is there');
  heal();
  await pass(33 * seconds);
  assert.equal(subscriber.last?.error, undefined);
});

test('chaos 5: a past that is forgotten costs one list and shows no error', async t => {
  const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
  const subscriber = subscribe(watches.of(call(), located(configMaps)));
  await pass(30 * seconds);
  cluster.cutWatches();
  cluster.put(settings('a', '2'));
  cluster.compact();
  cluster.put(settings('b', '2'));
  await pass(6 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=2');
  assert.deepEqual(new Set(subscriber.seen.map(({ error }) => error)), new Set([undefined]));
  assert.equal(asked('list').length, 2);
});

test('chaos 6: 429 with Retry-After: 7', async t => {
  const { cluster, watches, call, pass, asked, settle, subscribe } = await startLab(t);
  const answer = { kind: 'answer', status: 429, headers: { 'retry-after': '7' } } as const;
  const heal = cluster.fault({ ...answer, resource: 'configmaps' });
  const configs = watches.of(call(), located(configMaps));
  const subscriber = subscribe(configs);
  for (let second = 0; second < 60; second++) {
    await pass(1 * seconds);
    // Somebody comes and goes, somebody reads.
    configs.subscribe(() => {})();
    const impatient = new AbortController();
    const reading = configs.read({ ...call(), signal: impatient.signal }).catch(() => {});
    await settle();
    impatient.abort();
    await reading;
  }
  assert.ok(asked('list').length > 2);
  for (const gap of gaps(asked('list'))) assert.ok(gap >= 7 * seconds, `${gap} ms between two requests`);
  assert.match(subscriber.last?.error ?? '', /^cannot list configmaps/);
  heal();
  await pass(16 * seconds);
  assert.equal(subscriber.last?.error, undefined);
});

test('chaos 7: an hour in which nothing happens is no list', async t => {
  const { watches, call, pass, subscribe, asked } = await startLab(t);
  const configs = watches.of(call(), located(configMaps));
  const subscriber = subscribe(configs);
  await pass(60 * minutes, 1 * seconds);
  assert.equal(asked('list').length, 1);
  assert.equal(configs.state.restarts, 0);
  assert.equal(subscriber.seen.length, 1);
  // Eight to fifteen are watches that ended after their time, and one a minute is the look whether it still lives.
  assert.ok(asked('watch').length <= 80, `${asked('watch').length} watches`);
  assert.ok(Date.now() - (configs.state.lastEventAt?.getTime() ?? 0) <= 62 * seconds);
});

test('chaos 8: what was deleted while we were away is gone', async t => {
  const { cluster, watches, call, pass, subscribe } = await startLab(t);
  const subscriber = subscribe(watches.of(call(), located(configMaps)));
  await pass(30 * seconds);
  await cluster.stop();
  cluster.remove('configmaps', 'a', 'default');
  cluster.compact();
  await pass(5 * seconds);
  await cluster.start();
  await pass(15 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'b=1');
});

test('chaos 9: what was made anew while we were away is another object', async t => {
  const { cluster, watches, call, pass, subscribe } = await startLab(t);
  const subscriber = subscribe(watches.of(call(), located(configMaps)));
  await pass(30 * seconds);
  const [before, other] = subscriber.last?.value ?? [];
  await cluster.stop();
  cluster.remove('configmaps', 'a', 'default');
  cluster.put(settings('a', '1'));
  await pass(5 * seconds);
  await cluster.start();
  await pass(15 * seconds);
  const [after, same] = subscriber.last?.value ?? [];
  assert.equal(after?.metadata.name, 'a');
  assert.notEqual(after?.metadata.uid, before?.metadata.uid);
  assert.equal(same, other, 'the other is what it was');
});

test('chaos 10: malformed objects cost their own rows', async t => {
  const { cluster, watches, call, pass, subscribe } = await startLab(t);
  const odd = { ...settings('odd', '1'), metadata: { name: 'odd', namespace: 'default', annotations: 7, uid: {} } };
  const huge = settings('huge', 'x'.repeat(300_000));
  const items = [null, {}, { metadata: [] }, { metadata: { name: 3 } }, odd, huge, settings('c', '1')];
  const body = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '2' }, items };
  cluster.fault({ kind: 'answer', status: 200, body, verb: 'list', times: 1 });
  const configs = watches.of(call(), located(configMaps));
  const subscriber = subscribe(configs);
  await pass(2 * seconds);
  assert.deepEqual(
    subscriber.last?.value?.filter(({ data }) => data?.value === '1').map(({ metadata }) => metadata.name),
    ['a', 'b', 'c', 'odd'],
    'what the list had, and what the watch from there has brought',
  );
  assert.equal(subscriber.last?.error, undefined);
  assert.ok(subscriber.last?.value?.some(({ metadata }) => metadata.name === 'huge'));
});

test('chaos 11: a listener that throws', async t => {
  const { cluster, watches, call, pass, subscribe, atEnd } = await startLab(t);
  const configs = watches.of(call(), located(configMaps));
  atEnd(
    configs.subscribe(() => {
      throw new Error('a bug');
    }),
  );
  const subscriber = subscribe(configs);
  await pass(1 * seconds);
  cluster.put(settings('a', '2'));
  await pass(1 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=1');
  assert.equal(configs.state.listenerErrors, 2);
  assert.equal(configs.state.restarts, 0);
});

const definition = (version: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
});
const widgets: Resource = { group: 'example.com', version: 'v1', plural: 'widgets', kind: 'Widget', namespaced: true };
const widget = (version: string) => ({
  apiVersion: `example.com/${version}`,
  kind: 'Widget',
  metadata: { name: 'w', namespace: 'default' },
});

test('chaos 12: a resource that is removed and installed again, in another version', async t => {
  const { cluster, client, watches, call, pass, subscribe, asked } = await startLab(t, {
    objects: [definition('v1'), widget('v1')],
  });
  const found = watches.of(call(), {
    name: 'widgets.example.com',
    async locate(call) {
      const group = await client.versions(call, 'example.com');
      return { ...widgets, version: group?.versions[0] ?? 'v1' };
    },
  });
  const subscriber = subscribe(found);
  await pass(30 * seconds);
  assert.deepEqual(
    subscriber.last?.value?.map(({ apiVersion }) => apiVersion),
    ['example.com/v1'],
  );

  cluster.remove('customresourcedefinitions.apiextensions.k8s.io', 'widgets.example.com');
  await pass(40 * seconds);
  assert.equal(
    subscriber.last?.error,
    'widgets.example.com are not installed in the cluster; once they are, they show within 30 s',
  );
  await pass(2 * minutes);
  assert.ok(asked('list', 'widgets.example.com').length < 16);

  cluster.put(definition('v2'));
  cluster.put(widget('v2'));
  await pass(30 * seconds);
  assert.equal(subscriber.last?.error, undefined);
  assert.deepEqual(
    subscriber.last?.value?.map(({ apiVersion }) => apiVersion),
    ['example.com/v2'],
  );
});

test('chaos 13: rights that are taken away and given back', async t => {
  const rule = { verbs: ['list', 'watch'], apiGroups: [''], resources: ['configmaps'] };
  const { cluster, watches, call, pass, subscribe } = await startLab(t, {
    users: { gateway: { rules: [rule] } },
    user: 'gateway',
  });
  const subscriber = subscribe(watches.of(call(), located(configMaps), { namespace: 'default' }));
  await pass(30 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'a=1 b=1');
  cluster.revoke('gateway', rule);
  cluster.cutWatches();
  await pass(10 * seconds);
  assert.match(subscriber.last?.error ?? '', /^cannot list configmaps in namespace default: .*forbidden/);
  assert.equal(valuesOf(subscriber.last?.value), 'a=1 b=1', 'what was last seen is still there');
  cluster.put(settings('a', '2'));
  await pass(1 * minutes);
  cluster.grant('gateway', rule);
  await pass(30 * seconds);
  assert.equal(subscriber.last?.error, undefined);
  assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=1');
});

for (const skewMs of [-10 * minutes, 10 * minutes]) {
  test(`chaos 14: a cluster whose clock is ${skewMs / minutes} min ahead is seen by our own`, async t => {
    const { cluster, watches, call, pass, subscribe } = await startLab(t, { skewMs });
    const configs = watches.of(call(), located(configMaps));
    const subscriber = subscribe(configs);
    await pass(1 * seconds);
    cluster.put(settings('a', '2'));
    await pass(1 * seconds);
    assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=1');
    const age = Date.now() - (configs.current?.observedAt.getTime() ?? 0);
    assert.ok(age >= 0 && age <= 2 * seconds, `${age} ms old`);
    assert.ok((subscriber.last?.revision ?? 0) <= Date.now(), 'revisions come from our clock');
  });
}

test('who reads while the API server does not answer has the reason within its own time', async t => {
  const { cluster, watches, call, pass, asked } = await startLab(t);
  cluster.fault({ kind: 'hang', verb: 'list' });
  const configs = watches.of(call(), located(configMaps));
  const reading = configs.read(call());
  const leaver = new AbortController();
  const left = configs.read({ ...call(), signal: leaver.signal }).catch((error: GatewayError) => error.name);
  leaver.abort();
  assert.equal(await left, 'AbortError');
  await pass(9 * seconds);
  assert.match((await reading).error?.message ?? '', /^cannot list configmaps in all namespaces: /);
  assert.ok(asked('list').length <= 3);
});
