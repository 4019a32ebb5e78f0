import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import { steady } from '../../src/live/steady.ts';
import { watch } from '../../src/live/watch.ts';
import { callOf, mockTime, settled } from './clock.ts';

/** A state that a test sets, and what somebody is told who watches it steadily. */
async function watched() {
  const cell = createCell('a');
  const source = steady(cell, 5_000);
  const states = watch(source);
  const told: (string | undefined)[] = [];
  const watching = (async () => {
    for await (const { value } of states) told.push(value);
  })();
  await settled();
  return {
    cell,
    source,
    told,
    async [Symbol.asyncDispose]() {
      await states.return();
      await watching;
    },
  };
}

test('the first change is told at once, the next one 5 s later, and then the newest', async t => {
  const time = mockTime(t);
  await using world = await watched();
  const { cell, told } = world;
  assert.deepEqual(told, ['a']);
  await time.pass(1_000);
  cell.set('b');
  await time.pass(1_000);
  assert.deepEqual(told, ['a', 'b']);
  cell.set('c');
  cell.set('d');
  await time.pass(3_999);
  assert.deepEqual(told, ['a', 'b']);
  await time.pass(1);
  assert.deepEqual(told, ['a', 'b', 'd']);
  await time.pass(5_000);
  cell.set('e');
  await time.pass(0);
  assert.deepEqual(told, ['a', 'b', 'd', 'e']);
});

test('a change that is taken back in time is not told', async t => {
  const time = mockTime(t);
  await using world = await watched();
  const { cell, told } = world;
  cell.set('b');
  await settled();
  cell.set('c');
  cell.set('b');
  await time.pass(20_000);
  assert.deepEqual(told, ['a', 'b']);
});

test('who reads is told what is; who begins to watch is shown what is', async t => {
  const time = mockTime(t);
  {
    await using world = await watched();
    const { cell, source } = world;
    cell.set('b');
    await settled();
    cell.set('c');
    assert.equal(source.current?.value, 'b');
    assert.equal((await source.read(callOf())).value, 'c');
    await time.pass(5_000);
    assert.equal(source.current?.value, 'c');
    cell.set('d');
  }
  await time.pass(60_000);
  await using later = await watched();
  assert.deepEqual(later.told, ['a']);
});
