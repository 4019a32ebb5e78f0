import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { answer, callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, asked, driverAt, model } from './host.ts';

test('load, unload and delete send what the recorded pairs hold', async t => {
  const { pairs } = fixtureJson('load-unload.json');
  const { endpoint, requests } = await serve(t, ({ method, path, body }, response) => {
    if (path === '/api/ps') return answer(response, 200, { models: [{ name: 'bge-m3:latest' }] });
    const pair = pairs.find((each: { request: object }) => isDeepStrictEqual(each.request, { method, path, body }));
    if (pair) answer(response, pair.response.status, pair.response.body);
    else answer(response, 500, { error: `not recorded: ${method} ${path} ${JSON.stringify(body)}` });
  });
  const driver = driverAt(endpoint);
  await driver.load(callOf(), { model: 'qwen3:8b', keepAlive: '-1' });
  await driver.unload(callOf(), model('qwen3:8b'));
  await driver.load(callOf(), { model: 'bge-m3', keepAlive: '10m' });
  await driver.remove(callOf(), model('qwen3:8b'));
  assert.deepEqual(asked(requests), [
    ['POST /api/generate', { model: 'qwen3:8b', keep_alive: -1 }],
    ['POST /api/generate', { model: 'qwen3:8b', keep_alive: 0 }],
    ['POST /api/generate', { model: 'bge-m3', keep_alive: '10m' }],
    ['POST /api/embed', { model: 'bge-m3', input: '', keep_alive: '10m' }],
    ['GET /api/ps', undefined],
    ['POST /api/generate', { model: 'qwen3:8b', keep_alive: 0 }],
    ['DELETE /api/delete', { model: 'qwen3:8b' }],
  ]);
});

const done = { model: 'x', response: '', done: true, done_reason: 'load' };

test('a load without a keep-alive takes the default, and a bad one never reaches the server', async t => {
  const { driver, requests } = await against(t, { 'POST /api/generate': done }, { keepAliveDefault: '600' });
  await driver.load(callOf(), { model: 'x:1b', keepAlive: ' ' });
  for (const keepAlive of ['0', '0s', 'soon'])
    assert.equal((await failure(driver.load(callOf(), { model: 'x:1b', keepAlive }))).code, 'invalid_request');
  assert.deepEqual(asked(requests), [['POST /api/generate', { model: 'x:1b', keep_alive: 600 }]]);
});

test('a model that only embeds goes to embed at once, one that also chats does not', async t => {
  const digest = 'd'.repeat(64);
  const { driver, requests } = await against(t, {
    'POST /api/generate': done,
    'POST /api/embed': { model: 'x', embeddings: [] },
    'GET /api/ps': { models: [{ name: 'another-tag:latest', digest }] },
  });
  const embeds = model('bge-m3:latest', { capabilities: ['embedding'], digest });
  await driver.load(callOf(), { model: embeds.name, keepAlive: '5m', listed: embeds });
  const both = model('both:1b', { capabilities: ['completion', 'embedding'] });
  await driver.load(callOf(), { model: both.name, keepAlive: '5m', listed: both });
  assert.deepEqual(
    requests.map(({ path }) => path),
    ['/api/embed', '/api/ps', '/api/generate'],
  );
});

test('an embedding model that is not in memory after its load has not been loaded', async t => {
  const { driver } = await against(t, {
    'POST /api/generate': [400, { error: '"all-minilm" does not support generate' }],
    'POST /api/embed': { embeddings: [] },
    'GET /api/ps': fixtureJson('api-ps.json'),
  });
  const error = await failure(driver.load(callOf(), { model: 'all-minilm:latest', keepAlive: '5m' }));
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /all-minilm:latest is not among the loaded models; Ollama before 0\.3\.6/);
});

test('a 400 that only has "embed" in the name of the model is no embedding model', async t => {
  const { driver, requests } = await against(t, {
    'POST /api/generate': [400, { error: 'invalid option for nomic-embed-text' }],
  });
  const error = await failure(driver.load(callOf(), { model: 'nomic-embed-text:latest', keepAlive: '5m' }));
  assert.equal(error.code, 'invalid_request');
  assert.equal(requests.length, 1);
});

test('a 200 that does not say the load is done is not a load', async t => {
  const table: [unknown, RegExp][] = [
    [{ error: 'Unexpected endpoint or method. (POST /api/generate)' }, /is LM Studio .*configure it as an lmstudio/],
    [{ error: 'quota' }, /did not answer like Ollama but with the error "quota"/],
    [{ model: 'x', done: false }, /with the document/],
    [null, /with the text null/],
    [[200, '', ''], /with an empty answer/],
  ];
  for (const [body, words] of table) {
    const { driver } = await against(t, { 'POST /api/generate': body ?? [200, 'null'] });
    const error = await failure(driver.load(callOf(), { model: 'x:1b', keepAlive: '5m' }));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, words);
  }
});

test('no prompt goes to the cloud: a cloud model is not loaded, its unload does nothing, its stub can be deleted', async t => {
  const { driver, requests } = await against(t, {
    'GET /api/tags': { models: [{ name: 'mine:latest', remote_host: 'https://ollama.com:443' }] },
    'DELETE /api/delete': [200, '', ''],
  });
  const [copy] = await driver.models(callOf());
  assert.ok(copy);
  for (const { name } of [model('gpt-oss:120b-cloud'), model('kimi-k2:cloud'), copy]) {
    const error = await failure(driver.load(callOf(), { model: name, keepAlive: '5m' }));
    assert.equal(error.code, 'invalid_request');
    assert.match(error.message, /runs at ollama\.com, not on this host, so there is nothing to load/);
    await driver.unload(callOf(), model(name));
  }
  await driver.remove(callOf(), copy);
  assert.deepEqual(asked(requests), [
    ['GET /api/tags', undefined],
    ['DELETE /api/delete', { model: 'mine:latest' }],
  ]);
});

test('unloading falls back to embed on servers that ask what a model can do first', async t => {
  const { driver, requests } = await against(t, {
    'POST /api/generate': [400, { error: '"all-minilm" does not support generate' }],
    'POST /api/embed': { embeddings: [] },
  });
  await driver.unload(callOf(), model('all-minilm:latest'));
  assert.deepEqual(requests.at(-1)?.body, { model: 'all-minilm:latest', input: '', keep_alive: 0 });
});

test('a delete goes on when the unload before it fails, and a 200 with an error in it is no delete', async t => {
  const { driver, requests } = await against(t, {
    'POST /api/generate': [500, { error: 'boom' }],
    'DELETE /api/delete': [200, '', ''],
  });
  await driver.remove(callOf(), model('x:1b'));
  assert.equal(requests.at(-1)?.method, 'DELETE');
  const odd = await against(t, {
    'DELETE /api/delete': { error: 'Unexpected endpoint or method. (DELETE /api/delete)' },
  });
  assert.match((await failure(odd.driver.remove(callOf(), model('x:1b')))).message, /is LM Studio/);
});

test('an abort in the middle of a load closes the request, which is how Ollama hears of it', async t => {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, (_, response) => {
    response.on('close', closed.resolve);
    arrived.resolve();
  });
  const abort = new AbortController();
  const load = failure(driverAt(endpoint).load(callOf({ signal: abort.signal }), { model: 'x:1b', keepAlive: '-1' }));
  await soon(arrived.promise, 'request');
  abort.abort();
  assert.match((await soon(load, 'load')).message, /^ollama: POST \/api\/generate: cancelled by the caller$/);
  await soon(closed.promise, 'close');
});
