import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute';
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { DaemonSet, Deployment } from 'kubernetes-models/apps/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import { ConfigMap, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import { chart, examples, type Manifest, namespace, ofKind, render, run, skip } from './helm.ts';

/** The models of the kinds that the chart makes, each checks by the schema of its kind. */
const models = {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  DaemonSet,
  Deployment,
  HTTPRoute,
  NetworkPolicy,
  PodDisruptionBudget,
  PrometheusRule,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
  ServiceMonitor,
};
type Model = { readonly prototype: { validate(): void } };

/**
 * Fails with what is wrong with an object by its schema, and with fields that the schema does not have: those that nobody
 * asked for while it was checked. MCPServer has no published model; what it has is in platform.test.ts.
 */
function checkManifest(manifest: Manifest): void {
  if (manifest.kind === 'MCPServer') return;
  const { [manifest.kind]: model } = models as unknown as Readonly<Record<string, Model>>;
  assert.ok(model, `no schema for ${manifest.kind}`);
  // Not made by its constructor, which reads every field.
  const { proxy, unread } = watched(Object.assign(Object.create(model.prototype) as Model['prototype'], manifest));
  try {
    proxy.validate();
  } catch (error) {
    assert.fail(`${manifest.kind} ${manifest.metadata.name}: ${(error as Error).message}`);
  }
  assert.deepEqual(unread(), [], `${manifest.kind} ${manifest.metadata.name} has unknown fields`);
}

/** The object, and the paths of fields in it that nobody read. */
function watched<T extends object>(root: T) {
  const unread = new Map<string, true>();
  const wrap = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const fields = new Map(
      Object.entries(value).map(([key, child]) => {
        const at = `${path}.${key}`;
        if (!Array.isArray(value)) unread.set(at, true);
        return [key, { at, child: wrap(child, at) }] as const;
      }),
    );
    return new Proxy(value, {
      get(target, key) {
        const field = typeof key === 'string' ? fields.get(key) : undefined;
        if (!field) return Reflect.get(target, key);
        unread.delete(field.at);
        return field.child;
      },
    });
  };
  return { proxy: wrap(root, '') as T, unread: () => [...unread.keys()] };
}

for (const [name, values] of Object.entries({ defaults: {}, ...examples })) {
  test(`the objects of ${name} are what their kinds take`, { skip }, () => {
    const manifests = render(values);
    for (const manifest of manifests) checkManifest(manifest);
    const ids = manifests.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);
    assert.equal(new Set(ids).size, ids.length, 'one of each');
    for (const { kind, metadata } of manifests) {
      assert.match(metadata.name, /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
      if (!kind.startsWith('Cluster')) assert.ok(metadata.namespace, `${kind} ${metadata.name} says where it is`);
      for (const label of ['name', 'instance', 'version', 'managed-by', 'part-of', 'component']) {
        assert.ok(metadata.labels[`app.kubernetes.io/${label}`], `${kind} ${metadata.name}: ${label}`);
      }
      assert.match(metadata.labels['helm.sh/chart'] ?? '', /^model-manager-\d/);
    }
  });

  test(`helm lint has nothing to say about ${name}`, { skip }, () => {
    const { status, stdout, stderr } = run(['lint', '--strict', '--quiet', chart, '-f', '-'], values);
    assert.equal(status, 0, stdout + stderr);
  });
}

test('the check of manifests knows a wrong value and an unknown field', () => {
  const service = (spec: object) =>
    ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'a', labels: {} }, spec }) satisfies Manifest;
  const ports = [{ port: 80, name: 'http' }];
  assert.doesNotThrow(() => checkManifest(service({ ports, selector: { app: 'a' } })));
  assert.throws(() => checkManifest(service({ ports: [{ port: 'http' }] })), /port must be integer/);
  assert.throws(() => checkManifest(service({ ports, selectors: {} })), /unknown fields[\s\S]*\.spec\.selectors/);
});

test('names are as the release is called, or as the values say', { skip }, () => {
  const deploymentOf = (release: string, values = {}) => {
    const { stdout, stderr } = run(['template', release, chart, '-f', '-'], values);
    assert.equal(stderr, '');
    return /kind: Deployment\nmetadata:\n {2}name: (.+)\n/.exec(stdout)?.[1];
  };
  assert.equal(deploymentOf('model-manager'), 'model-manager');
  assert.equal(deploymentOf('prod-model-manager'), 'prod-model-manager');
  assert.equal(deploymentOf('prod'), 'prod-model-manager');
  assert.equal(deploymentOf('prod', { nameOverride: 'models' }), 'prod-models');
  assert.equal(deploymentOf('prod', { fullnameOverride: 'gateway' }), 'gateway');
  const long = 'a'.repeat(70);
  assert.equal(deploymentOf('prod', { fullnameOverride: long })?.length, 63);
});

test('long names still differ in what is told of them by a word at their end', { skip }, () => {
  const manifests = render({ ...examples.muster, fullnameOverride: `${'a'.repeat(61)}-b` });
  const [secret] = ofKind(manifests, 'Secret');
  assert.equal(secret?.metadata.name.length, 63);
  assert.match(secret?.metadata.name ?? '', /-oauth$/);
});

test('two releases in namespaces of their own share no object', { skip }, () => {
  const idsIn = (where: string) =>
    render(examples['cache-agents'], ['--namespace', where]).map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`,
    );
  const [here, there] = [idsIn(namespace), idsIn('elsewhere')];
  assert.deepEqual(
    here.filter(id => there.includes(id)),
    [],
  );
});
