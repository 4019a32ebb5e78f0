import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { instant, type LmstudioOptions, manualClock, startLmstudio } from '../../src/demo/lmstudio.ts';

const bounded = { timeout: 10_000 };

const qwen = { name: 'qwen/qwen3-8b', bytes: 1, contextLength: 40_960, variants: ['qwen/qwen3-8b@q4_k_m'] };
const granite = { name: 'ibm/granite', bytes: 1, loadMs: 9000 };
const embedder = { name: 'text-embedding-nomic', bytes: 1, contextLength: 2048, capabilities: ['embedding'] };

async function started(t: TestContext, options: LmstudioOptions = {}) {
  const clock = manualClock();
  const server = await startLmstudio({ clock, timings: instant, models: [qwen, granite, embedder], ...options });
  t.after(() => server.close());
  const post = async (path: string, body: object) => {
    const answer = await fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
  };
  const load = (model: string, more: object = {}) => post('/api/v1/models/load', { model, ...more });
  const unload = (instance_id: string) => post('/api/v1/models/unload', { instance_id });
  const chat = (model: string, more: object = {}) =>
    post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], ...more });
  const ids = () => server.loaded().map(({ id }) => id);
  return { server, clock, load, unload, chat, post, ids };
}

describe('a load', bounded, () => {
  test('takes its time, tells it, and lists the instance when it is there', async t => {
    const { load, clock, ids } = await started(t);
    const loading = load('ibm/granite');
    await clock.sleeping();
    assert.deepEqual(ids(), []);
    await clock.advance(9000);
    assert.deepEqual(await loading, {
      status: 200,
      body: { type: 'llm', instance_id: 'ibm/granite', load_time_seconds: 9, status: 'loaded' },
    });
    assert.deepEqual(ids(), ['ibm/granite']);
  });

  test('loads once more each time, also when two of them race', async t => {
    const { load, clock, ids } = await started(t);
    const both = [load('ibm/granite'), load('ibm/granite')];
    await clock.sleeping(2);
    await clock.advance(9000);
    const instances = (await Promise.all(both)).map(({ body }) => body.instance_id);
    assert.deepEqual(instances.sort(), ['ibm/granite', 'ibm/granite:2']);
    await load('qwen/qwen3-8b');
    await load('qwen/qwen3-8b');
    await load('qwen/qwen3-8b');
    assert.deepEqual(ids().slice(2), ['qwen/qwen3-8b', 'qwen/qwen3-8b:2', 'qwen/qwen3-8b:3']);
  });

  test('takes settings, and repeats them when asked to', async t => {
    const { load, server } = await started(t);
    const { body } = await load('qwen/qwen3-8b', {
      context_length: 16_384,
      flash_attention: false,
      echo_load_config: true,
    });
    assert.deepEqual(body.load_config, {
      context_length: 16_384,
      eval_batch_size: 512,
      flash_attention: false,
      num_experts: 0,
      offload_kv_cache_to_gpu: true,
    });
    assert.equal(server.loaded()[0]?.contextLength, 16_384);
    const { body: embedding } = await load('text-embedding-nomic', { echo_load_config: true });
    assert.equal(embedding.type, 'embedding');
    assert.deepEqual(embedding.load_config, { context_length: 2048 });
  });

  test('by the name of a variant is refused by 0.4.1 only', async t => {
    const { load } = await started(t, { version: '0.4.1' });
    assert.equal((await load('qwen/qwen3-8b@q4_k_m')).status, 404);
    const newer = await started(t);
    assert.equal((await newer.load('qwen/qwen3-8b@q4_k_m')).body.instance_id, 'qwen/qwen3-8b');
  });

  test('that fails leaves nothing in memory', async t => {
    const loadError = 'Model loading was stopped due to insufficient system resources.';
    const { load, chat, ids } = await started(t, { models: [{ ...qwen, loadError }] });
    assert.deepEqual(await load('qwen/qwen3-8b'), {
      status: 500,
      body: { error: { type: 'unknown', message: loadError } },
    });
    assert.equal((await chat('qwen/qwen3-8b')).status, 400);
    assert.deepEqual(ids(), []);
  });

  test('goes on when its client has gone', async t => {
    const { server, clock, ids } = await started(t);
    const abort = new AbortController();
    const body = '{"model":"ibm/granite"}';
    const load = fetch(`${server.url}/api/v1/models/load`, { method: 'POST', body, signal: abort.signal });
    await clock.sleeping();
    abort.abort();
    await assert.rejects(load);
    await clock.advance(9000);
    assert.equal(await (await server.requested('/api/v1/models/load')).ended, 'cut');
    assert.deepEqual(ids(), ['ibm/granite']);
  });

  test('through the API, or by a person, stays', async t => {
    const { load, server, clock, ids } = await started(t);
    await load('qwen/qwen3-8b');
    server.load('ibm/granite', { id: 'my own name' });
    await clock.advance(365 * 24 * 3_600_000);
    assert.deepEqual(ids(), ['qwen/qwen3-8b', 'my own name']);
  });
});

describe('an unload', bounded, () => {
  test('means an instance: the key of a model is none when its instances have other names', async t => {
    const { unload, server, ids } = await started(t);
    server.load('qwen/qwen3-8b');
    assert.equal(server.load('qwen/qwen3-8b'), 'qwen/qwen3-8b:2');
    assert.equal((await unload('qwen/qwen3-8b')).status, 200);
    assert.deepEqual(await unload('qwen/qwen3-8b'), {
      status: 404,
      body: {
        error: {
          type: 'model_not_found',
          message: "Model with instance identifier 'qwen/qwen3-8b' is not loaded.",
        },
      },
    });
    assert.deepEqual(ids(), ['qwen/qwen3-8b:2']);
  });

  test('takes its time', async t => {
    const { unload, server, clock, ids } = await started(t, { timings: { ...instant, unloadMs: 500 } });
    server.load('qwen/qwen3-8b');
    const unloading = unload('qwen/qwen3-8b');
    await clock.sleeping();
    assert.deepEqual(ids(), ['qwen/qwen3-8b']);
    await clock.advance(500);
    await unloading;
    assert.deepEqual(ids(), []);
  });
});

