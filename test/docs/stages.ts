/** Where the commands of the page run: real processes of the gateway, each in front of an emulated world. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import { instant, startOllama } from '../../src/demo/ollama.ts';
import { startWorld } from '../../src/demo/world.ts';
import { heldBy } from '../../src/jobs/kubernetes/lease.ts';
import { recordOf } from '../../src/jobs/kubernetes/record.ts';
import { folder, start } from '../commands/running.ts';
import { worldOf } from '../drivers/kserve/driverLab.ts';
import { jobOf } from '../jobs/lab.ts';
import { namespaceOf } from '../support/cluster.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { rulesOf } from '../support/permitted.ts';
import { freePort } from '../support/ports.ts';
import { install, type Setting } from './shell.ts';

/** Where the page has the release, kagent, what the platform publishes, and what is served. */
const [release, kagent, platform, serving] = ['agent-platform', 'kagent', 'agent-platform', 'model-serving'];

/** Where the page finds the gateway and its metrics, once a port is forwarded. */
const [gatewayUrl, metricsUrl] = ['http://127.0.0.1:8080', 'http://127.0.0.1:9464'];
/** Where nothing answers on the page; on the machine of a test something might. */
const nobodysUrl = 'http://127.0.0.1:1234';

export const stages: Readonly<Record<string, (t: TestContext) => Promise<Setting>>> = {
  anonymous: startAnonymous,
  oauth: startOauth,
  downstream: startDownstream,
};

/** A cluster with kagent, KServe and a GPU pool; hosts; and nobody who signs in. */
async function startAnonymous(t: TestContext): Promise<Setting> {
  const ending = endingOf(t);
  const world = ending.use(await startWorld());
  const { cluster, urls, hub, cacheAgents } = world;
  for (const kind of chartKinds) cluster.put(kind);
  const setting = await startGateway(t, ending, cluster.kubeconfig(), [
    ...['--backends', 'ollama,kserve', '--ollama-endpoint', urls.ollama],
    ...['--namespace', release, '--kagent-namespace', world.kagentNamespace],
    ...['--kserve-discovery-namespace', platform, '--kserve-hf-endpoint', hub.url],
    ...['--kserve-hf-token-secret', world.serving.tokenSecret],
    ...['--kserve-inventory-mode', 'daemonset', '--kserve-inventory-agent-port', String(cacheAgents?.port)],
  ]);
  putPod(cluster, setting.log());
  putJob(cluster);
  return setting;
}

/** A pull that one of several replicas works on. */
function putJob(cluster: EmulatedCluster) {
  const key = 'a pull';
  const job = jobOf('7f3c2a9e51d04b68', { phase: 'running' });
  cluster.put(recordOf({ job, key }, release));
  cluster.put(heldBy('model-manager-6d5f9c7b8-x2x7p_9b1c04ee', key, job.id, release));
}

async function startOauth(t: TestContext): Promise<Setting> {
  const ending = endingOf(t);
  const issuer = ending.use(await startIssuer());
  const ollama = await startOllama({ timings: instant, models: [{ name: 'qwen3:0.6b' }] });
  ending.defer(() => ollama.close());
  const flags = ['--backends', 'ollama', '--ollama-endpoint', ollama.url, ...signIn(issuer)];
  return withToken(await startGateway(t, ending, '', flags), await issuer.token());
}

/** Jane has all rights that work there takes; the gateway may read the documents of backends. */
async function startDownstream(t: TestContext): Promise<Setting> {
  const ending = endingOf(t);
  const issuer = ending.use(await startIssuer());
  const jane = rulesOf({ own: release, kagent, discovery: platform, serving, default: 'default' });
  const documents = {
    verbs: ['get', 'list', 'watch'],
    apiGroups: [''],
    resources: ['configmaps'],
    namespaces: [release],
  };
  const cluster = await startCluster({
    tls: true,
    objects: [...[release, kagent, 'default'].map(namespaceOf), kagentDefinition(), ...worldOf()],
    users: { gateway: { rules: [documents] }, jane: { rules: jane } },
  });
  ending.defer(() => cluster.close());
  const token = await issuer.token();
  cluster.setToken('jane', token);
  const setting = await startGateway(t, ending, cluster.kubeconfig('gateway'), [
    ...['--backends', 'kserve', '--namespace', release, '--kagent-namespace', kagent],
    ...['--kserve-discovery-namespace', platform, ...signIn(issuer), '--downstream-oauth'],
  ]);
  return withToken(setting, token);
}

