import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildableKinds } from '../../src/backends/drivers.ts';
import { settingsFor } from '../../src/commands/demo.ts';
import { cacheAgentSettings } from '../../src/config/cacheAgent.ts';
import { parseCacheAgent, parseServe } from '../../src/config/parse.ts';
import { parseDemo } from '../../src/config/recording.ts';
import { allSettings, type Setting } from '../../src/config/settings.ts';
import type { World } from '../../src/demo/world.ts';
import { type Container, containerOf, examples, gatewayPod, podsOf, render, skip, type Values } from './helm.ts';

/** The environment of a container; what comes from elsewhere is the name of where. */
const envOf = ({ env }: Container) =>
  Object.fromEntries(env.map(({ name, value }) => [name, value ?? `from-${name.toLowerCase().replaceAll('_', '-')}`]));

/** What the gateway makes of these values. Work as the caller is told apart: see the next test. */
function settingsOf(values: Values) {
  const container = containerOf(gatewayPod(render(values)));
  const [command, ...argv] = container.args;
  assert.equal(command, 'serve');
  const { settings, warnings } = parseServe(
    argv.filter(word => word !== '--downstream-oauth'),
    envOf(container),
    { buildable: buildableKinds },
  );
  return { settings, warnings, argv };
}

const { demo, ...served } = examples;

for (const [name, values] of Object.entries({ defaults: {}, ...served })) {
  test(`the gateway starts with ${name}`, { skip }, () => {
    const { argv, warnings } = settingsOf(values);
    const known = allSettings.map(({ flag }) => flag);
    const unknown = argv.filter(word => !known.includes(word.replace(/^--/, '').replace(/=.*/s, '')));
    assert.deepEqual(unknown, []);
    const flags = argv.map(word => word.replace(/=.*/s, ''));
    assert.deepEqual(
      flags.filter((flag, index) => flags.indexOf(flag) !== index),
      [],
      'none is given twice',
    );
    // Only that a client secret is of no use.
    assert.deepEqual(
      warnings.filter(line => !line.includes('-client-secret is not used')),
      [],
    );
  });
}

/** What the settings of a demo say of its world. */
const world = {
  urls: { ollama: 'http://127.0.0.1:1', lemonade: 'http://127.0.0.1:2', lmstudio: 'http://127.0.0.1:3' },
  hub: { url: 'http://127.0.0.1:4' },
  serving: { discoveryNamespace: 'platform', tokenSecret: 'hub' },
  namespace: 'demo',
  kagentNamespace: 'kagent',
} as World;

test('the demo starts, where the probes find it, with the settings that are not of a backend or cluster', {
  skip,
}, () => {
  const more: Values = {
    graphql: { graphiql: false, introspection: true },
    mcp: { path: '/tools' },
    networkPolicy: { enabled: false },
    observability: { metrics: { enabled: true } },
    ollama: { memoryBudgetGiB: 12, agentHost: 'http://elsewhere' },
    kserve: { hf: { token: 'hf_a' } },
    extraArgs: ['--job-retention=48h'],
  };
  const manifests = render({ ...demo, ...more });
  const { args, ports } = containerOf(gatewayPod(manifests));
  assert.equal(args[0], 'demo');
  const { rest, replay } = parseDemo(args.slice(1));
  assert.equal(replay, undefined);
  const settings = settingsFor(world, rest);
  assert.deepEqual(settings.listen, { host: undefined, port: 8080 });
  assert.deepEqual(settings.metricsListen, { host: undefined, port: 9464 });
  assert.deepEqual(
    ports.map(({ containerPort }) => containerPort),
    [8080, 9464],
  );
  assert.deepEqual([settings.graphiql, settings.introspection, settings.mcpPath], [false, true, '/tools']);
  assert.equal(settings.jobRetention, 48 * 3_600_000);
  assert.deepEqual([settings.inCluster, settings.ollamaMemoryBudgetGib], [false, '']);
  assert.deepEqual(
    manifests.filter(({ kind }) => kind === 'Secret'),
    [],
  );
});

