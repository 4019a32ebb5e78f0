/** Downloads on an emulated cluster. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Caller, cancelled, createCall, interrupted } from '../../../src/call.ts';
import type { KserveFlags } from '../../../src/config/kserve.ts';
import type { PullProgress } from '../../../src/domain.ts';
import { downloadJob } from '../../../src/drivers/kserve/downloads/job.ts';
import { createDownloads } from '../../../src/drivers/kserve/downloads.ts';
import { createCell } from '../../../src/live/cell.ts';
import { silent } from '../../support/gateway.ts';
import { kubectlWith, skip as noKubectl } from '../../support/kubectl.ts';
import { requestsBeyond, rulesOf } from '../../support/permitted.ts';
import { eventually, within } from '../../support/server.ts';
import { failure } from '../scripted.ts';
import { type JobLab, serving, startLab } from './jobLab.ts';
import { settingsWith, textOf } from './world.ts';

const plan = {
  repository: 'acme-labs/Nova-4B-Instruct',
  directory: 'nova-4b',
  preset: 'nova-4b',
  node: 'spark-01',
  bytesTotal: 16_099_094_228,
};
const name = 'mm-pull-nova-4b';
const spec = { cache: { enabled: true } };

function downloadsOn(lab: JobLab, flags: Partial<Record<keyof KserveFlags, string>> = { pollInterval: '100ms' }) {
  const settings = settingsWith(spec, flags);
  let changes = 0;
  const downloads = createDownloads({
    ...lab,
    settings: createCell(settings),
    changed: () => {
      changes++;
    },
  });
  return { downloads, settings, changes: () => changes };
}

/** Reads a download to its end, whatever that is. */
function reading(t: TestContext, progress: AsyncIterable<PullProgress>) {
  const seen: PullProgress[] = [];
  const iterator = progress[Symbol.asyncIterator]();
  const ended = (async () => {
    for (;;) {
      const next = await iterator.next();
      if (next.done) return;
      seen.push(next.value);
    }
  })();
  ended.catch(() => {});
  // A test that fails leaves nothing behind.
  t.after(() => iterator.return?.());
  return {
    seen,
    ended: () => within(ended, 'the end of the download'),
    failed: () => within(failure(ended), 'the failure of the download'),
    status: (status: string) => eventually(() => seen.at(-1)?.status === status, `status ${status}`),
    bytes: (bytes: number, ms?: number) =>
      eventually(() => seen.at(-1)?.bytesCompleted === bytes, `${bytes} bytes`, ms),
  };
}

const running = (container = 'download') => ({
  phase: 'Running',
  containerStatuses: [{ name: container, state: { running: {} } }],
});
const abortable = () => {
  const abort = new AbortController();
  return { abort, call: createCall({ log: silent, signal: abort.signal }) };
};

test('a download tells each step, and ends when its Job is complete', async t => {
  await using lab = await startLab();
  const { downloads, changes } = downloadsOn(lab);
  const { seen, ended, status, bytes } = reading(t, downloads.start(lab.call, plan));
  const job = await lab.job(name);
  await status('waiting for the download pod');
  lab.pod(job, 'p', { phase: 'Pending' });
  await status('starting the download pod');
  lab.pod(job, 'p', running(), textOf('pull-job/03-downloading.log'));
  await bytes(1_610_612_736);
  lab.cluster.logs.append(serving, 'p', 'download', 'PROGRESS 2000000000\nPROGRESS 1\n');
  lab.cluster.logs.append(serving, 'p', 'download', 'PROGRESS 3000000000\n');
  await bytes(3_000_000_000);
  lab.end(job, 'Complete');
  await ended();
  const statuses = [...new Set(seen.map(each => each.status))];
  assert.deepEqual(statuses, [
    'download job created',
    'waiting for the download pod',
    'starting the download pod',
    'downloading',
    'downloaded',
  ]);
  const completed = seen.map(({ bytesCompleted }) => bytesCompleted);
  assert.deepEqual(
    completed,
    completed.toSorted((a, b) => a - b),
  );
  assert.deepEqual(seen.at(-1), {
    status: 'downloaded',
    bytesCompleted: plan.bytesTotal,
    bytesTotal: plan.bytesTotal,
    node: 'spark-01',
    preset: 'nova-4b',
  });
  assert.equal(changes(), 1);
  assert.deepEqual(lab.jobs(), [name], 'it goes when its time is over');
});

