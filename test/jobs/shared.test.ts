/** Jobs of several replicas on one cluster. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { cancelled } from '../../src/call.ts';
import type { Job } from '../../src/domain.ts';
import { leaseName } from '../../src/jobs/kubernetes/lease.ts';
import { recordName } from '../../src/jobs/kubernetes/record.ts';
import { type JobStore, lost } from '../../src/jobs/store.ts';
import { callOf } from '../support/backends.ts';
import { namespace } from '../support/cluster.ts';
import { rulesOf } from '../support/permitted.ts';
import { eventually } from '../support/server.ts';
import {
  begun,
  ended,
  giveLease,
  hour,
  idOf,
  jobOf,
  leaseOf,
  recordOf,
  startReplicas,
  takenBy,
  written,
} from './lab.ts';

const inTime = { timeout: 30_000 };

const jobAt = (store: JobStore, count: number, phase: Job['phase']) =>
  eventually(() => store.get(idOf(count))?.phase === phase, `job ${count} as ${phase}`);

test('what one replica does, the others see, find at once, and join', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  assert.deepEqual(await two.find(callOf(), idOf(1)), claim.job);
  assert.deepEqual(await two.begin('a', jobOf(idOf(2))), { job: claim.job });
  const running: Job = { ...claim.job, phase: 'running', bytesCompleted: 7, bytesTotal: 9, status: 'pulling' };
  claim.put(running);
  await jobAt(two, 1, 'running');
  assert.deepEqual(two.list(), [running]);
  assert.equal(two.working('a')?.id, idOf(1));
  const told: unknown[] = [];
  one.source.subscribe(() => told.push(one.source.current?.value?.rows.map(({ phase }) => phase)));
  claim.put(ended(running));
  await jobAt(two, 1, 'succeeded');
  assert.deepEqual(two.list(), one.list());
  await eventually(() => leaseOf(replicas) === undefined, 'the end of the Lease');
  await eventually(() => told.length > 0, 'the end');
  assert.deepEqual(told, [['succeeded']], 'what the record shows is no other news');
});

test('of all who begin the same work at once on all replicas, one does it', inTime, async () => {
  await using replicas = await startReplicas();
  const stores = [await replicas.replica(), await replicas.replica(), await replicas.replica()];
  const begins = await Promise.all(
    Array.from({ length: 12 }, (_, count) => (stores[count % 3] as JobStore).begin('a', jobOf(idOf(count + 1)))),
  );
  const claims = begins.flatMap(({ claim }) => claim ?? []);
  assert.equal(claims.length, 1);
  assert.deepEqual(new Set(begins.map(({ job }) => job.id)), new Set([claims[0]?.job.id]));
  assert.equal(replicas.cluster.list('configmaps', namespace).filter(isRecord).length, 1);
  claims[0]?.put(ended(claims[0].job));
});

const isRecord = ({ metadata }: { metadata: { name: string } }) => metadata.name.startsWith('model-manager-job-');

test('who asks any replica for a job to stop is heard by the one that works on it', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  await two.find(callOf(), idOf(1));
  await two.cancel(idOf(1));
  await eventually(() => claim.signal.aborted, 'the request to stop');
  assert.equal(claim.signal.reason, cancelled);
  claim.put({ ...ended(claim.job), phase: 'cancelled' });
  await jobAt(two, 1, 'cancelled');
  await two.cancel(idOf(1));
  assert.equal(written(replicas).phase, 'cancelled');
});

test('what is given back is taken over at once, as it was left, by one of the others', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two, three] = [await replicas.replica(), await replicas.replica(), await replicas.replica()];
  const taken = [takenBy(two), takenBy(three)];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const running: Job = { ...claim.job, phase: 'running', bytesCompleted: 3, bytesTotal: 9 };
  claim.put(running);
  claim.put({ ...running, bytesCompleted: 5 });
  await claim.giveBack?.();
  await eventually(() => taken.flat().length > 0, 'a successor');
  const [next] = taken.flat();
  assert.deepEqual(next?.job, { ...running, bytesCompleted: 5 });
  assert.equal(leaseOf(replicas)?.spec?.leaseTransitions, 1);
  claim.put({ ...running, bytesCompleted: 1 });
  next?.put(ended({ ...running, bytesCompleted: 9 }));
  for (const store of [one, two, three]) await jobAt(store, 1, 'succeeded');
  assert.equal(written(replicas).bytesCompleted, 9);
  assert.equal(taken.flat().length, 1);
});

test('a job that was to stop when its replica died is taken over to be ended', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  await claim.giveBack?.();
  await two.find(callOf(), idOf(1));
  await two.cancel(idOf(1));
  const taken = takenBy(two, () => false);
  await eventually(() => taken.length > 0, 'a successor');
  assert.equal(taken[0]?.signal.reason, cancelled);
  taken[0]?.put({ ...ended(taken[0].job), phase: 'cancelled' });
  await jobAt(one, 1, 'cancelled');
});

test('work that this replica has no backend for is left to others, who are told for how long', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const asked: [id: string, alone: number][] = [];
  const taken = takenBy(two, ({ id }, alone) => {
    asked.push([id, alone]);
    return asked.length > 2;
  });
  await (await begun(one, 'a', jobOf(idOf(1)))).giveBack?.();
  await eventually(() => taken.length > 0, 'a successor');
  assert.ok(asked.every(([id]) => id === idOf(1)));
  assert.ok((asked[0]?.[1] ?? -1) >= 0);
  assert.ok((asked[1]?.[1] ?? 0) > (asked[0]?.[1] ?? 0));
  taken[0]?.put(ended(taken[0].job));
});

test('a replica that has lost a job to another stops, and writes no more', inTime, async () => {
  await using replicas = await startReplicas();
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const taken = takenBy(two);
  await two.find(callOf(), idOf(1));
  giveLease(replicas, '');
  await eventually(() => taken.length > 0, 'a successor');
  const running: Job = { ...claim.job, phase: 'running', bytesCompleted: 5 };
  taken[0]?.put(running);
  await eventually(() => written(replicas).bytesCompleted === 5, 'what the successor writes');
  claim.put({ ...claim.job, phase: 'running', bytesCompleted: 1 });
  await eventually(() => claim.signal.aborted, 'the loss');
  assert.equal(claim.signal.reason, lost);
  claim.put(ended(claim.job));
  assert.deepEqual([written(replicas).phase, written(replicas).bytesCompleted], ['running', 5]);
  await jobAt(one, 1, 'running');
  taken[0]?.put(ended(running));
  await jobAt(one, 1, 'succeeded');
});

test('while the API server is away the work goes on, and is on record when it is back', inTime, async () => {
  await using replicas = await startReplicas();
  const lines: { msg: string; job?: string }[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const one = await replicas.replica({ log });
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const recover = replicas.cluster.fault({ kind: 'answer', status: 503, verb: 'update', resource: 'configmaps' });
  claim.put({ ...claim.job, phase: 'running', bytesCompleted: 2 });
  claim.put(ended({ ...claim.job, bytesCompleted: 9 }));
  assert.equal(one.get(idOf(1))?.phase, 'succeeded');
  await eventually(
    () => lines.some(({ msg, job }) => msg === 'cannot put a job on record' && job === idOf(1)),
    'a line',
  );
  assert.equal(claim.signal.aborted, false);
  recover();
  await eventually(() => written(replicas).phase === 'succeeded', 'the record', 15_000);
  assert.equal(written(replicas).bytesCompleted, 9);
});

test('a job that cannot be put on record is not begun, and keeps nobody from it', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const recover = replicas.cluster.fault({ kind: 'answer', status: 403, verb: 'create', resource: 'configmaps' });
  await assert.rejects(one.begin('a', jobOf(idOf(1))), { code: 'forbidden' });
  assert.deepEqual([one.list(), leaseOf(replicas)], [[], undefined]);
  recover();
  const claim = await begun(one, 'a', jobOf(idOf(2)));
  claim.put(ended(claim.job));
});

test('the Lease of somebody who died before the job was on record is waited for, and then taken', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  replicas.cluster.remove('configmaps', recordName(idOf(1)), namespace);
  giveLease(replicas, '');
  const two = await replicas.replica();
  const next = await begun(two, 'a', jobOf(idOf(2)));
  assert.equal(leaseOf(replicas)?.metadata.annotations?.['model-manager.giantswarm.io/job'], idOf(2));
  claim.put({ ...claim.job, phase: 'running' });
  await eventually(() => claim.signal.aborted, 'the loss');
  next.put(ended(next.job));
});

test('what somebody removes of a job that goes on is written again', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  replicas.cluster.remove('configmaps', recordName(idOf(1)), namespace);
  replicas.cluster.remove('leases.coordination.k8s.io', leaseName('a'), namespace);
  claim.put({ ...claim.job, phase: 'running' });
  await eventually(() => written(replicas).phase === 'running', 'the record');
  assert.equal(leaseOf(replicas)?.spec?.holderIdentity, 'replica-1');
  claim.put(ended(claim.job));
});

test('what others write on a record stays', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const labels = { team: 'blue' };
  replicas.cluster.update<{ metadata: { labels: object } }>(
    'configmaps',
    recordName(idOf(1)),
    namespace,
    ({ metadata }) => {
      Object.assign(metadata.labels, labels);
    },
  );
  claim.put({ ...claim.job, phase: 'running' });
  await eventually(() => written(replicas).phase === 'running', 'the record');
  assert.equal(recordOf(replicas)?.metadata.labels?.team, 'blue');
  claim.put(ended(claim.job));
});

test('a record that makes no sense costs itself, and a line', inTime, async () => {
  await using replicas = await startReplicas();
  const first = await begun(await replicas.replica(), 'a', jobOf(idOf(1)));
  first.put(ended(first.job));
  const there = recordOf(replicas) ?? assert.fail('there is no record');
  const { labels } = there.metadata;
  const broken: [name: string, data: object | undefined, problem: RegExp][] = [
    ['no-data', undefined, /^no job.json key$/],
    ['no-json', { 'job.json': '{' }, /^job.json is not JSON$/],
    ['no-job', { 'job.json': '{"id":"x"}' }, /^job.json: .*key.*/],
    ['no-name', there.data, /^the ConfigMap of job 0{15}1 is named model-manager-job-0{15}1$/],
  ];
  for (const [name, data] of broken)
    replicas.cluster.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, labels }, data });
  const lines: { configMap: string; error: string }[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const store = await replicas.replica({ log });
  assert.deepEqual(
    store.list().map(({ id }) => id),
    [idOf(1)],
  );
  const toldOf = Map.groupBy(lines, ({ configMap }) => configMap);
  for (const [name, , problem] of broken) {
    assert.equal(toldOf.get(name)?.length, 1, name);
    assert.match(toldOf.get(name)?.[0]?.error ?? '', problem);
  }
});

