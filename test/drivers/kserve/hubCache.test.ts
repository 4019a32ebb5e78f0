import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Found } from '../../../src/drivers/kserve/hub/facts.ts';
import { createShared, type Looking } from '../../../src/drivers/kserve/hub/shared.ts';
import { callOf, failure, soon } from '../scripted.ts';
import { startLab, tiny } from './hubLab.ts';

const id = 'acme/x';
const models = [tiny(id)];
const minutes = 60_000;

test('readers at the same time share one look-up', async t => {
  const { hub, asked } = await startLab(t, { models });
  const facts = await Promise.all(Array.from({ length: 20 }, () => hub.weights(callOf(), id, 'main', [])));
  for (const { weights } of facts) assert.equal(weights?.bytes, 995);
  assert.equal(asked().filter(path => path.startsWith('/api/models/')).length, 2);
  assert.equal(asked().filter(path => path.startsWith('/acme/x/resolve/')).length, 1);
});

test('a reader who leaves takes nothing away from the others', async t => {
  const { server, hub } = await startLab(t, { models });
  const clear = server.fault({ kind: 'delay', path: `/api/models/${id}`, ms: 150 });
  const leaving = new AbortController();
  const first = failure(hub.repository(callOf({ signal: leaving.signal }), id));
  await server.requested(`/api/models/${id}`);
  const others = [1, 2].map(() => hub.repository(callOf(), id));
  leaving.abort();
  assert.match((await soon(first, 'the one who left')).message, /cancelled by the caller/);
  for (const { value } of await soon(Promise.all(others), 'the others')) assert.equal(value?.id, id);
  assert.equal(server.requests.length, 1);
  clear();
});

test('what may change is kept for five minutes, and a commit for ever', async t => {
  let now = Date.parse('2026-01-02T03:04:05Z');
  const { server, hub } = await startLab(t, { models, now: () => now });
  const sha = server.commit(id);
  const askedFor = async (revision: string) => {
    const before = server.requests.length;
    assert.equal((await hub.weights(callOf(), id, revision, [])).weights?.bytes, 995);
    return server.requests.length - before;
  };
  assert.equal(await askedFor('main'), 4, 'repository, files, index and where that leads to');
  assert.equal(await askedFor(sha), 3);
  now += 5 * minutes - 1;
  assert.equal(await askedFor('main'), 0);
  now += 1;
  assert.equal(await askedFor(sha), 1, 'whether it is gated may change');
  assert.equal(await askedFor('main'), 3);
  now += 600 * minutes;
  assert.equal(await askedFor(sha), 1);
  now -= 60 * minutes;
  assert.equal(await askedFor('main'), 4, 'nothing is fresh when the clock was set back');
});

test('what is ignored is no part of what is kept', async t => {
  const { hub, asked } = await startLab(t, { models });
  const download = async (ignore: string[]) => (await hub.weights(callOf(), id, 'main', ignore)).downloadBytes;
  const all = (await download([])) ?? 0;
  assert.equal(await download(['*.safetensors']), all - 1_000);
  assert.equal(await download([]), all);
  assert.equal(asked().length, 4);
});

test('a failure is not kept', async t => {
  const { server, hub } = await startLab(t, { models: [] });
  assert.equal((await hub.weights(callOf(), id, 'main', [])).miss?.why, 'refused');
  server.trouble({ kind: 'page' });
  assert.equal((await hub.weights(callOf(), id, 'main', [])).miss?.why, 'failed');
  server.trouble(undefined);
  server.publish(tiny(id));
  assert.equal((await hub.weights(callOf(), id, 'main', [])).weights?.bytes, 995);
});

// --- what is shared, by itself ---------------------------------------------------------------------------------------

