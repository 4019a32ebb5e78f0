import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Answer, lab, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const documentOf = ({ body }: Answer) => body as unknown as Record<string, unknown>;

describe('discovery', bounded, () => {
  test('says the version, and that all is well', async t => {
    const { ask } = await lab(t);
    assert.match(String(documentOf(await ask('GET', '/version')).gitVersion), /^v1\.\d+\.\d+$/);
    for (const path of ['/healthz', '/livez', '/readyz', '/readyz/ping']) {
      const { status, body } = await ask('GET', path);
      assert.deepEqual([status, body], [200, 'ok'], path);
    }
    assert.equal((await ask('GET', '/nonsense')).status, 404);
  });

  test('knows groups, the preferred version first', async t => {
    const { ask, cluster } = await lab(t);
    assert.deepEqual(documentOf(await ask('GET', '/api')).versions, ['v1']);
    assert.equal((await ask('GET', '/apis/x.dev')).status, 404);
    cluster.put(widgets());
    const versions = [
      { groupVersion: 'x.dev/v1', version: 'v1' },
      { groupVersion: 'x.dev/v1beta1', version: 'v1beta1' },
    ];
    const group = { name: 'x.dev', versions, preferredVersion: versions[0] };
    assert.deepEqual(documentOf(await ask('GET', '/apis/x.dev')), { kind: 'APIGroup', apiVersion: 'v1', ...group });
    const { groups } = documentOf(await ask('GET', '/apis')) as { groups: readonly { name: string }[] };
    assert.deepEqual(
      groups.find(({ name }) => name === 'x.dev'),
      group,
    );
    assert.ok(groups.some(({ name }) => name === 'apps'));
    assert.ok(!groups.some(({ name }) => name === ''));
    cluster.remove('CustomResourceDefinition', 'widgets.x.dev');
    assert.equal((await ask('GET', '/apis/x.dev')).status, 404);
  });

  test('knows the resources of a version, with their subresources', async t => {
    const { ask } = await lab(t, { objects: [widgets()] });
    const resourcesOf = async (path: string) => {
      const { resources } = documentOf(await ask('GET', path)) as {
        resources: readonly { name: string; verbs: string[] }[];
      };
      return new Map(resources.map(resource => [resource.name, resource]));
    };
    const core = await resourcesOf('/api/v1');
    for (const name of ['pods', 'pods/log', 'pods/status', 'services/proxy', 'events', 'namespaces'])
      assert.ok(core.has(name), name);
    assert.deepEqual(core.get('pods/log')?.verbs, ['get']);
    const custom = await resourcesOf('/apis/x.dev/v1');
    assert.deepEqual([...custom.keys()], ['widgets', 'widgets/status']);
    assert.deepEqual(custom.get('widgets'), {
      name: 'widgets',
      singularName: 'widget',
      namespaced: true,
      kind: 'Widget',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['wd'],
    });
    assert.equal((await ask('GET', '/apis/x.dev/v9')).status, 404);
  });

  test('says all at once to who can read that', async t => {
    const { ask } = await lab(t, { objects: [widgets()] });
    const accept =
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';
    const answer = await ask('GET', '/apis', undefined, { accept });
    assert.equal(
      answer.headers.get('content-type'),
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    );
    const { kind, items } = documentOf(answer) as {
      kind: string;
      items: readonly {
        metadata: { name: string };
        versions: readonly { version: string; resources: readonly object[] }[];
      }[];
    };
    assert.equal(kind, 'APIGroupDiscoveryList');
    const group = items.find(({ metadata }) => metadata.name === 'x.dev');
    assert.deepEqual(
      group?.versions.map(({ version }) => version),
      ['v1', 'v1beta1'],
    );
    assert.deepEqual(group?.versions[0]?.resources[0], {
      resource: 'widgets',
      responseKind: { group: 'x.dev', version: 'v1', kind: 'Widget' },
      scope: 'Namespaced',
      singularResource: 'widget',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['wd'],
      subresources: [
        {
          subresource: 'status',
          responseKind: { group: 'x.dev', version: 'v1', kind: 'Widget' },
          verbs: ['get', 'patch', 'update'],
        },
      ],
    });
  });

  test('has the schemas of custom kinds, and says that it checks fields itself', async t => {
    const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object' } } };
    const { ask } = await lab(t, { objects: [widgets({ schema: { openAPIV3Schema } })] });
    const { paths } = documentOf(await ask('GET', '/openapi/v3')) as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    const url = paths['apis/x.dev/v1']?.serverRelativeURL;
    assert.ok(url);
    const found = documentOf(await ask('GET', url)) as {
      paths: Record<string, { patch: { parameters: readonly { name: string }[] } }>;
      components: { schemas: Record<string, object> };
    };
    const { patch } = found.paths['/apis/x.dev/v1/namespaces/{namespace}/widgets/{name}'] ?? {};
    assert.ok(patch?.parameters.some(({ name }) => name === 'fieldValidation'));
    assert.deepEqual(found.components.schemas['dev.x.v1.Widget'], {
      ...openAPIV3Schema,
      'x-kubernetes-group-version-kind': [{ group: 'x.dev', version: 'v1', kind: 'Widget' }],
    });
    assert.equal((await ask('GET', '/openapi/v3/apis/x.dev/v9')).status, 404);
  });
});
