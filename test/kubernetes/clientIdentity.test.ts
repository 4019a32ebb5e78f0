import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Identity } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { all, callOf, failure, soon } from '../drivers/scripted.ts';
import {
  type Asked,
  accessTo,
  callWith,
  certificateOf,
  configMap,
  listOf,
  pem,
  refuse,
  reply,
  startApi,
} from './apiLab.ts';

const gateway: Identity = {
  headers: { authorization: 'Bearer gateway-token-1', 'impersonate-user': 'somebody' },
  certificate: certificateOf('gateway'),
};
const own = { namespace: 'own' };
const shown = ({ headers, certificate }: Asked) => [headers.authorization, certificate, headers['impersonate-user']];
const asGateway = ['Bearer gateway-token-1', 'gateway', 'somebody'];
const asCaller = (token: string) => [`Bearer ${token}`, undefined, undefined];

test('a call without a token is the gateway: its token, its certificate, whom it acts as', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  await client.get(callOf(), configMaps, 'a', 'own');
  assert.deepEqual(api.asked.map(shown), [asGateway]);
});

test('a call with a token has that token and nothing else, over connections of its own', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  const token = 'token-of-jane';
  for (const call of [callOf(), callWith(token), callOf(), callWith(token)])
    await client.get(call, configMaps, 'a', 'own');
  assert.deepEqual(api.asked.map(shown), [asGateway, asCaller(token), asGateway, asCaller(token)]);
  const [first, second, third, fourth] = api.asked.map(({ connection }) => connection);
  assert.notEqual(first, second);
  assert.deepEqual([third, fourth], [first, second], 'connections are kept');
});

test('every kind of request goes as the one who calls', async t => {
  const api = await startApi(
    t,
    ({ method, path, query }, response) => {
      if (query.has('watch')) response.writeHead(200, { 'content-type': 'application/json' }).end();
      else if (path.endsWith('/log')) response.writeHead(200, { 'content-type': 'text/plain' }).end('a line\n');
      else reply(response, path.endsWith('/configmaps') && method === 'GET' ? listOf(['a']) : configMap('a'));
    },
    { tls: true },
  );
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  const call = callWith('token-of-jane');
  await client.get(call, configMaps, 'a', 'own');
  await client.list(call, configMaps, own);
  await client.create(call, configMaps, configMap('a'));
  await client.replace(call, configMaps, configMap('a'));
  await client.patch(call, configMaps, 'a', 'own', { data: { a: 'b' } });
  await client.remove(call, configMaps, 'a', 'own');
  await client.versions(call, 'kagent.dev');
  await client.resources(call, 'kagent.dev', 'v1');
  await client.logs(call, 'pod', 'own', {});
  await all(client.watch(call, configMaps, own, { resourceVersion: '1', timeoutSeconds: 300 }));
  assert.equal(api.asked.length, 10);
  for (const asked of api.asked) assert.deepEqual(shown(asked), asCaller('token-of-jane'), asked.path);
});

test('callers who ask at the same time are never mixed up', async t => {
  const api = await startApi(t, ({ path }, response) => reply(response, configMap(path.split('/').at(-1) as string)), {
    tls: true,
  });
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  const names = Array.from({ length: 120 }, (_, index) => `${['gateway', 'jane', 'john'][index % 3]}-${index}`);
  const answers = await Promise.all(
    names.map(name => {
      const who = name.split('-')[0] as string;
      return client.get(who === 'gateway' ? callOf() : callWith(`token-of-${who}`), configMaps, name, 'own');
    }),
  );
  assert.deepEqual(
    answers.map(({ metadata }) => metadata.name),
    names,
  );
  assert.equal(api.asked.length, names.length);
  for (const asked of api.asked) {
    const who = asked.path.split('/').at(-1)?.split('-')[0];
    assert.deepEqual(shown(asked), who === 'gateway' ? asGateway : asCaller(`token-of-${who}`), asked.path);
  }
  const byCallers = new Set(api.asked.filter(each => !each.certificate).map(({ connection }) => connection));
  for (const asked of api.asked.filter(each => each.certificate)) assert.ok(!byCallers.has(asked.connection));
});

test("a caller's token that is not accepted says what to do, is not repeated, and nothing of the gateway is tried", async t => {
  const token = 'eyJhbGciOiJSUzI1NiJ9.expired.signature';
  const api = await startApi(t, ({ headers }, response, count) => {
    if (count === 1) reply(response, configMap('a'));
    else refuse(response, 401, { reason: 'Unauthorized', message: `no such user: ${headers.authorization}` });
  });
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  const call = callWith(token);
  await client.get(call, configMaps, 'a', 'own');
  const error = await failure(client.list(call, configMaps, own));
  assert.equal(error.code, 'unauthenticated');
  assert.equal(
    error.message,
    `cannot list configmaps in namespace own: no such user: Bearer …; the API server at ${api.url} does not accept the ` +
      "caller's token: sign in again in case it has expired, else the server has to trust its issuer and audience",
  );
  assert.deepEqual(api.asked.map(shown), [asCaller(token), asCaller(token)]);
});

