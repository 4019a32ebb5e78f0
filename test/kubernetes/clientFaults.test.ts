import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createKubernetesClient, type KubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps, secrets } from '../../src/kubernetes/resource.ts';
import { callOf, failure, soon } from '../drivers/scripted.ts';
import { accessTo, configMap, listOf, refuse, reply, type Script, startApi } from './apiLab.ts';

async function against(t: TestContext, script: Script) {
  const api = await startApi(t, script);
  return { api, client: createKubernetesClient(accessTo(api.url)) };
}

const own = { namespace: 'own' };
const get = (client: KubernetesClient, call = callOf()) => client.get(call, configMaps, 'a', 'own');

/** Requests that change something. */
const changes: readonly (readonly [string, (client: KubernetesClient) => Promise<unknown>])[] = [
  ['POST', client => client.create(callOf(), configMaps, configMap('a'))],
  ['PUT', client => client.replace(callOf(), configMaps, configMap('a'))],
  ['PATCH', client => client.patch(callOf(), configMaps, 'a', 'own', {})],
  ['DELETE', client => client.remove(callOf(), configMaps, 'a', 'own')],
];

const drop = (response: ServerResponse) => response.destroy();

/** Lets sockets and promises have their turns. */
async function turns(count = 50) {
  for (let turn = 0; turn < count; turn++) await new Promise(resolve => setImmediate(resolve));
}

// --- trying again ----------------------------------------------------------------------------------------------------

test('a read whose connection breaks is tried once more: before the answer, and within it', async t => {
  const { api, client } = await against(t, (_, response, count) => {
    if (count === 1) drop(response);
    else if (count === 3) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"kind":', () => response.destroy());
    } else reply(response, configMap('a'));
  });
  await get(client);
  assert.equal(api.asked.length, 2);
  await get(client);
  assert.equal(api.asked.length, 4);
});

test('a read whose connection breaks twice has failed', async t => {
  const { api, client } = await against(t, (_, response) => drop(response));
  const error = await failure(client.list(callOf(), configMaps, own));
  assert.equal(error.code, 'unavailable');
  assert.equal(
    error.message,
    `cannot list configmaps in namespace own: the connection to the API server at ${api.url} was lost (UND_ERR_SOCKET)`,
  );
  assert.equal(api.asked.length, 2);
});

for (const [method, change] of changes) {
  test(`${method} is not tried again when its connection breaks: it may have been done`, async t => {
    const { api, client } = await against(t, (_, response) => drop(response));
    const error = await failure(change(client));
    assert.equal(error.code, 'unavailable');
    assert.equal(api.asked.length, 1);
  });

  test(`${method} is not tried again after 503: it may have been done`, async t => {
    const { api, client } = await against(t, (_, response) =>
      refuse(response, 503, { message: 'etcd is shy', headers: { 'retry-after': '1' } }),
    );
    await assert.rejects(change(client), { code: 'unavailable', details: { retryAfterMs: 1_000 } });
    assert.equal(api.asked.length, 1);
  });

  test(`${method} that the server puts off is sent when it said, not sooner`, async t => {
    const { api, client } = await against(t, (_, response, count) =>
      count === 1 ? refuse(response, 429, { headers: { 'retry-after': '5' } }) : reply(response, configMap('a')),
    );
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const done = change(client);
    await api.until(() => api.asked.length === 1, 'the first try');
    await turns();
    t.mock.timers.tick(4_999);
    await turns();
    assert.equal(api.asked.length, 1);
    t.mock.timers.tick(1);
    await done;
    assert.equal(api.asked.length, 2);
    assert.equal(api.asked[1]?.method, method);
  });
}

