import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scanScript } from '../../../src/drivers/kserve/inventory/scripts.ts';
import { removeJob, scanJob } from '../../../src/drivers/kserve/inventory/toolJobs.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { checkKubernetes } from './schemas.ts';
import { objectsOf, plain, settingsWith } from './world.ts';

// biome-ignore lint/suspicious/noExplicitAny: fixtures of every shape
const [fixture] = objectsOf('inventory/scan-job.yaml') as any[];
const taint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
const pooled = { cache: { enabled: true }, gpuPool: { taint, nodeSelector: { pool: 'l4' } } };
const specOf = (job: object) => (job as typeof fixture).spec.template.spec;

test('the Job of a scan is the one of the fixture', () => {
  const job = plain(scanJob(settingsWith(pooled), 'spark-01', 'x7k2q')) as typeof fixture;
  const [tool] = job.spec.template.spec.containers;
  assert.deepEqual(tool.command, ['/bin/sh', '-c', scanScript()]);
  tool.command[2] = fixture.spec.template.spec.containers[0].command[2];
  assert.deepEqual(job, fixture);
});

test('where the claim is not pinned the pool has a node; without a pool any has', () => {
  const job = scanJob(settingsWith(pooled), undefined, 'x7k2q');
  assert.equal(job.metadata.name, 'mm-scan-x7k2q');
  const { nodeName, nodeSelector, tolerations } = specOf(job);
  assert.deepEqual({ nodeName, nodeSelector }, { nodeName: undefined, nodeSelector: { pool: 'l4' } });
  assert.equal(tolerations.length, 1);
  const bare = specOf(scanJob(settingsWith({ cache: { enabled: true } }), undefined));
  assert.deepEqual(
    ['nodeName', 'nodeSelector', 'tolerations'].filter(key => key in bare),
    [],
  );
});

test('a removal may write, and removes what it is told', () => {
  const job = removeJob(settingsWith(pooled), 'nova-4b', 'spark-01', 'x7k2q');
  assert.equal(job.metadata.name, 'mm-rm-nova-4b-x7k2q');
  const { containers, volumes } = specOf(job);
  assert.deepEqual(containers[0].env, [{ name: 'MM_DIRNAME', value: 'nova-4b' }]);
  assert.deepEqual(containers[0].volumeMounts, [{ name: 'cache', mountPath: '/cache' }]);
  assert.deepEqual(volumes, [{ name: 'cache', persistentVolumeClaim: { claimName: 'hf-cache' } }]);
});

test('what is no directory of ours is not removed', () => {
  for (const dir of ['', '.', '..', '.model-manager', 'a/b', '/', 'a b', 'a\tb', 'a\nb', 'a\u0000b', ' ']) {
    assert.throws(
      () => removeJob(settingsWith(undefined), dir, undefined),
      (error: GatewayError) =>
        error.code === 'invalid_request' &&
        error.message === `invalid request: refusing to remove cache directory ${JSON.stringify(dir)}`,
    );
  }
});

test('names are labels, however long the node or the directory is', () => {
  const long = `ip-10-0-10-11.eu-central-1.compute.internal.${'very-'.repeat(20)}long`;
  for (const { metadata } of [
    scanJob(settingsWith(undefined), long),
    scanJob(settingsWith(undefined), 'NODE_1'),
    removeJob(settingsWith(undefined), 'x'.repeat(200), undefined),
    removeJob(settingsWith(undefined), 'Ünïcode', undefined),
  ]) {
    assert.match(metadata.name, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  }
  const names = new Set(Array.from({ length: 50 }, () => scanJob(settingsWith(undefined), 'n').metadata.name));
  assert.ok(names.size > 45, 'names are random');
});

test('the Jobs are valid as Kubernetes defines them', () => {
  checkKubernetes(scanJob(settingsWith(pooled), 'spark-01'));
  checkKubernetes(scanJob(settingsWith(undefined), undefined));
  checkKubernetes(removeJob(settingsWith(pooled), 'nova-4b', undefined));
});
