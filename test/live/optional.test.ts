import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../src/call.ts';
import { unavailable } from '../../src/errors.ts';
import { createCell } from '../../src/live/cell.ts';
import { derive } from '../../src/live/derive.ts';
import { optional } from '../../src/live/optional.ts';
import { createListeners, type Observation, type Source, unlessAborted } from '../../src/live/source.ts';
import { watch } from '../../src/live/watch.ts';
import { callOf, mockTime, settled } from './clock.ts';

const patienceMs = 500;

/** A source that has nothing to show until the test says so. */
function late() {
  const listeners = createListeners();
  let current: Observation<string> | undefined;
  let there = Promise.withResolvers<void>();
  const reads: Call[] = [];
  const source: Source<string> = {
    get current() {
      return current;
    },
    async read(call) {
      reads.push(call);
      await unlessAborted(there.promise, call.signal);
      return current as Observation<string>;
    },
    subscribe: listeners.add,
  };
  return {
    source,
    reads,
    get listeners() {
      return listeners.size;
    },
    show(observation: Partial<Observation<string>>) {
      const revision = (current?.revision ?? 0) + 1;
      current = { value: undefined, error: undefined, observedAt: new Date(), revision, ...observation };
      there.resolve();
      listeners.notify();
    },
    /** From now on it does not answer. */
    hang() {
      there = Promise.withResolvers();
    },
  };
}

function waiting(t: TestContext) {
  const time = mockTime(t);
  const inner = late();
  return { time, inner, source: optional(inner.source, patienceMs) };
}

test('what is there is shown as it is, at once', async t => {
  mockTime(t);
  const cell = createCell('here');
  const source = optional(cell, patienceMs);
  assert.equal(source.current?.value, 'here');
  const read = await source.read(callOf());
  assert.equal(read.value, 'here');
  assert.equal(read.revision, source.current?.revision);
  cell.set('there');
  assert.equal(source.current?.value, 'there');
  assert.ok((source.current?.revision ?? 0) > read.revision);
});

test('a reader waits for it, but not longer than the patience', async t => {
  const { time, inner, source } = waiting(t);
  let seen: Observation<string> | undefined;
  const reading = source.read(callOf()).then(observation => {
    seen = observation;
  });
  await time.pass(patienceMs - 1);
  assert.equal(seen?.revision, undefined);
  assert.equal(source.current?.revision, undefined);
  await time.pass(1);
  await reading;
  assert.equal(source.current, seen);
  assert.deepEqual([source.current?.value, source.current?.error], [undefined, undefined]);

  inner.show({ value: 'here' });
  assert.equal(source.current?.value, 'here');
  assert.equal((await source.read(callOf())).value, 'here');
});

test('it comes in time', async t => {
  const { time, inner, source } = waiting(t);
  const reading = source.read(callOf());
  await time.pass(patienceMs - 1);
  inner.show({ value: 'here' });
  assert.equal((await reading).value, 'here');
});

test('while one who waited in vain still waits within, nobody else is made to', async t => {
  const { time, inner, source } = waiting(t);
  void source.read(callOf());
  await time.pass(patienceMs);
  let answered = 0;
  void source.read(callOf()).then(() => answered++);
  void source.read(callOf()).then(() => answered++);
  await time.pass(0);
  assert.equal(answered, 2);

  inner.show({ value: 'here' });
  await settled();
  inner.hang();
  const reading = source.read(callOf()).then(() => answered++);
  await time.pass(patienceMs - 1);
  assert.equal(answered, 2, 'it answered: it is worth waiting for again');
  await time.pass(1);
  await reading;
});

test('a failure is passed on, with what was last known', async t => {
  const { inner, source } = waiting(t);
  const error = unavailable('gone');
  inner.show({ value: 'last', error });
  const { current } = source;
  assert.deepEqual([current?.value, current?.error], ['last', error]);
});

test('a reader who leaves waits no longer; one who leaves late disturbs nobody', async t => {
  const { time, source } = waiting(t);
  const leaver = new AbortController();
  const left = assert.rejects(source.read(callOf(leaver.signal)));
  leaver.abort();
  await left;

  const later = new AbortController();
  const reading = source.read(callOf(later.signal));
  await time.pass(patienceMs);
  await reading;
  later.abort();
  await settled();
});

test('who watches is shown that nothing is known after the patience, and then what there is', async t => {
  const { time, inner, source } = waiting(t);
  const states = watch(source);
  const seen: (string | undefined)[] = [];
  const done = (async () => {
    for await (const { value } of states) seen.push(value);
  })();
  await time.pass(patienceMs - 1);
  assert.deepEqual(seen, []);
  await time.pass(1);
  assert.deepEqual(seen, [undefined]);
  inner.show({ value: 'here' });
  await settled();
  inner.show({ value: 'there' });
  await settled();
  assert.deepEqual(seen, [undefined, 'here', 'there']);
  await states.return();
  await done;
  assert.equal(inner.listeners, 0);
});

test('who leaves before the patience is over is told nothing', async t => {
  const { time, source } = waiting(t);
  let told = 0;
  source.subscribe(() => told++)();
  await time.pass(patienceMs);
  assert.equal(told, 0);
  assert.equal(source.current, undefined);
});

test('joined with others it delays them by the patience at most', async t => {
  const { time, inner, source } = waiting(t);
  const models = createCell(['a']);
  const joined = derive<[string[], string], string>(
    [models, source],
    ([list, names]) => `${list.value} ${names.value}`,
  );
  const states = watch(joined);
  const first = states.next();
  await time.pass(patienceMs);
  assert.equal((await first).value?.value, 'a undefined');
  models.set(['a', 'b']);
  assert.equal((await states.next()).value?.value, 'a,b undefined');
  inner.show({ value: 'known' });
  assert.equal((await states.next()).value?.value, 'a,b known');
  await states.return();
});
