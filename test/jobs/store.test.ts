import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../../src/domain.ts';
import { createJobList } from '../../src/jobs/store.ts';
import { callOf } from '../support/backends.ts';

const hour = 3600_000;

/** A store on a clock of its own, and jobs of any kind for it. */
function storeAt(start = Date.parse('2026-08-22T08:00:00Z'), retentionMs = 24 * hour) {
  const clock = { now: start };
  const store = createJobList({ retentionMs, now: () => clock.now });
  let count = 0;
  const job = (change: Partial<Job> = {}): Job => ({
    id: (++count).toString(16).padStart(16, '0'),
    backend: 'ollama',
    type: 'pull',
    model: 'a:1b',
    phase: 'running',
    bytesCompleted: 0,
    bytesTotal: 0,
    createdAt: new Date(clock.now),
    wire: false,
    ...change,
  });
  const ended = (change: Partial<Job> = {}) => job({ phase: 'succeeded', finishedAt: new Date(clock.now), ...change });
  const ids = () => store.list().map(({ id }) => id);
  return { clock, store, job, ended, ids };
}

test('the newest comes first, and of the same time the smaller id', () => {
  const { clock, store, job, ids } = storeAt();
  store.put(job({ id: 'b' }));
  store.put(job({ id: 'c' }));
  store.put(job({ id: 'a' }));
  clock.now += 1;
  store.put(job({ id: 'd' }));
  clock.now -= 2;
  store.put(job({ id: 'e' }));
  assert.deepEqual(ids(), ['d', 'a', 'b', 'c', 'e']);
});

test('putting a job again replaces it in its place', () => {
  const { clock, store, job, ids } = storeAt();
  const first = job({ id: 'a' });
  store.put(first);
  clock.now += 1;
  store.put(job({ id: 'b' }));
  store.put({ ...first, status: 'pulling' });
  assert.deepEqual(ids(), ['b', 'a']);
  assert.equal(store.get('a')?.status, 'pulling');
  assert.equal(store.get('z'), undefined);
});

test('a job that has ended is kept for its time, counted from its end; one that runs is kept', () => {
  const { clock, store, job, ended, ids } = storeAt();
  store.put(job({ id: 'running' }));
  store.put(job({ id: 'pending', phase: 'pending' }));
  clock.now += 20 * hour;
  for (const phase of ['succeeded', 'failed', 'cancelled'] as const)
    store.put(ended({ id: phase, phase, createdAt: new Date(0) }));
  clock.now += 24 * hour - 1;
  assert.equal(ids().length, 5);
  clock.now += 1;
  assert.deepEqual(ids(), ['pending', 'running']);
  assert.equal(store.get('failed'), undefined);
  clock.now += 1000 * hour;
  assert.deepEqual(ids(), ['pending', 'running']);
});

test('of those that have ended the newest 200 are kept, beside all that run', () => {
  const { clock, store, job, ended, ids } = storeAt();
  const running = job();
  store.put(running);
  for (let count = 0; count < 205; count++) {
    clock.now += 1;
    store.put(ended({ id: `ended-${count}` }));
  }
  assert.equal(ids().length, 201);
  assert.deepEqual([ids()[0], ids()[199], ids()[200]], ['ended-204', 'ended-5', running.id]);
  assert.equal(store.get('ended-4'), undefined);
  // The one that began first ends last: it is the newest of those that have ended.
  clock.now += 1;
  store.put({ ...running, phase: 'succeeded', finishedAt: new Date(clock.now) });
  assert.equal(ids().length, 200);
  assert.equal(store.get(running.id)?.phase, 'succeeded');
  assert.equal(store.get('ended-5'), undefined);
});

test('who watches the list is told of jobs that come, move and go', async () => {
  const { clock, store, job, ended } = storeAt();
  const told: string[][] = [];
  store.source.subscribe(() =>
    told.push((store.source.current?.value?.rows ?? []).map(({ id, phase }) => `${id} ${phase}`)),
  );
  store.put(job({ id: 'a' }));
  clock.now += 1000;
  store.put(ended({ id: 'a' }));
  clock.now += 25 * hour;
  store.list();
  assert.deepEqual(told, [['a running'], ['a succeeded'], []]);
  assert.deepEqual((await store.source.read(callOf())).value, { rows: [], errors: [] });
});
