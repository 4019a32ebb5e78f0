import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError } from '../../src/errors.ts';
import { createCell } from '../../src/live/cell.ts';
import { type LiveEvent, type Rows, type RowsPayload, rowsEvents, valueEvents } from '../../src/live/events.ts';
import { keepRows, keepValue } from '../../src/live/rows.ts';
import type { Watch } from '../../src/live/watch.ts';

interface Row {
  readonly name: string;
  readonly size: number;
}

const key = (row: Row) => row.name;
const keep = keepRows(key);
const row = (name: string, size = 0): Row => ({ name, size });

/** Rows in a cell, as an observed source has them: what did not change keeps its identity. */
function world(...first: Row[]) {
  const cell = createCell<Rows<Row>>({ rows: first, errors: [] });
  const set = (...rows: Row[]) => cell.set({ rows: keep(cell.current?.value?.rows, rows), errors: [] });
  return { cell, set };
}

async function nextOf<P>(events: Watch<LiveEvent<P>>): Promise<LiveEvent<P>> {
  const { value } = await events.next();
  assert.ok(value, 'the events have ended');
  return value;
}

const shownOf = ({ snapshot, rows, removed }: RowsPayload<Row>) => ({ snapshot, rows, removed });

test('an event has what changed for those who saw the one before, and everything for others', async () => {
  const { cell, set } = world(row('a'), row('b'));
  const events = rowsEvents(cell, key);
  const first = await nextOf(events);
  assert.deepEqual(shownOf(first.snapshot), { snapshot: true, rows: [row('a'), row('b')], removed: [] });

  set(row('a'), row('b', 1), row('c'));
  const second = await nextOf(events);
  assert.deepEqual(shownOf(second.changes), { snapshot: false, rows: [row('b', 1), row('c')], removed: [] });
  assert.deepEqual(shownOf(second.snapshot), {
    snapshot: true,
    rows: [row('a'), row('b', 1), row('c')],
    removed: [],
  });

  set(row('c'));
  const third = await nextOf(events);
  assert.deepEqual(shownOf(third.changes), { snapshot: false, rows: [], removed: ['a', 'b'] });
  assert.deepEqual(shownOf(third.snapshot), { snapshot: true, rows: [row('c')], removed: [] });
  assert.equal(third.changes.revision, third.snapshot.revision);
  assert.ok(second.changes.revision < third.changes.revision && first.changes.revision < second.changes.revision);
  await events.return();
});

test('what changes nothing is no event; another failure is one', async () => {
  const { cell } = world(row('a'));
  const events = rowsEvents(cell, key);
  const rows = (await nextOf(events)).snapshot.rows;
  const next = nextOf(events);
  cell.set({ rows: [...rows], errors: [] });
  await new Promise(resolve => setImmediate(resolve));
  const failure = { backend: 'x', error: backendError('down') };
  cell.set({ rows, errors: [failure] });
  assert.deepEqual((await next).changes.errors, [failure]);
  const after = nextOf(events);
  cell.set({ rows, errors: [{ ...failure }] });
  await new Promise(resolve => setImmediate(resolve));
  cell.set({ rows, errors: [] });
  assert.deepEqual((await after).changes.errors, []);
});

test('changes missed in between are in the next event', async () => {
  const { cell, set } = world(row('a'));
  const events = rowsEvents(cell, key);
  await nextOf(events);
  set(row('a', 1));
  set(row('a', 1), row('b'));
  set(row('b'));
  assert.deepEqual(shownOf((await nextOf(events)).changes), { snapshot: false, rows: [row('b')], removed: ['a'] });
  await events.return();
});

test('a row that went and came back, unseen, is whole again in the next event', async () => {
  const { cell, set } = world(row('a', 1));
  const events = rowsEvents(cell, key);
  await nextOf(events);
  set();
  set(row('a', 1));
  assert.deepEqual(shownOf((await nextOf(events)).changes), { snapshot: false, rows: [row('a', 1)], removed: [] });
  await events.return();
});

test('that a backend cannot answer, and that it can again, are events', async () => {
  const { cell, set } = world(row('a'));
  const events = rowsEvents(cell, key);
  await nextOf(events);
  const failure = { backend: 'ollama', error: backendError('gone') };
  cell.set({ rows: [], errors: [failure] });
  const down = await nextOf(events);
  assert.deepEqual(down.changes.errors, [failure]);
  assert.deepEqual(down.changes.removed, ['a']);
  set(row('a'));
  const up = await nextOf(events);
  assert.deepEqual(up.changes.errors, []);
  assert.deepEqual(up.changes.rows, [row('a')]);
  await events.return();
});

