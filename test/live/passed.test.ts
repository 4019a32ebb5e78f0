import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import { derive } from '../../src/live/derive.ts';
import { passed } from '../../src/live/passed.ts';
import { callOf, mockTime, start } from './clock.ts';

const of = (moments: readonly number[]) => moments;

test('who listens is told at each moment, and at no other', async t => {
  const time = mockTime(t);
  const source = passed(createCell<readonly number[]>([start + 5_000, start - 1_000, start + 2_000]), of);
  const told: (number | undefined)[] = [];
  const stop = source.subscribe(() => told.push(source.current?.value));
  assert.equal(source.current?.value, start - 1_000, 'what has passed before has passed');
  await time.pass(1_999);
  assert.deepEqual(told, []);
  await time.pass(1);
  await time.pass(10_000);
  assert.deepEqual(told, [start + 2_000, start + 5_000]);
  stop();
});

test('moments come and go with the state', async t => {
  const time = mockTime(t);
  const cell = createCell<readonly number[]>([start + 5_000]);
  const source = passed(cell, of);
  const told: (number | undefined)[] = [];
  const stop = source.subscribe(() => told.push(source.current?.value));
  cell.set([start + 1_000]);
  await time.pass(5_000);
  assert.deepEqual(told, [start + 1_000]);
  cell.set([]);
  assert.deepEqual(told, [start + 1_000, 0]);
  stop();
});

test('without a listener time passes too, and nothing waits for it', async t => {
  const time = mockTime(t);
  const source = passed(createCell<readonly number[]>([start + 1_000]), of);
  assert.equal((await source.read(callOf())).value, 0);
  const before = source.current?.revision;
  await time.pass(1_000);
  assert.equal((await source.read(callOf())).value, start + 1_000);
  assert.notEqual(source.current?.revision, before);
  source.subscribe(() => assert.fail('told'))();
  await time.pass(60_000);
});

test('a moment that is centuries away, or none at all, disturbs nobody', async t => {
  const time = mockTime(t);
  const source = passed(createCell<readonly number[]>([Number.NaN, start + 2 ** 42, start + 1_000]), of);
  let told = 0;
  const stop = source.subscribe(() => told++);
  await time.pass(1_000);
  await time.pass(2 ** 31);
  assert.equal(told, 1);
  stop();
});

test('a look at what is computed takes nothing from those who listen to it', async t => {
  const time = mockTime(t);
  const cell = createCell<readonly number[]>([start + 1_000]);
  const computed = derive<[number], string>([passed(cell, of)], ([{ value }]) => `after ${(value ?? 0) - start}`);
  const told: (string | undefined)[] = [];
  const stop = computed.subscribe(() => told.push(computed.current?.value));
  // The clock goes on before the timer gets its turn.
  t.mock.timers.setTime(start + 1_000);
  computed.current;
  await time.pass(0);
  assert.deepEqual(told, ['after 1000']);
  stop();
});
