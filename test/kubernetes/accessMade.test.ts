import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openAccess } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { callOf, failure, soon } from '../drivers/scripted.ts';
import { configMap, pem, refuse, reply, type Script, startApi } from './apiLab.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A client of a kubeconfig with this user, in a directory of its own. */
async function clientOf(t: TestContext, url: string, user: object, directory = '') {
  const home = directory || (await directoryOf(t));
  const path = join(home, 'config');
  const cluster = { server: url, 'certificate-authority-data': base64(pem('ca.crt')) };
  const config = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'me' } }],
    'current-context': 'here',
  };
  await writeFile(path, JSON.stringify(config));
  return createKubernetesClient(await openAccess({ kubeconfig: path, context: '', inCluster: false }, {}));
}

async function directoryOf(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'plugin-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

/** A program that writes down each of its runs and answers what the body, JavaScript, makes of their count. */
async function programIn(t: TestContext, body: string) {
  const directory = await directoryOf(t);
  const runs = join(directory, 'runs');
  const text = `#!${process.execPath}
    const fs = require('node:fs');
    fs.appendFileSync(${JSON.stringify(runs)}, JSON.stringify({ env: process.env, args: process.argv.slice(2) }) + '\\n');
    const count = fs.readFileSync(${JSON.stringify(runs)}, 'utf8').trim().split('\\n').length;
    const answer = status => console.log(JSON.stringify({ kind: 'ExecCredential', status }));
    ${body}`;
  await writeFile(join(directory, 'login'), text);
  await chmod(join(directory, 'login'), 0o755);
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './login', args: ['--for', 'me'] };
  const seen = async () =>
    (await readFile(runs, 'utf8'))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { env: NodeJS.ProcessEnv; args: string[] });
  return { directory, exec, seen };
}

const ok: Script = (_, response) => reply(response, configMap('a'));
const get = (client: Awaited<ReturnType<typeof clientOf>>, call = callOf()) => client.get(call, configMaps, 'a', 'own');

test('a program makes the token; it runs once for all who wait, and is told that nobody answers it', async t => {
  const api = await startApi(t, ok, { tls: true });
  const { directory, exec, seen } = await programIn(t, "answer({ token: 'made-' + count })");
  const client = await clientOf(t, api.url, { exec: { ...exec, env: [{ name: 'MINE', value: '1' }] } }, directory);
  await Promise.all(Array.from({ length: 8 }, () => get(client)));
  await get(client);
  assert.deepEqual(new Set(api.asked.map(({ headers }) => headers.authorization)), new Set(['Bearer made-1']));
  const [{ env, args } = assert.fail(), ...more] = await seen();
  assert.equal(more.length, 0);
  assert.deepEqual(args, ['--for', 'me']);
  assert.equal(env.MINE, '1');
  assert.deepEqual(JSON.parse(env.KUBERNETES_EXEC_INFO ?? ''), {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false },
  });
});

test('a program that wants to know the cluster is told', async t => {
  const api = await startApi(t, ok, { tls: true });
  const { directory, exec, seen } = await programIn(t, "answer({ token: 'made' })");
  await get(await clientOf(t, api.url, { exec: { ...exec, provideClusterInfo: true } }, directory));
  const [{ env } = assert.fail()] = await seen();
  assert.equal(JSON.parse(env.KUBERNETES_EXEC_INFO ?? '').spec.cluster.server, api.url);
});

test('a program may make a client certificate', async t => {
  const api = await startApi(t, ok, { tls: true });
  const made = JSON.stringify({ clientCertificateData: pem('gateway.crt'), clientKeyData: pem('gateway.key') });
  const { directory, exec } = await programIn(t, `answer(${made})`);
  await get(await clientOf(t, api.url, { exec }, directory));
  assert.deepEqual(
    api.asked.map(({ certificate, headers }) => [certificate, headers.authorization]),
    [['gateway', undefined]],
  );
});

test('credentials that have ended are made anew', async t => {
  const api = await startApi(t, ok, { tls: true });
  const { directory, exec, seen } = await programIn(
    t,
    "answer({ token: 'made-' + count, expirationTimestamp: new Date(Date.now() - 1).toISOString() })",
  );
  const client = await clientOf(t, api.url, { exec }, directory);
  await get(client);
  await get(client);
  assert.equal((await seen()).length, 2);
  assert.equal(api.asked[1]?.headers.authorization, 'Bearer made-2');
});

