/** When the cache is counted, for whom, and what is known meanwhile. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import type { KserveFlags } from '../../../src/config/kserve.ts';
import { type CacheAround, createCounts } from '../../../src/drivers/kserve/inventory/counts.ts';
import type { Count } from '../../../src/drivers/kserve/inventory/entry.ts';
import type { KserveSettings } from '../../../src/drivers/kserve/settings.ts';
import { backendError, GatewayError } from '../../../src/errors.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { createCell } from '../../../src/live/cell.ts';
import type { Observation, Source } from '../../../src/live/source.ts';
import { mockTime, settled, start } from '../../live/clock.ts';
import { silent } from '../../support/gateway.ts';
import { clusterNodes, locationOf, settingsWith } from './world.ts';

const minutes = 60_000;
const entry = (dir: string) => ({ dir, bytes: 5, files: 1, hasModel: true });
const counted = (...dirs: string[]): Count => ({ entries: dirs.map(entry), warnings: [] });
const poolSelector = { 'giantswarm.io/machine-pool': 'demo-gpu-l4' };

interface Setup {
  readonly claim?: string | null;
  readonly spec?: object;
  readonly flags?: Partial<Record<keyof KserveFlags, string>>;
  readonly nodes?: readonly KubernetesObject[];
}

/** Counts that end when the test says so. */
function counting(
  t: TestContext,
  { claim = 'cache-shared.yaml', spec = {}, flags = {}, nodes = clusterNodes }: Setup = {},
) {
  const time = mockTime(t);
  const settings = settingsWith({ cache: { enabled: true }, ...spec }, flags);
  const around = createCell<CacheAround>({ settings, location: locationOf(settings, claim) });
  const nodeCell = createCell<readonly KubernetesObject[]>(nodes);
  const begun: { node: string | undefined; end: PromiseWithResolvers<Count>; left(): number; caller: string }[] = [];
  const counts = createCounts({
    around,
    nodes: nodeCell,
    call: createCall({ log: silent }),
    count(call, _settings: KserveSettings, node) {
      const end = Promise.withResolvers<Count>();
      begun.push({ node, end, left: () => call.deadline - Date.now(), caller: call.caller.name });
      return end.promise;
    },
  });
  const callOf = (timeoutMs?: number, signal?: AbortSignal) =>
    createCall({ log: silent, ...(timeoutMs && { timeoutMs }), ...(signal && { signal }) });
  return { time, settings, around, nodes: nodeCell, counts, begun, callOf };
}

/** A source that could not be looked at. */
function failing<T>(error: GatewayError): Source<T> {
  const current: Observation<T> = { revision: 1, observedAt: new Date(), value: undefined, error };
  return { current, read: async () => current, subscribe: () => () => {} };
}

const only = <T>(items: readonly T[] | undefined): T => {
  assert.equal(items?.length, 1);
  return (items as T[])[0] as T;
};

test('readers at the same time share a count, and later ones until it is old', async t => {
  const { time, counts, begun, callOf } = counting(t);
  const reads = [counts.read(callOf()), counts.read(callOf()), counts.read(callOf())];
  await settled();
  assert.equal(begun.length, 1);
  begun[0]?.end.resolve(counted('a'));
  const [first, second] = await Promise.all(reads);
  assert.equal(first, second);
  const place = only(first?.value);
  assert.deepEqual(place, {
    node: undefined,
    entries: [entry('a')],
    scannedAt: new Date(start),
    warnings: [],
    error: undefined,
    refreshing: false,
    reason: undefined,
  });
  await time.pass(2 * minutes - 1);
  assert.equal((await counts.read(callOf())).revision, first?.revision);
  assert.equal(begun.length, 1);
  await time.pass(1);
  const again = counts.read(callOf());
  await settled();
  assert.equal(begun.length, 2);
  assert.equal(only(counts.current?.value).refreshing, true);
  begun[1]?.end.resolve(counted('a'));
  const renewed = only((await again).value);
  assert.equal(renewed.entries?.[0], place.entries?.[0], 'what is the same keeps its identity');
  assert.deepEqual(renewed.scannedAt, new Date(start + 2 * minutes));
});