for (const [name, values] of Object.entries({ defaults: {}, ...examples })) {
  test(`every variable of ${name} means something`, { skip }, () => {
    const ofProgram = [...allSettings, ...Object.values<Setting>(cacheAgentSettings)].flatMap(each => each.variables);
    for (const pod of podsOf(render(values))) {
      const names = containerOf(pod).env.map(({ name }) => name);
      assert.deepEqual(
        names.filter(name => name !== 'NODE_OPTIONS' && !ofProgram.includes(name)),
        [],
      );
      assert.equal(new Set(names).size, names.length);
    }
  });
}

test('work as the caller is switched on by its flag', { skip }, () => {
  assert.ok(settingsOf(examples.downstream as Values).argv.includes('--downstream-oauth'));
  assert.ok(!settingsOf(examples.muster as Values).argv.includes('--downstream-oauth'));
  assert.ok(allSettings.some(({ flag }) => flag === 'downstream-oauth'));
});

test('values arrive as the settings that they are named after', { skip }, () => {
  const { settings } = settingsOf({
    backends: ['kserve', 'ollama', 'lemonade', 'lmstudio'],
    ollama: { endpoint: 'http://o:1', agentHost: 'http://oa', memoryBudgetGiB: 12.5 },
    lemonade: { endpoint: 'http://e:2', agentHost: 'http://ea' },
    lmstudio: { endpoint: 'http://s:3', agentHost: 'http://sa' },
    kagent: { namespace: 'k', apiVersion: 'v1alpha3', modelConfigPrefix: 'p-', autoWire: false },
    mcp: { path: '/tools' },
    graphql: { graphiql: false, introspection: true, allowedOrigins: ['https://a.example', 'https://b.example'] },
    observability: { metrics: { enabled: true, port: 9999 } },
    logging: { verbose: true },
    kserve: {
      namespace: 'serve',
      gpuResource: 'amd.com/gpu',
      discovery: { namespace: 'dis', configMap: 'doc' },
      cache: { claim: 'c', mountPath: '/c', nodes: ['n1', 'n2'], indexConfigMap: 'idx' },
      presets: { namespace: 'pre', selector: 'a=b' },
      hf: { endpoint: 'https://hub.example', timeout: '5s', tokenSecret: { name: 'hub', key: 'k' } },
      download: { image: 'd:1', ignorePatterns: '*.bin,*.pt', jobTTL: '2h', stallTimeout: '20m' },
      inventory: { mode: 'daemonset', image: 'i:1', ttl: '3m', timeout: '4m', agent: { port: 9000 } },
      budget: { source: 'allocatable', defaultOverheadGiB: 2.5 },
      readyTimeout: '3h',
      scaleUpTimeout: 0,
    },
    extraArgs: ['--job-retention=48h'],
  });
  const { kserve } = settings;
  assert.deepEqual(settings.backends, ['kserve', 'ollama', 'lemonade', 'lmstudio']);
  assert.deepEqual(settings.listen, { host: undefined, port: 8080 });
  assert.deepEqual(settings.metricsListen, { host: undefined, port: 9999 });
  assert.deepEqual([settings.ollamaEndpoint, settings.ollamaAgentHost], ['http://o:1', 'http://oa']);
  assert.equal(settings.ollamaMemoryBudgetGib, '12.5');
  assert.deepEqual([settings.lemonadeEndpoint, settings.lemonadeAgentHost], ['http://e:2', 'http://ea']);
  assert.deepEqual([settings.lmstudioEndpoint, settings.lmstudioAgentHost], ['http://s:3', 'http://sa']);
  assert.deepEqual([settings.kagentNamespace, settings.kagentApiVersion], ['k', 'v1alpha3']);
  assert.deepEqual([settings.modelconfigPrefix, settings.autoWire, settings.disableWiring], ['p-', false, false]);
  assert.deepEqual([settings.mcpPath, settings.mcpEnabled], ['/tools', true]);
  assert.deepEqual([settings.graphiql, settings.introspection], [false, true]);
  assert.deepEqual(settings.allowedOrigins, ['https://a.example', 'https://b.example']);
  assert.deepEqual([settings.verbose, settings.inCluster, settings.jobRetention], [true, true, 48 * 3_600_000]);
  assert.deepEqual(kserve, {
    ...kserve,
    namespace: 'serve',
    gpuResource: 'amd.com/gpu',
    discoveryNamespace: 'dis',
    discoveryConfigmap: 'doc',
    cacheClaim: 'c',
    cacheMountPath: '/c',
    cacheNodes: ['n1', 'n2'],
    cacheIndexConfigmap: 'idx',
    presetNamespace: 'pre',
    presetSelector: 'a=b',
    hfEndpoint: 'https://hub.example',
    hfTimeout: 5000,
    hfTokenSecret: 'hub',
    hfTokenSecretKey: 'k',
    downloadImage: 'd:1',
    downloadIgnorePatterns: ['*.bin', '*.pt'],
    jobTtl: 7_200_000,
    downloadStallTimeout: 1_200_000,
    inventoryMode: 'daemonset',
    initImage: 'i:1',
    inventoryTtl: 180_000,
    inventoryTimeout: 240_000,
    inventoryAgentPort: 9000,
    budgetSource: 'allocatable',
    defaultOverheadGib: 2.5,
    readyTimeout: 10_800_000,
    scaleUpTimeout: 0,
  });
});

