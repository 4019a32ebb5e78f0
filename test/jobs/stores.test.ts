/** What every store of jobs does, wherever it keeps them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cancelled } from '../../src/call.ts';
import type { Job } from '../../src/domain.ts';
import { createMemoryStore } from '../../src/jobs/memory.ts';
import type { JobStore } from '../../src/jobs/store.ts';
import { callOf } from '../support/backends.ts';
import { eventually } from '../support/server.ts';
import { begun, ended, hour, idOf, jobOf, startReplicas } from './lab.ts';

interface Stage extends AsyncDisposable {
  readonly store: JobStore;
}

const stages: Readonly<Record<string, (now: () => number) => Promise<Stage>>> = {
  memory: async now => ({
    store: createMemoryStore({ retentionMs: 24 * hour, now }),
    async [Symbol.asyncDispose]() {},
  }),
  kubernetes: async now => {
    const replicas = await startReplicas();
    return { store: await replicas.replica({ now }), [Symbol.asyncDispose]: () => replicas[Symbol.asyncDispose]() };
  },
};

for (const [name, open] of Object.entries(stages)) {
  describe(`jobs kept in ${name}`, { timeout: 30_000 }, () => {
    const clock = { now: Date.parse('2026-08-22T08:00:00Z') };
    const now = () => clock.now;
    const fresh = (count: number, change: Partial<Job> = {}) =>
      jobOf(idOf(count), { createdAt: new Date(now()), ...change });

    test('a job is there from its beginning to its end, and after', async () => {
      await using stage = await open(now);
      const { store } = stage;
      assert.equal(store.isRead(), true);
      const job = fresh(1, { node: 'n1', preset: 'p', requestedBy: 'jane@example.com', resource: 'r' });
      const claim = await begun(store, 'a', job);
      assert.deepEqual([store.list(), store.get(job.id), store.working('a'), claim.job], [[job], job, job, job]);
      const running: Job = {
        ...job,
        phase: 'running',
        startedAt: new Date(now()),
        status: 'pulling',
        bytesCompleted: 4,
        bytesTotal: 9,
      };
      claim.put(running);
      assert.deepEqual([store.get(job.id), store.working('a')], [running, running]);
      const result = { name: 'a', namespace: 'kagent', ready: true, managed: true, endpoint: 'http://one.example' };
      const done: Job = { ...running, phase: 'succeeded', finishedAt: new Date(now()), result };
      claim.put(done);
      assert.deepEqual([store.get(job.id), store.working('a')], [done, undefined]);
      assert.deepEqual(await store.find(callOf(), job.id), done);
      assert.equal(claim.signal.aborted, false);
    });

    test('work that is done already is joined, also when two begin it at once; what is over is begun anew', async () => {
      await using stage = await open(now);
      const { store } = stage;
      const both = await Promise.all([1, 2].map(count => store.begin('a', fresh(count))));
      const mine = both.find(({ claim }) => claim) ?? assert.fail('nobody has it');
      assert.equal(both.filter(({ claim }) => claim).length, 1);
      assert.deepEqual(
        both.map(({ job }) => job.id),
        [mine.job.id, mine.job.id],
      );
      assert.equal((await store.begin('a', fresh(3))).claim, undefined);
      const other = await begun(store, 'b', fresh(4));
      assert.equal(store.list().length, 2);
      mine.claim?.put(ended(mine.job));
      const again = await begun(store, 'a', fresh(5));
      assert.equal(again.job.id, idOf(5));
      for (const claim of [other, again]) claim.put(ended(claim.job));
    });

    test('who is asked to stop hears it; what has ended and what there is not stays as it is', async () => {
      await using stage = await open(now);
      const { store } = stage;
      const claim = await begun(store, 'a', fresh(1));
      await store.cancel(idOf(1));
      assert.equal(claim.signal.reason, cancelled);
      const done: Job = { ...ended(claim.job), phase: 'cancelled', error: 'cancelled' };
      claim.put(done);
      await store.cancel(idOf(1));
      await store.cancel(idOf(7));
      assert.deepEqual(store.list(), [done]);
    });

    test('what nobody has begun is not found, whatever it is called', async () => {
      await using stage = await open(now);
      for (const id of [idOf(9), '', ' ', '../x', 'a'.repeat(5000)]) {
        assert.equal(stage.store.get(id), undefined);
        assert.equal(await stage.store.find(callOf(), id), undefined);
      }
    });

    test('who watches is told of what begins, moves and ends', async () => {
      await using stage = await open(now);
      const { store } = stage;
      const told = new Set<string>();
      const stop = store.source.subscribe(() => {
        for (const { phase } of store.source.current?.value?.rows ?? []) told.add(phase);
      });
      const claim = await begun(store, 'a', fresh(1));
      await eventually(() => told.has('pending'), 'the beginning');
      clock.now += 1000;
      claim.put({ ...claim.job, phase: 'running' });
      await eventually(() => told.has('running'), 'the work');
      clock.now += 1000;
      claim.put(ended(claim.job));
      await eventually(() => told.has('succeeded'), 'the end');
      stop();
      const { value } = await store.source.read(callOf());
      assert.deepEqual(value, { rows: [ended(claim.job)], errors: [] });
    });

    test('the newest comes first, and what has ended is kept for its time', async () => {
      await using stage = await open(now);
      const { store } = stage;
      const old = await begun(store, 'a', fresh(1));
      clock.now += 1;
      const young = await begun(store, 'b', fresh(2));
      assert.deepEqual(
        store.list().map(({ id }) => id),
        [idOf(2), idOf(1)],
      );
      old.put(ended(old.job, new Date(now())));
      clock.now += 24 * hour;
      assert.deepEqual(
        store.list().map(({ id }) => id),
        [idOf(2)],
      );
      assert.equal(store.get(idOf(1)), undefined);
      young.put(ended(young.job, new Date(now())));
      assert.equal(store.list().length, 1);
    });

    test('it closes when all is on record', async () => {
      await using stage = await open(now);
      const claim = await begun(stage.store, 'a', fresh(1));
      claim.put(ended(claim.job));
      await stage.store.close();
      assert.equal(stage.store.get(idOf(1))?.phase, 'succeeded');
    });
  });
}
