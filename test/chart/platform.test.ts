import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chart,
  containerOf,
  examples,
  gatewayPod,
  type Manifest,
  ofKind,
  render,
  run,
  skip,
  theOne,
  type Values,
} from './helm.ts';

const argumentsOf = (values: Values) => containerOf(gatewayPod(render(values))).args;
const flagOf = (values: Values, flag: string) =>
  argumentsOf(values)
    .find(word => word.startsWith(`--${flag}=`))
    ?.slice(flag.length + 3);

interface McpServer {
  readonly spec: Readonly<Record<string, unknown>>;
}

test('muster finds the tools where the Service is', { skip }, () => {
  const { apiVersion, metadata, spec } = theOne<McpServer>(render(examples.muster), 'MCPServer');
  assert.equal(apiVersion, 'muster.giantswarm.io/v1alpha1');
  assert.equal(metadata.name, 'model-manager');
  assert.equal(metadata.labels['muster.giantswarm.io/type'], 'model-manager');
  assert.equal(metadata.labels['agent-platform.giantswarm.io/tool-group'], 'agent-platform');
  assert.equal(metadata.labels.team, 'models');
  const { description, ...rest } = spec;
  assert.ok(String(description).length <= 500);
  assert.deepEqual(rest, {
    type: 'streamable-http',
    url: 'http://model-manager.agent-platform.svc.cluster.local:8080/mcp',
    autoStart: true,
    auth: { type: 'oauth', forwardToken: true, requiredAudiences: ['muster', 'portal'] },
  });
});

test('where nobody signs in muster sends nothing on; name, path and port are those of the values', { skip }, () => {
  const values = {
    fullnameOverride: 'gateway',
    mcp: { path: '/tools' },
    service: { port: 80 },
    muster: { mcpServer: { enabled: true, name: 'models', autoStart: false, description: '' } },
  };
  const { metadata, spec } = theOne<McpServer>(render(values), 'MCPServer');
  assert.equal(metadata.name, 'models');
  assert.deepEqual(spec, {
    type: 'streamable-http',
    url: 'http://gateway.agent-platform.svc.cluster.local:80/tools',
    autoStart: false,
  });
});

interface Route {
  readonly spec: {
    readonly parentRefs: readonly object[];
    readonly hostnames?: readonly string[];
    readonly rules: readonly {
      readonly matches: readonly { readonly path: { readonly type: string; readonly value: string } }[];
      readonly timeouts: { readonly request: string };
      readonly backendRefs: readonly object[];
    }[];
  };
}

const timeoutsOf = ({ spec }: Route) =>
  spec.rules.map(({ matches, timeouts }) => `${matches.map(({ path }) => path.value)} ${timeouts.request}`);

test('a route lets streams of the graph be, and ends the rest at some time', { skip }, () => {
  const route = theOne<Route>(render(examples.muster), 'HTTPRoute');
  assert.deepEqual(timeoutsOf(route), ['/graphql 0s', '/mcp 30s', '/ 15m']);
  assert.deepEqual(route.spec.hostnames, ['models.example']);
  for (const { backendRefs } of route.spec.rules)
    assert.deepEqual(backendRefs, [{ name: 'model-manager', port: 8080 }]);
  const plain = theOne<Route>(
    render({
      httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], timeouts: { rest: '1m' } },
      mcp: { enabled: false },
      global: { domain: 'platform.example' },
    }),
    'HTTPRoute',
  );
  assert.deepEqual(timeoutsOf(plain), ['/graphql 0s', '/ 1m']);
  assert.deepEqual(plain.spec.hostnames, ['model-manager.platform.example']);
});