test('F13: who has less time than a pod may take gets what is known, and the count goes on without them', async t => {
  const { time, counts, begun, callOf } = counting(t);
  const reason = "the caller's deadline leaves less than 2m0s for a scan pod; scanning in the background";
  const { value } = await counts.read(callOf(10_000));
  assert.deepEqual([only(value).entries, only(value).refreshing, only(value).reason], [undefined, true, reason]);
  assert.equal(begun[0]?.left(), 3 * minutes, 'it has a minute more than usual');
  await counts.read(callOf(10_000));
  assert.equal(begun.length, 1);
  await time.pass(20_000);
  begun[0]?.end.resolve(counted('a'));
  await settled();
  const after = only((await counts.read(callOf(10_000))).value);
  assert.deepEqual([after.entries?.length, after.refreshing, after.reason], [1, false, undefined]);
  await time.pass(3 * minutes);
  const stale = only((await counts.read(callOf(10_000))).value);
  assert.deepEqual([stale.entries?.length, stale.refreshing, stale.reason], [1, true, reason]);
});

test('a reader with time waits as long as a count may take, and leaves when they have to', async t => {
  const { counts, begun, callOf } = counting(t);
  const left = new AbortController();
  const reading = counts.read(callOf(undefined, left.signal));
  await settled();
  assert.equal(begun[0]?.left(), 2 * minutes);
  left.abort(new Error('left'));
  await assert.rejects(reading, /left/);
  const other = counts.read(callOf());
  await settled();
  begun[0]?.end.resolve(counted('a'));
  assert.equal(only((await other).value).entries?.length, 1);
  assert.equal(begun.length, 1, 'the count went on');
});

test('a count that fails keeps what was counted, and is not tried again at once', async t => {
  const { time, counts, begun, callOf } = counting(t);
  const first = counts.read(callOf());
  await settled();
  begun[0]?.end.resolve(counted('a'));
  await first;
  await time.pass(2 * minutes);
  const second = counts.read(callOf());
  await settled();
  begun[1]?.end.reject(backendError('scan cache on any node: pod failed'));
  const failed = only((await second).value);
  assert.deepEqual(
    [failed.entries?.length, failed.error, failed.scannedAt],
    [1, 'scan cache on any node: pod failed', new Date(start)],
  );
  await time.pass(29_000);
  await counts.read(callOf());
  assert.equal(begun.length, 2);
  await time.pass(1_000);
  const third = counts.read(callOf());
  await settled();
  assert.equal(begun.length, 3);
  begun[2]?.end.resolve(counted('b'));
  const healed = only((await third).value);
  assert.deepEqual([healed.entries?.[0]?.dir, healed.error], ['b', undefined]);
});

test('what nobody expected is not told', async t => {
  const { counts, begun, callOf } = counting(t);
  const reading = counts.read(callOf());
  await settled();
  begun[0]?.end.reject(new TypeError('secret detail'));
  assert.equal(only((await reading).value).error, 'unexpected error while counting; the log has it');
});

test('what is invalidated is counted again, also when it was just being counted', async t => {
  const { counts, begun, callOf } = counting(t);
  const reading = counts.read(callOf());
  await settled();
  counts.invalidate();
  const waiting = counts.read(callOf());
  await settled();
  begun[0]?.end.resolve(counted('before'));
  await reading;
  await settled();
  assert.equal(begun.length, 2, 'the second reader wants what is true after');
  begun[1]?.end.resolve(counted('after'));
  assert.equal(only((await waiting).value).entries?.[0]?.dir, 'after');
  counts.invalidate();
  await settled();
  assert.equal(begun.length, 2, 'nobody listens, nobody reads');
  void counts.read(callOf(1000));
  await settled();
  assert.equal(begun.length, 3);
});

test('listeners see the first count and what follows from changes, not more', async t => {
  const { time, counts, begun } = counting(t);
  const heard: (string | boolean | undefined)[] = [];
  const stop = counts.subscribe(() => {
    const place = only(counts.current?.value);
    heard.push(place.refreshing || place.entries?.map(({ dir }) => dir).join());
  });
  await settled();
  begun[0]?.end.resolve(counted('a'));
  await settled();
  await time.pass(10 * minutes);
  assert.deepEqual(heard, [true, 'a'], 'it does not count for the sake of counting');
  counts.invalidate();
  await settled();
  counts.invalidate();
  begun[1]?.end.resolve(counted('b'));
  await settled();
  begun[2]?.end.resolve(counted('c'));
  await settled();
  assert.deepEqual(heard, [true, 'a', true, 'b', true, 'c']);
  stop();
  counts.invalidate();
  await settled();
  assert.equal(begun.length, 3);
});

