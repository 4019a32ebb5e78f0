import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { readChart, refusal, render, renderText, skip, type Values } from './helm.ts';

const oauth = { enabled: true, baseURL: 'https://m.example', dex: { issuerURL: 'https://d.example', clientID: 'm' } };
const policy = { enabled: true, ingressNamespaces: ['portal'] };

const without = (key: string) =>
  `${key} has no value: leave the key out for its default; with --reuse-values, give --reset-then-reuse-values instead.`;

const contradictions: readonly (readonly [Values, string])[] = [
  [{ kserve: { cache: { claim: null } } }, without('kserve.cache.claim')],
  [
    { fullnameOverride: '1st' },
    '"1st" cannot be the name of a Service, which begins with a lower-case letter and has lower-case letters, digits and dashes: set fullnameOverride.',
  ],
  [
    { mcp: { path: '/graphql/mcp' } },
    'mcp.path is /graphql/mcp, where the gateway has something else: choose a path such as /mcp.',
  ],
  [
    { backend: 'ollama', backends: ['kserve'] },
    'backend and backends are both given: put all of them into backends and leave backend empty.',
  ],
  [{ backends: ['olama'] }, 'there is no backend "olama": known are ollama, lemonade, lmstudio, kserve.'],
  [{ backend: 'vllm' }, 'there is no backend "vllm": known are ollama, lemonade, lmstudio, kserve.'],
  [{ backends: ['ollama', 'kserve', 'ollama'] }, 'backends is ollama, kserve, ollama: name each backend once.'],
  [
    { replicaCount: 2 },
    'replicaCount is 2, but jobStore is memory: each pod would know its own jobs only; set replicaCount to 1, or jobStore to kubernetes.',
  ],
  [
    { replicaCount: 2, kubernetes: { enabled: false } },
    'replicaCount is 2, but jobs can only be shared with kubernetes.enabled, and without oauth.downstream.enabled: set replicaCount to 1.',
  ],
  [
    { jobStore: 'kubernetes', kubernetes: { enabled: false } },
    'jobStore is kubernetes, but kubernetes.enabled is false: there is no cluster to keep jobs in; set jobStore to memory, or switch kubernetes.enabled on.',
  ],
  [
    { jobStore: 'kubernetes', oauth: { ...oauth, downstream: { enabled: true } } },
    'jobStore is kubernetes, but oauth.downstream.enabled is true: jobs outlive the tokens of who asked; set jobStore to memory.',
  ],
  [
    { extraArgs: ['--job-retention=48h', '--job-store=kubernetes'] },
    'extraArgs has --job-store, of which the rest of the chart would not know: set jobStore.',
  ],
  [
    { demo: { enabled: true }, backend: 'ollama' },
    'demo.enabled is true, but backend or backends is given: the demo has its own; leave both empty, or switch demo.enabled off.',
  ],
  [
    { demo: { enabled: true }, oauth },
    'demo.enabled is true, but oauth.enabled is, too: whoever pulls and loads models in the demo is made up and has no token; switch one of them off.',
  ],
  [
    { demo: { enabled: true }, jobStore: 'kubernetes' },
    'demo.enabled is true, but jobStore is kubernetes: the cluster of the demo ends with its pod; set jobStore to memory.',
  ],
  [
    { demo: { enabled: true }, kserve: { cache: { claim: 'c' }, inventory: { mode: 'daemonset' } } },
    'demo.enabled is true, but kserve.inventory.mode is daemonset: the demo has agents of its own; set it to pod.',
  ],
  [
    { demo: { enabled: true }, replicaCount: 2 },
    'replicaCount is 2, but demo.enabled is true: each pod would have a world of its own; set replicaCount to 1.',
  ],
  [
    { kubernetes: { enabled: false }, backends: ['kserve'] },
    'kubernetes.enabled is false, but kserve is to be served: it is in the cluster; switch kubernetes.enabled on.',
  ],
  [
    { kubernetes: { enabled: false }, oauth: { ...oauth, downstream: { enabled: true } } },
    'kubernetes.enabled is false, but oauth.downstream.enabled is true: there is nothing to do as the caller; switch one of them over.',
  ],
  [
    { kubernetes: { enabled: false }, kserve: { cache: { claim: 'c' }, inventory: { mode: 'daemonset' } } },
    'kubernetes.enabled is false, but kserve.inventory.mode is daemonset: nobody would ask the agents; set it to pod.',
  ],
  [
    { kserve: { inventory: { mode: 'daemonset' } } },
    'kserve.inventory.mode is daemonset, but kserve.cache.claim is empty: name the volume claim that the agents are to count.',
  ],
  [
    { kserve: { hf: { token: 'hf_a', tokenSecret: { name: 'hub' } } } },
    'kserve.hf.token and kserve.hf.tokenSecret.name are both given: drop the one that does not count.',
  ],
  [
    { serviceAccount: { create: false } },
    'serviceAccount.create is false and serviceAccount.name is empty: rights would go to the default account of the namespace; name an account, or set rbac.create to false.',
  ],
  [
    { oauth: { ...oauth, baseURL: '' } },
    'oauth.enabled needs the public URL of the gateway: set oauth.baseURL, or global.domain.',
  ],
  [
    { oauth: { ...oauth, baseURL: 'http://m.example' } },
    'oauth.baseURL "http://m.example" is no https URL: tokens would go unencrypted.',
  ],
  [
    { oauth: { ...oauth, dex: { clientID: 'm' } } },
    'oauth.enabled needs the issuer: set oauth.dex.issuerURL, or global.identity.issuerUrl.',
  ],
  [
    { oauth: { ...oauth, dex: { issuerURL: 'https://d.example' } } },
    'oauth.enabled needs a client at the issuer: set oauth.dex.clientID, or global.identity.clientId.',
  ],
  [
    { oauth, global: { identity: { ca: { secret: 'a' } } } },
    'global.identity.ca is neither certificates in PEM nor the name of a Secret: name a Secret in oauth.dex.caSecret.name.',
  ],
  [
    { oauth: { ...oauth, provider: 'google' } },
    'oauth.provider is google, but oauth.google.clientID is empty: set it.',
  ],
  [
    { oauth: { ...oauth, existingSecret: 'a', dex: { ...oauth.dex, clientSecret: 'b' } } },
    'oauth.existingSecret is given, and a client secret beside it: drop the one that does not count.',
  ],
  [
    { oauth: { ...oauth, allowPublicClientRegistration: true } },
    'oauth.allowPublicClientRegistration is true, but no client registers here: the gateway issues no tokens; set it to false.',
  ],
  [
    { oauth: { downstream: { enabled: true } } },
    'oauth.downstream.enabled needs oauth.enabled: without a token there is no caller to work as.',
  ],
  [
    { httpRoute: { enabled: true } },
    'httpRoute.enabled needs httpRoute.parentRefs: name the Gateway that the route belongs to.',
  ],
  [
    { mcp: { enabled: false }, muster: { mcpServer: { enabled: true } } },
    'muster.mcpServer.enabled needs mcp.enabled: muster would find no tools.',
  ],
  [
    { serviceMonitor: { enabled: true } },
    'serviceMonitor.enabled needs observability.metrics.enabled: there would be nothing to read.',
  ],
  [
    { prometheusRule: { enabled: true } },
    'prometheusRule.enabled needs observability.metrics.enabled: no alert would ever come.',
  ],
  [
    { observability: { metrics: { enabled: true, port: 8080 } }, service: { port: 80 } },
    'observability.metrics.port is 8080, where the gateway answers: give the metrics a port of their own, such as 9464.',
  ],
  [
    { observability: { metrics: { enabled: true, port: 9000 } }, service: { port: 9000 } },
    'observability.metrics.port and service.port are both 9000: give the metrics a port of their own, such as 9464.',
  ],
  [
    { networkPolicy: { enabled: true } },
    'networkPolicy.enabled needs networkPolicy.ingressNamespaces: nobody could reach the gateway; name the namespaces of who may.',
  ],
  [
    { networkPolicy: policy, observability: { metrics: { enabled: true } } },
    'networkPolicy.enabled with observability.metrics.enabled needs networkPolicy.metricsNamespaces: nobody could read the metrics; name the namespace of Prometheus.',
  ],
];

