import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type KubernetesObject, manualClock, startCluster } from '../../src/demo/cluster.ts';
import { library, startHub } from '../../src/demo/hub.ts';
import { type Directory, type KubeletOptions, startKubelet } from '../../src/demo/kubelet.ts';
import { cacheVolume, servingNamespace, servingObjects } from '../../src/demo/world/serving.ts';
import { downloadJob } from '../../src/drivers/kserve/downloads/job.ts';
import { parseScan } from '../../src/drivers/kserve/inventory/scanOutput.ts';
import { removeJob, scanJob } from '../../src/drivers/kserve/inventory/toolJobs.ts';
import { checkFlags, settingsOf } from '../../src/drivers/kserve/settings.ts';
import { flagsOf } from '../drivers/kserve/world.ts';
import { eventually } from '../support/server.ts';

interface Pod extends KubernetesObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}
type Job = KubernetesObject & {
  readonly status: { readonly failed?: number; readonly conditions?: readonly Verdict[] };
};
interface Verdict {
  readonly type: string;
  readonly reason: string;
}

const model: Directory = {
  dir: 'qwen3-8b-l4',
  bytes: 16_392_960_381,
  files: 12,
  mtime: Date.parse('2026-08-20T06:00:00Z'),
  hasModel: true,
};

/** The serving cluster of the demo without its gateway; what runs its Jobs is the test's. */
async function start(t: TestContext, options: Omit<KubeletOptions, 'clock'> = {}) {
  const clock = manualClock();
  const hub = await startHub({ models: library, clock });
  const cluster = await startCluster({ objects: servingObjects(), clock });
  const kubelet = startKubelet(cluster, { clock, volumes: { [cacheVolume]: [model] }, ...options });
  t.after(async () => {
    kubelet.stop();
    await Promise.all([cluster.close(), hub.close()]);
  });
  const flags = checkFlags({ ...flagsOf(), hfEndpoint: hub.url });
  const settings = settingsOf({ flags, discovery: { namespace: 'agent-platform', name: 'x' } });
  const pool = { nodeSelector: { 'giantswarm.io/machine-pool': 'gpu-l4' }, taint: { key: 'nvidia.com/gpu' } };
  const pods = () => cluster.list<Pod>('pods', servingNamespace);
  return {
    clock,
    hub,
    cluster,
    settings: { ...settings, namespace: servingNamespace, gpuPool: pool },
    pods,
    jobs: () => cluster.list<Job>('jobs.batch', servingNamespace),
    phases: () => pods().map(({ status }) => status.phase),
    content: () => kubelet.content(cacheVolume),
    /** What the container of the only pod, or of the last one, has written. */
    async log(container: string) {
      const name = pods().at(-1)?.metadata.name;
      const path = `/api/v1/namespaces/${servingNamespace}/pods/${name}/log?container=${container}`;
      return (await fetch(cluster.url + path)).text();
    },
  };
}

