import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import { combine, derive } from '../../src/live/derive.ts';
import type { Observation, Source } from '../../src/live/source.ts';
import { callOf, mockTime, start } from './clock.ts';

/** A source whose observation is what the test puts there. */
function scripted<T>(first?: Observation<T>) {
  const listeners = new Set<() => void>();
  let current = first;
  return {
    listeners,
    put(next: Observation<T>) {
      current = next;
      for (const listener of listeners) listener();
    },
    get current() {
      return current;
    },
    async read() {
      return current as Observation<T>;
    },
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const seen = <T>(value: T, revision: number, at = 0): Observation<T> => ({
  value,
  revision,
  observedAt: new Date(start + at),
  error: undefined,
});

test('it is computed once per change, however often it is read', async () => {
  const a = scripted(seen(1, 1));
  const b = scripted(seen(10, 1));
  let computed = 0;
  const sum = derive<[number, number], number>([a, b], ([x, y]) => {
    computed++;
    return (x.value ?? 0) + (y.value ?? 0);
  });
  for (let round = 0; round < 3; round++) assert.equal((await sum.read(callOf())).value, 11);
  assert.equal(sum.current?.value, 11);
  assert.equal(computed, 1);
  b.put(seen(20, 2));
  assert.equal(sum.current?.value, 21);
  assert.equal((await sum.read(callOf())).value, 21);
  assert.equal(computed, 2);
});

test('it is nothing until all it is made of was seen', async () => {
  const a = scripted(seen(1, 1));
  const b = scripted<number>();
  const sum = derive<[number, number], number>([a, b], ([x, y]) => (x.value ?? 0) + (y.value ?? 0));
  assert.ok(!sum.current);
  let told = 0;
  sum.subscribe(() => told++);
  a.put(seen(2, 2));
  assert.equal(told, 0);
  b.put(seen(10, 1));
  assert.equal(told, 1);
  assert.equal((await sum.read(callOf())).value, 12);
});

test('a result of the same identity is no change: same revision, nobody told, confirmed again', () => {
  const a = scripted(seen(1, 1));
  const sign = derive<[number], 'even' | 'odd'>([a], ([x]) => ((x.value ?? 0) % 2 === 0 ? 'even' : 'odd'));
  const before = sign.current;
  let told = 0;
  sign.subscribe(() => told++);
  a.put(seen(3, 2, 5_000));
  assert.equal(told, 0);
  assert.equal(sign.current?.revision, before?.revision);
  assert.equal(sign.current?.observedAt.getTime(), start + 5_000);
  a.put(seen(4, 3, 6_000));
  assert.equal(told, 1);
  assert.ok((sign.current?.revision ?? 0) > (before?.revision ?? 0));
});

test('what it was before is at hand, to keep what did not change', () => {
  const a = scripted(seen(1, 1));
  const previous: unknown[] = [];
  const copy = derive<[number], number>([a], ([x], before) => {
    previous.push(before);
    return x.value ?? 0;
  });
  void copy.current;
  a.put(seen(2, 2));
  void copy.current;
  assert.deepEqual(previous, [undefined, 1]);
});

test('it was seen when the oldest part of it was seen', () => {
  const a = scripted(seen(1, 1, 9_000));
  const b = scripted(seen(2, 1, 3_000));
  const sum = derive<[number, number], number>([a, b], ([x, y]) => (x.value ?? 0) + (y.value ?? 0));
  assert.equal(sum.current?.observedAt.getTime(), start + 3_000);
  b.put(seen(2, 1, 8_000));
  assert.equal(sum.current?.observedAt.getTime(), start + 8_000, 'confirmed without a change');
});

test('the sources are listened to while somebody listens, once for all', () => {
  const a = scripted(seen(1, 1));
  const copy = derive<[number], number>([a], ([x]) => x.value ?? 0);
  const leave = [copy.subscribe(() => {}), copy.subscribe(() => {})];
  assert.equal(a.listeners.size, 1);
  leave[0]?.();
  leave[0]?.();
  assert.equal(a.listeners.size, 1, 'leaving twice is leaving once');
  leave[1]?.();
  assert.equal(a.listeners.size, 0);
  copy.subscribe(() => {})();
  assert.equal(a.listeners.size, 0, 'and it begins anew');
});

test('revisions grow over both sources, whichever changes', async t => {
  mockTime(t);
  const cells: [Source<number> & { set(value: number): void }, Source<number> & { set(value: number): void }] = [
    createCell(0),
    createCell(0),
  ];
  const sum = derive<[number, number], number>(cells, ([x, y]) => (x.value ?? 0) + (y.value ?? 0));
  let last = sum.current?.revision ?? 0;
  for (let round = 1; round <= 20; round++) {
    cells[round % 2]?.set(round);
    const revision = sum.current?.revision ?? 0;
    assert.ok(revision > last);
    last = revision;
  }
});

const known = (seen: readonly (Observation<number> | undefined)[]) => seen.map(each => each?.value);

test('many of one kind are combined at once when all of them were seen', async () => {
  const inputs = [scripted(seen(1, 1)), scripted(seen(2, 1))];
  const all = combine<number, unknown>(inputs, 1_000, known);
  assert.deepEqual((await all.read(callOf())).value, [1, 2]);
});

test('whoever shows nothing in time is missing until it does', async t => {
  const time = mockTime(t);
  const late = scripted<number>();
  const all = combine<number, unknown>([scripted(seen(1, 1)), late], 1_000, known);
  const told: unknown[] = [];
  t.after(all.subscribe(() => told.push(all.current?.value)));
  await time.pass(999);
  assert.deepEqual(told, []);
  await time.pass(1);
  assert.deepEqual(told, [[1, undefined]]);
  late.put(seen(2, 1));
  assert.deepEqual(told, [
    [1, undefined],
    [1, 2],
  ]);
});

test('patience begins anew with every first listener, and ends with the last', async t => {
  const time = mockTime(t);
  const all = combine<number, unknown>([scripted(seen(1, 1)), scripted<number>()], 1_000, known);
  let told = 0;
  for (let round = 0; round < 3; round++) {
    const leave = all.subscribe(() => told++);
    await time.pass(600);
    leave();
  }
  await time.pass(10_000);
  assert.equal(told, 0);
});

test('who listens is told also of what somebody else looked at first', () => {
  const cell = createCell(1);
  // Told before the source is, this one looks at it.
  cell.subscribe(() => source.current);
  const source = derive<[number], number>([cell], ([{ value = 0 }]) => value);
  const told: (number | undefined)[] = [];
  source.subscribe(() => told.push(source.current?.value));
  cell.set(2);
  cell.set(3);
  assert.deepEqual(told, [2, 3]);
});