test('a scan that may not start says why, and starts when it may', async t => {
  const noPool = clusterNodes.filter(({ metadata }) => !metadata.labels?.['giantswarm.io/machine-pool']);
  const { counts, begun, nodes, around, settings, callOf } = counting(t, {
    claim: null,
    spec: { gpuPool: { nodeSelector: poolSelector } },
    nodes: noPool,
  });
  const reasonNow = async () => only((await counts.read(callOf())).value).reason;
  assert.equal(await reasonNow(), 'cache claim hf-cache does not exist');
  around.set({ settings, location: locationOf(settings, 'cache-unbound.yaml') });
  assert.equal(await reasonNow(), 'cache claim hf-cache is not bound yet; the first predictor binds it');
  around.set({ settings, location: locationOf(settings, 'cache-shared.yaml') });
  const empty = 'no node of the GPU pool (giantswarm.io/machine-pool=demo-gpu-l4) exists; a predictor brings the first';
  assert.equal(await reasonNow(), empty);
  assert.equal(begun.length, 0);
  t.after(counts.subscribe(() => {}));
  await settled();
  assert.equal(begun.length, 0);
  nodes.set(clusterNodes);
  await settled();
  assert.equal(begun.length, 1, 'a node came');
});

test('a pinned claim is counted on each of its nodes, by the names of the nodes', async t => {
  const renamed = clusterNodes.map(node =>
    node.metadata.name === 'spark-01' ? { ...node, metadata: { ...node.metadata, name: 'node-of-spark' } } : node,
  );
  const { counts, begun, callOf } = counting(t, {
    nodes: renamed,
    flags: { cacheNodes: 'spark-01, rack-07, unknown' },
  });
  const reading = counts.read(callOf());
  await settled();
  assert.deepEqual(
    begun.map(({ node }) => node),
    ['rack-07', 'node-of-spark', 'unknown'],
  );
  begun[0]?.end.resolve(counted('a'));
  begun[1]?.end.reject(backendError('no'));
  begun[2]?.end.resolve(counted());
  const { value } = await reading;
  assert.deepEqual(
    value?.map(({ node, entries, error }) => [node, entries?.length, error]),
    [
      ['rack-07', 1, undefined],
      ['node-of-spark', undefined, 'no'],
      ['unknown', 0, undefined],
    ],
  );
});

test('another volume is another cache; one that is off is none', async t => {
  const { counts, begun, around, settings, callOf } = counting(t);
  const first = counts.read(callOf());
  await settled();
  begun[0]?.end.resolve(counted('a'));
  await first;
  around.set({ settings, location: { ...locationOf(settings, 'cache-shared.yaml'), volume: 'new' } });
  const { value } = await counts.read(callOf(1000));
  assert.equal(only(value).entries, undefined);
  assert.equal(begun.length, 2);
  around.set({ settings, location: undefined });
  assert.equal((await counts.read(callOf())).value?.length, 1, 'that it is not known now takes nothing away');
  around.set({ settings: settingsWith({ cache: { enabled: false } }), location: undefined });
  assert.deepEqual((await counts.read(callOf())).value, []);
});

test('surroundings and nodes that cannot be seen are named', async t => {
  mockTime(t);
  const call = createCall({ log: silent });
  const error = new GatewayError('forbidden', 'cannot list nodes');
  const settings = settingsWith({ cache: { enabled: true }, gpuPool: { nodeSelector: poolSelector } });
  const location = locationOf(settings, 'cache-shared.yaml');
  const count = () => Promise.resolve(counted('a'));
  const blind = createCounts({ around: failing(error), nodes: createCell([]), count, call });
  const seen = await blind.read(call);
  assert.deepEqual([seen.value, seen.error], [[], error]);
  const halfBlind = createCounts({ around: createCell({ settings, location }), nodes: failing(error), count, call });
  assert.equal(
    only((await halfBlind.read(call)).value).reason,
    'cannot tell whether a node of the GPU pool exists: cannot list nodes',
  );
});

test('an agent is waited for as long as the caller has, and then answers those who come later', async t => {
  const { time, counts, begun, callOf } = counting(t, { flags: { inventoryMode: 'daemonset' } });
  const quick = counts.read(callOf(10_000));
  await settled();
  begun[0]?.end.resolve(counted('a'));
  assert.equal(only((await quick).value).entries?.length, 1);
  await time.pass(2 * minutes);
  const slow = counts.read(callOf(10_000));
  await settled();
  await time.pass(8_000);
  const place = only((await slow).value);
  assert.deepEqual(
    [place.entries?.length, place.refreshing, place.reason],
    [1, true, 'the agent has not answered yet; asking in the background'],
  );
});