test('where jobs are kept is said where it is not the memory', { skip }, () => {
  assert.equal(settingsOf(examples.replicas as Values).settings.jobStore, 'kubernetes');
  const { settings, argv } = settingsOf({});
  assert.equal(settings.jobStore, 'memory');
  assert.ok(!argv.some(word => word.startsWith('--job-store')));
});

test('numbers may be texts, as --set-string gives them', { skip }, () => {
  const pod = gatewayPod(render({ replicaCount: '0', observability: { metrics: { enabled: true, port: '9000' } } }));
  assert.deepEqual(containerOf(pod).ports, [
    { name: 'http', containerPort: 8080 },
    { name: 'metrics', containerPort: 9000 },
  ]);
});

test('without Kubernetes nothing of it is passed on', { skip }, () => {
  const { settings, argv } = settingsOf(examples['hosts-alone'] as Values);
  assert.equal(settings.inCluster, false);
  assert.deepEqual(
    argv.filter(word => /kserve|kagent|wir/.test(word)),
    [],
  );
});

test('the agents of the cache start, on the port that the gateway asks', { skip }, () => {
  const manifests = render(examples['cache-agents'] as Values);
  const [gateway, agent] = podsOf(manifests).map(containerOf) as [Container, Container];
  const [command, ...argv] = agent.args;
  assert.equal(command, 'cache-agent');
  const settings = parseCacheAgent(argv, envOf(agent));
  assert.equal(settings.node, 'from-node-name');
  assert.deepEqual(settings.listen, { host: undefined, port: 8081 });
  assert.ok(gateway.args.includes('--kserve-inventory-agent-port=8081'));
  assert.deepEqual(
    agent.volumeMounts.find(({ name }) => name === 'cache'),
    { name: 'cache', mountPath: settings.root, readOnly: true },
  );
  // As the gateway looks for them.
  const [key = '', value] = (
    allSettings.find(({ flag }) => flag === 'kserve-inventory-agent-selector')?.default ?? ''
  ).split('=');
  const set = manifests.find(({ kind }) => kind === 'DaemonSet') as unknown as {
    metadata: { namespace: string };
    spec: { template: { metadata: { labels: Record<string, string> } } };
  };
  assert.equal(set.spec.template.metadata.labels[key], value);
  assert.equal(set.metadata.namespace, 'models');
});

test('the heap gets a part of the memory limit, whatever its unit', { skip }, () => {
  const heap = (memory: string | number | null, extra: Values = {}) =>
    envOf(containerOf(gatewayPod(render({ resources: { limits: { memory } }, ...extra })))).NODE_OPTIONS;
  assert.equal(heap('512Mi'), '--max-old-space-size=307');
  assert.equal(heap('1Gi'), '--max-old-space-size=614');
  assert.equal(heap('1.5Gi'), '--max-old-space-size=921');
  assert.equal(heap('1G'), '--max-old-space-size=572');
  assert.equal(heap(536_870_912), '--max-old-space-size=307');
  assert.equal(heap(null), undefined);
  const extraEnv = [{ name: 'NODE_OPTIONS', value: '--trace-gc' }];
  assert.equal(heap('512Mi', { extraEnv }), '--trace-gc');
});
