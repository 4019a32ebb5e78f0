import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import type { Caller } from '../../src/call.ts';
import type { Job, ModelConfigRef, PullProgress } from '../../src/domain.ts';
import { backendError } from '../../src/errors.ts';
import { createMemoryStore } from '../../src/jobs/memory.ts';
import { createJobs, type JobSpec, percentOf } from '../../src/jobs/runner.ts';
import { callOf } from '../support/backends.ts';
import { silent } from '../support/gateway.ts';
import { jobEnd } from '../support/jobs.ts';
import { turn } from '../support/server.ts';

const spec: JobSpec = { type: 'pull', backend: 'ollama', model: 'a', key: 'a:latest', wire: false };

/** A runner on a clock of its own, and works that end when the test says so. */
function runner(log = silent) {
  const clock = { now: Date.parse('2026-08-22T08:00:00Z') };
  const now = () => clock.now;
  const jobs = createJobs({ store: createMemoryStore({ retentionMs: 60_000, now }), log, now });

  /** Starts a work that goes on until told to end; it ends by itself when it is aborted, as drivers do. */
  async function start(given: Partial<JobSpec> = {}, call = callOf()) {
    const end = Promise.withResolvers<ModelConfigRef | undefined>();
    let report: (progress: PullProgress) => void = () => {};
    let signal: AbortSignal | undefined;
    const { job, created } = await jobs.start(call, { ...spec, ...given }, (work, tell) => {
      report = tell;
      signal = work.signal;
      work.signal.addEventListener('abort', () => end.reject(backendError('cancelled by the caller')));
      return end.promise;
    });
    return {
      job,
      created,
      end,
      signal: () => signal,
      tell: (progress: PullProgress) => report(progress),
      report: (status: string, bytesCompleted = 0, bytesTotal = 0) => report({ status, bytesCompleted, bytesTotal }),
      now: () => jobs.get(job.id),
      ended: () => jobEnd({ jobs }, job.id),
    };
  }
  return { clock, jobs, start };
}

test('a job is answered before its work begins, then runs, then has ended', async () => {
  const { clock, start } = runner();
  const { job, created, now, end, ended } = await start({ node: 'n1', preset: 'p' });
  assert.equal(created, true);
  const { id, ...facts } = job;
  assert.match(id, /^[0-9a-f]{16}$/);
  const at = new Date(clock.now);
  const asked = { type: 'pull', backend: 'ollama', model: 'a', wire: false, node: 'n1', preset: 'p' };
  assert.deepEqual(facts, {
    ...asked,
    phase: 'pending',
    bytesCompleted: 0,
    bytesTotal: 0,
    createdAt: at,
    requestedBy: undefined,
  });
  clock.now += 5;
  await turn();
  assert.deepEqual([now().phase, now().startedAt], ['running', new Date(clock.now)]);
  clock.now += 7;
  end.resolve(undefined);
  const { phase, finishedAt, error } = await ended();
  assert.deepEqual([phase, finishedAt, error], ['succeeded', new Date(clock.now), undefined]);
});

test('the same work is joined while it runs, and started anew after its end', async () => {
  const { start } = runner();
  const first = await start();
  const joined = await start({ model: 'a:latest', node: 'other' });
  assert.deepEqual(
    [joined.created, joined.job.id, joined.job.model, joined.job.node],
    [false, first.job.id, 'a', undefined],
  );
  await turn();
  assert.equal((await start()).created, false);
  for (const other of [{ key: 'b' }, { backend: 'lemonade' }, { type: 'load' } as const]) {
    assert.equal((await start(other)).created, true, JSON.stringify(other));
  }
  first.end.resolve(undefined);
  await first.ended();
  const again = await start();
  assert.equal(again.created, true);
  assert.notEqual(again.job.id, first.job.id);
});