for (const [values, sentence] of contradictions) {
  test(`refused: ${sentence}`, { skip }, () => {
    const [, ...lines] = refusal(values).split('\n- ');
    assert.deepEqual(
      lines.map(line => line.split('\n', 1)[0]),
      [sentence],
    );
  });
}

test('all that is wrong is said at once', { skip }, () => {
  const text = refusal({ replicaCount: 3, backend: 'vllm', httpRoute: { enabled: true } });
  assert.equal(text.split('\n- ').length - 1, 3);
});

test('what a refusal advises is taken', { skip }, () => {
  const working = { oauth: { ...oauth, downstream: { enabled: true } } };
  assert.match(refusal({ ...working, replicaCount: 2 }), /set replicaCount to 1\.\n/);
  assert.equal(refusal({ ...working, replicaCount: 2, jobStore: 'kubernetes' }).split('\n- ').length - 1, 2);
  for (const values of [
    { ...working, replicaCount: 1, jobStore: 'memory' },
    { replicaCount: 2, jobStore: 'kubernetes' },
    { replicaCount: 1, jobStore: 'kubernetes' },
    { replicaCount: 2, jobStore: 'kubernetes', oauth },
    { replicaCount: 2, jobStore: 'kubernetes', rbac: { create: false }, serviceAccount: { create: false } },
  ]) {
    assert.ok(render(values).length > 0);
  }
});

