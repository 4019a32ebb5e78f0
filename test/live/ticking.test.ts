import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import { ticking } from '../../src/live/ticking.ts';
import { mockTime } from './clock.ts';

const second = 1_000;
const isOpen = (state: string) => state === 'open';

test('who listens is told again and again while it holds, with a time and a revision of its own', async t => {
  const time = mockTime(t);
  const cell = createCell('open');
  const source = ticking(cell, second, isOpen);
  const told: (readonly [string | undefined, number, number])[] = [];
  const stop = source.subscribe(() => {
    const { value, revision, observedAt } = source.current ?? assert.fail('nothing is seen');
    told.push([value, revision, observedAt.getTime()]);
  });
  await time.pass(second);
  await time.pass(second);
  cell.set('closed');
  await time.pass(10 * second);
  assert.deepEqual(
    told.map(([value]) => value),
    ['open', 'open', 'closed'],
  );
  const [first, next, last] = told as [(typeof told)[0], (typeof told)[0], (typeof told)[0]];
  assert.equal(next[2] - first[2], second);
  assert.ok(first[1] < next[1] && next[1] < last[1], 'revisions grow');
  stop();
});

test('a change begins the count anew', async t => {
  const time = mockTime(t);
  const cell = createCell('closed');
  const source = ticking(cell, second, isOpen);
  let told = 0;
  const stop = source.subscribe(() => told++);
  await time.pass(5 * second);
  assert.equal(told, 0);
  cell.set('open');
  await time.pass(second - 1);
  assert.equal(told, 1);
  await time.pass(1);
  assert.equal(told, 2);
  stop();
});

test('without a listener nothing ticks', async t => {
  const time = mockTime(t);
  const source = ticking(createCell('open'), second, isOpen);
  source.subscribe(() => assert.fail('told after it left'))();
  const { revision } = source.current ?? assert.fail('nothing is seen');
  await time.pass(10 * second);
  assert.equal(source.current?.revision, revision);
});
