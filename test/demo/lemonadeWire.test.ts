import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { Ollama } from 'ollama';
import { instant, type LemonadeOptions, manualClock, startLemonade } from '../../src/demo/lemonade.ts';

const bounded = { timeout: 10_000 };
const { cases } = JSON.parse(readFileSync(new URL('../fixtures/lemonade/errors.json', import.meta.url), 'utf8'));

const model = {
  name: 'Qwen3-0.6B-GGUF',
  checkpoint: 'unsloth/Qwen3-0.6B-GGUF:Q4_0',
  labels: ['chat', 'reasoning', 'tool-calling'],
  bytes: 0.355 * 2 ** 30,
};

async function started(t: TestContext, options: LemonadeOptions = {}) {
  const server = await startLemonade({ clock: manualClock(), timings: instant, models: [model], ...options });
  t.after(() => server.close());
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const answer = await fetch(server.url + path, { method, headers, ...sent });
    const text = await answer.text();
    return { status: answer.status, type: answer.headers.get('content-type'), text };
  };
  return { server, call };
}

describe('a recorded refusal', bounded, () => {
  /** The one that names this code or has this text. */
  const recorded = (part: string) => {
    const found = cases.find((each: { body: object }) => JSON.stringify(each.body).includes(part));
    assert.ok(found, part);
    return found as { status: number; body: object };
  };
  const options: LemonadeOptions = {
    models: [
      { name: 'Pinned', bytes: 1 },
      { name: 'A', bytes: 1, labels: ['image'] },
      { name: 'Gone', bytes: 1, labels: ['tts'], loadError: '… HTTP error 404 … not found' },
      { name: 'Big', bytes: 1 },
      { name: 'X', bytes: 1, supported: false },
    ],
  };
  const load = { method: 'POST', path: '/api/v1/load' };
  const requests = [
    ['model_not_found', { ...load, body: { model_name: 'Nope' } }],
    ['model_not_supported', { ...load, body: { model_name: 'X' } }],
    ['slots_pinned_error', { ...load, body: { model_name: 'Big' } }],
    ['model_load_error', { ...load, body: { model_name: 'Gone' } }],
    ['Model not loaded', { method: 'POST', path: '/api/v1/unload', body: { model_name: 'Big' } }],
    ['Model not found', { method: 'POST', path: '/api/v1/delete', body: { model_name: 'two' } }],
    ['unknown_model', { method: 'POST', path: '/api/v1/pull', body: { model_name: 'Nope' } }],
    ['type_error.302', { method: 'POST', path: '/api/v1/pull', body: {} }],
    ['Origin not allowed', { method: 'GET', path: '/api/v1/health', headers: { origin: 'https://stranger.example' } }],
    ['Method Not Allowed', { method: 'GET', path: '/api/v1/load' }],
    ['endpoint does not exist', { method: 'GET', path: '/api/v1/x' }],
    ['API key', { method: 'GET', path: '/api/v1/health', apiKey: 'secret' }],
    ['lemond_offline', { method: 'POST', path: '/api/v1/pull', body: { model_name: 'A' }, offline: true }],
  ] as const;

  for (const [part, request] of requests) {
    test(`(${part}) is given for ${request.method} ${request.path}`, async t => {
      const { server, call } = await started(t, {
        ...options,
        ...('offline' in request && { offline: true }),
        ...('apiKey' in request && { apiKey: request.apiKey }),
      });
      server.load('Pinned', { pinned: true });
      const { method, path } = request;
      const headers = 'headers' in request ? request.headers : {};
      const answer = await call(method, path, 'body' in request ? request.body : undefined, headers);
      const { status, body } = recorded(part);
      assert.equal(answer.status, status);
      assert.equal(answer.type, 'application/json');
      // Long texts were shortened when they were recorded.
      const pattern = JSON.stringify(body)
        .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replace(/'A', 'B', and 100 more\\\. …| …/g, '.*');
      assert.match(answer.text, new RegExp(`^${pattern}$`));
    });
  }
});

