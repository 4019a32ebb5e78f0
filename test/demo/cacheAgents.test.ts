/** The agents of the demo: where their pods are, and what they answer. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type KubernetesObject, manualClock } from '../../src/demo/cluster.ts';
import { cacheVolume, servingNamespace, setReady } from '../../src/demo/world/serving.ts';
import { startWorld } from '../../src/demo/world.ts';
import { readInventory } from '../../src/drivers/kserve/inventory/agent.ts';

interface AgentPod extends KubernetesObject {
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly podIP: string; readonly conditions: readonly { type: string; status: string }[] };
}

async function start(t: TestContext) {
  const clock = manualClock();
  const world = await startWorld({ clock });
  t.after(() => world[Symbol.asyncDispose]());
  const { cluster, cacheAgents } = world;
  assert.ok(cacheAgents);
  const pods = () =>
    cluster
      .list<AgentPod>('pods', servingNamespace)
      .filter(({ metadata }) => metadata.labels?.['model-manager.giantswarm.io/component'] === 'cache-agent');
  const on = (node: string) => pods().filter(({ spec }) => spec.nodeName === node);
  const url = `http://127.0.0.1:${cacheAgents.port}`;
  return { ...world, clock, pods, on, url };
}

const isReady = (pod: AgentPod | undefined) => pod?.status.conditions[0]?.status === 'True';
const nodeNames = (objects: readonly KubernetesObject[]) => objects.map(({ metadata }) => metadata.name);

test('each node has an agent, which is ready as its node is', async t => {
  const { cluster, pods, on } = await start(t);
  const places = () => pods().map(({ spec }) => spec.nodeName);
  assert.deepEqual(places().sort(), nodeNames(cluster.list('nodes')).sort());
  assert.ok(pods().every(pod => isReady(pod) && pod.status.podIP === '127.0.0.1'));
  setReady(cluster, 'gpu-l4-a', false);
  assert.deepEqual([isReady(on('gpu-l4-a')[0]), isReady(on('gpu-l4-b')[0])], [false, true]);
  setReady(cluster, 'gpu-l4-a', true);
  assert.ok(isReady(on('gpu-l4-a')[0]));
  cluster.remove('nodes', 'gpu-l4-a');
  assert.deepEqual(on('gpu-l4-a'), []);
});

test('one that is deleted comes again, until all of them are not wanted any more', async t => {
  const { clock, cluster, pods, on } = await start(t);
  const [before] = on('worker-a');
  cluster.remove('pods', before?.metadata.name ?? '', servingNamespace);
  const [after, ...others] = on('worker-a');
  assert.ok(isReady(after) && after?.metadata.name !== before?.metadata.name);
  assert.deepEqual(others, []);
  cluster.remove('daemonsets.apps', 'model-manager-cache-agent', servingNamespace);
  await clock.advance(60_000);
  assert.deepEqual(pods(), []);
  setReady(cluster, 'worker-a', false);
  assert.deepEqual(pods(), []);
});

test('a node that comes for a model has one, which does not keep it', async t => {
  const { clock, cluster, on } = await start(t);
  const known = nodeNames(cluster.list('nodes'));
  const added = () => nodeNames(cluster.list('nodes')).filter(name => !known.includes(name));
  const resources = { requests: { 'nvidia.com/gpu': '4' } };
  cluster.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'big', namespace: 'research' },
    spec: { containers: [{ name: 'main', resources }], tolerations: [{ operator: 'Exists' }] },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    },
  });
  while (added().length === 0) await clock.advance(500);
  const [node = ''] = added();
  assert.deepEqual(on(node).map(isReady), [false], 'it has just joined');
  await clock.advance(10_000);
  assert.deepEqual(on(node).map(isReady), [true]);
  cluster.remove('pods', 'big', 'research');
  await clock.advance(60_000);
  assert.deepEqual([added(), on(node)], [[], []]);
});

test('the gateway reads what they answer, which is what lies in the volume', async t => {
  const { kubelet, url, cacheAgents } = await start(t);
  const count = async () => readInventory(await (await fetch(`${url}/inventory`)).json());
  const told = (await count())?.entries.map(({ dir, bytes, files, hasModel }) => ({ dir, bytes, files, hasModel }));
  assert.deepEqual(
    told,
    kubelet.content(cacheVolume).map(({ dir, bytes, files, hasModel }) => ({ dir, bytes, files, hasModel })),
  );
  const marked = (await count())?.entries.find(({ dir }) => dir === 'gemma-3-4b-gguf');
  assert.equal(marked?.marker?.model, 'ggml-org/gemma-3-4b-it-GGUF');
  kubelet.write(cacheVolume, { dir: 'half', bytes: 5, files: 1, mtime: 0, hasModel: false });
  const { entries = [], warnings } = (await count()) ?? {};
  assert.equal(entries.find(({ dir }) => dir === 'half')?.bytes, 5);
  assert.deepEqual(warnings, []);
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  assert.equal((await fetch(`${url}/`)).status, 404);
  assert.ok(cacheAgents);
  assert.deepEqual(
    cacheAgents.requests.map(({ path }) => path),
    ['/inventory', '/inventory', '/inventory', '/healthz', '/'],
  );
});