test('a watch whose token has ended fails and is not taken over by the gateway', async t => {
  const api = await startApi(t, (_, response) => refuse(response, 401, { message: 'Unauthorized' }));
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  const watch = client.watch(callWith('token-of-jane'), configMaps, own, { resourceVersion: '1', timeoutSeconds: 300 });
  const error = await failure(all(watch));
  assert.equal(error.code, 'unauthenticated');
  assert.match(error.message, /^cannot watch configmaps in namespace own: .*sign in again/);
  assert.deepEqual(api.asked.map(shown), [asCaller('token-of-jane')]);
});

test('a token that is empty or cannot be sent is refused here, and never becomes a request of the gateway', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')));
  const client = createKubernetesClient(accessTo(api.url, { as: gateway }));
  for (const token of ['', ' ', 'two words', 'line\r\nx-other: header', 'tökén']) {
    const error = await failure(client.get(callWith(token), configMaps, 'a', 'own'));
    assert.equal(error.code, 'unauthenticated', JSON.stringify(token));
    assert.match(error.message, /^cannot get configmaps a in namespace own: the caller has no usable token; sign in/);
  }
  assert.equal(api.asked.length, 0);
});

test('the gateway whose token was renewed while it was refused goes on with the new one', async t => {
  const api = await startApi(t, ({ headers }, response) => {
    if (headers.authorization === 'Bearer gateway-token-2') reply(response, configMap('a'));
    else refuse(response, 401, { message: 'Unauthorized' });
  });
  let token = 'gateway-token-1';
  const identity = () => Promise.resolve({ headers: { authorization: `Bearer ${token}` } });
  const refused = () => {
    token = 'gateway-token-2';
  };
  const client = createKubernetesClient(accessTo(api.url, { identity, refused }));
  await client.create(callOf(), configMaps, configMap('a'));
  assert.deepEqual(
    api.asked.map(({ headers }) => headers.authorization),
    ['Bearer gateway-token-1', 'Bearer gateway-token-2'],
  );
});

test('the gateway whose token is not accepted asks once, and says whose it is', async t => {
  const api = await startApi(t, (_, response) => refuse(response, 401, { message: 'Unauthorized' }));
  const client = createKubernetesClient(accessTo(api.url));
  const error = await failure(client.get(callOf(), configMaps, 'a', 'own'));
  assert.equal(error.code, 'backend_error');
  assert.match(
    error.message,
    /Unauthorized; the API server at \S+ does not accept the gateway's own credentials: look at/,
  );
  assert.equal(api.asked.length, 1);
});

test('a renewed client certificate gets connections of its own, and the old ones end', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  let certificate = certificateOf('gateway');
  const client = createKubernetesClient(
    accessTo(api.url, { identity: () => Promise.resolve({ headers: {}, certificate }) }),
  );
  await client.get(callOf(), configMaps, 'a', 'own');
  certificate = certificateOf('renewed');
  await client.get(callOf(), configMaps, 'a', 'own');
  assert.deepEqual(
    api.asked.map(each => each.certificate),
    ['gateway', 'gateway-renewed'],
  );
  // Sooner than a connection ends that nobody uses.
  await soon(
    api.until(() => api.open.size === 1, 'an end'),
    'the end of the old connection',
    2_000,
  );
});

test('credentials that cannot be had fail the request, and nothing is sent without them', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')));
  const identity = () => Promise.reject(new Error('the program "aws" failed: no session'));
  const client = createKubernetesClient(accessTo(api.url, { identity }));
  const error = await failure(client.get(callOf(), configMaps, 'a', 'own'));
  assert.equal(error.code, 'unavailable');
  assert.equal(
    error.message,
    "cannot get configmaps a in namespace own: the gateway's credentials for the API server cannot be had: " +
      'the program "aws" failed: no session',
  );
  assert.equal(api.asked.length, 0);
});

test('credentials that do not come keep nobody longer than a request may take', async () => {
  const identity = () => new Promise<never>(() => {});
  const client = createKubernetesClient(accessTo('http://127.0.0.1:9', { identity }));
  const error = await soon(failure(client.get(callOf({ timeoutMs: 30 }), configMaps, 'a', 'own')), 'an end');
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /^cannot get configmaps a in namespace own: /);
});

test('the certificate of the server is judged, whoever calls', async t => {
  const api = await startApi(t, (_, response) => reply(response, configMap('a')), { tls: true });
  const client = createKubernetesClient(accessTo(api.url, { trust: async () => ({ ca: pem('stranger.crt') }) }));
  for (const call of [callOf(), callWith('token-of-jane')]) {
    const error = await failure(client.get(call, configMaps, 'a', 'own'));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, /: the certificate of the API server at https:\S+ is not accepted \([A-Z_]+\); check/);
  }
  const named = createKubernetesClient(
    accessTo(api.url, { trust: async () => ({ ca: pem('ca.crt'), serverName: 'elsewhere.example.com' }) }),
  );
  assert.match((await failure(named.get(callOf(), configMaps, 'a', 'own'))).message, /ERR_TLS_CERT_ALTNAME_INVALID/);
  assert.equal(api.asked.length, 0, 'nothing was sent');
  const careless = createKubernetesClient(accessTo(api.url, { trust: async () => ({ insecure: true }) }));
  await careless.get(callOf(), configMaps, 'a', 'own');
});