test('every sentence of the chart is among these', () => {
  const words = readChart('templates/_check.tpl').match(/append \$problems/g) ?? [];
  const heads = new Set(contradictions.map(([, sentence]) => sentence.replaceAll(/"[^"]*"|\b(vllm|olama|\d+)\b/g, '')));
  assert.equal(heads.size, words.length);
});

/** The same values with `null` in place of what is wanted so. */
const emptied = ({ global: _, ...values }: Values, isWanted: (value: unknown) => boolean): Values =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => {
      if (isWanted(value)) return [key, null];
      return [key, isMap(value) ? emptied(value, isWanted) : value];
    }),
  );

const isMap = (value: unknown): value is Values => typeof value === 'object' && !Array.isArray(value);

test('a key without a value is named, whichever it is', { skip }, () => {
  const usual = parse(readChart('values.yaml')) as Values;
  const named = (values: Values) =>
    refusal(values)
      .split('\n- ')
      .slice(1)
      .map(line => line.split('\n', 1)[0]);
  assert.deepEqual(named({ kserve: null, demo: null }), ['demo', 'kserve'].map(without));
  const keys = parse(readChart('files/keys.yaml')) as string[];
  const singles = keys.filter(key => !keys.some(other => other.startsWith(`${key}.`)));
  assert.ok(singles.length > 70 && singles.includes('image.tag') && singles.includes('oauth.dex.caSecret.name'));
  const isSingle = (value: unknown) => typeof value !== 'object';
  assert.deepEqual(named(emptied(usual, isSingle)), singles.map(without));
});

test('a list or a map without a value is an empty one', { skip }, () => {
  const usual = parse(readChart('values.yaml')) as Values;
  const isEmpty = (value: unknown) => typeof value === 'object' && Object.keys(value ?? {}).length === 0;
  const text = renderText({
    ...emptied(usual, isEmpty),
    ...{ resources: null, podSecurityContext: null, securityContext: null, backend: 'kserve', oauth },
    muster: { mcpServer: { enabled: true, labels: null, auth: { requiredAudiences: null } } },
  });
  assert.doesNotMatch(text, /<nil>/);
});