test('credentials that are refused are made anew, but not for every refusal', async t => {
  const api = await startApi(
    t,
    ({ headers }, response) => {
      if (headers.authorization === 'Bearer made-2') reply(response, configMap('a'));
      else refuse(response, 401, { message: 'Unauthorized' });
    },
    { tls: true },
  );
  const { directory, exec, seen } = await programIn(t, "answer({ token: 'made-' + count })");
  const client = await clientOf(t, api.url, { exec }, directory);
  await get(client);
  assert.equal((await seen()).length, 2);

  const never = await startApi(t, (_, response) => refuse(response, 401, { message: 'Unauthorized' }), { tls: true });
  const other = await programIn(t, "answer({ token: 'made-' + count })");
  const unloved = await clientOf(t, never.url, { exec: other.exec }, other.directory);
  for (let time = 0; time < 3; time++) assert.equal((await failure(get(unloved))).code, 'backend_error');
  assert.equal((await other.seen()).length, 2);
});

const failures: readonly (readonly [string, string, RegExp])[] = [
  [
    'fails',
    "console.error('session expired,\\nrun: login --again'); process.exit(3)",
    /cannot be had: the program "\S+\/login" of the kubeconfig's user "me" failed: session expired, run: login --again$/,
  ],
  ['fails without a word', 'process.exit(1)', /of the kubeconfig's user "me" failed: without a word$/],
  ['answers no JSON', "console.log('token: hush-hush-1234')", /"me" answered no ExecCredential$/],
  ['answers another document', 'console.log(\'{"token":"hush-hush-1234"}\')', /"me" answered no ExecCredential$/],
  ['answers nothing usable', 'answer({})', /"me" answered neither token nor certificate$/],
];
for (const [what, body, words] of failures) {
  test(`a program that ${what} is a sentence, and nothing is sent`, async t => {
    const api = await startApi(t, ok, { tls: true });
    const { directory, exec } = await programIn(t, body);
    const error = await failure(get(await clientOf(t, api.url, { exec }, directory)));
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, /hush/);
    assert.equal(api.asked.length, 0);
  });
}

test('a program that is not installed is named, with the hint how to', async t => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'no-such-login',
    installHint: 'Get it at example.com.',
  };
  const error = await failure(get(await clientOf(t, 'https://127.0.0.1:9', { exec })));
  assert.match(
    error.message,
    /: the program "no-such-login" of .* cannot be started \(ENOENT\): Get it at example.com.$/,
  );
});

test('a program that hangs keeps nobody beyond the deadline, nor who leaves', async t => {
  const { directory, exec } = await programIn(t, "process.on('SIGTERM', () => {}); setTimeout(() => {}, 2_000)");
  const client = await clientOf(t, 'https://127.0.0.1:9', { exec }, directory);
  const late = await soon(failure(get(client, callOf({ timeoutMs: 20 }))), 'an end');
  assert.equal(late.code, 'backend_error');
  const abort = new AbortController();
  const leaving = failure(get(client, callOf({ signal: abort.signal })));
  abort.abort();
  assert.match((await soon(leaving, 'an end')).message, /cancelled by the caller$/);
});

// --- logins ----------------------------------------------------------------------------------------------------------

/** A token whose signature nobody looks at. */
const idToken = (name: string, seconds: number) =>
  ['{}', JSON.stringify({ sub: name, exp: Math.floor(Date.now() / 1000) + seconds }), 'signature']
    .map(part => Buffer.from(part).toString('base64url'))
    .join('.');

type Answer = { readonly status?: number } & Readonly<Record<string, unknown>>;