test('a read waits for 503, too, and for no longer than it may take', async t => {
  const { api, client } = await against(t, (_, response, count) =>
    count === 2 ? reply(response, configMap('a')) : refuse(response, 503, { headers: { 'retry-after': '7' } }),
  );
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const read = get(client);
  await api.until(() => api.asked.length === 1, 'the first try');
  await turns();
  t.mock.timers.tick(7_000);
  await read;
  t.mock.timers.reset();
  const late = soon(get(client, callOf({ timeoutMs: 6_000 })), 'an end', 5_000);
  await assert.rejects(late, { code: 'unavailable', details: { retryAfterMs: 7_000 } });
  assert.equal(api.asked.length, 3, 'what would be too late is not waited for');
});

test('a server that asks for patience again and again is left alone in the end', async t => {
  const { api, client } = await against(t, (_, response) => refuse(response, 429, { headers: { 'retry-after': '0' } }));
  const error = await failure(get(client));
  assert.equal(error.code, 'rate_limited');
  assert.equal(api.asked.length, 4);
});

test('a server that asks for patience without a time is not asked again', async t => {
  const { api, client } = await against(t, (_, response) => refuse(response, 429));
  await assert.rejects(get(client), { code: 'rate_limited', details: { retryAfterMs: 1_000 } });
  assert.equal(api.asked.length, 1);
});

test('who leaves while a server is given its time is not kept', async t => {
  const { api, client } = await against(t, (_, response) => refuse(response, 429, { headers: { 'retry-after': '6' } }));
  const abort = new AbortController();
  const waiting = failure(get(client, callOf({ signal: abort.signal })));
  await api.until(() => api.asked.length === 1, 'the first try');
  await turns();
  abort.abort();
  assert.equal((await soon(waiting, 'an end')).code, 'rate_limited');
  assert.equal(api.asked.length, 1);
});

test('a server that refuses connections is asked once more, changes included: nothing was sent', async t => {
  const { api, client } = await against(t, (_, response) => reply(response, configMap('a')));
  const { port } = new URL(api.url);
  await new Promise(resolve => api.server.close(resolve));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const created = client.create(callOf(), configMaps, configMap('a'));
  await turns();
  await new Promise<void>(resolve => api.server.listen(Number(port), '127.0.0.1', () => resolve()));
  t.mock.timers.tick(200);
  await created;
  assert.equal(api.asked.length, 1);
});

test('a server that is not there is said to be so, with its address', async t => {
  const { api, client } = await against(t, () => {});
  await new Promise(resolve => api.server.close(resolve));
  const error = await failure(client.list(callOf(), configMaps, own));
  assert.equal(error.code, 'unavailable');
  assert.equal(
    error.message,
    `cannot list configmaps in namespace own: the API server at ${api.url} cannot be reached (ECONNREFUSED)`,
  );
});

// --- time ------------------------------------------------------------------------------------------------------------

