import assert from 'node:assert/strict';
import { test } from 'node:test';
import { downloadJob, downloadJobName, plannedBy } from '../../../src/drivers/kserve/downloads/job.ts';
import { downloadScript, prepareScript } from '../../../src/drivers/kserve/downloads/scripts.ts';
import { readJob } from '../../../src/drivers/kserve/jobs/job.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { checkKubernetes } from './schemas.ts';
import { objectsOf, plain, settingsWith } from './world.ts';

// biome-ignore lint/suspicious/noExplicitAny: fixtures of every shape
const [fixture] = objectsOf('pull-job/00-job.yaml') as any[];
const taint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
const pooled = { cache: { enabled: true }, gpuPool: { taint, nodeSelector: { pool: 'l4' } } };
const settings = settingsWith(pooled, { hfTokenSecret: 'hf-token' });
const plan = {
  repository: 'acme-labs/Nova-4B-Instruct',
  directory: 'nova-4b',
  preset: 'nova-4b',
  node: 'ip-10-0-10-11.eu-central-1.compute.internal',
  bytesTotal: 16_099_094_228,
};
const made = (...given: Parameters<typeof downloadJob>) => plain(downloadJob(...given)) as typeof fixture;
const variables = (job: typeof fixture) =>
  Object.fromEntries(job.spec.template.spec.containers[0].env.map((each: { name: string }) => [each.name, each]));

test('the Job of a download is the one of the fixture', () => {
  const job = made(settings, plan);
  const { initContainers, containers } = job.spec.template.spec;
  assert.deepEqual(initContainers[0].command, ['/bin/sh', '-c', prepareScript('nova-4b')]);
  assert.deepEqual(containers[0].command, ['/bin/sh', '-c', downloadScript()]);
  const theirs = fixture.spec.template.spec;
  initContainers[0].command[2] = theirs.initContainers[0].command[2];
  containers[0].command[2] = theirs.containers[0].command[2];
  // The fixture leaves out that a pod says, too, what it downloads.
  assert.deepEqual(job.spec.template.metadata.annotations, { 'model-manager.giantswarm.io/model': plan.repository });
  delete job.spec.template.metadata.annotations;
  assert.deepEqual(variables(job), variables(fixture));
  containers[0].env = theirs.containers[0].env;
  assert.deepEqual(job, fixture);
});

test('without a node the pool has one, and what is not known is left out', () => {
  const job = made(settings, { repository: 'o/N', directory: 'o-n' });
  const { nodeName, nodeSelector } = job.spec.template.spec;
  assert.deepEqual([nodeName, nodeSelector], [undefined, { pool: 'l4' }]);
  assert.deepEqual(job.metadata.annotations, {
    'model-manager.giantswarm.io/model': 'o/N',
    'model-manager.giantswarm.io/cache-dir': 'o-n',
  });
  assert.equal(variables(job).MM_BYTES.value, '');
});

test('a revision, patterns, times and another hub are passed on', () => {
  const flags = {
    downloadIgnorePatterns: '*.bin, original/*',
    downloadStallTimeout: '90s',
    jobTtl: '5m',
    hfEndpoint: 'http://hub.example:8080/',
  };
  const job = made(settingsWith(pooled, flags), { ...plan, revision: 'refs/pr/3' });
  const env = variables(job);
  assert.equal(env.MM_SRC.value, 'hf://acme-labs/Nova-4B-Instruct:refs/pr/3');
  assert.equal(env.MM_REVISION.value, 'refs/pr/3');
  assert.equal(env.STORAGE_IGNORE_PATTERNS.value, '["*.bin","original/*"]');
  assert.equal(env.MM_STALL_SECONDS.value, '90');
  assert.equal(env.HF_ENDPOINT.value, 'http://hub.example:8080');
  assert.equal(env.HF_TOKEN, undefined, 'no Secret is configured');
  assert.equal(job.spec.ttlSecondsAfterFinished, 300);
});

test('what is planned can be read from the Job again', () => {
  const all = { ...plan, revision: 'v1' };
  assert.deepEqual(plannedBy(readJob(downloadJob(settings, all))), all);
  const { preset, node, bytesTotal, ...least } = plan;
  assert.deepEqual(plain(plannedBy(readJob(downloadJob(settings, least)))), least);
  const annotations = (more: object) => ({ 'model-manager.giantswarm.io/model': 'o/n', ...more });
  assert.equal(plannedBy({ annotations: {} }), undefined);
  assert.equal(plannedBy({ annotations: { 'model-manager.giantswarm.io/model': 5 } }), undefined);
  for (const total of ['-1', '1e3', 'many', '99999999999999999999', 7]) {
    const read = plannedBy({ annotations: annotations({ 'model-manager.giantswarm.io/bytes-total': total }) });
    assert.equal(read?.bytesTotal, undefined);
  }
});

test('what would not be safe in a script or a path makes no Job', () => {
  const unsafe: [object, RegExp][] = [
    [{ repository: 'o/n"; rm -rf /' }, /want owner\/name/],
    [{ repository: '../etc' }, /want owner\/name/],
    [{ repository: 'just-a-name' }, /want owner\/name/],
    [{ revision: '$(id)' }, /want a branch, a tag or a commit/],
    [{ revision: 'a b' }, /want a branch/],
    [{ revision: '../x' }, /want a branch/],
    [{ revision: '' }, /want a branch/],
    [{ directory: '' }, /cache directory ""/],
    [{ directory: "a'b" }, /want at most 63/],
    [{ directory: '../up' }, /want at most 63/],
    [{ directory: '.model-manager' }, /want at most 63/],
    [{ directory: 'x'.repeat(64) }, /want at most 63/],
  ];
  for (const [wrong, message] of unsafe) {
    assert.throws(
      () => downloadJob(settings, { ...plan, ...wrong }),
      (error: GatewayError) => error.code === 'invalid_request' && message.test(error.message),
    );
  }
});

test('its name is a label, the same for the same directory', () => {
  assert.equal(downloadJobName('nova-4b'), 'mm-pull-nova-4b');
  const long = downloadJobName('x'.repeat(63));
  assert.match(long, /^mm-pull-x{46}-[0-9a-f]{8}$/);
  assert.equal(downloadJobName('x'.repeat(63)), long);
});

test('the Jobs are valid as Kubernetes defines them', () => {
  checkKubernetes(downloadJob(settings, { ...plan, revision: 'v1' }));
  checkKubernetes(downloadJob(settingsWith(undefined), { repository: 'o/N', directory: 'o-n' }));
});
