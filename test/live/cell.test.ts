import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import { watch } from '../../src/live/watch.ts';
import { callOf, mockTime, settled, start } from './clock.ts';

test('readers see a new state at once, and it is as true as of now', async t => {
  const time = mockTime(t);
  const cell = createCell('a', { minIntervalMs: 250 });
  const before = await cell.read(callOf());
  cell.set('b');
  const after = await cell.read(callOf());
  assert.equal(after.value, 'b');
  assert.ok(after.revision > before.revision);
  await time.pass(60_000);
  assert.equal(cell.current?.observedAt.getTime(), start + 60_000);
  assert.equal(cell.current?.revision, after.revision);
});

test('listeners hear of the first change at once, then at most once an interval, and of the newest last', async t => {
  const time = mockTime(t);
  const cell = createCell(0, { minIntervalMs: 250 });
  const heard: Array<[at: number, value: number | undefined]> = [];
  t.after(cell.subscribe(() => heard.push([Date.now() - start, cell.current?.value])));
  for (let value = 1; value <= 90; value++) {
    if (value <= 60) cell.set(value);
    await time.pass(10);
  }
  assert.deepEqual(heard, [
    [0, 1],
    [250, 25],
    [500, 50],
    [750, 60],
  ]);
  await time.pass(10_000);
  assert.equal(heard.length, 4, 'nothing new, nothing said');
});

test('without an interval every change is told', async t => {
  mockTime(t);
  const cell = createCell(0);
  const heard: unknown[] = [];
  t.after(cell.subscribe(() => heard.push(cell.current?.value)));
  for (const value of [1, 2, 3]) cell.set(value);
  assert.deepEqual(heard, [1, 2, 3]);
});

test('changes within one millisecond have revisions of their own', async t => {
  mockTime(t);
  const cell = createCell(0);
  const revisions = [1, 2, 3].map(value => {
    cell.set(value);
    return cell.current?.revision as number;
  });
  assert.deepEqual(
    revisions,
    [...new Set(revisions)].sort((a, b) => a - b),
  );
});

test('a clock that is set back delays no news by more than the interval', async t => {
  const time = mockTime(t);
  let skew = 0;
  const cell = createCell(0, { minIntervalMs: 250, now: () => Date.now() + skew });
  let told = 0;
  t.after(cell.subscribe(() => told++));
  cell.set(1);
  skew = -3_600_000;
  cell.set(2);
  await time.pass(250);
  assert.equal(told, 2);
});

test('a slow reader of a cell gets its newest state and not those before it', async t => {
  mockTime(t);
  const cell = createCell(0);
  const states = watch(cell);
  assert.equal((await states.next()).value?.value, 0);
  for (let value = 1; value <= 10_000; value++) cell.set(value);
  assert.equal((await states.next()).value?.value, 10_000);
  const waiting = states.next();
  await settled();
  cell.set(10_001);
  assert.equal((await waiting).value?.value, 10_001);
  await states.return();
});
