import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { openAccess } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { callOf, failure } from '../drivers/scripted.ts';
import { callWith, configMap, pem, reply, startApi } from './apiLab.ts';

/** Files in a directory of their own, written as YAML unless they are text. Returns their paths. */
async function filesOf(t: TestContext, files: Readonly<Record<string, unknown>>) {
  const directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  t.after(() => rm(directory, { recursive: true }));
  return Promise.all(
    Object.entries(files).map(async ([name, content]) => {
      const path = join(directory, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, typeof content === 'string' ? content : stringify(content));
      return path;
    }),
  );
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const named = (what: string, all: Readonly<Record<string, object>>) =>
  Object.entries(all).map(([name, fields]) => ({ name, [what]: fields }));

/** A kubeconfig of one context `here`, of the cluster `c` and the user `u`. */
const kubeconfig = (cluster: object, user: object = {}, rest: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: named('cluster', { c: cluster }),
  users: named('user', { u: user }),
  contexts: named('context', { here: { cluster: 'c', user: 'u' } }),
  'current-context': 'here',
  ...rest,
});

const open = (path: string, context = '') => openAccess({ kubeconfig: path, context, inCluster: false }, {});
const get = async (path: string, call = callOf(), context = '') =>
  createKubernetesClient(await open(path, context)).get(call, configMaps, 'a', 'own');

/** What a server sees of who comes with that user. */
async function seenOf(t: TestContext, user: object, call = callOf(), files: Readonly<Record<string, string>> = {}) {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const cluster = { server: api.url, 'certificate-authority-data': base64(pem('ca.crt')) };
  const [path = ''] = await filesOf(t, { config: kubeconfig(cluster, user), ...files });
  await get(path, call);
  const [{ headers, certificate } = assert.fail()] = api.asked;
  return { authorization: headers.authorization, certificate, headers };
}

// --- who -------------------------------------------------------------------------------------------------------------

const certificateData = {
  'client-certificate-data': base64(pem('gateway.crt')),
  'client-key-data': base64(pem('gateway.key')),
};

test('a client certificate, in the file or beside it', async t => {
  const inline = await seenOf(t, certificateData);
  assert.deepEqual([inline.authorization, inline.certificate], [undefined, 'gateway']);
  const beside = { 'client-certificate': 'pki/me.crt', 'client-key': 'pki/me.key' };
  const files = { 'pki/me.crt': pem('renewed.crt'), 'pki/me.key': pem('renewed.key') };
  assert.equal((await seenOf(t, beside, callOf(), files)).certificate, 'gateway-renewed');
});

test('a token, in the file or beside it, and a password', async t => {
  assert.equal((await seenOf(t, { token: 'my-token' })).authorization, 'Bearer my-token');
  const beside = await seenOf(t, { token: 'old', tokenFile: 'token.txt' }, callOf(), { 'token.txt': 'file-token\n' });
  assert.equal(beside.authorization, 'Bearer file-token');
  const basic = await seenOf(t, { username: 'admin', password: 'pass:wörd' });
  assert.equal(basic.authorization, `Basic ${base64('admin:pass:wörd')}`);
});

test('whom the user acts as', async t => {
  const { headers } = await seenOf(t, {
    token: 'my-token',
    as: 'jane',
    'as-uid': '42',
    'as-groups': ['dev', 'ops'],
    'as-user-extra': { 'example.com/Scopes': ['read', 'write'] },
  });
  assert.equal(headers['impersonate-user'], 'jane');
  assert.equal(headers['impersonate-uid'], '42');
  assert.equal(headers['impersonate-group'], 'dev, ops');
  assert.equal(headers['impersonate-extra-example.com%2fscopes'], 'read, write');
});

test("a caller's token goes without certificate, password and whom the user acts as", async t => {
  for (const user of [certificateData, { username: 'admin', password: 'x' }, { token: 'my-token', as: 'jane' }]) {
    const { authorization, certificate, headers } = await seenOf(t, user, callWith('token-of-john'));
    assert.deepEqual([authorization, certificate], ['Bearer token-of-john', undefined]);
    assert.deepEqual(
      Object.keys(headers).filter(name => name.startsWith('impersonate')),
      [],
    );
  }
});