test('progress never goes back, and is never more than there is', async () => {
  const { start } = runner();
  const { report, now, end, ended } = await start();
  await turn();
  const seen = (): [string | undefined, number, number, number] => {
    const { status, bytesCompleted, bytesTotal } = now();
    return [status, bytesCompleted, bytesTotal, percentOf(now())];
  };
  report('pulling manifest');
  assert.deepEqual(seen(), ['pulling manifest', 0, 0, 0]);
  report('pulling', 0, 1000);
  assert.deepEqual(seen(), ['pulling', 0, 1000, 0]);
  report('pulling', 333, 1000);
  assert.deepEqual(seen(), ['pulling', 333, 1000, 33.3]);
  report('retrying', 100, 500);
  assert.deepEqual(seen(), ['retrying', 333, 1000, 33.3]);
  report('pulling', 1200, 1000);
  assert.deepEqual(seen(), ['pulling', 1000, 1000, 99.9]);
  report('more to pull', 1000, 4000);
  assert.deepEqual(seen(), ['more to pull', 1000, 4000, 25]);
  report('verifying', 4000, 4000);
  assert.deepEqual(seen(), ['verifying', 4000, 4000, 99.9]);
  end.resolve(undefined);
  await ended();
  assert.deepEqual(seen(), ['verifying', 4000, 4000, 100]);
});

test('where it goes and what for is what the backend decided, once it says so', async () => {
  const { start } = runner();
  const { tell, now, end, ended } = await start({ node: 'asked' });
  await turn();
  const seen = () => [now().node, now().preset];
  const progress = { status: 'pulling', bytesCompleted: 0, bytesTotal: 0 };
  tell(progress);
  assert.deepEqual(seen(), ['asked', undefined]);
  tell({ ...progress, preset: 'p' });
  assert.deepEqual(seen(), ['asked', 'p']);
  tell({ ...progress, node: 'n1' });
  assert.deepEqual(seen(), ['n1', 'p']);
  tell(progress);
  end.resolve(undefined);
  const { node, preset } = await ended();
  assert.deepEqual([node, preset], ['n1', 'p'], 'it stays');
});

test('percent is 100 for what has succeeded and for nothing else', () => {
  const job = { bytesCompleted: 0, bytesTotal: 0, phase: 'running' } as Job;
  const table: [change: Partial<Job>, percent: number][] = [
    [{}, 0],
    [{ bytesCompleted: 5 }, 0],
    [{ bytesCompleted: 1, bytesTotal: 3 }, 33.3],
    [{ bytesCompleted: 999_999, bytesTotal: 1_000_000 }, 99.9],
    [{ bytesCompleted: 10, bytesTotal: 10 }, 99.9],
    [{ bytesCompleted: 10, bytesTotal: 10, phase: 'failed' }, 99.9],
    [{ bytesCompleted: 10, bytesTotal: 10, phase: 'cancelled' }, 99.9],
    [{ phase: 'succeeded' }, 100],
    [{ bytesCompleted: 7, bytesTotal: 7, phase: 'succeeded' }, 100],
  ];
  for (const [change, percent] of table)
    assert.equal(percentOf({ ...job, ...change }), percent, JSON.stringify(change));
});

test('when a job has succeeded everything is there, however little was reported', async () => {
  const { start } = runner();
  const half = await start();
  await turn();
  half.report('pulling', 40, 100);
  half.end.resolve(undefined);
  const { bytesCompleted, bytesTotal } = await half.ended();
  assert.deepEqual([bytesCompleted, bytesTotal], [100, 100]);

  const unknown = await start({ key: 'b' });
  await turn();
  unknown.report('pulling', 40);
  unknown.end.resolve(undefined);
  const ended = await unknown.ended();
  assert.deepEqual([ended.bytesCompleted, ended.bytesTotal], [40, 40]);
});

test('a job that fails says why, and keeps what it had', async () => {
  const { start } = runner();
  const { report, end, ended } = await start();
  await turn();
  report('pulling', 40, 100);
  end.reject(backendError('ollama: no space left on device'));
  const { phase, error, bytesCompleted, status } = await ended();
  assert.deepEqual(
    [phase, error, bytesCompleted, status],
    ['failed', 'ollama: no space left on device', 40, 'pulling'],
  );
});

