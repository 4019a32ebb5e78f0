import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EmulatedCluster, startCluster } from '../../../src/demo/cluster.ts';
import type { HubFacts } from '../../../src/drivers/kserve/hub/facts.ts';
import type { Hub } from '../../../src/drivers/kserve/hub.ts';
import { createKserveDriver } from '../../../src/drivers/kserve/index.ts';
import { openServer } from '../../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../../src/kubernetes/client.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { namespaceOf } from '../../support/cluster.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, within } from '../../support/server.ts';
import { callOf } from '../scripted.ts';
import { clusterNodes, discoveryRef, flagsOf, jsonOf, objectsOf, plain, presetFiles } from './world.ts';

const definition = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.serving.kserve.io` },
  spec: {
    group: 'serving.kserve.io',
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: 'v1alpha2',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

const spec = jsonOf('cluster/expected-nodes.json').variants[0];
const node = spec.served[0].node as string;

const template = {
  apiVersion: 'serving.kserve.io/v1alpha2',
  kind: 'LLMInferenceServiceConfig',
  metadata: { name: 'kserve-config-llm-template', namespace: 'kserve' },
};

function served(name: string, on: string) {
  const namespace = 'model-serving';
  const labels = { 'agent-platform.giantswarm.io/preset': name };
  const metadata = { name, namespace, labels };
  const model = { uri: 'hf://acme-labs/Nova-4B', name: 'acme-labs/Nova-4B' };
  const podLabels = { 'app.kubernetes.io/part-of': 'llminferenceservice', 'app.kubernetes.io/name': name };
  return [
    { apiVersion: 'serving.kserve.io/v1alpha2', kind: 'LLMInferenceService', metadata, spec: { model } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${name}-1`, namespace, labels: podLabels },
      spec: { nodeName: on, containers: [{ name: 'main', image: 'x' }] },
    },
  ];
}

const world = () => [
  ...['model-serving', 'agent-platform', 'kserve'].map(namespaceOf),
  definition('llminferenceservices', 'LLMInferenceService'),
  definition('llminferenceserviceconfigs', 'LLMInferenceServiceConfig'),
  template,
  ...objectsOf('cluster/discovery.yaml'),
  ...objectsOf('cluster/cache-shared.yaml'),
  ...presetFiles.flatMap(objectsOf),
  ...clusterNodes,
  ...served('nova-4b', node),
];

const facts: HubFacts = { miss: { why: 'timeout', words: 'nothing came', withinMs: 4_000 } };
const hub: Hub = {
  repository: async () => assert.fail('not asked'),
  files: async () => assert.fail('not asked'),
  weights: async () => facts,
  search: async () => [],
};

function driverOn(cluster: EmulatedCluster, user?: string) {
  const server = openServer(cluster.url);
  const headers = user && { authorization: `Bearer ${cluster.tokenOf(user)}` };
  const client = createKubernetesClient(headers ? { ...server, identity: async () => ({ headers }) } : server);
  const watches = createWatches({ client, log: silent });
  const flags = flagsOf();
  const driver = createKserveDriver({ client, watches, flags, ownNamespace: discoveryRef.namespace, hub, log: silent });
  return { driver, watches };
}

test('nodes, presets, models and the status are those of the cluster', async () => {
  await using cluster = await closing(startCluster({ objects: world() }));
  const { driver } = driverOn(cluster);
  const call = callOf();
  const expected = spec.nodes.map((each: { cache?: object }) => ({
    backend: 'kserve',
    ...each,
    ...(each.cache && { cache: { models: 0, bytesUsed: 0, ...each.cache } }),
  }));
  assert.deepEqual(plain(await driver.nodes?.(call)), expected);
  const names = jsonOf('cluster/expected-presets.json').presets.map(({ name }: { name: string }) => name);
  const presets = ((await driver.presets?.(call)) ?? []).map(({ name }) => name);
  assert.deepEqual(
    presets,
    names.filter((name: string) => name !== 'lenient'),
  );
  const status = await driver.describe(call);
  assert.deepEqual([status.healthy, status.message, status.version], [true, undefined, 'serving.kserve.io/v1alpha2']);
  const [model] = await driver.models(call);
  assert.deepEqual([model?.preset, model?.node, model?.downloaded], ['nova-4b', node, false]);
  assert.deepEqual(model && driver.agentAccess(model), {
    protocol: 'openai',
    url: 'https://models.demo.example.com/model-serving/nova-4b/v1',
    model: 'acme-labs/Nova-4B',
    key: 'passthrough',
    object: 'nova-4b',
    shared: true,
  });
});