describe('a completion', bounded, () => {
  test('loads what it needs for an hour, which every use starts anew', async t => {
    const { chat, server, clock, ids } = await started(t);
    const { body } = await chat('qwen/qwen3-8b');
    assert.match(body.choices[0].message.content, /qwen\/qwen3-8b/);
    assert.equal(server.loaded()[0]?.expiresAt?.toISOString(), '2026-08-22T09:00:00.000Z');
    await clock.advance(1_800_000);
    await chat('qwen/qwen3-8b');
    assert.equal(server.loaded()[0]?.expiresAt?.toISOString(), '2026-08-22T09:30:00.000Z');
    await clock.advance(3_599_999);
    assert.deepEqual(ids(), ['qwen/qwen3-8b']);
    await clock.advance(1);
    assert.deepEqual(ids(), []);
  });

  test('may say how long the model it loads is to stay', async t => {
    const { chat, server, clock, ids } = await started(t);
    await chat('qwen/qwen3-8b', { ttl: 300 });
    await chat('qwen/qwen3-8b', { ttl: 9999 });
    assert.equal(server.loaded()[0]?.expiresAt?.toISOString(), '2026-08-22T08:05:00.000Z');
    await clock.advance(300_000);
    assert.deepEqual(ids(), []);
  });

  test('keeps its model busy until its last word, whatever its time to live', async t => {
    const { server, clock, ids } = await started(t, {
      timings: { ...instant, tokenMs: 1000 },
      complete: () => 'one two three',
    });
    const body = JSON.stringify({ model: 'qwen/qwen3-8b', messages: [], ttl: 1, stream: true });
    const answer = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body });
    await clock.sleeping();
    await clock.advance(2999);
    assert.partialDeepStrictEqual(server.loaded(), [{ busy: 1, expiresAt: undefined }]);
    await clock.advance(1);
    assert.match(await answer.text(), /"content":"one".*"content":" three".*"finish_reason":"stop".*\[DONE\]/s);
    assert.deepEqual(ids(), ['qwen/qwen3-8b']);
    await clock.advance(1000);
    assert.deepEqual(ids(), []);
  });

  test('takes the place of another model that was loaded on demand, and of no other', async t => {
    const { chat, post, server, ids } = await started(t, { models: [qwen, { ...granite, loadMs: 0 }, embedder] });
    server.load('ibm/granite', { id: 'kept' });
    await chat('qwen/qwen3-8b');
    await post('/v1/embeddings', { model: 'text-embedding-nomic', input: 'a' });
    assert.deepEqual(ids(), ['kept', 'text-embedding-nomic']);
    const tolerant = await started(t, { autoEvict: false });
    await tolerant.chat('qwen/qwen3-8b');
    await tolerant.post('/v1/embeddings', { model: 'text-embedding-nomic', input: 'a' });
    assert.deepEqual(tolerant.ids(), ['qwen/qwen3-8b', 'text-embedding-nomic']);
  });

  test('loads twice when two of them race', async t => {
    const { chat, clock, ids } = await started(t);
    const both = [chat('ibm/granite'), chat('ibm/granite')];
    await clock.sleeping(2);
    await clock.advance(9000);
    await Promise.all(both);
    assert.deepEqual(ids(), ['ibm/granite', 'ibm/granite:2']);
  });

  test('goes to the instance that it names, or to one of the model that it names', async t => {
    const { chat, server, ids } = await started(t);
    server.load('qwen/qwen3-8b', { id: 'my own name' });
    server.load('ibm/granite');
    assert.equal((await chat('my own name')).body.model, 'my own name');
    assert.equal((await chat('qwen/qwen3-8b')).body.model, 'my own name');
    assert.equal((await chat('qwen/qwen3-8b@q4_k_m')).body.model, 'my own name');
    assert.deepEqual(ids(), ['my own name', 'ibm/granite']);
  });

  test('of an unknown model is refused in the words of OpenAI', async t => {
    const { chat } = await started(t);
    const { status, body } = await chat('nope');
    assert.equal(status, 400);
    assert.match(
      body.error.message,
      /^Invalid model identifier "nope"\. Please specify a valid downloaded model \(e\.g\., /,
    );
    assert.partialDeepStrictEqual(body.error, {
      type: 'invalid_request_error',
      param: 'model',
      code: 'model_not_found',
    });
  });

  test('loads nothing where that is switched off', async t => {
    const { chat, ids } = await started(t, { onDemand: false });
    const { status, body } = await chat('qwen/qwen3-8b');
    assert.equal(status, 400);
    assert.match(body.error.message, /^No models loaded\./);
    assert.deepEqual(ids(), []);
  });
});

describe('a restart', bounded, () => {
  test('empties the memory, breaks what is under way, and keeps the library', async t => {
    const { server, load, clock, ids } = await started(t);
    server.load('qwen/qwen3-8b');
    const loading = load('ibm/granite');
    await clock.sleeping();
    await server.restart();
    await assert.rejects(loading);
    await clock.advance(60_000);
    assert.deepEqual(ids(), []);
    assert.deepEqual(server.models(), ['qwen/qwen3-8b', 'ibm/granite', 'text-embedding-nomic']);
    assert.equal((await load('qwen/qwen3-8b')).body.instance_id, 'qwen/qwen3-8b');
  });
});