test('metrics have a port of their own, which Service and ServiceMonitor know', { skip }, () => {
  interface Monitored {
    readonly spec: { readonly selector: { readonly matchLabels?: object }; readonly endpoints: readonly object[] };
  }
  interface Served {
    readonly spec: { readonly selector: object; readonly ports: readonly object[] };
  }
  const manifests = render(examples.muster);
  const monitor = theOne<Monitored>(manifests, 'ServiceMonitor');
  const service = theOne<Served>(manifests, 'Service');
  assert.deepEqual(monitor.spec.endpoints, [{ port: 'metrics', path: '/metrics', interval: '30s' }]);
  assert.equal(monitor.metadata.labels.release, 'prometheus');
  const labels: Readonly<Record<string, string>> = service.metadata.labels;
  for (const [key, value] of Object.entries(monitor.spec.selector.matchLabels ?? {})) assert.equal(labels[key], value);
  assert.deepEqual(service.spec.ports, [
    { name: 'http', port: 8080, targetPort: 'http', appProtocol: 'http' },
    { name: 'metrics', port: 9464, targetPort: 'metrics', appProtocol: 'http' },
  ]);
  assert.equal(theOne<Served>(render(), 'Service').spec.ports.length, 1);
});

test('the Service and the policies choose the gateway, and not the agents beside it', { skip }, () => {
  const values = { ...examples['cache-agents'], kserve: { ...(examples['cache-agents']?.kserve as Values) } };
  const manifests = render({ ...values, kserve: { ...values.kserve, namespace: 'agent-platform' } });
  const selectorOf = (kind: string) =>
    theOne<{ spec: { selector: { matchLabels: object } } }>(manifests, kind).spec.selector.matchLabels;
  const service = theOne<{ spec: { selector: object } }>(manifests, 'Service').spec.selector;
  assert.deepEqual(service, selectorOf('Deployment'));
  assert.notDeepEqual(service, selectorOf('DaemonSet'));
});

test('identity that is not given is that of the platform', { skip }, () => {
  const values = examples.downstream as Values;
  assert.equal(flagOf(values, 'oauth-base-url'), 'https://model-manager.platform.example');
  assert.equal(flagOf(values, 'dex-issuer-url'), 'https://dex.platform.example');
  assert.equal(flagOf(values, 'dex-client-id'), 'platform');
  assert.equal(flagOf(values, 'oauth-trusted-audiences'), 'platform');
  const oauth = {
    enabled: true,
    baseURL: 'https://own.example',
    dex: { issuerURL: 'https://own-dex.example', clientID: 'own' },
    trustedAudiences: ['b', 'a'],
  };
  const own = { ...values, oauth, muster: { mcpServer: { auth: { requiredAudiences: ['a', 'c'] } } } };
  assert.equal(flagOf(own, 'oauth-base-url'), 'https://own.example');
  assert.equal(flagOf(own, 'dex-issuer-url'), 'https://own-dex.example');
  assert.equal(flagOf(own, 'dex-client-id'), 'own');
  assert.equal(flagOf(own, 'oauth-trusted-audiences'), 'b,a,c');
  assert.equal(
    flagOf({ ...own, oauth: { ...oauth, trustedAudiences: [] } }, 'oauth-trusted-audiences'),
    'platform,a,c',
  );
  assert.ok(!argumentsOf({ ...values, oauth: {} }).includes('--enable-oauth'));
});

test('certificates come from a Secret, or from what the platform says', { skip }, () => {
  const volumeOf = (values: Values) => gatewayPod(render(values)).volumes.find(({ name }) => name === 'ca');
  const items = [{ key: 'ca.crt', path: 'ca.crt' }];
  assert.deepEqual(volumeOf(examples.muster as Values), { name: 'ca', secret: { secretName: 'dex-ca', items } });
  const platform = examples.downstream as Values & { readonly global: { readonly identity: Values } };
  assert.deepEqual(volumeOf(platform), { name: 'ca', configMap: { name: 'model-manager-ca' } });
  const { data } = theOne<{ data: Values }>(render(platform), 'ConfigMap');
  assert.equal(data['ca.crt'], platform.global.identity.ca);
  const named = { ...platform, global: { ...platform.global, identity: { ...platform.global.identity, ca: 'dex' } } };
  assert.deepEqual(volumeOf(named), { name: 'ca', secret: { secretName: 'dex', items } });
  assert.deepEqual(ofKind(render(named), 'ConfigMap'), []);
  assert.ok(argumentsOf(named).includes('--dex-ca-file=/etc/model-manager/ca/ca.crt'));
  assert.equal(volumeOf({}), undefined);
});

