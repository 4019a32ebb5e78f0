import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type KubernetesObject, manualClock } from '../../src/demo/cluster.ts';
import { presetNamespace, servingNamespace } from '../../src/demo/world/serving.ts';
import { startWorld } from '../../src/demo/world.ts';
import { presetsIn } from '../../src/drivers/kserve/presets.ts';
import { composeService } from '../../src/drivers/kserve/serving/compose.ts';
import type { KubernetesObject as GatewayObject } from '../../src/kubernetes/resource.ts';
import { overhead, settingsWith } from '../drivers/kserve/world.ts';
import type { ServedPod } from './servingLab.ts';

/** The world of the demo, where a test serves presets as the gateway does. */
async function start(t: TestContext) {
  const clock = manualClock();
  const world = await startWorld({ clock });
  t.after(() => world[Symbol.asyncDispose]());
  const { cluster } = world;
  const published = cluster.list<KubernetesObject>('configmaps', presetNamespace);
  const { presets } = presetsIn(published as readonly unknown[] as GatewayObject[], overhead);
  const settings = settingsWith({ namespace: servingNamespace, gpuPool: { taint: { key: 'nvidia.com/gpu' } } });
  return {
    clock,
    cluster,
    serve(name: string) {
      const preset = presets.find(each => each.name === name);
      assert.ok(preset);
      const { metadata, ...composed } = composeService(preset, settings);
      cluster.put({ ...composed, metadata: { ...metadata, namespace: servingNamespace } });
    },
    pod: (name: string) =>
      cluster
        .list<ServedPod>('pods', servingNamespace)
        .find(({ metadata }) => metadata.name.startsWith(`${name}-kserve`)),
    /** Whether it is ready, and why not. */
    ready(name: string) {
      const object = cluster.get<{ status?: { conditions: { type: string; status: string; reason?: string }[] } }>(
        'llminferenceservices.serving.kserve.io',
        name,
        servingNamespace,
      );
      const found = object?.status?.conditions.find(({ type }) => type === 'Ready');
      return [found?.status, found?.reason];
    },
  };
}

test('a model of the cache is soon ready', async t => {
  const { clock, serve, ready } = await start(t);
  serve('gemma-3-4b-gguf');
  await clock.advance(10_000);
  assert.deepEqual(ready('gemma-3-4b-gguf'), ['False', 'MinimumReplicasUnavailable']);
  await clock.advance(5_000);
  assert.deepEqual(ready('gemma-3-4b-gguf'), ['True', undefined]);
});

test('one that needs two GPUs waits for a node, and takes half a minute there', async t => {
  const { clock, cluster, serve, pod, ready } = await start(t);
  const name = 'qwen2-5-7b-x2';
  serve(name);
  await clock.advance(1_000);
  const [scheduled] = pod(name)?.status.conditions ?? [];
  assert.deepEqual([scheduled?.type, scheduled?.status], ['PodScheduled', 'False']);
  assert.match(scheduled?.message ?? '', /Insufficient nvidia\.com\/gpu/);
  const large = cluster.get<KubernetesObject>('nodes', 'gpu-l4-x4');
  assert.ok(large);
  const { labels } = large.metadata;
  cluster.put({ ...large, metadata: { name: 'another', labels: { ...labels, 'kubernetes.io/hostname': 'another' } } });
  await clock.advance(25_000);
  assert.equal(pod(name)?.spec.nodeName, 'another');
  assert.equal(ready(name)[0], 'False');
  await clock.advance(5_000);
  assert.equal(ready(name)[0], 'True');
});

test('two fail, each as its name says', async t => {
  const { clock, cluster, serve, pod } = await start(t);
  for (const name of ['qwen3-0-6b-wrong-args', 'qwen3-0-6b-wrong-image']) serve(name);
  await clock.advance(22_000);
  const waits = (name: string) => pod(name)?.status.containerStatuses?.[0]?.state.waiting?.reason;
  assert.deepEqual(
    [waits('qwen3-0-6b-wrong-args'), waits('qwen3-0-6b-wrong-image')],
    ['CrashLoopBackOff', 'ImagePullBackOff'],
  );
  const path = `/api/v1/namespaces/${servingNamespace}/pods/${pod('qwen3-0-6b-wrong-args')?.metadata.name}/log`;
  const log = await (await fetch(`${cluster.url}${path}?container=main&previous=true`)).text();
  assert.match(log, /^Traceback[\s\S]*^ValueError: User-specified max_model_len \(131072\) is greater/m);
});
