/** Field cases of watches: what others met, and how it has to go here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { located } from '../../src/kubernetes/watches.ts';
import { seconds, settings, startLab, valuesOf } from '../chaos/apiServerLab.ts';

test('F7: a watch on which the server falls silent is noticed within 60 s, and the state is caught up', async t => {
  const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
  const configs = watches.of(call(), located(configMaps));
  const subscriber = subscribe(configs);
  await pass(5 * 60 * seconds, 1 * seconds);
  assert.equal(configs.state.restarts, 0);
  // Whether there is one at that moment, or a second one beside it.
  cluster.freezeWatches();
  cluster.put(settings('a', '2'));
  cluster.remove('configmaps', 'b', 'default');
  cluster.put(settings('c', '1'));
  await pass(60 * seconds);
  assert.equal(valuesOf(subscriber.last?.value), 'a=2 c=1');
  assert.ok(configs.state.restarts >= 1);
  assert.equal(asked('list').length, 1);
});

for (const [what, fault] of [
  ['every request', { kind: 'drop' }],
  ['every watch', { kind: 'answer', status: 503, verb: 'watch' }],
] as const) {
  test(`F8: ${what} fails for 20 s: at most 12 requests, and then a list and a watch`, async t => {
    const { cluster, watches, call, pass, subscribe, asked } = await startLab(t);
    const configs = watches.of(call(), located(configMaps));
    const subscriber = subscribe(configs);
    await pass(30 * seconds);
    const before = cluster.requests.length;
    const heal = cluster.fault(fault);
    cluster.cutWatches();
    await pass(20 * seconds);
    assert.ok(cluster.requests.length - before <= 12, `${cluster.requests.length - before} requests`);
    cluster.put(settings('a', '2'));
    heal();
    const [lists, watchesBegun] = [asked('list').length, asked('watch').length];
    await pass(32 * seconds);
    assert.equal(asked('list').length - lists, 1);
    // A second one looks after the first once it is quiet for long.
    assert.equal(asked('watch').length - watchesBegun, 1);
    assert.equal(valuesOf(subscriber.last?.value), 'a=2 b=1');
    assert.equal(subscriber.last?.error, undefined);
  });
}