/** A cluster with these namespaces and nothing that runs, for what is installed there. */
export async function startEmpty(t: TestContext, namespaces: readonly string[]): Promise<Setting> {
  const cluster = await startCluster({ objects: [...namespaces.map(namespaceOf), ...chartKinds] });
  t.after(() => cluster.close());
  const { path, put } = folder(t);
  install(path);
  return { folder: path, variables: { KUBECONFIG: put('kubeconfig', cluster.kubeconfig()) }, addresses: {} };
}

/** Kinds of the chart that the emulated API server does not bring, with nothing known of their fields. */
const chartKinds = [
  ['networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy'],
  ['gateway.networking.k8s.io', 'v1', 'httproutes', 'HTTPRoute'],
  ['monitoring.coreos.com', 'v1', 'servicemonitors', 'ServiceMonitor'],
  ['monitoring.coreos.com', 'v1', 'prometheusrules', 'PrometheusRule'],
  ['muster.giantswarm.io', 'v1alpha1', 'mcpservers', 'MCPServer'],
  ['policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget'],
].map(([group, version, plural, kind]) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind?.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}));

/** What is ended when the test is over; what began last, first. */
function endingOf(t: TestContext): AsyncDisposableStack {
  const ending = new AsyncDisposableStack();
  t.after(() => ending.disposeAsync());
  return ending;
}

const signIn = ({ url }: Issuer) => [
  ...['--enable-oauth', '--oauth-base-url', 'https://models.example', '--dex-issuer-url', url],
  ...['--dex-client-id', 'platform', '--allow-private-oauth-urls'],
];

const withToken = (setting: Setting, token: string): Setting => ({
  ...setting,
  variables: { ...setting.variables, TOKEN: token },
});

/** A process of `model-manager serve`; whoever runs `kubectl` and `helm` beside it sees the same cluster. */
async function startGateway(
  t: TestContext,
  ending: AsyncDisposableStack,
  kubeconfig: string,
  flags: readonly string[],
) {
  const { path, put } = folder(t);
  install(path);
  const config = put('kubeconfig', kubeconfig);
  const metricsPort = await freePort();
  const gateway = start(t, [
    ...['serve', '--listen', '127.0.0.1:0', '--log-format', 'json', '--metrics-listen', `127.0.0.1:${metricsPort}`],
    ...['--audit-log', `${path}/audit.jsonl`, ...(kubeconfig ? ['--kubeconfig', config] : []), ...flags],
  ]);
  ending.defer(async () => {
    gateway.kill('SIGINT');
    assert.equal(await gateway.ended, 0, gateway.err);
  });
  await gateway.wrote('"identity":');
  const [, url = ''] = /"url":"([^"]+)"/.exec(gateway.out) ?? [];
  return {
    folder: path,
    variables: { KUBECONFIG: config },
    addresses: {
      [gatewayUrl]: url,
      [metricsUrl]: `http://127.0.0.1:${metricsPort}`,
      [nobodysUrl]: `http://127.0.0.1:${await freePort()}`,
    },
    log: () => gateway.out,
  };
}

/** The pod that a Deployment of the chart would bring, with what the process has written. */
function putPod(cluster: EmulatedCluster, log: string): void {
  const name = 'model-manager-6f9d8c7b5-x2x4z';
  const labels = {
    'app.kubernetes.io/name': 'model-manager',
    'app.kubernetes.io/instance': 'model-manager',
    'app.kubernetes.io/component': 'gateway',
  };
  const containers = [{ name: 'model-manager', image: 'model-manager' }];
  cluster.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: release, labels },
    spec: { containers },
  });
  cluster.logs.set(release, name, 'model-manager', { current: log });
}