describe('requests', bounded, () => {
  test('without a body, or with one that is no JSON, are refused', async t => {
    const { call } = await started(t);
    for (const path of ['/v1/pull', '/v1/load', '/v1/delete', '/v1/chat/completions']) {
      assert.deepEqual(
        [(await call('POST', path, '')).status, (await call('POST', path, '')).text],
        [400, '{"error":"Request body is required but was empty"}'],
      );
      assert.match((await call('POST', path, '{"model_name":')).text, /^\{"error":"Invalid JSON in request body: /);
    }
  });

  test('need the key where there is one, under the API only', async t => {
    const { call } = await started(t, { apiKey: 'secret' });
    const status = async (path: string, authorization?: string) =>
      (await call('GET', path, undefined, authorization ? { authorization } : {})).status;
    assert.equal(await status('/v1/health', 'Bearer secret'), 200);
    assert.equal(await status('/v1/health', 'Bearer wrong'), 401);
    assert.equal(await status('/api/tags'), 401);
    assert.equal(await status('/elsewhere'), 404);
    const { call: old } = await started(t, { apiKey: 'secret', version: '9.1.1' });
    assert.equal((await old('GET', '/v1/health')).status, 200);
  });

  test('of browser pages are taken from this machine, from listed pages, and from everywhere before 11.5', async t => {
    const { call } = await started(t, { origins: ['https://portal.example'] });
    for (const origin of ['http://localhost:3000', 'https://portal.example']) {
      assert.equal((await call('GET', '/v1/health', undefined, { origin })).status, 200, origin);
    }
    const { call: old } = await started(t, { version: '11.4.0' });
    assert.equal((await old('GET', '/v1/health', undefined, { origin: 'https://stranger.example' })).status, 200);
  });

  test('are recorded with method, path, query, headers and body', async t => {
    const { server, call } = await started(t);
    await call('POST', '/v1/load?x=1', { model_name: model.name }, { 'x-test': 'yes' });
    const recorded = await server.requested('/v1/load');
    assert.partialDeepStrictEqual(recorded, { method: 'POST', path: '/v1/load', body: { model_name: model.name } });
    assert.equal(recorded.query.get('x'), '1');
    assert.equal(recorded.headers['x-test'], 'yes');
    assert.equal(await recorded.ended, 'answered');
  });

  test('meet faults', async t => {
    const { server, call } = await started(t);
    const clear = server.fault({ path: '/api/v1/health', kind: 'drop' });
    await assert.rejects(call('GET', '/api/v1/health'));
    assert.equal((await call('GET', '/v1/health')).status, 200, 'another path');
    clear();
    server.fault({ path: '/api/v1/health', kind: 'answer', body: '{"status":"error","message":"backend crashed"}' });
    assert.match((await call('GET', '/api/v1/health')).text, /crashed/);
  });
});

describe('an older release', bounded, () => {
  const health = async (t: TestContext, version: string) => {
    const { server, call } = await started(t, { version });
    server.load(model.name);
    return JSON.parse((await call('GET', '/v1/health')).text);
  };

  test('before 10.8 has neither states nor pins, and before 9.0.6 no list of what is loaded', async t => {
    assert.equal('pinned_models' in (await health(t, '10.7.0')), false);
    const old = await health(t, '9.0.5');
    assert.equal('all_models_loaded' in old, false);
    assert.equal(old.model_loaded, model.name);
  });

  test('before 9.0.5 does not stream a pull, and before 10.0.1 says no total', async t => {
    const registry = [{ name: 'New', files: [{ name: 'new.gguf', bytes: 5 }] }];
    const pull = async (version: string) => {
      const { call } = await started(t, { version, registry });
      return call('POST', '/v1/pull', { model_name: 'New', stream: true });
    };
    assert.equal((await pull('9.0.4')).text, '{"status":"success","model_name":"New"}');
    assert.doesNotMatch((await pull('10.0.0')).text, /total_download_size/);
    assert.match((await pull('10.0.1')).text, /total_download_size/);
  });

  test('before 10.3 shows namespaces and has no code for an unknown model', async t => {
    const { server, call } = await started(t, { version: '10.2.0', models: [{ name: 'user.Two', bytes: 1 }] });
    assert.match((await call('GET', '/v1/models')).text, /"id":"user\.Two"/);
    server.load('Two');
    assert.match((await call('GET', '/v1/health')).text, /"model_name":"user\.Two"/);
    assert.doesNotMatch((await call('POST', '/v1/pull', { model_name: 'Nope' })).text, /unknown_model/);
  });

  test('lists less and less about a model', async t => {
    const rich = { ...model, maxContextWindow: 40_960, contextLength: 40_960 };
    const fields = async (version: string) => {
      const { call } = await started(t, { version, models: [rich] });
      return Object.keys(JSON.parse((await call('GET', '/v1/models')).text).data[0]);
    };
    const added = ['context_length', 'registry_source', 'update_available', 'max_context_window', 'downloaded'];
    for (const [version, missing] of [
      ['11.8.0', 0],
      ['11.7.0', 1],
      ['10.9.0', 2],
      ['10.8.0', 3],
      ['10.3.0', 4],
      ['9.0.0', 5],
    ] as const) {
      const has = await fields(version);
      assert.deepEqual(
        added.filter(field => !has.includes(field)),
        added.slice(0, missing),
        version,
      );
    }
  });
});

describe('an Ollama client', bounded, () => {
  const client = async (t: TestContext, options: LemonadeOptions = {}) => {
    const { server, call } = await started(t, options);
    return { server, call, ollama: new Ollama({ host: server.url }) };
  };

  test('takes the server for an Ollama, with dates and digests that say nothing', async t => {
    const { server, ollama } = await client(t);
    assert.equal((await ollama.version()).version, '0.16.1');
    const details = {
      parent_model: '',
      format: 'gguf',
      family: 'llamacpp',
      families: ['llamacpp'],
      parameter_size: '0.6B',
      quantization_level: 'Q4_0',
    };
    const same = {
      name: 'Qwen3-0.6B-GGUF:latest',
      model: 'Qwen3-0.6B-GGUF:latest',
      digest: `sha256:${'0'.repeat(64)}`,
      details,
    };
    assert.deepEqual((await ollama.list()).models, [
      { ...same, modified_at: '2024-01-01T00:00:00Z', size: 381_178_347 },
    ]);
    server.load(model.name);
    assert.deepEqual((await ollama.ps()).models, [
      { ...same, size: 0, expires_at: '2099-01-01T00:00:00Z', size_vram: 0 },
    ]);
    const shown = await ollama.show({ model: 'Qwen3-0.6B-GGUF:latest' });
    assert.deepEqual(shown.capabilities, ['completion', 'tools', 'thinking']);
  });

  test('pulls, chats, embeds, unloads and deletes', async t => {
    const registry = [{ name: 'New', files: [{ name: 'new.gguf', bytes: 5 }] }];
    const { server, ollama } = await client(t, { registry, complete: name => `${name} says so` });
    const lines = [];
    for await (const line of await ollama.pull({ model: 'New', stream: true })) lines.push(line.status);
    assert.deepEqual([...new Set(lines)], ['pulling manifest', 'downloading new.gguf', 'success']);
    assert.equal((await ollama.generate({ model: 'New:latest', prompt: 'hi' })).response, 'New says so');
    let said = '';
    const messages = [{ role: 'user', content: 'hi' }];
    for await (const { message } of await ollama.chat({ model: 'New', messages, stream: true }))
      said += message.content;
    assert.equal(said, 'New says so');
    assert.equal((await ollama.embed({ model: 'New', input: ['a', 'b'] })).embeddings.length, 2);
    assert.deepEqual(
      server.loaded().map(({ name }) => name),
      ['New'],
    );
    const unloaded = await ollama.generate({ model: 'New', prompt: '', keep_alive: 0 });
    assert.equal(unloaded.done_reason, 'unload');
    assert.deepEqual(server.loaded(), []);
    await ollama.delete({ model: 'New' });
    assert.deepEqual(server.models(), [model.name]);
  });

  test('is refused what Lemonade does not have', async t => {
    const { ollama, call } = await client(t);
    await assert.rejects(ollama.chat({ model: 'nope', messages: [] }), {
      status_code: 404,
      error: "model 'nope' not found, try pulling it first",
    });
    await assert.rejects(ollama.pull({ model: 'nope' }), { status_code: 404, error: "model 'nope' not found" });
    await assert.rejects(ollama.copy({ source: 'a', destination: 'b' }), { status_code: 501 });
    assert.equal((await call('POST', '/api/chat', {})).text, '{"error":"model is required"}');
  });
});