const paths = (values: unknown, path: string[] = []): string[][] =>
  typeof values === 'object' && values !== null && !Array.isArray(values)
    ? [path, ...Object.entries(values).flatMap(([key, child]) => paths(child, [...path, key]))]
    : [];

test('a key that is misspelt fails, wherever it is', { skip }, () => {
  // What is taken as a whole goes to Kubernetes as it is; the platform has keys of its own.
  const open =
    /^(global|resources|kserve\.inventory\.agent\.(resources|nodeSelector|affinity|podAnnotations)|nodeSelector|affinity|podAnnotations|podLabels|podSecurityContext|securityContext|\S+\.(labels|annotations))(\.|$)/;
  const places = paths(parse(readChart('values.yaml'))).filter(path => !open.test(path.join('.')));
  assert.ok(places.length > 30);
  for (const place of places) {
    const values = place.reduceRight<Values>((inner, key) => ({ [key]: inner }), { misspelt: 1 });
    assert.match(refusal(values), /additional properties 'misspelt' not allowed/, place.join('.'));
  }
  assert.ok(render({ global: { misspelt: 1, identity: { other: true } } }).length > 0);
});

test('values of the wrong kind fail with their place', { skip }, () => {
  for (const [values, words] of [
    [{ mcp: { path: 'mcp' } }, /\/mcp\/path/],
    [{ ollama: { endpoint: 'gpu-box:11434' } }, /\/ollama\/endpoint/],
    [{ replicaCount: 'two' }, /\/replicaCount/],
    [{ jobStore: 'redis' }, /\/jobStore/],
    [{ kserve: { inventory: { mode: 'job' } } }, /\/kserve\/inventory\/mode/],
    [{ oauth: { provider: 'github' } }, /\/oauth\/provider/],
    [{ networkPolicy: { egressCIDRs: ['10.0.0.1'] } }, /\/networkPolicy\/egressCIDRs/],
    [{ oauth: { trustedAudiences: ['a,b'] } }, /\/oauth\/trustedAudiences/],
    [{ extraArgs: ['verbose'] }, /\/extraArgs/],
    [{ extraEnv: [{ name: 'A', value: 1 }] }, /\/extraEnv\/0\/value/],
    [{ image: { tag: 'sha256:abc' } }, /\/image\/tag/],
    // What has no namespace would be for all of them.
    [{ backends: ['kserve'], kserve: { namespace: '' } }, /\/kserve\/namespace/],
    [{ kagent: { namespace: '' } }, /\/kagent\/namespace/],
    [{ kserve: { presets: { namespace: 'A_b' } } }, /\/kserve\/presets\/namespace/],
    [{ kserve: { readyTimeout: '1d' } }, /\/kserve\/readyTimeout/],
    [{ kserve: { scaleUpTimeout: 10 } }, /\/kserve\/scaleUpTimeout/],
    [{ httpRoute: { timeouts: { rest: '1.5h' } } }, /\/httpRoute\/timeouts\/rest/],
    // Kubernetes takes nothing else for them; a number given with `--set` is one.
    [{ podLabels: { version: 1 } }, /\/podLabels\/version/],
    [{ podAnnotations: { scrape: true } }, /\/podAnnotations\/scrape/],
    [{ nodeSelector: { gpu: true } }, /\/nodeSelector\/gpu/],
    [{ serviceAccount: { annotations: { role: 1 } } }, /\/serviceAccount\/annotations\/role/],
  ] as const) {
    assert.match(refusal(values), words, stringify(values));
  }
  const digest = `0.1.0@sha256:${'a'.repeat(64)}`;
  assert.ok(renderText({ image: { tag: digest } }).includes(`:${digest}"`));
  assert.ok(render({ kserve: { readyTimeout: '1h30m', scaleUpTimeout: 0, hf: { timeout: '' } } }).length > 0);
});
