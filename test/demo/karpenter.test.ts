import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodePool } from '../../src/demo/karpenter.ts';
import { kubectlWith, skip } from '../support/kubectl.ts';
import { asked, conditionOf, labels, start, startMs, taint, zones } from './karpenterLab.ts';

const [first, second] = zones;
const never = zones.map(zone => ({ zone, times: Number.POSITIVE_INFINITY }));
const zoneKey = 'topology.kubernetes.io/zone';

test('a pod without a node gets one, stage by stage', async t => {
  const { clock, claims, nodes, events, wait } = await start(t);
  const pod = wait('nova');
  await clock.advance(1_999);
  assert.deepEqual(claims(), []);
  await clock.advance(1);
  const claim = () => claims()[0] ?? assert.fail('there is no claim');
  const { name } = claim().metadata;
  assert.match(name, /^gpu-l4-[a-z0-9]{5}$/);
  assert.deepEqual(asked(claim(), zoneKey), [first]);
  assert.deepEqual(asked(claim(), 'node.kubernetes.io/instance-type'), ['g6.2xlarge', 'g6.12xlarge']);
  assert.equal(conditionOf(claim(), 'Launched')?.status, 'Unknown');
  const [nominated] = events('Nominated');
  assert.deepEqual(
    [nominated?.message, nominated?.source.component, nominated?.involvedObject.uid],
    [`Pod should schedule on: nodeclaim/${name}`, 'karpenter', pod.metadata.uid],
  );

  await clock.advance(6_999);
  assert.equal(conditionOf(claim(), 'Launched')?.status, 'Unknown');
  await clock.advance(1);
  assert.equal(conditionOf(claim(), 'Launched')?.status, 'True');
  assert.deepEqual(nodes(), []);

  await clock.advance(2_000);
  const node = () => nodes()[0] ?? assert.fail('there is no node');
  const taints = () => node().spec.taints.map(({ key, effect }) => `${key}:${effect}`);
  const own = 'nvidia.com/gpu:NoSchedule';
  const notReady = ['node.kubernetes.io/not-ready:NoSchedule', 'node.kubernetes.io/not-ready:NoExecute'];
  assert.deepEqual(taints(), [own, 'karpenter.sh/unregistered:NoExecute', ...notReady]);
  assert.equal(claim().status.nodeName, undefined);

  await clock.advance(1_000);
  assert.deepEqual(taints(), [own, ...notReady]);
  assert.equal(claim().status.nodeName, node().metadata.name);
  assert.equal(conditionOf(claim(), 'Registered')?.status, 'True');
  assert.equal(
    events('Nominated').at(-1)?.message,
    `Pod should schedule on: nodeclaim/${name}, node/${node().metadata.name}`,
  );
  assert.equal(conditionOf(node(), 'Ready')?.status, 'False');

  await clock.advance(3_000);
  assert.deepEqual(taints(), [own]);
  assert.equal(conditionOf(node(), 'Ready')?.status, 'True');
  assert.equal(node().status.allocatable['nvidia.com/gpu'], '0');
  assert.equal(conditionOf(claim(), 'Initialized'), undefined);

  await clock.advance(4_000);
  assert.equal(node().status.allocatable['nvidia.com/gpu'], '1');
  const { 'node.kubernetes.io/instance-type': type, [zoneKey]: zone, ...rest } = node().metadata.labels ?? {};
  assert.deepEqual([type, zone, rest['giantswarm.io/machine-pool']], ['g6.2xlarge', first, 'gpu-l4']);
  assert.equal(rest['nvidia.com/gpu.product'], 'NVIDIA-L4');
  assert.deepEqual(
    ['Initialized', 'Ready'].map(each => conditionOf(claim(), each)?.status),
    ['True', 'True'],
  );
});

test('a refused claim says why and goes; the next one asks in the next zone', async t => {
  const { clock, claims, nodes, events, wait } = await start(t, { refusals: [{ zone: first, times: 1 }] });
  wait('nova');
  await clock.advance(2_000 + 3_000);
  const [refused] = claims();
  const launched = refused && conditionOf(refused, 'Launched');
  assert.deepEqual([launched?.status, launched?.reason], ['False', 'InsufficientCapacityError']);
  assert.match(
    launched?.message ?? '',
    /sufficient g6\.12xlarge capacity in the Availability Zone you requested \(eu-central-1a\).* or choosing eu-central-1b\.$/,
  );
  const [warning] = events('InsufficientCapacityError');
  const beginning = `NodeClaim ${refused?.metadata.name} event: `;
  assert.equal(warning?.message, `${beginning}${launched?.message?.slice(0, 300)}...`);
  assert.deepEqual(
    [warning.type, warning.metadata.namespace, warning.involvedObject.kind, warning.involvedObject.uid],
    ['Warning', 'default', 'NodeClaim', refused?.metadata.uid],
  );

  await clock.advance(3_999);
  assert.equal(claims().length, 1);
  await clock.advance(1);
  assert.deepEqual(claims(), []);
  await clock.advance(4_999);
  assert.deepEqual(claims(), []);
  await clock.advance(1);
  const [next] = claims();
  assert.notEqual(next?.metadata.name, refused?.metadata.name);
  assert.deepEqual(next && asked(next, zoneKey), [second]);
  assert.equal(events('Nominated').at(-1)?.message, `Pod should schedule on: nodeclaim/${next?.metadata.name}`);
  await clock.advance(startMs);
  assert.deepEqual([nodes().length, nodes()[0]?.metadata.labels?.[zoneKey]], [1, second]);
  assert.equal(events('InsufficientCapacityError').length, 1);
});

