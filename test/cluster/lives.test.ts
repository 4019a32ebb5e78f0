import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CoreV1Api, KubeConfig, type V1ConfigMap, type V1Pod } from '@kubernetes/client-node';
import { configMap, inEveryCluster, merging, refused, versionOf, watchingIn } from './lab.ts';

const finalizer = 'model-manager.test/hold';

/** A pod that even a careful cluster takes. */
const podOf = (name: string, text: string, spec: object = {}): V1Pod => ({
  metadata: { name },
  spec: {
    restartPolicy: 'Never',
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'app',
        image: 'busybox:1.37',
        command: ['printf', text],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
    ...spec,
  },
});

inEveryCluster('lives of objects', lab => {
  test('status is written through its subresource, and only it is', async () => {
    const { core, namespace } = lab();
    const name = 'status';
    // Nobody schedules it, so nobody but the test writes its status.
    const body = podOf(name, '', { schedulerName: 'model-manager-test' });
    await core.createNamespacedPod({ namespace, body: { ...body, status: { message: 'mine' } } });
    const metadata = { labels: { seen: 'yes' } };
    const status = { message: 'written', reason: 'Test' };
    await core.patchNamespacedPodStatus({ namespace, name, body: { metadata, status } }, merging);
    await core.patchNamespacedPod({ namespace, name, body: { status: { message: 'not written' } } }, merging);
    const read = await core.readNamespacedPod({ namespace, name });
    assert.deepEqual([read.status?.message, read.status?.reason], ['written', 'Test']);
    await core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
  });

  test('a finalizer holds what is deleted until it is taken away', async t => {
    const { core, namespace } = lab();
    const name = 'held';
    const body = configMap(name, {}, { finalizers: [finalizer] });
    const made = await core.createNamespacedConfigMap({ namespace, body });
    const watch = await watchingIn(t, lab(), 'configmaps', {
      resourceVersion: versionOf(made),
      fieldSelector: `metadata.name=${name}`,
    });
    await core.deleteNamespacedConfigMap({ namespace, name });
    const { metadata } = await core.readNamespacedConfigMap({ namespace, name });
    assert.ok(metadata?.deletionTimestamp);
    await refused(core.createNamespacedConfigMap({ namespace, body }), 409, 'AlreadyExists');
    const another = { metadata: { finalizers: [finalizer, 'model-manager.test/more'] } };
    await refused(core.patchNamespacedConfigMap({ namespace, name, body: another }, merging), 422, 'Invalid');
    await core.patchNamespacedConfigMap({ namespace, name, body: { metadata: { finalizers: null } } }, merging);
    assert.equal((await watch.next()).type, 'MODIFIED');
    const last = await watch.next();
    assert.equal(last.type, 'DELETED');
    await refused(core.readNamespacedConfigMap({ namespace, name }), 404, 'NotFound');
  });

  const ownedBy = ({ metadata }: V1ConfigMap) => ({
    ownerReferences: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: metadata?.name as string,
        uid: metadata?.uid as string,
        blockOwnerDeletion: true,
      },
    ],
  });

  for (const propagationPolicy of ['Background', 'Foreground'] as const) {
    test(`${propagationPolicy}: what is owned goes with its owner`, async t => {
      const { core, namespace } = lab();
      const name = propagationPolicy.toLowerCase();
      const owner = await core.createNamespacedConfigMap({ namespace, body: configMap(name) });
      const body = configMap(`${name}-child`, {}, ownedBy(owner));
      const child = await core.createNamespacedConfigMap({ namespace, body });
      const watch = await watchingIn(t, lab(), 'configmaps', { resourceVersion: versionOf(child) });
      await core.deleteNamespacedConfigMap({ namespace, name, body: { propagationPolicy } });
      const gone: string[] = [];
      while (gone.length < 2) {
        const { type, object } = await watch.next(`two deletions, after ${gone}`);
        if (type === 'DELETED') gone.push(object.metadata?.name as string);
      }
      const order = [name, `${name}-child`];
      assert.deepEqual(gone, propagationPolicy === 'Background' ? order : order.reverse());
    });
  }

  test('Orphan: what is owned stays, and has no owner', async t => {
    const { core, namespace } = lab();
    const owner = await core.createNamespacedConfigMap({ namespace, body: configMap('orphan') });
    const body = configMap('orphan-child', {}, ownedBy(owner));
    const child = await core.createNamespacedConfigMap({ namespace, body });
    const watch = await watchingIn(t, lab(), 'configmaps', {
      resourceVersion: versionOf(child),
      fieldSelector: 'metadata.name=orphan-child',
    });
    await core.deleteNamespacedConfigMap({ namespace, name: 'orphan', body: { propagationPolicy: 'Orphan' } });
    const { type, object } = await watch.next();
    assert.deepEqual([type, object.metadata?.ownerReferences], ['MODIFIED', undefined]);
  });

  test('what names an owner that is not there is collected', async t => {
    const { core, namespace } = lab();
    const nobody = { metadata: { name: 'nobody', uid: '00000000-0000-0000-0000-000000000000' } };
    const body = configMap('foundling', {}, ownedBy(nobody));
    const made = await core.createNamespacedConfigMap({ namespace, body });
    const watch = await watchingIn(t, lab(), 'configmaps', {
      resourceVersion: versionOf(made),
      fieldSelector: 'metadata.name=foundling',
    });
    assert.equal((await watch.next()).type, 'DELETED');
  });

  test('the log of a container can be read, whole and from its end', async t => {
    const { core, namespace, run } = lab();
    const text = 'one\ntwo\nthree\n';
    const pod = await core.createNamespacedPod({ namespace, body: podOf('writer', text) });
    const failure = await run(pod, text);
    if (failure) return t.skip(failure);
    const log = { namespace, name: 'writer', container: 'app' };
    assert.equal(await core.readNamespacedPodLog(log), text);
    assert.equal(await core.readNamespacedPodLog({ ...log, tailLines: 1 }), 'three\n');
    await refused(core.readNamespacedPodLog({ ...log, previous: true }), 400, 'BadRequest');
    await refused(core.readNamespacedPodLog({ ...log, name: 'nobody' }), 404, 'NotFound');
  });
});

inEveryCluster('rights', lab => {
  test('one can ask what one may do', async () => {
    const { authorization, namespace } = lab();
    const resourceAttributes = { verb: 'create', resource: 'configmaps', namespace };
    const { status } = await authorization.createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } });
    assert.equal(status?.allowed, true);
  });

  test('who has no token is nobody', async () => {
    const { config, namespace } = lab();
    const stranger = new KubeConfig();
    const cluster = config.getCurrentCluster();
    assert.ok(cluster);
    stranger.loadFromClusterAndUser(cluster, { name: 'stranger', token: 'none' });
    await assert.rejects(stranger.makeApiClient(CoreV1Api).listNamespacedConfigMap({ namespace }), { code: 401 });
  });
});
