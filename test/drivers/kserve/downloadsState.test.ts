import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DownloadState, downloadState, logWanted } from '../../../src/drivers/kserve/downloads/state.ts';
import { readJob } from '../../../src/drivers/kserve/jobs/job.ts';
import { podsOf } from '../../../src/drivers/kserve/jobs/pod.ts';
import { jsonOf, objectsOf, plain, textOf } from './world.ts';

const { instants } = jsonOf('pull-job/expected.json');
const ref = { name: 'mm-pull-nova-4b', namespace: 'model-serving' };

/** What is seen in a file: the Job and its pods. */
function seenIn(file: string) {
  const objects = objectsOf(file);
  const job = objects.find(({ kind }) => kind === 'Job') ?? assert.fail(`no Job in ${file}`);
  const view = readJob(job);
  return {
    job: view,
    pods: podsOf(
      objects.filter(({ kind }) => kind === 'Pod'),
      view,
    ),
  };
}

function answered(state: DownloadState) {
  if (!('progress' in state)) return { error: state.reason };
  const { status, bytesCompleted, bytesTotal, node, preset } = state.progress;
  return plain({
    status,
    completed: bytesCompleted || undefined,
    total: bytesTotal,
    node,
    preset,
    done: state.at === 'done' || undefined,
  });
}

for (const { file, log, about, expect } of instants) {
  test(`${file ?? 'no Job'}: ${expect.error ?? expect.status}${about && ` (${about})`}`, () => {
    const seen = file ? seenIn(`pull-job/${file}`) : { job: undefined, pods: [] };
    const text = log && { text: textOf(`pull-job/${log}`) };
    assert.deepEqual(answered(downloadState(seen, text, ref)), expect);
    assert.equal(logWanted(seen) !== undefined, log !== undefined, 'a log is read where it says more');
  });
}

const running = seenIn('pull-job/03-downloading.yaml');
const failed = seenIn('pull-job/07-failed.yaml');
const progressOf = (text: string, before = 0) => {
  const state = downloadState(running, { text }, ref, before);
  return 'progress' in state ? state.progress.bytesCompleted : assert.fail(state.reason);
};

test('the last progress among the last 40 lines counts, and bytes never get less', () => {
  const chatter = 'INFO fetching\n';
  assert.equal(progressOf(`PROGRESS 5\n${chatter.repeat(39)}`), 5);
  assert.equal(progressOf(`PROGRESS 5\n${chatter.repeat(40)}`), 0);
  assert.equal(progressOf(`PROGRESS 5\n${chatter.repeat(40)}`, 3), 3);
  assert.equal(progressOf('PROGRESS 5\nPROGRESS 4\n', 7), 7);
  assert.equal(progressOf('\rmodel.safetensors:  10%|##PROGRESS 77\nPROGRESS x\nPROGRESS 1 of 2\nPROGRESS -5'), 77);
  assert.equal(progressOf('PROGRESS 99999999999999999999\n'), 0);
  assert.equal(progressOf('PROGRESS 999999999999999\n'), 16_099_094_228, 'there is no more than all of it');
});

test('a pod that could not be read, or whose log could not, takes nothing away', () => {
  const state = downloadState(running, { problem: 'forbidden' }, ref, 9);
  assert.deepEqual('progress' in state && state.progress.bytesCompleted, 9);
});

test('between two pods it waits for the next', () => {
  const [, older] = seenIn('pull-job/04-second-pod.yaml').pods;
  if (!older) assert.fail('the fixture has two pods');
  const state = downloadState({ job: running.job, pods: [older] }, undefined, ref, 5);
  assert.deepEqual('progress' in state && [state.progress.status, state.progress.bytesCompleted], [
    'waiting for the download pod',
    5,
  ]);
});