test('equal rows keep their identity, and an equal list is the same list', () => {
  const before = [row('a', 1), row('b', 2)];
  assert.equal(keep(before, [row('a', 1), row('b', 2)]), before);
  const after = keep(before, [row('a', 1), row('b', 3), row('c')]);
  assert.equal(after[0], before[0]);
  assert.notEqual(after[1], before[1]);
  assert.notEqual(keep(before, [row('b', 2), row('a', 1)]), before, 'the order is part of the list');
  assert.equal(keep(before, [row('b', 2)])[0], before[1]);
  const first = [row('x')];
  assert.equal(keep(undefined, first), first);
});

test('rows with dates and lists inside are compared by what they say', () => {
  const deep = (at: number) => ({ name: 'a', at: new Date(at), tags: ['x', 'y'], running: { bytes: 1 } });
  const keepDeep = keepRows((entry: ReturnType<typeof deep>) => entry.name);
  const before = [deep(1)];
  assert.equal(keepDeep(before, [deep(1)]), before);
  assert.notEqual(keepDeep(before, [deep(2)]), before);
  assert.equal(keepValue(before[0], deep(1)), before[0]);
  assert.notEqual(keepValue(before[0], deep(2)), before[0]);
});

interface Job {
  readonly id: string;
  readonly percent: number;
}

const isDone = (job: Job) => job.percent === 100;
const find = (id: string) => (rows: readonly Job[]) => rows.find(job => job.id === id);

function jobs(...first: Job[]) {
  const cell = createCell<Rows<Job>>({ rows: first, errors: [] });
  let listening = 0;
  const source = {
    get current() {
      return cell.current;
    },
    read: cell.read,
    subscribe(listener: () => void) {
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
    set: (...rows: Job[]) => cell.set({ rows, errors: [] }),
    get listening() {
      return listening;
    },
  };
}

test('one thing is followed until a state that is final', async () => {
  const world = jobs({ id: 'x', percent: 0 });
  const events = valueEvents(world.source, find('x'), isDone);
  assert.equal((await nextOf(events)).changes.value?.percent, 0);
  world.set({ id: 'x', percent: 50 });
  assert.equal((await nextOf(events)).changes.value?.percent, 50);
  world.set({ id: 'x', percent: 100 });
  const last = await nextOf(events);
  assert.deepEqual([last.changes.value?.percent, last.changes.removed], [100, false]);
  assert.equal(world.listening, 0, 'nobody listens after the last event');
  assert.equal((await events.next()).done, true);
});

test('what is final already is one event', async () => {
  const world = jobs({ id: 'x', percent: 100 });
  const events = valueEvents(world.source, find('x'), isDone);
  assert.equal((await nextOf(events)).snapshot.value?.percent, 100);
  assert.equal((await events.next()).done, true);
});

test('a thing that goes is shown as it last was, as removed, and then it ends', async () => {
  const world = jobs({ id: 'x', percent: 10 });
  const events = valueEvents(world.source, find('x'), isDone);
  await nextOf(events);
  world.set();
  const { changes } = await nextOf(events);
  assert.deepEqual([changes.value, changes.removed], [{ id: 'x', percent: 10 }, true]);
  assert.equal((await events.next()).done, true);
  assert.equal(world.listening, 0);
});

test('what happens to others is no event', async () => {
  const same = { id: 'x', percent: 10 };
  const world = jobs(same);
  const events = valueEvents(world.source, find('x'), isDone);
  await nextOf(events);
  const next = nextOf(events);
  for (let percent = 0; percent < 100; percent += 10) world.set(same, { id: 'y', percent });
  world.set({ id: 'x', percent: 20 });
  assert.equal((await next).changes.value?.percent, 20);
  await events.return();
});

test('return ends the events at once, also while one is awaited', async () => {
  const world = jobs({ id: 'x', percent: 10 });
  for (const events of [valueEvents(world.source, find('x'), isDone), rowsEvents(world.source, job => job.id)]) {
    await events.next();
    const waiting = events.next();
    await events.return();
    assert.equal((await waiting).done, true);
  }
  assert.equal(world.listening, 0);
});
