import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EmulatedCluster, type KubernetesObject, manualClock } from '../../src/demo/cluster.ts';
import { servingNamespace } from '../../src/demo/world/serving.ts';
import { startWorld } from '../../src/demo/world.ts';
import { parseDiscovery } from '../../src/drivers/kserve/discovery.ts';
import { nodeInfos } from '../../src/drivers/kserve/nodes.ts';
import { presetsIn } from '../../src/drivers/kserve/presets.ts';
import { composeService } from '../../src/drivers/kserve/serving/compose.ts';
import { checkFlags, settingsOf } from '../../src/drivers/kserve/settings.ts';
import { type ServeFacts, timeline } from '../../src/drivers/kserve/timeline.ts';
import type { ConfigMap } from '../../src/kubernetes/resource.ts';
import { documentOf, flagsOf, overhead } from '../drivers/kserve/world.ts';
import { labels, start, taint, zones } from './karpenterLab.ts';

const [first, second] = zones;

const service = (name: string) => ({
  apiVersion: 'serving.kserve.io/v1alpha2',
  kind: 'LLMInferenceService',
  metadata: { name, namespace: 'default', creationTimestamp: '2026-08-22T08:00:00Z' },
});

const cache = { claim: 'hf-cache', state: 'bound', shared: true, nodes: [], zones: [], volumeRead: true } as const;

/** What the gateway would have read of a cluster. */
function factsOf(cluster: EmulatedCluster, object: KubernetesObject, scaleUpTimeout = 0): ServeFacts {
  const { namespace } = object.metadata;
  const all = (resource: string, of?: string) => ({ value: cluster.list(resource, of) });
  return {
    object,
    pods: all('pods', namespace),
    events: all('events', namespace),
    nodes: all('nodes'),
    nodeClaims: all('nodeclaims.karpenter.sh'),
    karpenterEvents: all('events', 'default'),
    nodePools: all('nodepools.karpenter.sh'),
    nodeClasses: all('ec2nodeclasses.karpenter.k8s.aws'),
    cache: { value: cache },
    settings: { gpuResource: 'nvidia.com/gpu', scaleUpTimeout },
  };
}

const stepOf = ({ steps }: ReturnType<typeof timeline>, name: string) =>
  steps.find(each => each.name === name) ?? assert.fail(`there is no step ${name}`);

test('the timeline tells of the launch, the refusal with its fields, and the node that starts', async t => {
  const { clock, cluster, claims, nodes, wait, bind } = await start(t, { refusals: [{ zone: first, times: 1 }] });
  const pod = wait('nova', { gpus: 4 });
  const told = () => timeline(factsOf(cluster, service('nova')), clock.now());
  assert.deepEqual([told().phase, told().status, told().reason], ['scheduling', 'Pending', 'Unschedulable']);

  await clock.advance(2_000);
  assert.deepEqual([told().phase, told().reason], ['scheduling', 'NodeLaunching']);

  await clock.advance(3_000);
  const { reason, message, ...refused } = stepOf(told(), 'scheduling');
  assert.deepEqual([told().phase, told().reason, reason], ['scheduling', 'CapacityUnavailable', 'CapacityUnavailable']);
  const fields = {
    refusedInstanceTypes: ['g6.12xlarge'],
    requestedZones: [first],
    availableZones: [second],
    pinnedByCache: false,
  };
  for (const [name, value] of Object.entries(fields)) {
    assert.deepEqual(refused[name as keyof typeof fields], value, name);
  }
  assert.match(message ?? '', /: 1 NodeClaim refused, .* it has capacity in eu-central-1b/);

  await clock.advance(4_000);
  assert.deepEqual([claims().length, told().reason], [0, 'CapacityUnavailable'], 'the events say it, too');
  const all = ['g6.2xlarge', 'g6.12xlarge'];
  assert.deepEqual(stepOf(told(), 'scheduling').refusedInstanceTypes, all, 'those of the pool');

  await clock.advance(5_000);
  assert.equal(told().reason, 'NodeLaunching');
  await clock.advance(7_000);
  const registering = stepOf(told(), 'nodeStarting');
  const claim = claims()[0]?.metadata.name;
  assert.deepEqual(
    [told().phase, told().reason, registering.message],
    ['nodeStarting', 'NodeStarting', `NodeClaim ${claim} launched an instance; the node is registering`],
  );
  await clock.advance(3_000);
  assert.equal(
    stepOf(told(), 'nodeStarting').message,
    `NodeClaim ${claim} launched node ${nodes()[0]?.metadata.name}; its GPU is not allocatable yet`,
  );
  bind(pod);
  assert.equal(told().reason, undefined);
  assert.match(stepOf(told(), 'nodeStarting').message ?? '', /: nvidia\.com\/gpu not allocatable yet$/);
  await clock.advance(7_000);
  assert.equal(stepOf(told(), 'nodeStarting').state, 'done');
});