test('logs are read no more often than they are to be, whatever else goes on in the namespace', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab, { pollInterval: '1h' });
  const { call, abort } = abortable();
  const { bytes } = reading(t, downloads.start(call, plan));
  const job = await lab.job(name);
  lab.pod(job, 'p', running(), 'PROGRESS 7\n');
  await bytes(7);
  const logs = () => lab.cluster.requests.filter(({ resource }) => resource === 'pods/log').length;
  const before = logs();
  const all = lab.cluster.requests.length;
  for (let n = 0; n < 20; n++) lab.pod({ ...job, metadata: { ...job.metadata, name: 'other' } }, `other-${n}`, {});
  lab.cluster.logs.append(serving, 'p', 'download', 'PROGRESS 8\n');
  // The log of a second pod is another one.
  lab.pod(job, 'p', { phase: 'Failed' });
  lab.pod(job, 'q', running(), 'PROGRESS 9\n');
  await bytes(9);
  assert.equal(logs() - before, 1);
  assert.equal(lab.cluster.requests.length - all, 1, 'nothing is polled');
  abort.abort(new Error('over'));
});

test('F2: a stalled download fails in the words of its log, another in those of its Job', async t => {
  for (const [log, message] of [
    ['06-stalled.log', textOf('pull-job/06-stalled.log').split('\n').at(-2)],
    [
      '07-failed.log',
      'download failed: BackoffLimitExceeded limit: l2 | l3 | Traceback | huggingface_hub.errors.RepositoryNotFoundError: 404 | DOWNLOAD FAILED rc=1',
    ],
  ] as const) {
    await using lab = await startLab();
    const { downloads, changes } = downloadsOn(lab);
    const { failed } = reading(t, downloads.start(lab.call, plan));
    const job = await lab.job(name);
    lab.pod(job, 'p', { phase: 'Failed' }, textOf(`pull-job/${log}`));
    lab.end(job, 'Failed', { reason: 'BackoffLimitExceeded', message: 'limit' });
    const error = await failed();
    assert.deepEqual([error.code, error.message], ['backend_error', message]);
    assert.equal(changes(), 1, 'a part of it may be there');
  }
});

test('a pod that cannot start ends the download and its Job', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const { failed } = reading(t, downloads.start(lab.call, plan));
  const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image' };
  lab.pod(await lab.job(name), 'p', {
    phase: 'Pending',
    initContainerStatuses: [{ name: 'hf-cache-init', state: { waiting } }],
  });
  assert.equal((await failed()).message, 'download pod cannot start: ImagePullBackOff: Back-off pulling image');
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
});

test('a Job that is removed by somebody has disappeared', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const { failed, status } = reading(t, downloads.start(lab.call, plan));
  await status('waiting for the download pod');
  lab.cluster.remove('jobs.batch', name, serving);
  // Another one of its name is another download.
  lab.cluster.put(downloadJob(settingsWith(spec), plan));
  assert.equal((await failed()).message, `download Job ${serving}/${name} disappeared`);
});

test('a second download of the same joins, of something else it waits for nobody', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const one = reading(t, downloads.start(lab.call, plan));
  const job = await lab.job(name);
  await one.status('waiting for the download pod');
  const two = reading(t, downloads.start(lab.call, { ...plan, revision: 'main', node: undefined, preset: undefined }));
  await two.status('waiting for the download pod');
  assert.deepEqual(
    [two.seen[0]?.status, two.seen[0]?.node, two.seen[0]?.preset],
    ['waiting for the download pod', 'spark-01', 'nova-4b'],
  );
  const refusal = async (more: object) => {
    const { code, message } = await reading(t, downloads.start(lab.call, { ...plan, ...more })).failed();
    return [code, message];
  };
  const other = `acme-labs/Nova-4B-Instruct is being downloaded into nova-4b on spark-01 by Job ${serving}/${name}; wait for it, or cancel it`;
  assert.deepEqual(await refusal({ revision: 'v2' }), ['conflict', `conflict: ${other}`]);
  assert.deepEqual(await refusal({ repository: 'other/Model' }), ['conflict', `conflict: ${other}`]);
  assert.deepEqual(await refusal({ node: 'rack-07' }), ['conflict', `conflict: ${other}`]);
  lab.end(job, 'Complete');
  await Promise.all([one.ended(), two.ended()]);
});

