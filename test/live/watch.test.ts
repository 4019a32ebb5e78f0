import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCell } from '../../src/live/cell.ts';
import type { Observation, Source } from '../../src/live/source.ts';
import { watch } from '../../src/live/watch.ts';
import { settled } from './clock.ts';

/** A source that counts who listens, and has nothing to say yet unless a value is given. */
function counted<T>(...given: [T] | []) {
  const cell = createCell<T | undefined>(given[0]);
  let listening = 0;
  const source: Source<T> = {
    get current() {
      return given.length === 0 && cell.current?.value === undefined ? undefined : (cell.current as Observation<T>);
    },
    read: call => cell.read(call) as Promise<Observation<T>>,
    subscribe(listener) {
      listening++;
      const stop = cell.subscribe(listener);
      return () => {
        listening--;
        stop();
      };
    },
  };
  return {
    source,
    set: cell.set,
    get listening() {
      return listening;
    },
  };
}

test('return settles a waiting next at once, and nobody listens any more', async () => {
  const world = counted<string>();
  const states = watch(world.source);
  const waiting = states.next();
  await settled();
  assert.equal(world.listening, 1);
  const returned = states.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  assert.deepEqual(await returned, { done: true, value: undefined });
  assert.equal(world.listening, 0);
});

test('after return there is nothing more, and returning again changes nothing', async () => {
  const world = counted('a');
  const states = watch(world.source);
  await states.return();
  await states.return();
  world.set('b');
  assert.deepEqual(await states.next(), { done: true, value: undefined });
  assert.equal(world.listening, 0);
});

test('leaving the loop ends the watch', async () => {
  const world = counted('a');
  for await (const state of watch(world.source)) {
    assert.equal(state.value, 'a');
    break;
  }
  assert.equal(world.listening, 0);
});

test('the first state comes when there is one', async () => {
  const world = counted<string>();
  const states = watch(world.source);
  const first = states.next();
  world.set('a');
  assert.equal((await first).value?.value, 'a');
  await states.return();
});

test('no state comes twice, and revisions only grow', async () => {
  const world = counted(0);
  const states = watch(world.source);
  const revisions: number[] = [];
  for (let value = 1; value <= 50; value++) {
    revisions.push((await states.next()).value?.revision as number);
    world.set(value);
  }
  assert.equal(new Set(revisions).size, 50);
  assert.deepEqual(
    revisions,
    revisions.toSorted((a, b) => a - b),
  );
  await states.return();
});

test('two who wait for the next state get the same one', async () => {
  const world = counted<string>();
  const states = watch(world.source);
  const both = [states.next(), states.next()];
  world.set('a');
  const [one, other] = await Promise.all(both);
  assert.equal(one?.value?.value, 'a');
  assert.equal(other?.value?.value, 'a');
  await states.return();
});

test('a listener that throws keeps nothing from the others', async t => {
  const surfaced = Promise.withResolvers<unknown>();
  const handlers = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.once('uncaughtException', surfaced.resolve);
  t.after(() => {
    for (const handler of handlers) process.on('uncaughtException', handler);
  });
  const cell = createCell(0);
  let told = 0;
  cell.subscribe(() => {
    throw new Error('one of us');
  });
  cell.subscribe(() => told++);
  cell.set(1);
  assert.equal(told, 1);
  assert.equal(((await surfaced.promise) as Error).message, 'one of us');
});
