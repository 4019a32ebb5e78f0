import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Permission, permissions } from '../../src/kubernetes/permissions.ts';
import { examples, type Manifest, namespace, ofKind, render, skip, type Values } from './helm.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** One line for each thing that is granted: `in models: get batch/jobs [a b]`. */
function grantsOf(manifests: readonly Manifest[]): readonly string[] {
  const roles = ['Role', 'ClusterRole'].flatMap(kind => ofKind<{ rules: readonly Rule[] }>(manifests, kind));
  return roles
    .flatMap(({ metadata, rules }) =>
      rules.flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
        apiGroups.flatMap(group =>
          resources.flatMap(resource =>
            verbs.map(verb => line(metadata.namespace, verb, group, resource, resourceNames)),
          ),
        ),
      ),
    )
    .toSorted();
}

const line = (
  where: string | undefined,
  verb: string,
  group: string,
  resource: string,
  names: readonly string[] | undefined,
) => `in ${where ?? 'the cluster'}: ${verb} ${group}/${resource}${names ? ` [${names.join(' ')}]` : ''}`;

type Namespaces = Partial<Record<Permission['scope'], readonly string[]>>;

/**
 * What the program's own table asks for in these namespaces, by scope; `names` takes the place of names that values give. Rows
 * that need a setting are there with that setting only.
 */
const asked = (
  namespaces: Namespaces,
  names: (row: Permission) => readonly string[] | undefined = row => row.resourceNames,
  setting?: Permission['only'],
) =>
  permissions
    .filter(({ only }) => only === undefined || only === setting)
    .flatMap(row => {
      const places = row.scope === 'cluster' ? [undefined] : (namespaces[row.scope] ?? []);
      return places.flatMap(place => row.verbs.map(verb => line(place, verb, row.group, row.resource, names(row))));
    })
    .toSorted();

const withoutCluster = (lines: readonly string[]) => lines.filter(each => !each.startsWith('in the cluster'));

test('with KServe, rights are those of the table, where the values say', { skip }, () => {
  const namespaces = {
    own: [namespace],
    kagent: ['agents'],
    discovery: ['platform', 'presets'],
    serving: ['models'],
    default: ['default'],
  };
  assert.deepEqual(
    grantsOf(render(examples.kserve)),
    asked(namespaces, ({ scope, resource, resourceNames }) =>
      // The table cannot know what the Secret is called.
      scope === 'serving' && resource === 'secrets' ? ['agent-platform-model-manager-hub'] : resourceNames,
    ),
  );
});

test('the names that values give are those in the rights', { skip }, () => {
  const grants = grantsOf(
    render({
      backend: 'kserve',
      kserve: { hf: { tokenSecret: { name: 'hub' } }, cache: { indexConfigMap: 'records' } },
    }),
  );
  assert.ok(grants.includes('in model-serving: get /secrets [hub]'));
  assert.ok(grants.includes('in model-serving: update /configmaps [records]'));
  assert.ok(!grants.some(grant => grant.includes('model-manager-cache-index')));
});

test('without a token for the Hub no Secret of the serving namespace is read', { skip }, () => {
  const grants = grantsOf(render({ backends: ['kserve'] }));
  assert.ok(grants.some(grant => grant.startsWith('in model-serving:')));
  assert.deepEqual(
    grants.filter(grant => grant.startsWith('in model-serving:') && grant.includes('/secrets')),
    [],
  );
});

test('with hosts only, rights are those on documents and in kagent', { skip }, () => {
  assert.deepEqual(grantsOf(render(examples.hosts)), withoutCluster(asked({ own: [namespace], kagent: ['kagent'] })));
  assert.deepEqual(grantsOf(render({ kagent: { disableWiring: true } })), withoutCluster(asked({ own: [namespace] })));
});

test('with jobs in the cluster, rights on their objects come on top, in the namespace of the release', { skip }, () => {
  const namespaces = { own: [namespace], kagent: ['kagent'] };
  const table = withoutCluster(asked(namespaces, row => row.resourceNames, 'job-store=kubernetes'));
  assert.deepEqual(grantsOf(render(examples.replicas)), table);
  assert.deepEqual(grantsOf(render({ ...examples.replicas, replicaCount: 1 })), table);
  const more = table.filter(grant => grant.includes('leases') || / (update|delete) \/configmaps$/.test(grant));
  assert.equal(more.length, 8);
  const fewer = grantsOf(render(examples.hosts));
  assert.deepEqual(
    more.filter(grant => fewer.includes(grant)),
    [],
  );
});

test('nothing is granted where nothing is to be', { skip }, () => {
  assert.deepEqual(grantsOf(render({ backends: ['kserve'], rbac: { create: false } })), []);
  assert.deepEqual(grantsOf(render({ ...examples.replicas, rbac: { create: false } })), []);
  assert.deepEqual(grantsOf(render(examples['hosts-alone'])), []);
  assert.deepEqual(grantsOf(render(examples.demo)), []);
});

test('every role is bound to the account of the gateway, and to nobody else', { skip }, () => {
  interface Binding {
    readonly roleRef: { readonly kind: string; readonly name: string };
    readonly subjects: readonly object[];
  }
  for (const [values, account] of [
    [examples.kserve, 'model-manager'],
    [examples.google, 'models'],
  ] as const) {
    const manifests = render(values);
    for (const kind of ['Role', 'ClusterRole']) {
      const place = ({ metadata }: Manifest) => `${metadata.namespace}/${metadata.name}`;
      const bindings = ofKind<Binding>(manifests, `${kind}Binding`);
      assert.deepEqual(bindings.map(place), ofKind(manifests, kind).map(place));
      for (const { roleRef, subjects, metadata } of bindings) {
        assert.deepEqual([roleRef.kind, roleRef.name], [kind, metadata.name]);
        assert.deepEqual(subjects, [{ kind: 'ServiceAccount', name: account, namespace }]);
      }
    }
  }
});

test('check 54: no wildcards, Secrets in the namespace of kagent only, and nothing but reading when it works as the caller', {
  skip,
}, () => {
  const everything: Values = { backends: ['kserve', 'ollama', 'lemonade', 'lmstudio'] };
  const withToken: Values = { ...everything, kserve: { hf: { tokenSecret: { name: 'hub' } } } };
  for (const values of [{}, everything, withToken, ...Object.values(examples)]) {
    const grants = grantsOf(render(values));
    assert.ok(!grants.some(grant => grant.includes('*')));
    // The token for the Hub is one Secret, by its name.
    const secrets = grants.filter(
      grant => grant.includes('/secrets') && !/^in \S+: get \/secrets \[\S+\]$/.test(grant),
    );
    for (const grant of secrets) assert.match(grant, /^in (kagent|agents): (get|create|update|delete) \/secrets$/);
  }
  for (const backends of [[], ['kserve'], ['kserve', 'ollama']]) {
    assert.deepEqual(grantsOf(render({ ...examples.downstream, backends })), [
      `in ${namespace}: get /configmaps`,
      `in ${namespace}: list /configmaps`,
      `in ${namespace}: watch /configmaps`,
    ]);
  }
});