test('what is asked of the API server does not grow with the cluster, and asked again it is nothing', async () => {
  const counted: number[] = [];
  for (const count of [3, 300]) {
    const more = Array.from({ length: count }, (_, index) => ({
      ...(clusterNodes[0] as object),
      metadata: { ...clusterNodes[0]?.metadata, name: `node-${index}` },
    }));
    await using cluster = await closing(startCluster({ objects: [...world(), ...more] }));
    const { driver } = driverOn(cluster);
    const ask = async () => {
      await driver.nodes?.(callOf());
      await driver.presets?.(callOf());
      await driver.models(callOf());
      await driver.checkFit?.(callOf(), { preset: 'nova-4b' });
      await driver.describe(callOf());
    };
    const lists = () => cluster.requests.filter(({ verb }) => verb !== 'watch').length;
    await ask();
    const first = lists();
    counted.push(first);
    await ask();
    assert.equal(lists(), first);
  }
  assert.equal(counted[0], counted[1]);
});

test('a change of a node reaches who listens, and nothing is watched when nobody does', async () => {
  await using cluster = await closing(startCluster({ objects: world() }));
  const { driver, watches } = driverOn(cluster);
  const nodes = driver.observed?.nodes ?? assert.fail('nothing is observed');
  assert.deepEqual(watches.states(), []);
  const stop = nodes.subscribe(() => {});
  const eligible = () => nodes.current?.value?.find(({ name }) => name === node)?.eligible;
  await eventually(() => eligible() === true, 'the node is listed');
  cluster.update('nodes', node, undefined, object => {
    Object.assign(object.metadata as object, { labels: { 'nvidia.com/gpu.present': 'true' } });
  });
  await eventually(() => eligible() === false, 'the node is out of the pool');
  stop();
  assert.deepEqual(watches.states(), []);
});

const everything = ['configmaps', 'pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes'];
for (const forbidden of ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'configmaps']) {
  test(`where ${forbidden} must not be read, only what needs them suffers, and says so`, async () => {
    const verbs = ['get', 'list', 'watch'];
    const rules = [
      { verbs, apiGroups: [''], resources: everything.filter(each => each !== forbidden) },
      { verbs, apiGroups: ['serving.kserve.io'], resources: ['*'] },
    ];
    await using cluster = await closing(startCluster({ objects: world(), users: { reader: { rules } } }));
    const { driver } = driverOn(cluster, 'reader');
    const call = callOf();
    const models = await within(driver.models(call), 'models');
    assert.equal(models.length, 1);
    if (forbidden === 'nodes') {
      await assert.rejects(async () => driver.nodes?.(call), { code: 'forbidden' });
      return;
    }
    const rows = (await driver.nodes?.(call)) ?? [];
    assert.ok(rows.length > 0);
    assert.match(rows[0]?.message ?? '', new RegExp(forbidden));
    if (forbidden === 'configmaps') assert.match((await driver.describe(call)).message ?? '', /^discovery: read /);
    else assert.equal((await driver.checkFit?.(call, { preset: 'nova-4b' }))?.reason?.includes(forbidden), true);
  });
}

test('what goes on is not told before it is known where to look', async () => {
  const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: ['batch'], resources: ['jobs'] }];
  await using cluster = await closing(startCluster({ objects: world(), users: { poor: { rules } } }));
  const call = callOf();
  await assert.rejects(async () => driverOn(cluster, 'poor').driver.unfinished?.(call), {
    code: 'unavailable',
    message: /^backend unavailable: discovery: read discovery ConfigMap agent-platform\/agent-platform-model-serving: /,
  });
  assert.deepEqual(await driverOn(cluster, 'admin').driver.unfinished?.(call), []);
});

async function closing(starting: Promise<EmulatedCluster>) {
  const cluster = await starting;
  return Object.assign(cluster, { [Symbol.asyncDispose]: () => cluster.close() });
}
