import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ClusterUser } from '../../../src/demo/cluster.ts';
import { configMap, configMaps, lab, namespace, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const reading = { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['configmaps'] };
const users: Readonly<Record<string, ClusterUser>> = {
  reader: { rules: [reading] },
  local: { token: 'secret', rules: [{ ...reading, verbs: ['*'], namespaces: ['default'] }] },
  one: { rules: [{ ...reading, resourceNames: ['a'] }] },
  sub: { rules: [{ verbs: ['patch'], apiGroups: ['x.dev'], resources: ['widgets/status'] }] },
};
const as = (token: string) => ({ authorization: `Bearer ${token}` });
const merge = (token: string) => ({ ...as(token), 'content-type': 'application/merge-patch+json' });
const review = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

describe('a request', bounded, () => {
  test('of nobody who is known is unauthorized', async t => {
    const { ask, cluster } = await lab(t, { users });
    for (const headers of [{}, as('wrong'), { authorization: 'Basic eDp5' }]) {
      const { status, body } = await ask('GET', configMaps, undefined, headers as Record<string, string>);
      assert.deepEqual([status, body.message, body.reason], [401, 'Unauthorized', 'Unauthorized']);
    }
    assert.equal((await ask('GET', '/apis')).status, 401);
    assert.equal((await ask('GET', '/readyz')).status, 200);
    assert.equal((await cluster.requested({ verb: 'list' })).user, '');
  });

  test('needs nobody where nobody is named', async t => {
    const { ask, cluster } = await lab(t);
    assert.equal((await ask('GET', configMaps)).status, 200);
    assert.equal((await cluster.requested({ verb: 'list' })).user, 'admin');
  });

  test('may do what its rules say and nothing else', async t => {
    const objects = [namespace('n'), configMap('a'), configMap('b'), widgets(), widget('w')];
    const { ask } = await lab(t, { users, objects });
    const inN = '/api/v1/namespaces/n/configmaps';
    const w = '/apis/x.dev/v1/namespaces/default/widgets/w';
    const cases: readonly (readonly [token: string, method: string, path: string, status: number])[] = [
      ['admin-token', 'GET', '/api/v1/secrets', 200],
      ['reader-token', 'GET', '/api/v1/configmaps', 200],
      ['reader-token', 'GET', `${configMaps}/a`, 200],
      ['reader-token', 'DELETE', `${configMaps}/a`, 403],
      ['reader-token', 'GET', '/api/v1/secrets', 403],
      ['reader-token', 'GET', '/apis/x.dev/v1/widgets', 403],
      ['secret', 'GET', configMaps, 200],
      ['secret', 'GET', inN, 403],
      ['secret', 'GET', '/api/v1/configmaps', 403],
      ['one-token', 'GET', `${configMaps}/a`, 200],
      ['one-token', 'GET', `${configMaps}/b`, 403],
      ['one-token', 'GET', configMaps, 403],
      ['one-token', 'GET', `${configMaps}?fieldSelector=metadata.name%3Da`, 200],
      ['sub-token', 'PATCH', `${w}/status`, 200],
      ['sub-token', 'PATCH', w, 403],
      // Whoever may not even ask does not learn what there is.
      ['reader-token', 'GET', '/api/v1/namespaces/default/sandwiches', 403],
      ['admin-token', 'GET', '/api/v1/namespaces/default/sandwiches', 404],
    ];
    for (const [token, method, path, expected] of cases) {
      const { status } = await ask(method, path, method === 'PATCH' ? {} : undefined, merge(token));
      assert.equal(status, expected, `${token} ${method} ${path}`);
    }
  });

  test('that is forbidden is told who cannot do what, where', async t => {
    const { ask } = await lab(t, { users });
    const { body } = await ask('GET', '/apis/x.dev/v1/namespaces/default/widgets', undefined, as('reader-token'));
    assert.equal(
      body.message,
      'widgets.x.dev is forbidden: User "reader" cannot list resource "widgets" in API group "x.dev" in the namespace "default"',
    );
    assert.deepEqual([body.reason, body.details], ['Forbidden', { group: 'x.dev', kind: 'widgets' }]);
    const one = await ask('GET', '/api/v1/nodes/n1', undefined, as('reader-token'));
    assert.equal(
      one.body.message,
      'nodes "n1" is forbidden: User "reader" cannot get resource "nodes" in API group "" at the cluster scope',
    );
    const log = await ask('GET', '/api/v1/namespaces/default/pods/p/log', undefined, as('reader-token'));
    assert.match(log.body.message, /^pods "p" is forbidden: User "reader" cannot get resource "pods\/log"/);
  });

  test('that creates by applying may create, too', async t => {
    const patching = { ...reading, verbs: ['patch'] };
    const { ask, cluster } = await lab(t, { users: { applier: { rules: [patching] } } });
    const path = `${configMaps}/a?fieldManager=me`;
    const apply = { ...as('applier-token'), 'content-type': 'application/apply-patch+yaml' };
    const { status, body } = await ask('PATCH', path, configMap('a'), apply);
    assert.equal(status, 403);
    assert.match(body.message, /cannot create resource "configmaps"/);
    cluster.grant('applier', { ...patching, verbs: ['create'] });
    assert.equal((await ask('PATCH', path, configMap('a'), apply)).status, 201);
  });
});

describe('rights', bounded, () => {
  test('are taken away and given back, and open watches go on', async t => {
    const { ask, cluster, watch } = await lab(t, { users });
    const events = await watch(`${configMaps}?watch=1`, as('reader-token'));
    const lists = { verbs: ['list', 'watch'], apiGroups: [''], resources: ['configmaps'] };
    cluster.revoke('reader', lists);
    assert.equal((await ask('GET', configMaps, undefined, as('reader-token'))).status, 403);
    assert.equal((await ask('GET', `${configMaps}/a`, undefined, as('reader-token'))).status, 404);
    cluster.put(configMap('a'));
    assert.deepEqual(await events.names(1), ['ADDED a']);
    cluster.grant('reader', lists);
    assert.equal((await ask('GET', configMaps, undefined, as('reader-token'))).status, 200);
  });

  test('need a user who is there', async t => {
    const { cluster } = await lab(t, { users });
    assert.throws(
      () => cluster.grant('nobody', reading),
      /no user "nobody" in the emulated cluster; it has admin, reader/,
    );
    assert.throws(() => cluster.kubeconfig('nobody'), /no user "nobody"/);
  });

  test('are told to who asks', async t => {
    const { ask } = await lab(t, { users });
    const allowed = async (token: string, resourceAttributes: object) => {
      const { status, body } = await ask('POST', review, { spec: { resourceAttributes } }, as(token));
      assert.equal(status, 201);
      return (body.status as unknown as { allowed: boolean }).allowed;
    };
    const listing = { verb: 'list', resource: 'configmaps' };
    assert.equal(await allowed('reader-token', listing), true);
    assert.equal(await allowed('reader-token', { ...listing, resource: 'secrets' }), false);
    assert.equal(await allowed('secret', listing), false);
    assert.equal(await allowed('secret', { ...listing, namespace: 'default' }), true);
    assert.equal(
      await allowed('sub-token', { verb: 'patch', group: 'x.dev', resource: 'widgets', subresource: 'status' }),
      true,
    );
    assert.equal(await allowed('admin-token', { verb: '*', group: '*', resource: '*' }), true);
  });
});

describe('a token', bounded, () => {
  test('expires, and is replaced by another', async t => {
    const { ask, cluster } = await lab(t, { users });
    const status = async (token: string) => (await ask('GET', configMaps, undefined, as(token))).status;
    assert.equal(await status('reader-token'), 200);
    cluster.expireToken('reader');
    assert.equal(await status('reader-token'), 401);
    cluster.setToken('reader', 'fresh');
    assert.deepEqual(
      [await status('reader-token'), await status('fresh'), cluster.tokenOf('reader')],
      [401, 200, 'fresh'],
    );
    assert.match(cluster.kubeconfig('reader'), /token: fresh/);
  });
});