test('a cloud without machines spends the budget of the serve; a class that is not ready is told in its words', async t => {
  const never = zones.map(zone => ({ zone, times: Number.POSITIVE_INFINITY }));
  const { clock, cluster, claims, wait } = await start(t, { refusals: never });
  wait('nova');
  const told = () => timeline(factsOf(cluster, service('nova'), 60_000), clock.now());
  await clock.advance(5_000);
  const { state, availableZones, refusedInstanceTypes } = stepOf(told(), 'scheduling');
  assert.deepEqual(
    [state, availableZones, refusedInstanceTypes],
    ['inProgress', undefined, ['g6.2xlarge', 'g6.12xlarge']],
  );
  await clock.advance(60_000);
  assert.equal(claims().length, 1);
  assert.equal(told().phase, 'failed');
  assert.match(stepOf(told(), 'scheduling').message ?? '', /no node came within the scale-up budget of 1m0s$/);

  const why = { reason: 'SubnetsNotFound', message: 'SubnetSelector did not match any Subnets' };
  const conditions = [{ type: 'Ready', status: 'False', ...why }];
  cluster.update<{ status: object }>('ec2nodeclasses.karpenter.k8s.aws', 'gpu', undefined, object => {
    object.status = { ...object.status, conditions };
  });
  await clock.advance(12_000);
  assert.match(
    stepOf(told(), 'scheduling').message ?? '',
    /NodeClassNotReady: resolving ec2nodeclass, nodeClass is not ready, SubnetsNotFound: SubnetSelector did not/,
  );
});

test('a node that comes up is a starting one for the gateway, until its GPUs are free', async t => {
  const { clock, cluster, wait } = await start(t);
  const document = { gpuPool: { taint, nodeSelector: labels }, cache: { enabled: false } };
  const discovery = { namespace: 'agent-platform', name: 'x' };
  const written = {
    metadata: discovery,
    data: { 'config.yaml': JSON.stringify({ kind: 'ModelServingConfig', spec: document }) },
  };
  const settings = settingsOf({
    flags: checkFlags(flagsOf()),
    discovery,
    document: documentOf(parseDiscovery(written, discovery)),
  });
  const shown = () =>
    nodeInfos(cluster.list('nodes'), { backend: 'kserve', settings, now: clock.now(), gpusTaken: new Map() }).map(
      ({ eligible, startingReason, gpuCount, freeGpus }) => ({ eligible, startingReason, gpuCount, freeGpus }),
    );
  wait('nova', { gpus: 4 });
  await clock.advance(2_000 + 7_000 + 2_000 + 1_000);
  const notReady = 'node.kubernetes.io/not-ready';
  assert.deepEqual(shown(), [
    {
      eligible: false,
      startingReason: `not ready; taint ${notReady}:NoExecute, ${notReady}:NoSchedule`,
      gpuCount: 0,
      freeGpus: 0,
    },
  ]);
  await clock.advance(3_000);
  assert.deepEqual(shown(), [
    { eligible: true, startingReason: 'nvidia.com/gpu not allocatable yet', gpuCount: 4, freeGpus: 0 },
  ]);
  await clock.advance(4_000);
  assert.deepEqual(shown(), [{ eligible: true, startingReason: undefined, gpuCount: 4, freeGpus: 4 }]);
});

test('in the demo a model for four GPUs waits 25 s for a node, and the node goes when it is not needed', async t => {
  const clock = manualClock();
  const world = await startWorld({ clock });
  t.after(() => world[Symbol.asyncDispose]());
  const { cluster } = world;
  const discovery = { namespace: 'agent-platform', name: 'agent-platform-model-serving' };
  const published = cluster.get<ConfigMap>('configmaps', discovery.name, discovery.namespace);
  assert.ok(published);
  const document = documentOf(parseDiscovery(published, discovery));
  const settings = settingsOf({ flags: checkFlags(flagsOf()), discovery, document });
  const { presets } = presetsIn(cluster.list<ConfigMap>('configmaps', 'agent-platform'), overhead);
  const preset = presets.find(({ name }) => name === 'mistral-small-24b-x4');
  assert.ok(preset);
  const object = composeService(preset, settings);
  const before = cluster.list('nodes').length;
  const pod = cluster.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'mistral-0', namespace: servingNamespace },
    spec: object.spec.template,
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    },
  }) as KubernetesObject;
  const grown = () => cluster.list<KubernetesObject>('nodes').filter(each => each.metadata.name.startsWith('ip-10-'));
  const gpus = () => grown().map(({ status }) => (status as { allocatable: object }).allocatable);
  await clock.advance(24_999);
  assert.match(JSON.stringify(gpus()), /"nvidia\.com\/gpu":"0"/);
  await clock.advance(1);
  assert.match(JSON.stringify(gpus()), /"nvidia\.com\/gpu":"4"/);
  assert.equal(grown()[0]?.metadata.labels?.['topology.kubernetes.io/zone'], zones[0]);
  cluster.remove('pods', pod.metadata.name, servingNamespace);
  await clock.advance(30_000);
  assert.equal(cluster.list('nodes').length, before);
});
