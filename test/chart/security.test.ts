import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerOf, examples, gatewayPod, type Manifest, ofKind, podsOf, render, skip, type Values } from './helm.ts';

test('check 53: pods are nobody special, write nowhere, and have a token of their account only for Kubernetes', {
  skip,
}, () => {
  for (const values of [{}, ...Object.values(examples)]) {
    for (const pod of podsOf(render(values))) {
      const { securityContext, resources, volumeMounts } = containerOf(pod);
      assert.ok(Number(pod.securityContext.runAsUser) >= 1000);
      assert.equal(pod.securityContext.runAsNonRoot, true);
      assert.deepEqual(pod.securityContext.seccompProfile, { type: 'RuntimeDefault' });
      assert.deepEqual(securityContext, {
        runAsNonRoot: true,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      });
      assert.deepEqual([pod.hostNetwork, pod.hostPID, pod.hostIPC], [undefined, undefined, undefined]);
      assert.equal(
        pod.volumes.some(volume => 'hostPath' in volume),
        false,
      );
      assert.deepEqual(
        volumeMounts.filter(({ readOnly }) => !readOnly).map(({ mountPath }) => mountPath),
        ['/tmp'],
      );
      assert.ok(resources.requests?.cpu && resources.requests.memory && resources.limits?.memory);
      assert.equal(resources.limits.cpu, undefined, 'a limit of CPU makes it slow, not cheap');
      assert.equal(pod.enableServiceLinks, false);
      assert.equal(pod.terminationGracePeriodSeconds, 30);
    }
  }
  const mounts = (values: Values) => gatewayPod(render(values)).automountServiceAccountToken;
  const off = { enabled: false };
  assert.deepEqual([{}, { kubernetes: off }, { demo: { enabled: true } }].map(mounts), [true, false, false]);
  const [, agent] = podsOf(render(examples['cache-agents'] as Values));
  assert.equal(agent?.automountServiceAccountToken, false);
  const [account] = ofKind<{ automountServiceAccountToken: boolean }>(render(), 'ServiceAccount');
  assert.equal(account?.automountServiceAccountToken, false);
});

interface Rule {
  readonly from?: readonly object[];
  readonly to?: readonly object[];
  readonly ports?: readonly { readonly port: number; readonly protocol: string }[];
}

interface Policy {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly policyTypes: readonly string[];
    readonly ingress: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}

const policiesOf = (values: Values) => ofKind<Policy>(render(values), 'NetworkPolicy');
const inNamespace = (name: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });
const tcp = (port: number) => ({ protocol: 'TCP', port });
const dns: Rule = {
  to: [inNamespace('kube-system'), { ipBlock: { cidr: '169.254.20.10/32' } }],
  ports: [{ protocol: 'UDP', port: 53 }, tcp(53)],
};
const apiServer: Rule = { ports: [tcp(443), tcp(6443)] };
const https: Rule = { ports: [tcp(443)] };
const enabled = { networkPolicy: { enabled: true, ingressNamespaces: ['portal'] } };

test('check 55: in come listed namespaces, out goes what is needed', { skip }, () => {
  assert.deepEqual(policiesOf({}), []);
  const [policy] = policiesOf(examples.muster as Values);
  assert.deepEqual(policy?.spec.policyTypes, ['Ingress', 'Egress']);
  assert.deepEqual(policy?.spec.ingress, [
    { from: [inNamespace('muster'), inNamespace('gateways')], ports: [tcp(8080)] },
    { from: [inNamespace('monitoring')], ports: [tcp(9464)] },
  ]);
  // DNS, the API server, Ollama, the Hub, Dex, and what is listed.
  assert.deepEqual(policy?.spec.egress, [
    dns,
    apiServer,
    https,
    https,
    https,
    { to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
  ]);
  const [hosts] = policiesOf({ ...enabled, kubernetes: { enabled: false } });
  assert.deepEqual(hosts?.spec.egress, [dns]);
  const [demo] = policiesOf({ ...enabled, demo: { enabled: true } });
  assert.deepEqual(demo?.spec.egress, [dns]);
  const [narrow] = policiesOf({
    networkPolicy: { ...enabled.networkPolicy, allowKubeAPI: false, egressCIDRs: ['10.1.2.3/32'] },
  });
  assert.deepEqual(narrow?.spec.egress, [dns, https, { to: [{ ipBlock: { cidr: '10.1.2.3/32' } }] }]);
});

test('a policy is as narrow as the host of a backend allows', { skip }, () => {
  const egressTo = (endpoint: string) =>
    policiesOf({ ...enabled, backend: 'ollama', kubernetes: { enabled: false }, ollama: { endpoint } })[0]?.spec
      .egress?.[1];
  assert.deepEqual(egressTo('http://192.168.1.20:1234'), {
    to: [{ ipBlock: { cidr: '192.168.1.20/32' } }],
    ports: [tcp(1234)],
  });
  assert.deepEqual(egressTo('http://[fd00::1]:1234/v1'), {
    to: [{ ipBlock: { cidr: 'fd00::1/128' } }],
    ports: [tcp(1234)],
  });
  // The port of a Service is not that of its pods.
  assert.deepEqual(egressTo('http://ollama.models.svc.cluster.local:11434'), { to: [inNamespace('models')] });
  assert.deepEqual(egressTo('http://ollama.models.svc:11434'), { to: [inNamespace('models')] });
  assert.deepEqual(egressTo('http://ollama:11434'), { to: [inNamespace('agent-platform')] });
  assert.deepEqual(egressTo('https://ollama.example'), https);
  const plain = egressTo('http://ollama.example') as Rule;
  assert.deepEqual(plain.ports, [tcp(80)]);
  assert.match(JSON.stringify(plain.to), /"except":\["169\.254\.0\.0\/16"\]/);
});

test('agents of the cache are asked by the gateway only, and ask nobody', { skip }, () => {
  const [gateway, agent] = policiesOf(examples['cache-agents'] as Values).toSorted(
    (one, other) => one.metadata.name.length - other.metadata.name.length,
  ) as [Manifest & Policy, Manifest & Policy];
  const labelsOf = (policy: Policy) => ({ podSelector: policy.spec.podSelector });
  assert.deepEqual([gateway.metadata.namespace, agent.metadata.namespace], ['agent-platform', 'models']);
  assert.deepEqual(agent.spec, {
    podSelector: agent.spec.podSelector,
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [{ ...inNamespace('agent-platform'), ...labelsOf(gateway) }], ports: [tcp(8081)] }],
  });
  assert.deepEqual(gateway.spec.egress?.at(-1), {
    to: [{ ...inNamespace('models'), ...labelsOf(agent) }],
    ports: [tcp(8081)],
  });
});
