import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indexFile } from '../../../src/drivers/kserve/hub/weights.ts';
import { createHub } from '../../../src/drivers/kserve/hub.ts';
import { answer, callOf, serve } from '../scripted.ts';
import { recording, startLab, tiny } from './hubLab.ts';

const secret = 'hf_aVerySecretToken42';
const callerSecret = 'eyJhbGciOi.caller.token';
const caller = { name: 'jo@example.org', anonymous: false, scope: 'jo', token: () => callerSecret };

test('a request has the token of the operator and nothing of the caller', async t => {
  const models = [tiny('acme/closed', { gated: 'manual' })];
  const { server, hub } = await startLab(t, {
    models,
    tokens: { [secret]: ['acme/closed'] },
    token: async () => ` ${secret}\n`,
  });
  await hub.weights(callOf({ caller }), 'acme/closed', 'main', []);
  await hub.search(callOf({ caller }), 'closed', 5);
  assert.equal(server.requests.length, 4);
  for (const { headers } of server.requests) {
    assert.deepEqual(Object.keys(headers).sort(), ['accept', 'authorization', 'connection', 'host', 'user-agent']);
    assert.equal(headers.authorization, `Bearer ${secret}`);
    assert.equal(headers.accept, 'application/json');
    assert.equal(headers['user-agent'], 'model-manager');
  }
});

test('no token goes to another host, nor over any redirect', async t => {
  // Another port is another host already.
  const other = await serve(t, (_, response) => answer(response, 200, { id: 'acme/x' }));
  const places = {
    '/api/models/acme/elsewhere': `${other.endpoint}/api/models/acme/x`,
    '/api/models/acme/scheme': `${other.endpoint.replace('http:', '')}/x`,
    '/api/models/acme/moved': '/api/models/acme/now',
    '/api/models/acme/twice': '/api/models/acme/moved',
    '/api/models/acme/back': '//user:pass@HOST/api/models/acme/now',
  } as Record<string, string>;
  const { endpoint, requests } = await serve(t, ({ path, headers }, response) => {
    const location = places[path]?.replace('HOST', headers.host ?? '');
    if (location) response.writeHead(307, { location }).end(`see ${location}`);
    else answer(response, 200, { id: 'acme/now' });
  });
  const { log } = recording();
  const hub = createHub({ endpoint, token: async () => secret, timeoutMs: 4_000, log });
  for (const name of ['elsewhere', 'scheme'])
    assert.equal((await hub.repository(callOf({ caller }), `acme/${name}`)).miss?.why, 'failed', name);
  for (const name of ['moved', 'twice', 'back'])
    assert.equal((await hub.repository(callOf({ caller }), `acme/${name}`)).value?.id, 'acme/now', name);
  assert.equal(other.requests.length, 0);
  for (const { path, headers } of requests) {
    const first = path in places && !(path.endsWith('/moved') && headers.authorization === undefined);
    assert.equal(headers.authorization, first ? `Bearer ${secret}` : undefined, path);
  }
  assert.equal(requests.filter(({ path, headers }) => path.endsWith('/now') && headers.authorization).length, 0);
});

test('the CDN sees neither a token nor a request, and neither does whoever a link names', async t => {
  const elsewhere = await serve(t, (_, response) => answer(response, 200, []));
  const models = [
    {
      id: 'acme/x',
      files: [
        { path: 'model.bin', bytes: 5_000 },
        { path: indexFile, text: '{}' },
      ],
    },
  ];
  const { server, hub } = await startLab(t, { models, tokens: { [secret]: [] }, token: async () => secret });
  const path = '/api/models/acme/x/tree/main';
  const body = JSON.stringify([{ type: 'file', path: 'a.gguf', size: 5 }]);
  const next = `<${elsewhere.endpoint}${path}?recursive=true&cursor=MA>; rel="next"`;
  server.fault({ kind: 'answer', path, nth: 1, body, headers: { link: next } });
  const kept = { location: `${server.cdn.url}/a/b?X-Amz-Signature=s3cret` };
  server.fault({ kind: 'answer', path: `/acme/x/resolve/main/${indexFile}`, status: 302, body: '', headers: kept });
  const { weights } = await hub.weights(callOf(), 'acme/x', 'main', []);
  assert.deepEqual([elsewhere.requests.length, server.cdn.requests.length], [0, 0]);
  assert.equal(weights?.bytes, 5_005, 'of both pages');
  assert.equal(server.requests.filter(request => request.path === path).length, 2);
});