test('a context without a user is nobody', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')));
  const contexts = named('context', { here: { cluster: 'c' } });
  const [path = ''] = await filesOf(t, { config: kubeconfig({ server: api.url }, {}, { contexts }) });
  await get(path);
  assert.equal(api.asked[0]?.headers.authorization, undefined);
});

// --- where -----------------------------------------------------------------------------------------------------------

test('a server below a path, its authority in a file, its certificate for another name', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const cluster = {
    server: `${api.url}/k8s/clusters/c-1/`,
    'certificate-authority': 'ca.pem',
    'tls-server-name': 'kubernetes.default.svc',
  };
  const [path = ''] = await filesOf(t, { config: kubeconfig(cluster), 'ca.pem': pem('ca.crt') });
  await get(path);
  assert.equal(api.asked[0]?.path, '/k8s/clusters/c-1/api/v1/namespaces/own/configmaps/a');
});

test('any certificate will do where the kubeconfig says so, and only there', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const strict = kubeconfig({ server: api.url });
  const careless = kubeconfig({ server: api.url, 'insecure-skip-tls-verify': true });
  const [one = '', other = ''] = await filesOf(t, { strict, careless });
  assert.match((await failure(get(one))).message, /is not accepted \(/);
  await get(other);
});

test('a proxy before the server is used by the gateway and by callers', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const { createServer } = await import('node:http');
  const { connect } = await import('node:net');
  const tunnels: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    tunnels.push(request.url ?? '');
    const { hostname, port } = new URL(`tcp://${request.url}`);
    const beyond = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      beyond.pipe(socket).pipe(beyond);
    });
    t.after(() => beyond.destroy());
    beyond.on('error', () => socket.destroy());
    socket.on('error', () => beyond.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await new Promise(resolve => proxy.once('listening', resolve));
  t.after(() => proxy.close());
  const { port } = proxy.address() as { port: number };
  const cluster = {
    server: api.url,
    'certificate-authority-data': base64(pem('ca.crt')),
    'proxy-url': `http://127.0.0.1:${port}`,
  };
  const [path = ''] = await filesOf(t, { config: kubeconfig(cluster, certificateData) });
  const client = createKubernetesClient(await open(path));
  await client.get(callOf(), configMaps, 'a', 'own');
  await client.get(callWith('token-of-jane'), configMaps, 'a', 'own');
  assert.deepEqual(
    api.asked.map(({ certificate, headers }) => [certificate, headers.authorization]),
    [
      ['gateway', undefined],
      [undefined, 'Bearer token-of-jane'],
    ],
  );
  assert.deepEqual(tunnels, [new URL(api.url).host, new URL(api.url).host]);
});

// --- which -----------------------------------------------------------------------------------------------------------

test('of several files the first that has a name wins, and those that are not there are skipped', async t => {
  const [first = '', second = ''] = await filesOf(t, {
    first: {
      clusters: named('cluster', { c: { server: 'https://first' } }),
      contexts: named('context', { one: { cluster: 'c' } }),
    },
    'below/second': {
      clusters: named('cluster', { c: { server: 'https://second' }, d: { server: 'https://other' } }),
      contexts: named('context', { one: { cluster: 'd' }, two: { cluster: 'd', user: 'u' } }),
      users: named('user', { u: { tokenFile: 'token' } }),
      'current-context': 'two',
    },
    'below/token': 'second-token',
  });
  const paths = [first, '/nowhere/config', second].join(delimiter);
  assert.equal((await open(paths, 'one')).server, 'https://first');
  const current = await open(paths);
  assert.equal(current.server, 'https://other');
  const { headers } = await current.identity(new AbortController().signal);
  assert.equal(headers.authorization, 'Bearer second-token', 'paths begin at the file that has them');
});