/** An identity provider that answers each request for a new token with the next of these. */
async function startProvider(t: TestContext, answers: readonly Answer[], discovered: object = {}) {
  const asked: Record<string, string>[] = [];
  const server = createServer({ cert: pem('server.crt'), key: pem('server.key') }, async (request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.url === '/dex/.well-known/openid-configuration') {
      response.end(JSON.stringify({ issuer, token_endpoint: `${issuer}/token`, ...discovered }));
      return;
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    const { status = 200, ...document } = answers[asked.push(Object.fromEntries(new URLSearchParams(body))) - 1] ?? {};
    response.writeHead(status).end(JSON.stringify(document));
  });
  server.listen(0, '127.0.0.1');
  await new Promise(resolve => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `https://127.0.0.1:${(server.address() as { port: number }).port}/dex`;
  const ended = login({
    'id-token': idToken('me', -5),
    'refresh-token': 'refresh-1',
    'client-secret': 'client-secret-1',
    'idp-issuer-url': issuer,
    'idp-certificate-authority-data': base64(pem('ca.crt')),
  });
  return { issuer, asked, ended };
}

const login = (config: object) => ({
  'auth-provider': { name: 'oidc', config: { 'client-id': 'kubectl', ...config } },
});

test('a login is used as long as its token is good', async t => {
  const api = await startApi(t, ok, { tls: true });
  const token = idToken('me', 3_600);
  await get(await clientOf(t, api.url, login({ 'id-token': token })));
  assert.equal(api.asked[0]?.headers.authorization, `Bearer ${token}`);
});

test('a login whose token has ended and that cannot be renewed is a sentence, and nobody becomes anonymous', async t => {
  const api = await startApi(t, ok, { tls: true });
  const error = await failure(get(await clientOf(t, api.url, login({ 'id-token': idToken('me', -5) }))));
  assert.equal(error.code, 'unavailable');
  assert.match(
    error.message,
    /the login of the kubeconfig's user "me" has ended, and it cannot be renewed: log in again$/,
  );
  assert.equal(api.asked.length, 0);
});

test('a login whose token has ended is renewed once for all, and the new one is used until it ends', async t => {
  const api = await startApi(t, ok, { tls: true });
  const renewed = idToken('renewed', 3_600);
  const { asked, ended } = await startProvider(t, [{ id_token: renewed, refresh_token: 'refresh-2', expires_in: 1 }]);
  const client = await clientOf(t, api.url, ended);
  await Promise.all([get(client), get(client), get(client)]);
  await get(client);
  assert.deepEqual(
    api.asked.map(({ headers }) => headers.authorization),
    Array.from({ length: 4 }, () => `Bearer ${renewed}`),
  );
  assert.deepEqual(asked, [
    {
      grant_type: 'refresh_token',
      refresh_token: 'refresh-1',
      client_id: 'kubectl',
      client_secret: 'client-secret-1',
    },
  ]);
});

test('a login whose token is refused is renewed with the newest right to do so', async t => {
  const api = await startApi(
    t,
    ({ headers }, response) => {
      if (headers.authorization === 'Bearer a.b.third') reply(response, configMap('a'));
      else refuse(response, 401, { message: 'Unauthorized' });
    },
    { tls: true },
  );
  const { asked, ended } = await startProvider(t, [
    { id_token: 'a.b.second', refresh_token: 'refresh-2' },
    { id_token: 'a.b.third' },
  ]);
  await get(await clientOf(t, api.url, ended));
  assert.deepEqual(
    api.asked.map(({ headers }) => headers.authorization),
    ['Bearer a.b.second', 'Bearer a.b.third'],
  );
  assert.deepEqual(
    asked.map(({ refresh_token }) => refresh_token),
    ['refresh-1', 'refresh-2'],
  );
});

const refusals: readonly (readonly [string, Answer, object, RegExp])[] = [
  [
    'refuses',
    { status: 400, error: 'invalid_grant', error_description: 'session expired', hint: 'hush-hush-1234' },
    {},
    /"me" cannot be renewed: https:\S+\/token answered 400 \(invalid_grant: session expired\)$/,
  ],
  ['answers no id token', { access_token: 'hush-hush-1234' }, {}, /\/token answered no id token$/],
  ['is another one', {}, { issuer: 'https://evil.example.com' }, /\/dex calls itself https:\/\/evil.example.com$/],
  [
    'wants the secrets unencrypted',
    {},
    { token_endpoint: 'http://127.0.0.1:9/token' },
    /names no token endpoint with https/,
  ],
];
for (const [what, answer, discovered, words] of refusals) {
  test(`a provider that ${what} is a sentence, and nothing is sent`, async t => {
    const api = await startApi(t, ok, { tls: true });
    const { ended } = await startProvider(t, [answer], discovered);
    const error = await failure(get(await clientOf(t, api.url, ended)));
    assert.equal(error.code, 'unavailable');
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, /hush|refresh-1|client-secret/);
    assert.equal(api.asked.length, 0);
  });
}

test('a provider without https is not asked, and one with a strange certificate not told anything', async t => {
  const plain = login({ 'refresh-token': 'refresh-1', 'idp-issuer-url': 'http://127.0.0.1:9' });
  const error = await failure(get(await clientOf(t, 'https://127.0.0.1:9', plain)));
  assert.match(error.message, /cannot be renewed: http:\/\/127.0.0.1:9 is no issuer with https:\/\/$/);
  const { issuer, asked } = await startProvider(t, []);
  const unknown = login({ 'refresh-token': 'refresh-1', 'idp-issuer-url': issuer });
  assert.match(
    (await failure(get(await clientOf(t, 'https://127.0.0.1:9', unknown)))).message,
    /cannot be renewed: .*cert/,
  );
  assert.equal(asked.length, 0);
});

test('logins that Kubernetes has given up are refused at the start', async t => {
  const error = await failure(clientOf(t, 'https://127.0.0.1:9', { 'auth-provider': { name: 'gcp' } }));
  assert.equal(error.name, 'ConfigError');
  assert.match(error.message, /: the user "me" has the auth-provider gcp, which Kubernetes has given up; use exec$/);
});
