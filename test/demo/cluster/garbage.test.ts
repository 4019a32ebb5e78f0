import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EmulatedCluster, type KubernetesObject, manualClock, startCluster } from '../../../src/demo/cluster.ts';

const namespace = 'default';

async function started(t: { after(act: () => unknown): void }): Promise<EmulatedCluster> {
  const cluster = await startCluster({ clock: manualClock() });
  t.after(() => cluster.close());
  return cluster;
}

interface Ownership {
  readonly owners?: readonly KubernetesObject[];
  readonly isBlocking?: boolean;
  readonly finalizers?: readonly string[];
}

const referenceTo = ({ apiVersion, kind, metadata: { name, uid } }: KubernetesObject, isBlocking?: boolean) => ({
  apiVersion,
  kind,
  name,
  uid,
  ...(isBlocking && { blockOwnerDeletion: true }),
});

/** A ConfigMap of that name in the cluster. */
const put = (cluster: EmulatedCluster, name: string, { owners, isBlocking, finalizers }: Ownership = {}) =>
  cluster.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace,
      ...(owners && { ownerReferences: owners.map(owner => referenceTo(owner, isBlocking)) }),
      ...(finalizers && { finalizers }),
    },
  });

const names = (cluster: EmulatedCluster) => cluster.list('configmaps', namespace).map(({ metadata }) => metadata.name);
const finalizersOf = (cluster: EmulatedCluster, name: string) =>
  cluster.get('configmaps', name, namespace)?.metadata.finalizers;
const drop = (cluster: EmulatedCluster, name: string, propagationPolicy?: string) =>
  cluster.remove('configmaps', name, namespace, { propagationPolicy });

test('what belongs to a removed owner is removed, and what belongs to that', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  const child = put(cluster, 'child', { owners: [owner] });
  put(cluster, 'grandchild', { owners: [child] });
  put(cluster, 'stranger');
  drop(cluster, 'owner');
  assert.deepEqual(names(cluster), ['stranger']);
});

test('who has another owner stays, and no longer names the one that is gone', async t => {
  const cluster = await started(t);
  const [one, two] = [put(cluster, 'one'), put(cluster, 'two')];
  put(cluster, 'child', { owners: [one, two] });
  drop(cluster, 'one');
  assert.deepEqual(cluster.get('configmaps', 'child', namespace)?.metadata.ownerReferences, [referenceTo(two)]);
  drop(cluster, 'two');
  assert.deepEqual(names(cluster), []);
});

test('a finalizer holds a dependent, not its owner', async t => {
  const cluster = await started(t);
  put(cluster, 'child', { owners: [put(cluster, 'owner')], finalizers: ['test/hold'] });
  drop(cluster, 'owner');
  assert.deepEqual(names(cluster), ['child']);
  assert.ok(cluster.get('configmaps', 'child', namespace)?.metadata.deletionTimestamp);
});

test('Foreground: the owner waits for those that block it', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  put(cluster, 'free', { owners: [owner] });
  put(cluster, 'held', { owners: [owner], isBlocking: true, finalizers: ['test/hold'] });
  drop(cluster, 'owner', 'Foreground');
  assert.deepEqual(names(cluster), ['held', 'owner']);
  assert.deepEqual(finalizersOf(cluster, 'owner'), ['foregroundDeletion']);
  cluster.update<{ metadata: { finalizers?: string[] } }>('configmaps', 'held', namespace, ({ metadata }) => {
    delete metadata.finalizers;
  });
  assert.deepEqual(names(cluster), []);
});

test('Foreground: the owner waits for nobody that does not block it, and goes through all levels', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  const child = put(cluster, 'child', { owners: [owner], isBlocking: true });
  put(cluster, 'grandchild', { owners: [child], isBlocking: true, finalizers: ['test/hold'] });
  put(cluster, 'loose', { owners: [owner], finalizers: ['test/hold'] });
  drop(cluster, 'owner', 'Foreground');
  assert.deepEqual(names(cluster), ['child', 'grandchild', 'loose', 'owner']);
  assert.deepEqual(finalizersOf(cluster, 'child'), ['foregroundDeletion'], 'it waits for its own');
  cluster.update<{ metadata: { finalizers?: string[] } }>('configmaps', 'grandchild', namespace, ({ metadata }) => {
    delete metadata.finalizers;
  });
  assert.deepEqual(names(cluster), ['loose']);
});

test('Orphan: dependents stay and have no owner', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  put(cluster, 'child', { owners: [owner] });
  drop(cluster, 'owner', 'Orphan');
  assert.deepEqual(names(cluster), ['child']);
  assert.equal(cluster.get('configmaps', 'child', namespace)?.metadata.ownerReferences, undefined);
});

test('what names an owner that is not there is removed: one that never was, another of its name, of another namespace', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  put(cluster, 'one', { owners: [{ ...owner, metadata: { ...owner.metadata, name: 'nobody' } }] });
  put(cluster, 'two', { owners: [{ ...owner, metadata: { ...owner.metadata, uid: 'another' } }] });
  cluster.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'three', namespace: 'kube-public', ownerReferences: [referenceTo(owner)] },
  });
  assert.deepEqual(names(cluster), ['owner']);
  assert.deepEqual(cluster.list('configmaps', 'kube-public'), []);
});

test('an owner without a namespace has dependents in all of them', async t => {
  const cluster = await started(t);
  const node = cluster.put({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } });
  put(cluster, 'child', { owners: [node] });
  assert.deepEqual(names(cluster), ['child']);
  cluster.remove('nodes', 'n');
  assert.deepEqual(names(cluster), []);
});

test('an owner of a kind that is not served says nothing of its dependents', async t => {
  const cluster = await started(t);
  const owner = { apiVersion: 'x.dev/v1', kind: 'Thing', metadata: { name: 'a', uid: 'b' } };
  put(cluster, 'child', { owners: [owner] });
  assert.deepEqual(names(cluster), ['child']);
});

test('an owner can be given later: from then on it decides', async t => {
  const cluster = await started(t);
  const owner = put(cluster, 'owner');
  put(cluster, 'child');
  put(cluster, 'child', { owners: [owner] });
  drop(cluster, 'owner');
  assert.deepEqual(names(cluster), []);
});