test("somebody else's Job of that name is a conflict, and stays", async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const wanted = downloadJob(settingsWith(spec), plan);
  lab.cluster.put({ ...wanted, metadata: { ...wanted.metadata, labels: { 'app.kubernetes.io/managed-by': 'Helm' } } });
  const { code, message } = await reading(t, downloads.start(lab.call, plan)).failed();
  assert.deepEqual(
    [code, message],
    ['conflict', `conflict: Job ${serving}/${name} exists and is not one of model-manager's; remove it to download`],
  );
  assert.deepEqual(lab.jobs(), [name]);
});

test('a Job that is over gives way to a new one', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  lab.cluster.put(downloadJob(settingsWith(spec), plan));
  const old = await lab.job(name);
  lab.end(old, 'Failed');
  const { status, ended } = reading(t, downloads.start(lab.call, plan));
  await status('waiting for the download pod');
  const next = await lab.job(name);
  assert.notEqual(next.metadata.uid, old.metadata.uid);
  // What is left of the old one says nothing.
  lab.pod(old, 'old', { phase: 'Failed' }, 'PROGRESS 5\n');
  lab.end(next, 'Complete');
  await ended();
});

test('a Job that is over and does not go at once is waited for', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const wanted = downloadJob(settingsWith(spec), plan);
  lab.cluster.put({ ...wanted, metadata: { ...wanted.metadata, finalizers: ['example.com/slow'] } });
  lab.end(await lab.job(name), 'Failed');
  const { status } = reading(t, downloads.start(lab.call, plan));
  await eventually(
    () => lab.cluster.requests.some(({ verb, resource }) => verb === 'watch' && resource === 'jobs.batch'),
    'it is awaited',
  );
  lab.cluster.update<{ metadata: { finalizers?: string[] } }>('jobs.batch', name, serving, job => {
    delete job.metadata.finalizers;
  });
  await status('waiting for the download pod');
});

test('cancelling removes the Job, also when it was joined; stopping and leaving do not', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);

  const stopped = abortable();
  const one = reading(t, downloads.start(stopped.call, plan));
  await one.status('waiting for the download pod');
  stopped.abort.abort(interrupted);
  assert.equal((await one.failed()).message, interrupted.message);

  const two = downloads.start(lab.call, plan)[Symbol.asyncIterator]();
  await within(two.next(), 'a first word');
  const waiting = two.next();
  waiting.catch(() => {});
  await within(two.return?.() as Promise<unknown>, 'to leave');

  const joined = abortable();
  const three = reading(t, downloads.start(joined.call, plan));
  await three.status('waiting for the download pod');
  assert.deepEqual(lab.jobs(), [name]);
  joined.abort.abort(cancelled);
  assert.equal((await three.failed()).message, 'cancelled');
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
});

test('what is cancelled while it is being created leaves nothing', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const { call, abort } = abortable();
  lab.cluster.fault({ kind: 'delay', ms: 200, verb: 'create', resource: 'jobs.batch', times: 1 });
  const { failed } = reading(t, downloads.start(call, plan));
  await within(lab.cluster.requested({ verb: 'create', resource: 'jobs.batch' }), 'the creation');
  abort.abort(cancelled);
  await failed();
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
  assert.equal(lab.cluster.requests.filter(({ verb }) => verb === 'delete').length, 1);
});

test('a removal is tried again until it is done', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const { call, abort } = abortable();
  const { status, failed } = reading(t, downloads.start(call, plan));
  await status('waiting for the download pod');
  lab.cluster.fault({ kind: 'answer', status: 500, verb: 'delete', resource: 'jobs.batch', times: 2 });
  abort.abort(cancelled);
  await failed();
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
});

test('after a restart what is not over is found and followed again', async t => {
  await using lab = await startLab();
  const settings = settingsWith(spec);
  const other = (directory: string, more: object = {}) => {
    const job = downloadJob(settings, { repository: 'o/n', directory });
    lab.cluster.put({ ...job, metadata: { ...job.metadata, ...more } });
  };
  lab.cluster.put(downloadJob(settings, { ...plan, revision: 'v1' }));
  other('finished');
  other('theirs', { labels: { 'app.kubernetes.io/managed-by': 'Helm' } });
  other('nameless', { annotations: {} });
  lab.end({ metadata: { name: 'mm-pull-finished' } }, 'Complete');
  const { downloads } = downloadsOn(lab);
  const [found, ...more] = await downloads.unfinished(lab.call);
  assert.equal(more.length, 0);
  if (!found) assert.fail('nothing is found');
  const { job, ...planned } = found;
  assert.deepEqual(planned, { ...plan, revision: 'v1' });
  assert.equal(job.metadata.name, name);
  const { status, ended, seen } = reading(t, downloads.follow(lab.call, found));
  await status('waiting for the download pod');
  assert.deepEqual([seen[0]?.node, seen[0]?.preset], ['spark-01', 'nova-4b']);
  lab.end(await lab.job(name), 'Complete');
  await ended();
});