test('a pool of one zone asks there again', async t => {
  const { clock, nodes, events, wait } = await start(t, { zones: [first], refusals: [{ zone: first, times: 2 }] });
  wait('nova');
  await clock.advance(2_000 + 2 * 12_000 + startMs);
  assert.equal(events('InsufficientCapacityError').length, 2);
  assert.equal(nodes()[0]?.metadata.labels?.[zoneKey], first);
});

test('without a machine anywhere it is tried for ever, until the pod goes', async t => {
  const { clock, claims, nodes, events, wait, remove } = await start(t, { refusals: never });
  const pod = wait('nova');
  await clock.advance(2_000 + 600_000);
  const warnings = events('InsufficientCapacityError');
  assert.equal(warnings.length, 50, 'one each 12 s');
  const first50 = new Set(warnings.map(({ involvedObject }) => involvedObject.name));
  assert.equal(first50.size, 50);
  assert.equal(nodes().length, 0);
  remove(pod);
  await clock.advance(600_000);
  assert.deepEqual(
    [claims().length, events('InsufficientCapacityError').length],
    [0, 51],
    'the last one was under way',
  );
});

test('a class of nodes that is not ready refuses every claim until it is', async t => {
  const condition = {
    type: 'Ready',
    status: 'False',
    reason: 'SubnetsNotFound',
    message: 'SubnetSelector did not match any Subnets',
  };
  const ofPool = {
    apiVersion: 'karpenter.k8s.aws/v1',
    kind: 'EC2NodeClass',
    metadata: { name: 'gpu' },
    status: { subnets: [{ id: 'subnet-1', zone: first }], conditions: [condition] },
  };
  const { clock, cluster, claims, nodes, events, wait } = await start(t, { class: ofPool });
  wait('nova');
  await clock.advance(5_000);
  const [claim] = claims();
  const words =
    'resolving ec2nodeclass, nodeClass is not ready, SubnetsNotFound: SubnetSelector did not match any Subnets';
  assert.equal(events('NodeClassNotReady')[0]?.message, `NodeClaim ${claim?.metadata.name} event: ${words}`);
  cluster.put({ ...ofPool, status: { ...ofPool.status, conditions: [{ ...condition, status: 'True' }] } });
  await clock.advance(9_000 + startMs);
  assert.deepEqual([nodes().length, events('NodeClassNotReady').length], [1, 1]);
});

test('a node without pods goes with its claim, and the next pod is refused as the first was', async t => {
  const { clock, claims, nodes, events, wait, bind, remove } = await start(t, {
    refusals: [{ zone: first, times: 1 }],
  });
  const wholeMs = 2_000 + 12_000 + startMs;
  const pod = wait('nova');
  await clock.advance(wholeMs + 600_000);
  assert.equal(nodes().length, 1, 'it is kept for the pod that waits');
  bind(pod);
  await clock.advance(600_000);
  assert.equal(nodes().length, 1);

  remove(pod);
  await clock.advance(59_999);
  assert.equal(nodes().length, 1);
  const short = wait('nova', { reason: 'SchedulingGated' });
  bind(short);
  await clock.advance(60_000);
  assert.equal(nodes().length, 1, 'a pod came in time');
  remove(short);
  await clock.advance(60_000);
  assert.deepEqual([nodes(), claims()], [[], []]);

  wait('nova');
  await clock.advance(wholeMs);
  assert.deepEqual([nodes().length, events('InsufficientCapacityError').length], [1, 2]);
});

test('pods share a node that has room; one that comes while it starts is promised it, too', async t => {
  const { clock, claims, nodes, events, wait, remove } = await start(t);
  const large = wait('atlas', { gpus: 4 });
  await clock.advance(5_000);
  remove(large);
  const pods = [wait('a', { gpus: 3 }), wait('b'), wait('c')];
  await clock.advance(2_000);
  assert.equal(claims().length, 2, 'four GPUs are for two of them, the third gets its own');
  const told = (uid: string | undefined) =>
    events('Nominated').find(({ involvedObject }) => involvedObject.uid === uid)?.message;
  const [a, b, c] = pods.map(({ metadata }) => told(metadata.uid));
  assert.ok(a);
  assert.equal(a, b);
  assert.notEqual(c, a);
  await clock.advance(startMs);
  assert.deepEqual(
    nodes()
      .map(({ status }) => status.allocatable['nvidia.com/gpu'])
      .toSorted(),
    ['1', '4'],
  );
});