test('a replica that starts knows what was, also of a clock that is behind', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const done = await begun(one, 'a', jobOf(idOf(1), { createdAt: new Date(Date.now() - 1) }));
  const running = await begun(one, 'b', jobOf(idOf(2)));
  done.put(ended(done.job));
  running.put({ ...running.job, phase: 'running' });
  await eventually(
    () => written(replicas, 2).phase === 'running' && written(replicas).phase === 'succeeded',
    'the records',
  );
  const two = await replicas.replica({ now: () => Date.now() - hour });
  assert.deepEqual(
    two.list().map(({ id, phase }) => [id, phase]),
    [
      [idOf(2), 'running'],
      [idOf(1), 'succeeded'],
    ],
  );
  running.put(ended(running.job));
});

test('what is listed no longer is removed from the cluster', inTime, async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  await using replicas = await startReplicas();
  const clock = { now: Date.now() };
  const one = await replicas.replica({ now: () => clock.now });
  const [old, running] = [await begun(one, 'a', jobOf(idOf(1))), await begun(one, 'b', jobOf(idOf(2)))];
  old.put(ended(old.job));
  await eventually(() => written(replicas).phase === 'succeeded', 'the record');
  t.mock.timers.tick(60_000);
  assert.ok(recordOf(replicas));
  clock.now += 25 * hour;
  await eventually(() => {
    t.mock.timers.tick(60_000);
    return recordOf(replicas) === undefined;
  }, 'that it is gone');
  assert.ok(recordOf(replicas, 2), 'one that runs stays');
  running.put(ended(running.job));
});

test('all of it is done with the rights of the table', inTime, async () => {
  const rules = rulesOf({ own: namespace }, 'job-store=kubernetes');
  await using replicas = await startReplicas({ users: { gateway: { rules } } });
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const [one, two] = [
    await replicas.replica({ user: 'gateway', log }),
    await replicas.replica({ user: 'gateway', log }),
  ];
  const taken = takenBy(two);
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  await two.begin('a', jobOf(idOf(2)));
  await two.cancel(idOf(1));
  await eventually(() => claim.signal.aborted, 'the request to stop');
  await claim.giveBack?.();
  await eventually(() => taken.length > 0, 'a successor');
  taken[0]?.put(ended(taken[0].job));
  await jobAt(one, 1, 'succeeded');
  await eventually(() => leaseOf(replicas) === undefined, 'the end of the Lease');
  assert.deepEqual(lines, []);
});