test('F8: an API server that is away for a while ends no download', async t => {
  await using lab = await startLab();
  const { downloads } = downloadsOn(lab);
  const { status, bytes, ended } = reading(t, downloads.start(lab.call, plan));
  await status('waiting for the download pod');
  const job = await lab.job(name);
  await lab.cluster.stop();
  lab.pod(job, 'p', running(), 'PROGRESS 5\n');
  await lab.cluster.start();
  // Between two lists there are five seconds.
  await bytes(5, 20_000);
  lab.end(job, 'Complete');
  await ended();
});

test('with the rights of the table all is done; without one it is named, and no Job is lost by it', async t => {
  const places = { serving };
  await using lab = await startLab({ users: { gateway: { rules: rulesOf(places) } }, user: 'gateway' });
  const { downloads } = downloadsOn(lab);
  await downloads.unfinished(lab.call);
  const { call, abort } = abortable();
  const { bytes, failed } = reading(t, downloads.start(call, plan));
  lab.pod(await lab.job(name), 'p', running(), 'PROGRESS 5\n');
  await bytes(5);
  abort.abort(cancelled);
  await failed();
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
  assert.deepEqual(requestsBeyond(lab.cluster.requests, places), []);

  const poor = rulesOf(places).filter(({ resources }) => !resources.includes('jobs'));
  await using other = await startLab({ users: { gateway: { rules: poor } }, user: 'gateway' });
  const refused = await reading(t, downloadsOn(other).downloads.start(other.call, plan)).failed();
  assert.equal(refused.code, 'forbidden');
  assert.match(
    refused.message,
    /^cannot create jobs\.batch mm-pull-nova-4b in namespace model-serving: .* this is needed to/,
  );

  const noLogs = rulesOf(places).filter(({ resources }) => !resources.includes('pods/log'));
  await using third = await startLab({ users: { gateway: { rules: noLogs } }, user: 'gateway' });
  const silentLog = reading(t, downloadsOn(third).downloads.start(third.call, plan));
  const job = await third.job(name);
  third.pod(job, 'p', running(), 'PROGRESS 5\n');
  await silentLog.status('downloading');
  third.end(job, 'Failed', { reason: 'BackoffLimitExceeded' });
  const { message } = await silentLog.failed();
  assert.match(message, /^download failed: BackoffLimitExceeded: its log cannot be read \(cannot get pods\/log p in /);
});

test('the token of a caller goes to the API server alone, and their Job is removed as them', async t => {
  const users = { jane: { rules: rulesOf({ serving }) }, gateway: { rules: [] } };
  await using lab = await startLab({ users, user: 'gateway' });
  const { downloads } = downloadsOn(lab);
  const caller: Caller = { name: 'jane', anonymous: false, scope: 'jane', token: () => lab.cluster.tokenOf('jane') };
  const abort = new AbortController();
  const call = createCall({ log: silent, caller, signal: abort.signal });
  const { status, failed } = reading(t, downloads.start(call, plan));
  await status('waiting for the download pod');
  abort.abort(cancelled);
  await failed();
  await eventually(() => lab.jobs().length === 0, 'the Job is removed');
  assert.deepEqual([...new Set(lab.cluster.requests.map(({ user }) => user))], ['jane']);
});

test('kubectl takes the composed Jobs, in a dry run', { skip: noKubectl }, async () => {
  await using lab = await startLab();
  await using kubectl = await kubectlWith(lab.cluster.kubeconfig());
  const { scanJob, removeJob } = await import('../../../src/drivers/kserve/inventory/toolJobs.ts');
  const settings = settingsWith({ ...spec, gpuPool: { taint: { key: 'nvidia.com/gpu' }, nodeSelector: { a: 'b' } } });
  for (const job of [
    downloadJob(settings, { ...plan, revision: 'v1' }),
    scanJob(settings, undefined, 'x7k2q'),
    removeJob(settings, 'nova-4b', 'spark-01', 'x7k2q'),
  ]) {
    const out = await kubectl.ok(['apply', '--dry-run=server', '-f', '-'], job);
    assert.match(out, new RegExp(`^job.batch/${job.metadata.name} created \\(server dry run\\)`));
  }
  assert.deepEqual(lab.jobs(), []);
});