test('a redirect that would need the token says which name needs none', async t => {
  const models = [tiny('acme/new', { private: true })];
  const tokens = { [secret]: ['acme/new'] };
  const { hub } = await startLab(t, { models, tokens, token: async () => secret, renamed: { 'acme/old': 'acme/new' } });
  const { miss } = await hub.repository(callOf(), 'acme/old');
  assert.equal(miss?.why, 'failed');
  assert.equal(
    miss.words,
    'acme/old has moved to /api/models/acme/new, which gets no hub token; use its new name (HTTP 401)',
  );
});

test('a server that repeats the token does not get it into words or logs', async t => {
  const { endpoint } = await serve(t, ({ path, headers }, response) => {
    const words = { error: `no: ${headers.authorization}` };
    answer(response, path.endsWith('/b') ? 200 : 500, words);
  });
  const { log, lines } = recording();
  const hub = createHub({ endpoint, token: async () => secret, timeoutMs: 4_000, log });
  for (const id of ['a/a', 'a/b']) {
    const { miss } = await hub.repository(callOf({ log }), id);
    assert.match(miss?.words ?? '', /no: Bearer …/);
  }
  assert.ok(!JSON.stringify(lines).includes(secret));
});

test('the Secret is read once a minute at most, and again at once after a failure', async t => {
  let now = Date.parse('2026-01-02T03:04:05Z');
  let reads = 0;
  let token: string | Error = new Error('secrets "hub" is forbidden');
  const models = ['acme/a', 'acme/b', 'acme/c', 'acme/d'].map(id => tiny(id));
  const { log, lines } = recording('warn');
  const { server, hub } = await startLab(t, {
    models,
    tokens: { hf_firstToken: [], hf_secondToken: [] },
    now: () => now,
    log,
    async token() {
      reads++;
      if (token instanceof Error) throw token;
      return token;
    },
  });
  const ask = async (id: string) => {
    assert.equal((await hub.repository(callOf(), id)).value?.id, id);
    return server.requests.at(-1)?.headers.authorization;
  };
  assert.equal(await ask('acme/a'), undefined, 'what is public is there without it');
  assert.equal(reads, 1);
  assert.match(JSON.stringify(lines), /hub token cannot be used/);
  token = 'hf_firstToken';
  assert.equal(await ask('acme/b'), 'Bearer hf_firstToken');
  token = 'hf_secondToken';
  now += 59_999;
  assert.equal(await ask('acme/c'), 'Bearer hf_firstToken');
  assert.equal(reads, 2);
  now += 1;
  assert.equal(await ask('acme/d'), 'Bearer hf_secondToken');
  assert.equal(reads, 3);
});

test('a token that cannot be read or sent is the reason where one is needed', async t => {
  const models = [tiny('acme/secret', { private: true }), tiny('acme/open')];
  const table: [token: () => Promise<string | undefined>, why: string][] = [
    [async () => 'two words', 'it has a blank, a line break or a foreign character in it'],
    [() => Promise.reject(new Error('secrets "hub" is forbidden')), 'secrets "hub" is forbidden'],
  ];
  for (const [token, why] of table) {
    const { hub } = await startLab(t, { models, token });
    assert.equal((await hub.repository(callOf(), 'acme/open')).value?.id, 'acme/open');
    const { miss } = await hub.repository(callOf(), 'acme/secret');
    assert.equal(miss?.why, 'failed');
    assert.equal(miss.words, `acme/secret needs a hub token, and the configured one cannot be used: ${why} (HTTP 401)`);
  }
});