function shared(more: { entries?: number; weight?: number } = {}) {
  const state = { now: 1_000, lost: [] as unknown[], looks: [] as string[], endings: [] as AbortSignal[] };
  const store = createShared<number>({
    now: () => state.now,
    onLost: error => state.lost.push(error),
    entries: 3,
    weight: 100,
    weigh: value => value,
    ...more,
  });
  const reader = (ms = 1_000, signal = new AbortController().signal) => ({ signal, until: state.now + ms });
  const read = (key: string, value: number) =>
    store.read(key, Number.POSITIVE_INFINITY, reader(), async () => {
      state.looks.push(key);
      return { value };
    });
  /** A look-up that ends when it is told to. */
  const reading = (key: string, as = reader()) => {
    const ending = Promise.withResolvers<Found<number>>();
    let looking: Looking | undefined;
    const done = store.read(key, Number.POSITIVE_INFINITY, as, given => {
      looking = given;
      state.endings.push(given.signal);
      return ending.promise;
    });
    return { done, ...ending, leftMs: () => looking?.leftMs(), aborted: () => looking?.signal.aborted };
  };
  return { state, store, read, reading, reader };
}

test('the answers that were read last are kept, as many as there may be', async () => {
  const { state, read } = shared();
  for (const key of ['a', 'b', 'c', 'a', 'd', 'a', 'b']) await read(key, 1);
  assert.deepEqual(state.looks, ['a', 'b', 'c', 'd', 'b']);
});

test('answers are kept by their weight too, and one that is heavier than all may be is not', async () => {
  const { state, read } = shared();
  for (const key of ['a', 'b']) await read(key, 50);
  await read('c', 60);
  for (const key of ['c', 'b', 'a']) await read(key, 10);
  assert.deepEqual(state.looks, ['a', 'b', 'c', 'b', 'a']);
  await read('huge', 101);
  await read('huge', 101);
  assert.deepEqual(state.looks.slice(5), ['huge', 'huge']);
});

test('a look-up waits as long as its most patient reader', async () => {
  const { state, reading, reader } = shared();
  const first = reading('a', reader(500));
  await turn();
  assert.equal(first.leftMs(), 500);
  const second = reading('a', reader(2_000));
  assert.equal(first.leftMs(), 2_000);
  const third = reading('a', reader(100));
  assert.equal(first.leftMs(), 2_000);
  state.now += 2_500;
  assert.equal(first.leftMs(), -500);
  first.resolve({ value: 7 });
  assert.deepEqual(await Promise.all([first.done, second.done, third.done]), [
    { value: 7 },
    { value: 7 },
    { value: 7 },
  ]);
  assert.equal(state.endings.length, 1, 'there was one look-up');
});

test('of look-ups that nobody waits for the eight youngest go on', async () => {
  const { state, reading, reader } = shared();
  const leaving = new AbortController();
  const kept = reading('kept');
  const left = Array.from({ length: 12 }, (_, place) => reading(String(place), reader(1_000, leaving.signal)));
  await turn();
  leaving.abort();
  await Promise.allSettled(left.map(({ done }) => done));
  assert.deepEqual(
    left.map(({ aborted }) => aborted()),
    [...Array(4).fill(true), ...Array(8).fill(false)],
  );
  assert.equal(kept.aborted(), false);
  for (const { resolve } of left) resolve({ value: 1 });
  kept.resolve({ value: 1 });
  await kept.done;
  assert.equal(state.lost.length, 0);
});

test('no look-up goes on for longer than 30 seconds', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { reading } = shared();
  const slow = reading('a');
  await turn();
  t.mock.timers.tick(29_999);
  assert.equal(slow.aborted(), false);
  t.mock.timers.tick(1);
  assert.equal(slow.aborted(), true);
  slow.reject(new Error('time is up'));
  await assert.rejects(slow.done, /time is up/);
});

test('a look-up that breaks is told to its readers, and without any to the log', async () => {
  const { state, reading, reader } = shared();
  const heard = reading('a');
  heard.reject(new Error('a surprise'));
  await assert.rejects(heard.done, /a surprise/);
  assert.equal(state.lost.length, 0);
  const leaving = new AbortController();
  const unheard = reading('b', reader(1_000, leaving.signal));
  await turn();
  leaving.abort(new Error('left'));
  await assert.rejects(unheard.done, /left/);
  unheard.reject(new Error('a surprise'));
  await turn();
  assert.deepEqual(state.lost.map(String), ['Error: a surprise']);
});

test('who has no time left does not begin a look-up', async () => {
  const { state, reading, reader } = shared();
  await assert.rejects(reading('a', reader(0)).done);
  await assert.rejects(reading('a', reader(1_000, AbortSignal.abort())).done);
  assert.equal(state.endings.length, 0);
});
