import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../src/call.ts';
import { createCell } from '../../src/live/cell.ts';
import { lookups } from '../../src/live/lookups.ts';
import { callOf, mockTime, settled } from './clock.ts';

const timeoutMs = 3_000;
const staleMs = 10_000;
const retryMs = 5_000;

type Look = (call: Call, wanted: string) => Promise<string>;

/** Looks up what a list names; `looked` are the names that were looked up, in their order. */
function looking(t: TestContext, look: Look = async (_, name) => `${name}!`) {
  const time = mockTime(t);
  const names = createCell<readonly string[]>([]);
  const looked: string[] = [];
  const source = lookups<readonly string[], string, string>(names, {
    wanted: list => new Map(list.map(name => [name, name])),
    look: (call, name) => {
      looked.push(name);
      return look(call, name);
    },
    timeoutMs,
    staleMs,
    retryMs,
    call: callOf(),
  });
  const shown = () => Object.fromEntries(source.current?.value ?? []);
  return { time, names, looked, source, shown };
}

test('what is wanted is looked up once, and who listens is told', async t => {
  const { names, looked, source, shown } = looking(t);
  let told = 0;
  const stop = source.subscribe(() => told++);
  names.set(['a', 'b']);
  await settled();
  assert.deepEqual(shown(), { a: { value: 'a!' }, b: { value: 'b!' } });
  assert.ok(told >= 1);
  names.set(['b', 'c']);
  await settled();
  assert.deepEqual(shown(), { b: { value: 'b!' }, c: { value: 'c!' } });
  assert.deepEqual(looked, ['a', 'b', 'c']);
  stop();
});

test('who reads gets all of it, two at once from one look', async t => {
  const { names, looked, source, shown } = looking(t);
  names.set(['a']);
  await Promise.all([source.read(callOf()), source.read(callOf())]);
  assert.deepEqual(shown(), { a: { value: 'a!' } });
  await source.read(callOf());
  assert.deepEqual(looked, ['a']);
});

test('what is stale is looked up again while somebody listens, and is no news when it is the same', async t => {
  let answer = 1;
  const { time, names, looked, source, shown } = looking(t, async () => String(answer));
  const stop = source.subscribe(() => {});
  names.set(['a']);
  await settled();
  const before = source.current?.revision;
  await time.pass(staleMs);
  assert.equal(looked.length, 2);
  assert.equal(source.current?.revision, before);
  answer = 2;
  await time.pass(staleMs);
  assert.deepEqual(shown(), { a: { value: '2' } });
  stop();
  await time.pass(10 * staleMs);
  assert.equal(looked.length, 3);
});

test('a failure costs its own entry, and is tried again', async t => {
  let isBroken = true;
  const { time, names, source, shown } = looking(t, async (_, name) => {
    if (isBroken && name === 'b') throw new Error('no rights');
    return name;
  });
  const stop = source.subscribe(() => {});
  names.set(['a', 'b']);
  await settled();
  assert.deepEqual(shown(), { a: { value: 'a' }, b: { problem: 'no rights' } });
  isBroken = false;
  await time.pass(retryMs);
  assert.deepEqual(shown(), { a: { value: 'a' }, b: { value: 'b' } });
  stop();
});

test('one that takes its time keeps no other from being looked up again', async t => {
  const { time, names, looked, source } = looking(t, (_, name) =>
    name === 'slow' ? new Promise<string>(() => {}) : Promise.resolve(name),
  );
  const stop = source.subscribe(() => {});
  names.set(['slow', 'a']);
  await settled();
  await time.pass(staleMs);
  await time.pass(staleMs);
  assert.deepEqual(looked, ['slow', 'a', 'a', 'a']);
  stop();
});

test('at most eight are looked up at once, and all of them in the end', async t => {
  const open: (() => void)[] = [];
  const { names, source, shown } = looking(t, async (_, name) => {
    await new Promise<void>(resolve => open.push(resolve));
    return name;
  });
  const stop = source.subscribe(() => {});
  const all = Array.from({ length: 20 }, (_, at) => `n${at}`);
  names.set(all);
  await settled();
  assert.equal(open.length, 8);
  while (open.length > 0) {
    open.shift()?.();
    await settled();
  }
  assert.equal(Object.keys(shown()).length, 20);
  stop();
});

test('a look has a deadline, and what is not wanted any more when it ends is not shown', async t => {
  const deadlines: number[] = [];
  const gate = Promise.withResolvers<string>();
  const { names, source, shown } = looking(t, async call => {
    deadlines.push(call.deadline - Date.now());
    return gate.promise;
  });
  const stop = source.subscribe(() => {});
  names.set(['a']);
  await settled();
  names.set([]);
  gate.resolve('late');
  await settled();
  assert.deepEqual(deadlines, [timeoutMs]);
  assert.deepEqual(shown(), {});
  stop();
});

test('a reader who leaves is let go', async t => {
  const { names, source } = looking(t, () => new Promise<string>(() => {}));
  names.set(['a']);
  const left = new AbortController();
  const reading = source.read(callOf(left.signal));
  await settled();
  left.abort(new Error('left'));
  await assert.rejects(reading, /left/);
});
