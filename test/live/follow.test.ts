import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cell, createCell } from '../../src/live/cell.ts';
import { follow } from '../../src/live/follow.ts';
import type { Source } from '../../src/live/source.ts';
import { until } from '../../src/live/until.ts';
import { callOf, mockTime, settled } from './clock.ts';

/** A cell that tells whether anybody listens to it. */
function counted<T>(cell: Cell<T>) {
  let listening = 0;
  const source: Source<T> = {
    get current() {
      return cell.current;
    },
    read: cell.read,
    subscribe(listener) {
      listening += 1;
      const stop = cell.subscribe(listener);
      return () => {
        listening -= 1;
        stop();
      };
    },
  };
  return { source, listening: () => listening };
}

function world() {
  const [red, blue] = [createCell('red 1'), createCell('blue 1')];
  const [first, second] = [counted(red), counted(blue)];
  const outer = createCell<'red' | 'blue'>('red');
  const source = follow(outer, name => (name === 'red' ? first.source : second.source));
  return { red, blue, first, second, outer, source };
}

test('shows what is chosen, and tells of it and of another choice', () => {
  const { red, blue, outer, source, first, second } = world();
  const told: unknown[] = [];
  const stop = source.subscribe(() => told.push(source.current?.value));
  red.set('red 2');
  outer.set('blue');
  red.set('red 3');
  blue.set('blue 2');
  assert.deepEqual(told, ['red 2', 'blue 1', 'blue 2']);
  assert.deepEqual([first.listening(), second.listening()], [0, 1]);
  stop();
  assert.deepEqual([first.listening(), second.listening()], [0, 0]);
  blue.set('blue 3');
  assert.equal(told.length, 3);
});

test('revisions grow over a change of choice, and stay when nothing changed', () => {
  const { red, outer, source } = world();
  // The one chosen later was last changed before.
  for (let change = 0; change < 5; change++) red.set(`red ${change}`);
  const before = source.current?.revision ?? 0;
  assert.equal(source.current?.revision, before);
  outer.set('blue');
  assert.ok((source.current?.revision ?? 0) > before);
});

test('reading reads what is chosen by then', async () => {
  const { outer, source } = world();
  outer.set('blue');
  assert.equal((await source.read(callOf())).value, 'blue 1');
});

test('until another choice has shown anything, the last state stands', () => {
  const silent: Source<string> = { current: undefined, read: () => new Promise(() => {}), subscribe: () => () => {} };
  const outer = createCell(false);
  const source = follow(outer, isSilent => (isSilent ? silent : createCell('here')));
  const revision = source.current?.revision;
  outer.set(true);
  assert.equal(source.current?.value, 'here');
  assert.equal(source.current?.revision, revision);
});

test('until waits for what is to come true', async t => {
  const time = mockTime(t);
  const cell = createCell(1);
  const { signal } = new AbortController();
  assert.equal(await until(cell, value => value === 1, { ms: 10, signal }), true);
  const three = until(cell, value => value === 3, { ms: 10, signal });
  cell.set(2);
  cell.set(3);
  cell.set(4);
  assert.equal(await three, true);
  const five = until(cell, value => value === 5, { ms: 10, signal });
  await time.pass(10);
  assert.equal(await five, false);
});

test('until ends with the signal', async () => {
  const leaving = new AbortController();
  const waiting = until(createCell(1), value => value === 2, { ms: 60_000, signal: leaving.signal });
  leaving.abort(new Error('left'));
  await assert.rejects(waiting, { message: 'left' });
  await settled();
  await assert.rejects(until(createCell(2), value => value === 2, { ms: 1, signal: leaving.signal }));
});

test('the same choice again is no news', () => {
  const chosen = createCell('here');
  const outer = createCell(1);
  const source = follow(outer, () => chosen);
  let told = 0;
  source.subscribe(() => told++);
  const before = source.current?.revision;
  outer.set(2);
  assert.deepEqual([told, source.current?.revision], [0, before]);
});

test('who listens is told also of what somebody else looked at first', () => {
  const chosen = createCell(1);
  chosen.subscribe(() => source.current);
  const source = follow(createCell(0), () => chosen);
  const told: (number | undefined)[] = [];
  source.subscribe(() => told.push(source.current?.value));
  chosen.set(2);
  chosen.set(3);
  assert.deepEqual(told, [2, 3]);
});