test('a request takes eight seconds at most, with all its tries', async t => {
  const { api, client } = await against(t, (_, response, count) => {
    if (count === 1) refuse(response, 429, { headers: { 'retry-after': '5' } });
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const late = failure(get(client));
  await api.until(() => api.asked.length === 1, 'the first try');
  await turns();
  t.mock.timers.tick(5_000);
  await api.until(() => api.asked.length === 2, 'the second try');
  t.mock.timers.tick(3_000);
  const error = await soon(late, 'an end');
  assert.equal(error.code, 'backend_error');
  assert.equal(
    error.message,
    `cannot get configmaps a in namespace own: no answer from the API server at ${api.url} within 8 s`,
  );
  await api.until(() => api.open.size === 0, 'its connection is closed');
});

test("a request ends before the call's deadline, and in the middle of an answer, too", async t => {
  const { api, client } = await against(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{');
  });
  const error = await soon(failure(get(client, callOf({ timeoutMs: 30 }))), 'an end');
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /^cannot get configmaps a in namespace own: no answer from the API server at /);
  await api.until(() => api.open.size === 0, 'its connection is closed');
});

test('who leaves ends the request', async t => {
  const { api, client } = await against(t, () => {});
  const abort = new AbortController();
  const call = callOf({ signal: abort.signal });
  const waiting = failure(get(client, call));
  await api.until(() => api.asked.length === 1, 'the request');
  abort.abort();
  const error = await soon(waiting, 'an end');
  assert.equal(error.message, 'cannot get configmaps a in namespace own: cancelled by the caller');
  await api.until(() => api.open.size === 0, 'its connection is closed');
  assert.match((await failure(get(client, call))).message, /cancelled by the caller$/);
  assert.equal(api.asked.length, 1, 'who has left sends nothing');
});

// --- strange answers -------------------------------------------------------------------------------------------------

const login = '<!doctype html><title>Log in</title><input name="csrf" value="hush-hush-1234">';
const strange: readonly (readonly [string, number, string, string, string])[] = [
  ['a login page', 200, 'text/html; charset=utf-8', login, '200 with text/html'],
  ['a page that refuses', 403, 'text/html', login, '403 with text/html'],
  ['a page without a type', 401, '', login, '401 with no content type'],
  ['a text', 200, 'text/plain', 'hush-hush-1234', '200 with text/plain'],
  ['nothing', 200, '', '', '200 with no content type'],
  ['broken JSON', 200, 'application/json', '{"hush-hush-1234', '200 with application/json'],
  ['XML', 500, 'application/xml', '<e>hush-hush-1234</e>', '500 with application/xml'],
];
for (const [what, status, type, body, words] of strange) {
  test(`${what} is no answer of an API server, and what is in it is not repeated`, async t => {
    const { api, client } = await against(t, (_, response) =>
      response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body),
    );
    const error = await failure(get(client));
    assert.equal(error.code, 'backend_error');
    assert.equal(
      error.message,
      `cannot get configmaps a in namespace own: ${api.url} answered ${words}, which is no answer of a Kubernetes API ` +
        'server; does a proxy or a login page stand there?',
    );
  });
}

test('a page of a proxy before a server that is away means that it is away', async t => {
  const { client } = await against(t, (_, response) =>
    response.writeHead(503, { 'content-type': 'text/html', 'retry-after': '20' }).end('<h1>503</h1>'),
  );
  assert.equal((await failure(get(client))).code, 'unavailable');
});

test('a redirect is not followed, and the secrets in its query are not repeated', async t => {
  const { api, client } = await against(t, (_, response) =>
    response.writeHead(302, { location: 'https://login.example.com/auth?state=hush-hush-1234#x' }).end(),
  );
  const error = await failure(client.create(callOf(), configMaps, configMap('a')));
  assert.equal(error.code, 'backend_error');
  assert.equal(
    error.message,
    `cannot create configmaps a in namespace own: ${api.url} answered a redirect to https://login.example.com/auth; ` +
      'redirects are not followed',
  );
  assert.equal(api.asked.length, 1);
});

test('documents that are no objects and no lists are not taken for such', async t => {
  const { client } = await against(t, (_, response) => reply(response, { ok: true }));
  assert.match((await failure(get(client))).message, /answered a document that is no object of Kubernetes$/);
  const error = await failure(client.list(callOf(), configMaps, own));
  assert.match(error.message, /answered a document that is no list of Kubernetes$/);
});

test('what speaks no HTTP, or no TLS, is said to', async t => {
  const echo = createServer(socket => socket.end('220 mail.example.com ESMTP\r\n')).listen(0, '127.0.0.1');
  t.after(() => echo.close());
  await new Promise(resolve => echo.once('listening', resolve));
  const { port } = echo.address() as { port: number };
  const said = async (url: string) => (await failure(get(createKubernetesClient(accessTo(url))))).message;
  assert.match(await said(`http://127.0.0.1:${port}`), /at http:\S+ does not speak HTTP; check scheme and port$/);
  assert.match(
    await said(`https://127.0.0.1:${port}`),
    /at https:\S+ does not speak TLS \(ERR_SSL_\w+\); should it be/,
  );
});

// --- size ------------------------------------------------------------------------------------------------------------