test('a scan prints what the gateway reads, as soon as a node takes its pod', async t => {
  const { cluster, clock, settings, pods, jobs, log } = await start(t, { startMs: 1_000, workMs: 500 });
  const taken = cluster
    .list('nodes')
    .filter(({ metadata }) => metadata.labels?.['nvidia.com/gpu.present'])
    .map(node => {
      cluster.remove('nodes', node.metadata.name);
      return node;
    });
  cluster.put(scanJob(settings, undefined, 'aaaaa'));
  const [waiting] = pods();
  assert.deepEqual(
    [waiting?.status.phase, waiting?.status.conditions?.[0]?.message],
    [
      'Pending',
      "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    ],
  );
  for (const { metadata, spec, status, ...rest } of taken) {
    cluster.put({ ...rest, metadata: { name: metadata.name, labels: metadata.labels }, spec, status });
  }
  await clock.advance(1_000);
  assert.deepEqual(
    pods().map(({ spec, status }) => [spec.nodeName, status.phase]),
    [['gpu-l4-a', 'Running']],
  );
  await clock.advance(500);
  assert.equal(jobs()[0]?.status.conditions?.[0]?.type, 'Complete');
  const { dir, bytes, files, hasModel, mtime } = model;
  assert.deepEqual(parseScan(await log('tool')), {
    value: { entries: [{ dir, bytes, files, hasModel, mtime: new Date(mtime) }], warnings: [] },
  });
  await clock.advance(600_000);
  assert.deepEqual([jobs(), pods()], [[], []], 'it goes when its time is over');
});

test('a download tells how far it is, and leaves all of it with its marker', async t => {
  const { cluster, clock, settings, phases, content, log } = await start(t, { bytesPerSecond: 500_000_000 });
  const plan = { repository: 'Qwen/Qwen3-8B', directory: 'm-8b', bytesTotal: 1 };
  const job = cluster.put(downloadJob(settings, plan));
  await eventually(() => phases()[0] === 'Running', 'it runs');
  await clock.sleeping();
  await clock.advance(10_000);
  const part = content().find(({ dir }) => dir === 'm-8b');
  assert.deepEqual([part?.bytes, part?.hasModel, part?.marker], [5_000_000_000, true, undefined]);
  assert.equal(await log('download'), 'PROGRESS 0\nPROGRESS 5000000000\n');
  await clock.advance(60_000);
  assert.deepEqual(phases(), ['Succeeded']);
  const whole = content().find(({ dir }) => dir === 'm-8b');
  const lines = (await log('download')).trim().split('\n');
  assert.deepEqual(lines.slice(-2), [`PROGRESS ${whole?.bytes}`, 'DONE']);
  assert.deepEqual(
    [whole?.bytes, whole?.files, whole?.marker?.model, whole?.marker?.job],
    [16_392_960_381, 12, 'Qwen/Qwen3-8B', job.metadata.name],
  );
});

test('what the Hub refuses is tried as often as the Job says, and fails with its words', async t => {
  const { cluster, clock, settings, phases, jobs, log } = await start(t);
  cluster.put(downloadJob(settings, { repository: 'google/gemma-3-27b-it', directory: 'gemma' }));
  for (const [tries, pauseMs] of [
    [1, 10_000],
    [2, 20_000],
    [3, 0],
  ] as const) {
    await eventually(() => phases().filter(phase => phase === 'Failed').length === tries, `try ${tries}`);
    await clock.advance(pauseMs);
  }
  const [job] = jobs();
  const { failed, conditions } = job?.status ?? {};
  assert.deepEqual([failed, conditions?.[0]?.type, conditions?.[0]?.reason], [3, 'Failed', 'BackoffLimitExceeded']);
  assert.match(
    await log('download'),
    /^PROGRESS 0\n.*401: Access to model google\/gemma-3-27b-it is restricted.*\nDOWNLOAD FAILED rc=1\n$/,
  );
});

test('nothing leaves the emulated cluster, and no other Job is run', async t => {
  const { cluster, clock, settings, pods, jobs, log } = await start(t);
  const away = { ...settings, hub: { ...settings.hub, endpoint: 'https://huggingface.co' } };
  cluster.put(downloadJob(away, { repository: 'Qwen/Qwen3-8B', directory: 'm-8b' }));
  await eventually(() => pods()[0]?.status.phase === 'Failed', 'the download fails');
  assert.match(await log('download'), /huggingface\.co: there is no way out of the emulated cluster\nDOWNLOAD FAILED/);
  cluster.remove('jobs.batch', jobs()[0]?.metadata.name ?? '', servingNamespace, { propagationPolicy: 'Background' });
  await clock.advance(60_000);
  assert.deepEqual(pods(), []);

  const scan = scanJob(settings, undefined);
  cluster.put({ ...scan, metadata: { ...scan.metadata, name: 'somebodys' } });
  await eventually(() => jobs()[0]?.status.conditions?.[0]?.type === 'Failed', 'it fails');
  assert.match(await log('tool'), /^nothing is run here: only the Jobs mm-scan-/);
});

test('a removal takes a directory, and says when there is none', async t => {
  const { cluster, settings, jobs, content, log } = await start(t);
  const verdict = () => jobs()[0]?.status.conditions?.[0]?.type;
  for (const [type, words] of [
    ['Complete', 'REMOVED\n'],
    ['Failed', 'there is no directory qwen3-8b-l4 in the cache\n'],
  ] as const) {
    const job = cluster.put(removeJob(settings, model.dir, undefined));
    await eventually(() => verdict() === type, `${type}`);
    assert.equal(await log('tool'), words);
    assert.deepEqual(content(), []);
    cluster.remove('jobs.batch', job.metadata.name, servingNamespace, { propagationPolicy: 'Background' });
    await eventually(() => jobs().length === 0, 'it is gone');
  }
});

test('a pod that is taken away is replaced, and goes on where it was; with its Job, nothing goes on', async t => {
  const { cluster, clock, settings, pods, content } = await start(t, { bytesPerSecond: 500_000_000 });
  const { metadata } = cluster.put(downloadJob(settings, { repository: 'Qwen/Qwen3-8B', directory: 'm-8b' }));
  const running = () => pods().filter(({ status }) => status.phase === 'Running');
  const bytes = () => content().find(({ dir }) => dir === 'm-8b')?.bytes;
  await eventually(() => running().length === 1, 'it runs');
  await clock.sleeping();
  await clock.advance(10_000);
  const first = running()[0]?.metadata.name ?? '';
  cluster.remove('pods', first, servingNamespace);
  await eventually(() => running().length === 1 && running()[0]?.metadata.name !== first, 'another one runs');
  await clock.sleeping();
  assert.equal(bytes(), 5_000_000_000);
  await clock.advance(10_000);
  assert.equal(bytes(), 10_000_000_000);

  cluster.remove('jobs.batch', metadata.name, servingNamespace, { propagationPolicy: 'Background' });
  await clock.advance(120_000);
  assert.deepEqual([pods(), bytes()], [[], 10_000_000_000]);
});