const good = kubeconfig({ server: 'https://127.0.0.1:6443' }, { token: 'my-token' });
const problems: readonly (readonly [string, unknown, string, RegExp])[] = [
  ['a context that is not there', good, 'prod', /: there is no context "prod" \(there is "here"\)$/],
  [
    'no current context',
    { ...good, 'current-context': '' },
    '',
    /: it has no current context; choose one with --kube-context \(there is "here"\)$/,
  ],
  ['no context at all', {}, 'x', /: there is no context "x" \(there are none\)$/],
  [
    'a cluster that is not there',
    { ...good, clusters: named('cluster', { a: {}, b: {} }) },
    '',
    /: there is no cluster "c" \(there is "a", "b"\)$/,
  ],
  ['a user that is not there', { ...good, users: [] }, '', /: there is no user "u" \(there are none\)$/],
  [
    'a context without a cluster',
    { ...good, contexts: named('context', { here: {} }) },
    '',
    /: the context "here" names no cluster$/,
  ],
  ['a cluster without a server', kubeconfig({}), '', /: the cluster "c" has no server$/],
  [
    'a server that is no URL',
    kubeconfig({ server: 'my-cluster:6443' }),
    '',
    /has a server that is no http\(s\) URL: my-/,
  ],
  [
    'a server that hears tokens unencrypted',
    kubeconfig({ server: 'http://10.0.0.1:8080' }),
    '',
    /: the cluster "c" has the server http:\/\/10.0.0.1:8080, and tokens would go to it unencrypted; use https:\/\/, or/,
  ],
  ['a name that only looks like this machine', kubeconfig({ server: 'http://127.example.com' }), '', /unencrypted/],
  [
    'a strange proxy',
    kubeconfig({ server: 'https://a', 'proxy-url': 'ftp://b' }),
    '',
    /has a proxy-url that is no http/,
  ],
  [
    'an authority that is none',
    kubeconfig({ server: 'https://a', 'certificate-authority-data': 'eHh4' }),
    '',
    /: its certificate-authority is not PEM that can be read \(ERR_OSSL_\w+\)$/,
  ],
  [
    'an authority that is not there',
    kubeconfig({ server: 'https://a', 'certificate-authority': 'gone.crt' }),
    '',
    /: \S+\/gone.crt is not there$/,
  ],
  [
    'a certificate that is none',
    kubeconfig({ server: 'https://a' }, { 'client-certificate-data': 'eHh4', 'client-key-data': 'eHh4' }),
    '',
    /: its client-certificate or client-key is not PEM that can be read \(ERR_OSSL_\w+\)$/,
  ],
  [
    'a token file that is not there',
    kubeconfig({ server: 'https://a' }, { tokenFile: 'gone' }),
    '',
    /: \S+\/gone is not there$/,
  ],
  [
    'a token that cannot be sent',
    kubeconfig({ server: 'https://a' }, { token: 'a b' }),
    '',
    /: there is no token in the kubeconfig$/,
  ],
  ['no kubeconfig', 'just a text', '', /: this is no kubeconfig; it has no clusters, users and contexts$/],
  ['nothing', '', '', /: this is no kubeconfig; it has no clusters, users and contexts$/],
  ['no YAML, whose words are not repeated', 'users:\n- {token: hush-hush\n  "x', '', /: line \d is not YAML$/],
];
for (const [what, content, context, words] of problems) {
  test(`a kubeconfig with ${what} is said to be so`, async t => {
    const [path = ''] = await filesOf(t, { config: content });
    const error = await failure(open(path, context));
    assert.equal(error.name, 'ConfigError');
    assert.match(error.message, words);
    assert.ok(error.message.startsWith(`kubeconfig ${path}: `), error.message);
  });
}

test('a kubeconfig that is not there, is a directory, or none of several', async () => {
  const alone = await failure(open('/nowhere/config'));
  assert.equal(alone.message, 'kubeconfig: /nowhere/config is not there');
  assert.equal(alone.name, 'ConfigError');
  assert.equal((await failure(open(tmpdir()))).message, `kubeconfig: ${tmpdir()} is a directory`);
  const none = await failure(open(['/nowhere/a', '/nowhere/b'].join(delimiter)));
  assert.equal(none.message, 'kubeconfig: none of these files is there: /nowhere/a, /nowhere/b');
});