test('a pod that cannot start ends it, with the reason', () => {
  const pod = (status: object) =>
    podsOf(
      [{ metadata: { name: 'p', labels: { 'job-name': ref.name } }, status: { phase: 'Pending', ...status } } as never],
      running.job,
    );
  const waiting = (reason: string, message?: string) => ({
    initContainerStatuses: [{ name: 'hf-cache-init', state: { waiting: { reason, message } } }],
  });
  const why = (status: object) => {
    const state = downloadState({ job: running.job, pods: pod(status) }, undefined, ref);
    return state.at === 'hopeless' ? state.reason : undefined;
  };
  for (const reason of [
    'ErrImagePull',
    'ImagePullBackOff',
    'InvalidImageName',
    'CreateContainerConfigError',
    'CreateContainerError',
  ]) {
    assert.equal(why(waiting(reason, 'no such image')), `download pod cannot start: ${reason}: no such image`);
  }
  assert.equal(why(waiting('ErrImagePull')), 'download pod cannot start: ErrImagePull');
  assert.equal(why(waiting('PodInitializing')), undefined);
  const unschedulable = (message: string) => ({
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  });
  const missing = '0/3 nodes are available: persistentvolumeclaim "hf-cache" not found.';
  assert.equal(why(unschedulable(missing)), `download pod cannot start: ${missing}`);
  assert.equal(why(unschedulable('0/3 nodes are available: 3 Insufficient memory.')), undefined);
});

test('a failure says what its log says, of the container that failed, without a token', () => {
  const reasonOf = (log: Parameters<typeof downloadState>[1], seen = failed) => {
    const state = downloadState(seen, log, ref);
    return state.at === 'failed' ? state.reason : assert.fail(state.at);
  };
  const what = 'download failed: BackoffLimitExceeded Job has reached the specified backoff limit';
  assert.equal(reasonOf(undefined), what);
  assert.equal(reasonOf({ text: '\n\n' }), what);
  assert.equal(reasonOf({ problem: 'cannot get pods/log' }), `${what}: its log cannot be read (cannot get pods/log)`);
  assert.equal(reasonOf({ text: 'using hf_abcdefghijklmnop\n' }), `${what}: using hf_…`);
  assert.equal(reasonOf({ text: `DOWNLOAD STALLED: no bytes\nTraceback` }), 'DOWNLOAD STALLED: no bytes');
  assert.ok(reasonOf({ text: 'x'.repeat(10_000) }).length < 500);
  assert.deepEqual(logWanted(failed), { pod: 'mm-pull-nova-4b-a1b2c', container: 'download' });
  const [pod] = failed.pods;
  if (!pod) assert.fail('the fixture has a pod');
  const terminated = { exitCode: 1, reason: 'Error', message: undefined };
  const init = { name: 'hf-cache-init', waiting: undefined, running: false, terminated };
  const prepared = { ...failed, pods: [{ ...pod, containers: [init, ...pod.containers] }] };
  assert.equal(logWanted(prepared)?.container, 'hf-cache-init');
});

test('of pods only those of this Job count, and broken objects say nothing', () => {
  const labels = { 'batch.kubernetes.io/job-name': ref.name };
  const pod = (name: string, more: object) => ({ metadata: { name, labels, ...more } });
  const job = { name: ref.name, uid: 'new' };
  const owned = (uid: string) => ({ ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: ref.name, uid }] });
  const found = podsOf(
    [
      pod('of-the-old-one', owned('old')) as never,
      pod('a', { ...owned('new'), creationTimestamp: '2026-10-05T08:00:00Z' }) as never,
      pod('b', { creationTimestamp: '2026-10-05T08:00:01Z' }) as never,
      { metadata: { name: 'other' } },
      { metadata: { name: 'odd', labels: 'x' } } as never,
      pod('c', { creationTimestamp: 5 }) as never,
    ],
    job,
  );
  assert.deepEqual(
    found.map(({ name }) => name),
    ['b', 'a', 'c'],
  );
  const odd = { metadata: { name: 'x', annotations: 7 }, status: { conditions: 'none' } };
  const view = readJob(odd as never);
  const state = downloadState({ job: view, pods: [] }, undefined, ref);
  assert.deepEqual(answered(state), { status: 'waiting for the download pod', total: 0 });
});