test('an answer of more than 32 MiB is not read', async t => {
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const { api, client } = await against(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (response.write(chunk));
    };
    response.on('drain', more);
    more();
  });
  const error = await failure(get(client));
  assert.match(error.message, /: the answer of \S+ is larger than 32 MiB$/);
  await api.until(() => api.open.size === 0, 'its connection is closed');
});

// --- lists -----------------------------------------------------------------------------------------------------------

test('a list comes in pages of 500, with the same selection', async t => {
  const { api, client } = await against(t, ({ query }, response) => {
    const page = Number(query.get('continue') ?? 0);
    reply(response, listOf([`c${page}`], { resourceVersion: '7', continue: page < 2 ? String(page + 1) : '' }));
  });
  const { items, resourceVersion } = await client.list(callOf(), configMaps, { ...own, labelSelector: 'a=b' });
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    ['c0', 'c1', 'c2'],
  );
  assert.equal(resourceVersion, '7');
  assert.deepEqual(
    api.asked.map(({ query }) => Object.fromEntries(query)),
    [
      { labelSelector: 'a=b', limit: '500' },
      { labelSelector: 'a=b', limit: '500', continue: '1' },
      { labelSelector: 'a=b', limit: '500', continue: '2' },
    ],
  );
});

test('a list whose pages are not kept any more begins again, once, and keeps nothing of before', async t => {
  let expirations = 1;
  const { api, client } = await against(t, ({ query }, response) => {
    if (!query.has('continue')) reply(response, listOf(['a'], { continue: 'x' }));
    else if (expirations-- > 0) refuse(response, 410, { reason: 'Expired', message: 'the continue token is too old' });
    else reply(response, listOf(['b']));
  });
  const { items } = await client.list(callOf(), configMaps, own);
  assert.equal(items.length, 2);
  assert.equal(api.asked.length, 4);
  expirations = 9;
  const error = await failure(client.list(callOf(), configMaps, own));
  assert.equal(error.code, 'backend_error');
  assert.equal(error.message, 'cannot list configmaps in namespace own: the continue token is too old');
  assert.equal(api.asked.length, 8);
});

test('objects without a name are left out of a list, and an empty list may be null', async t => {
  const { client } = await against(t, ({ query }, response) =>
    reply(
      response,
      query.has('labelSelector')
        ? { items: null, metadata: { resourceVersion: '1' } }
        : {
            items: [{}, null, configMap('a'), { metadata: null }],
            metadata: { resourceVersion: '1' },
          },
    ),
  );
  const { items } = await client.list(callOf(), configMaps, own);
  assert.deepEqual(items, [configMap('a')]);
  assert.deepEqual((await client.list(callOf(), configMaps, { ...own, labelSelector: 'a' })).items, []);
});

// --- secrets ---------------------------------------------------------------------------------------------------------

test('what is written into a Secret is not repeated, whatever the server does', async t => {
  const value = 'sk-very-secret-indeed';
  const { client } = await against(t, ({ headers }, response) =>
    refuse(response, 422, { message: `admission webhook "x" denied: ${value} of ${headers.authorization}` }),
  );
  const secret = { ...configMap('s'), kind: 'Secret', stringData: { key: value } };
  const error = await failure(client.create(callOf(), secrets, secret));
  assert.equal(error.code, 'invalid_request');
  assert.equal(error.message, 'cannot create secrets s in namespace own: admission webhook "x" denied: … of Bearer …');
});

test('basic authentication is not repeated in any form', async t => {
  const pair = Buffer.from('admin:correct-horse').toString('base64');
  const api = await startApi(t, (_, response) =>
    refuse(response, 401, { message: `no: Basic ${pair}, that is admin with correct-horse` }),
  );
  const client = createKubernetesClient(accessTo(api.url, { as: { headers: { authorization: `Basic ${pair}` } } }));
  assert.match((await failure(get(client))).message, /own: no: Basic …, that is admin with …; the API server/);
});
