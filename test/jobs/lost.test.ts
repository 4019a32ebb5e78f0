/** Work that two replicas think theirs: one was away for longer than its Lease. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { pino } from 'pino';
import type { Job } from '../../src/domain.ts';
import { type Claim, type JobStore, lost } from '../../src/jobs/store.ts';
import { eventually } from '../support/server.ts';
import {
  begun,
  ended,
  giveLease,
  idOf,
  jobOf,
  leaseOf,
  type Replicas,
  startReplicas,
  takenBy,
  written,
} from './lab.ts';

const inTime = { timeout: 30_000 };

/** A job whose replica was away, and another has it now: which has not written anything yet. */
async function takenOver(replicas: Replicas): Promise<{ one: JobStore; old: Claim; next: Claim }> {
  const [one, two] = [await replicas.replica(), await replicas.replica()];
  const old = await begun(one, 'a', jobOf(idOf(1)));
  const taken = takenBy(two);
  await eventually(() => two.get(idOf(1)) !== undefined, 'the job');
  giveLease(replicas, '');
  await eventually(() => taken.length > 0, 'a successor');
  return { one, old, next: taken[0] as Claim };
}

test(
  'who has lost a job to another says nothing more of it, and takes no Lease when the other is done',
  inTime,
  async () => {
    await using replicas = await startReplicas();
    const { old, next } = await takenOver(replicas);
    const running: Job = { ...next.job, phase: 'running', bytesCompleted: 3 };
    next.put(running);
    await eventually(() => written(replicas).bytesCompleted === 3, 'what the successor writes');
    old.put({ ...old.job, phase: 'running', bytesCompleted: 1 });
    await eventually(() => old.signal.reason === lost, 'the loss');
    next.put(ended(running));
    await eventually(() => leaseOf(replicas) === undefined, 'the end of the Lease');
    // What cannot be written is tried again after three seconds.
    await after(3_500);
    assert.equal(leaseOf(replicas), undefined);
    assert.equal(written(replicas).phase, 'succeeded');
  },
);

test('a job that ended where it was taken from has ended, also for who took it over', inTime, async () => {
  await using replicas = await startReplicas();
  const { one, old, next } = await takenOver(replicas);
  old.put(ended({ ...old.job, bytesCompleted: 9 }));
  await eventually(() => written(replicas).phase === 'succeeded', 'the record');
  assert.equal(leaseOf(replicas)?.spec?.holderIdentity, 'replica-2', 'the Lease is not his who was away');
  next.put({ ...next.job, phase: 'running', bytesCompleted: 3 });
  await eventually(() => next.signal.aborted, 'the end');
  assert.equal(next.signal.reason, lost);
  await eventually(() => leaseOf(replicas) === undefined, 'the end of the Lease');
  assert.deepEqual([written(replicas).phase, written(replicas).bytesCompleted], ['succeeded', 9]);
  assert.equal(one.get(idOf(1))?.phase, 'succeeded');
});

test('a renewal that is under way when a job ends leaves no Lease', inTime, async () => {
  await using replicas = await startReplicas();
  const one = await replicas.replica();
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const renewals = { verb: 'update', resource: 'leases.coordination.k8s.io' };
  replicas.cluster.fault({ kind: 'delay', ms: 500, times: 1, ...renewals });
  await replicas.cluster.requested(renewals);
  claim.put(ended(claim.job));
  await eventually(() => written(replicas).phase === 'succeeded', 'the record');
  await one.close();
  // The renewal is answered by now, and so is whatever came of it.
  await after(1_500);
  assert.equal(leaseOf(replicas), undefined);
  const next = await begun(await replicas.replica(), 'a', jobOf(idOf(2)));
  next.put(ended(next.job));
});

test('an outage costs nobody their job: who cannot take it over either waits anew for its replica', {
  timeout: 90_000,
}, async () => {
  await using replicas = await startReplicas();
  const lines: { msg: string; error: string }[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const [one, two] = [await replicas.replica({ log }), await replicas.replica({ log })];
  const claim = await begun(one, 'a', jobOf(idOf(1)));
  const taken = takenBy(two);
  await eventually(() => two.get(idOf(1)) !== undefined, 'the job');
  const update = { verb: 'update', resource: 'leases.coordination.k8s.io' };
  const recover = [
    replicas.cluster.fault({ kind: 'answer', status: 503, ...update }),
    replicas.cluster.fault({ kind: 'answer', status: 503, verb: 'update', resource: 'configmaps' }),
  ];
  claim.put({ ...claim.job, phase: 'running', bytesCompleted: 1 });
  await eventually(() => lines.some(({ msg }) => msg === 'cannot take a job over'), 'an attempt', 30_000);
  for (const each of recover) each();
  // Longer than its replica takes to renew the Lease, and than who cannot take a job over rests.
  await after(7_000);
  assert.deepEqual([taken.length, claim.signal.aborted], [0, false]);
  const told = lines.map(({ msg, error }) => `${msg}: ${error}`);
  assert.deepEqual(told, [...new Set(told)], 'each reason once');
  claim.put(ended(claim.job));
});