test('only pods that a pool can help get a claim', async t => {
  const { clock, cluster, claims, nodes, wait } = await start(t);
  const others = {
    cpu: { gpus: 0 },
    many: { gpus: 5 },
    elsewhere: { nodeSelector: { 'giantswarm.io/machine-pool': 'gpu-h100' } },
    pinned: { nodeSelector: { ...labels, 'kubernetes.io/hostname': 'gpu-l4-a' } },
    far: { nodeSelector: { ...labels, [zoneKey]: 'eu-central-1c' } },
    intolerant: { tolerations: [] },
    gated: { reason: 'SchedulingGated' },
  };
  for (const [name, parts] of Object.entries(others)) wait(name, parts);
  await clock.advance(60_000);
  assert.deepEqual(claims(), []);
  wait('chosen', {
    nodeSelector: { ...labels, [zoneKey]: second, 'node.kubernetes.io/instance-type': 'g6.12xlarge' },
    tolerations: [{ key: taint.key, operator: 'Equal', value: '' }],
  });
  await clock.advance(2_000 + startMs);
  const { [zoneKey]: zone, 'node.kubernetes.io/instance-type': type } = nodes()[0]?.metadata.labels ?? {};
  assert.deepEqual([nodes().length, zone, type], [1, second, 'g6.12xlarge']);

  const h100 = { 'giantswarm.io/machine-pool': 'gpu-h100' };
  const plan = { name: 'gpu-h100', nodeClass: 'gpu', labels: h100, taints: [taint], instanceTypes: ['g6.12xlarge'] };
  cluster.put(nodePool({ ...plan, since: '2026-08-22T08:00:00Z' }));
  await clock.advance(2_000);
  const pools = claims().map(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool']);
  assert.deepEqual(pools, ['gpu-h100', 'gpu-l4'], 'a pool that comes later helps those that wait');
});

test('who deletes a claim or a node gets both deleted, and the pod that waited another one', async t => {
  const { clock, cluster, claims, nodes, wait, bind } = await start(t);
  const pod = wait('nova');
  await clock.advance(2_000 + 5_000);
  const names = () => claims().map(({ metadata }) => metadata.name);
  const [early] = names();
  cluster.remove('nodeclaims.karpenter.sh', early ?? '');
  assert.deepEqual(names(), []);
  await clock.advance(2_000 + startMs);
  assert.equal(names().length, 1);
  assert.notEqual(names()[0], early);
  bind(pod);
  cluster.remove('nodes', nodes()[0]?.metadata.name ?? '');
  assert.deepEqual([names(), nodes(), cluster.list('pods')], [[], [], []]);
});

test('once it is stopped nothing happens any more, and no timer runs', async t => {
  const { clock, karpenter, timers, claims, nodes, wait, remove } = await start(t, {
    refusals: [{ zone: second, times: 1 }],
  });
  const early = wait('early');
  await clock.advance(2_000 + startMs);
  remove(early);
  wait('launching', { gpus: 4 });
  wait('refused', { nodeSelector: { ...labels, [zoneKey]: second } });
  await clock.advance(2_000 + 1_000);
  wait('batched');
  assert.deepEqual([timers(), claims().length], [4, 3], 'one is idle, one launches, one is refused, one is batched');
  karpenter.stop();
  wait('late');
  await clock.advance(600_000);
  assert.deepEqual([timers(), claims().length, nodes().length], [0, 3, 1]);
});

test('kubectl shows pools, claims and classes', { skip }, async t => {
  const { clock, cluster, wait } = await start(t);
  wait('nova');
  await clock.advance(2_000 + startMs);
  await using kubectl = await kubectlWith(cluster.kubeconfig());
  const rows = (await kubectl.ok(['get', 'nodeclaims,nodepools,ec2nodeclasses'])).trim().split('\n');
  const words = rows.map(row => row.split(/\s+/));
  assert.deepEqual(words[0], ['NAME', 'TYPE', 'CAPACITY', 'ZONE', 'NODE', 'READY', 'AGE']);
  assert.match(rows[1] ?? '', /^nodeclaim\S+\/gpu-l4-\w{5} +g6\.2xlarge +on-demand +eu-central-1a +ip-10-\S+ +True /);
  assert.deepEqual(words[4]?.slice(0, 3), ['nodepool.karpenter.sh/gpu-l4', 'gpu', 'True']);
  assert.deepEqual(words[7]?.slice(0, 2), ['ec2nodeclass.karpenter.k8s.aws/gpu', 'True']);
  await kubectl.ok(['delete', 'nodeclaim', '--all']);
  assert.equal(await kubectl.ok(['get', 'nodes', '-o', 'name']), '');
});