test('secrets that are given become Secrets, and stand nowhere else', { skip }, () => {
  const secretsOf = (manifests: readonly Manifest[]) =>
    ofKind<{ stringData: Values }>(manifests, 'Secret').map(({ metadata, stringData }) => [
      `${metadata.namespace}/${metadata.name}`,
      stringData,
    ]);
  assert.deepEqual(secretsOf(render(examples.muster)), [
    ['agent-platform/model-manager-oauth', { 'dex-client-secret': 'not-a-secret' }],
  ]);
  assert.deepEqual(secretsOf(render(examples.kserve)), [
    ['models/agent-platform-model-manager-hub', { token: 'hf_example' }],
  ]);
  for (const name of ['muster', 'kserve']) {
    const others = render(examples[name]).filter(({ kind }) => kind !== 'Secret');
    assert.doesNotMatch(JSON.stringify(others), /not-a-secret|hf_example/);
  }
  assert.deepEqual(secretsOf(render(examples.google)), []);
  const { env } = containerOf(gatewayPod(render(examples.google)));
  assert.deepEqual(env.find(({ name }) => name === 'GOOGLE_CLIENT_SECRET')?.valueFrom, {
    secretKeyRef: { name: 'google-client', key: 'google-client-secret', optional: true },
  });
});

test('a pod starts anew when what it reads at its start has changed', { skip }, () => {
  interface Templated {
    readonly spec: { readonly template: { readonly metadata: Manifest['metadata'] } };
  }
  const annotations = (values: Values) =>
    theOne<Templated>(render(values), 'Deployment').spec.template.metadata.annotations ?? {};
  const muster = examples.muster as Values & { readonly oauth: Values & { readonly dex: Values } };
  const changed = { ...muster, oauth: { ...muster.oauth, dex: { ...muster.oauth.dex, clientSecret: 'another' } } };
  assert.notEqual(annotations(changed)['checksum/oauth'], annotations(muster)['checksum/oauth']);
  assert.match(annotations(muster)['checksum/oauth'] ?? '', /^[0-9a-f]{64}$/);
  assert.match(annotations(examples.downstream as Values)['checksum/ca'] ?? '', /^[0-9a-f]{64}$/);
  assert.equal(annotations({})['checksum/oauth'], undefined);
});

test('what is said after an installation: how to reach it, its mode, and a warning where nobody signs in', {
  skip,
}, () => {
  const notes = (values: Values) => {
    const { status, stdout, stderr } = run(['install', '--dry-run=client', 'model-manager', chart, '-f', '-'], values);
    assert.equal(status, 0, stderr);
    return stdout.slice(stdout.indexOf('NOTES:'));
  };
  const plain = notes({});
  assert.match(plain, /http:\/\/model-manager\.agent-platform\.svc\.cluster\.local:8080$/m);
  assert.match(plain, /port-forward service\/model-manager 8080:8080$/m);
  assert.match(plain, /^Mode: anonymous\.\nWARNING: nobody has to sign in\./m);
  assert.match(plain, /networkPolicy\.enabled/);
  const muster = notes(examples.muster as Values);
  assert.match(muster, /^From outside: +https:\/\/models\.example$/m);
  assert.match(muster, /^Tools: +\/mcp, known to muster as model-manager$/m);
  assert.match(muster, /^Mode: people sign in, and the work is done as the account model-manager /m);
  assert.doesNotMatch(muster, /WARNING/);
  assert.match(notes(examples.downstream as Values), /^Mode: people sign in, .* as they themselves\.$/m);
  assert.match(notes(examples['hosts-alone'] as Values), /works without Kubernetes/);
  assert.match(notes(examples.replicas as Values), /^Jobs are kept in the namespace agent-platform, .* 3 now\.$/m);
  assert.doesNotMatch(plain, /^Jobs are kept/m);
  const madeUp = notes({ demo: { enabled: true } });
  assert.match(madeUp, /serves a made-up world\./);
  assert.match(madeUp, /^Mode: a demo\. .*\nWARNING: nobody has to sign in\..* real hosts as well/m);
  assert.doesNotMatch(madeUp, /anonymous|works without Kubernetes/);
  assert.doesNotMatch(notes(examples.demo as Values), /WARNING/);
  assert.match(
    notes({ httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] } }),
    /the HTTPRoute lets everybody in/,
  );
});