test('cancelling ends the work; the answer may be too early to say so', async () => {
  const { jobs, start, clock } = runner();
  const { job, signal, ended } = await start();
  await turn();
  const asked = jobs.cancel(callOf(), job.id);
  clock.now += 3;
  assert.equal((await asked).phase, 'running');
  assert.equal(signal()?.aborted, true);
  const { phase, error, finishedAt } = await ended();
  assert.deepEqual([phase, error, finishedAt], ['cancelled', 'cancelled', new Date(clock.now)]);
  assert.equal((await start()).created, true, 'a cancelled pull is not joined');
});

test('a job that has ended is not changed by cancelling, an unknown one is refused', async () => {
  const { jobs, start } = runner();
  const { job, end, ended } = await start();
  end.resolve(undefined);
  const before = await ended();
  assert.deepEqual(await jobs.cancel(callOf(), job.id), before);
  assert.deepEqual(jobs.get(job.id), before);
  for (const id of ['0123456789abcdef', '', ' ', '../x']) {
    const refusal = { code: 'not_found', status: 404, message: `job not found: ${id}` };
    assert.throws(() => jobs.get(id), refusal);
    await assert.rejects(jobs.find(callOf(), id), refusal);
    await assert.rejects(jobs.cancel(callOf(), id), refusal);
  }
});

test('a job cancelled before its work begins ends as cancelled', async () => {
  const { jobs, start } = runner();
  const { job, ended } = await start();
  assert.equal((await jobs.cancel(callOf(), job.id)).phase, 'pending');
  assert.equal((await ended()).phase, 'cancelled');
});

test('when the process stops, what runs is interrupted and says how to go on', async () => {
  const { jobs, start } = runner();
  const done = await start({ key: 'done' });
  done.end.resolve(undefined);
  await done.ended();
  const running = [await start({ key: 'a' }), await start({ key: 'b' })];
  await turn();
  await jobs.interrupt();
  for (const { now } of running) {
    assert.equal(now().phase, 'failed');
    assert.equal(now().error, 'interrupted: model-manager was stopped; ask again to resume');
  }
  assert.equal(done.now().phase, 'succeeded');
});

test('who asked is noted where that is known, and a work outlives the request', async () => {
  const { start } = runner();
  const jane: Caller = { name: 'jane@example.com', anonymous: false, scope: 'jane' };
  const gone = new AbortController();
  const known = await start({}, callOf({ caller: jane, signal: gone.signal, timeoutMs: 0 }));
  assert.equal(known.job.requestedBy, 'jane@example.com');
  await turn();
  gone.abort();
  assert.equal(known.signal()?.aborted, false);
  known.end.resolve(undefined);
  assert.equal((await known.ended()).phase, 'succeeded');
  assert.equal((await start({ key: 'b' })).job.requestedBy, undefined);
});

test('the log has one line for the beginning and one for the end, by the request that asked', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { jobs, start } = runner(log);
  const call = callOf({ requestId: 'request-1' });
  const good = await start({ key: 'good' }, call);
  const bad = await start({ key: 'bad' }, call);
  const stopped = await start({ key: 'stopped' }, call);
  await turn();
  good.end.resolve(undefined);
  bad.end.reject(backendError('ollama: no'));
  await jobs.cancel(callOf(), stopped.job.id);
  await Promise.all([good, bad, stopped].map(({ ended }) => ended()));
  const told = lines.map(({ msg, job, requestId, level }) => [msg, job, requestId, level]);
  const about = ({ job }: { job: Job }) =>
    told.filter(([, id]) => id === job.id).map(([msg, , , level]) => `${level} ${msg}`);
  assert.deepEqual(about(good), ['30 pull started', '30 pull succeeded']);
  assert.deepEqual(about(bad), ['30 pull started', '40 pull failed']);
  assert.deepEqual(about(stopped), ['30 pull started', '30 pull cancelled']);
  assert.ok(told.every(([, , requestId]) => requestId === 'request-1'));
});
