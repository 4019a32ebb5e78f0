import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openInCluster } from '../../src/kubernetes/access/inCluster.ts';
import { openAccess } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { callOf, failure } from '../drivers/scripted.ts';
import { configMap, pem, refuse, reply, startApi } from './apiLab.ts';

/** A directory as the kubelet writes it: links through one that is swapped as a whole. */
async function serviceAccount(t: TestContext, token: string) {
  const directory = await mkdtemp(join(tmpdir(), 'service-account-'));
  t.after(() => rm(directory, { recursive: true }));
  let version = 0;
  async function write(files: Readonly<Record<string, string>>) {
    const data = await mkdtemp(join(directory, `..${version++}-`));
    for (const [name, text] of Object.entries(files)) await writeFile(join(data, name), text);
    await symlink(data, join(directory, '..next'));
    await rename(join(directory, '..next'), join(directory, '..data'));
  }
  await write({ token, 'ca.crt': pem('ca.crt') });
  for (const name of ['token', 'ca.crt']) await symlink(join('..data', name), join(directory, name));
  return { directory, write };
}

const podOf = (url: string) => {
  const { hostname, port } = new URL(url);
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
};
const get = (client: ReturnType<typeof createKubernetesClient>) => client.get(callOf(), configMaps, 'a', 'own');

test('in a pod, the service account asks, and its authority judges the server', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const { directory } = await serviceAccount(t, 'pod-token-1\n');
  const access = await openInCluster(podOf(api.url), directory);
  assert.equal(access.server, api.url);
  await get(createKubernetesClient(access));
  assert.deepEqual(
    api.asked.map(({ headers, certificate }) => [headers.authorization, certificate]),
    [['Bearer pod-token-1', undefined]],
  );
});

test('an address of IPv6 stands in brackets', async t => {
  const { directory } = await serviceAccount(t, 'pod-token-1');
  const pod = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  assert.equal((await openInCluster(pod, directory)).server, 'https://[fd00::1]:443');
});

test('a token that was rotated is used from the next request on, without a refusal first', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const { directory, write } = await serviceAccount(t, 'pod-token-1');
  const client = createKubernetesClient(await openInCluster(podOf(api.url), directory));
  await get(client);
  await write({ token: 'pod-token-2', 'ca.crt': pem('ca.crt') });
  await get(client);
  assert.deepEqual(
    api.asked.map(({ headers }) => headers.authorization),
    ['Bearer pod-token-1', 'Bearer pod-token-2'],
  );
});

test('a token that was rotated within a request is used after the refusal', async t => {
  const { directory, write } = await serviceAccount(t, 'pod-token-1');
  const api = await startApi(
    t,
    async ({ headers }, response) => {
      if (headers.authorization === 'Bearer pod-token-2') return reply(response, configMap('a'));
      await write({ token: 'pod-token-2', 'ca.crt': pem('ca.crt') });
      refuse(response, 401, { message: 'Unauthorized' });
    },
    { tls: true },
  );
  const client = createKubernetesClient(await openInCluster(podOf(api.url), directory));
  await client.create(callOf(), configMaps, configMap('a'));
  assert.deepEqual(
    api.asked.map(({ headers }) => headers.authorization),
    ['Bearer pod-token-1', 'Bearer pod-token-2'],
  );
});

test('an authority that was replaced judges the next connection', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const { directory, write } = await serviceAccount(t, 'pod-token-1');
  await write({ token: 'pod-token-1', 'ca.crt': pem('stranger.crt') });
  const client = createKubernetesClient(await openInCluster(podOf(api.url), directory));
  assert.match((await failure(get(client))).message, /is not accepted/);
  await write({ token: 'pod-token-1', 'ca.crt': pem('ca.crt') });
  await get(client);
});

test('a token that is taken away is named by its file', async t => {
  const { directory } = await serviceAccount(t, 'pod-token-1');
  const client = createKubernetesClient(
    await openInCluster({ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '9' }, directory),
  );
  await rm(join(directory, 'token'));
  const error = await failure(get(client));
  assert.equal(error.code, 'unavailable');
  assert.match(error.message, /^cannot get .*: the gateway's credentials for the API server cannot be had: .*\/token/);
});

test('outside of a pod, it is said what is missing', async t => {
  const nowhere = await failure(openAccess({ kubeconfig: '', context: '', inCluster: true }, {}));
  assert.equal(nowhere.name, 'ConfigError');
  assert.equal(
    nowhere.message,
    'in-cluster access to Kubernetes needs a pod, and this is none: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT ' +
      'are not set; elsewhere give --kubeconfig',
  );

  const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const unmounted = await failure(openInCluster(pod, '/nowhere/at/all'));
  assert.equal(unmounted.name, 'ConfigError');
  assert.match(
    unmounted.message,
    /^in-cluster access to Kubernetes needs the pod's service account: \/nowhere\/at\/all\/(token|ca.crt) is not there; is/,
  );

  const { directory } = await serviceAccount(t, ' \n');
  const blank = await failure(openInCluster(pod, directory));
  assert.match(blank.message, /service account: there is no token in \S+\/token; is its token mounted/);
});
