/**
 * What the emulated Ollama and a real one have in common, as the official client sees it. How to run the first part
 * against a real server stands in `src/demo/ollama.ts`.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Ollama } from 'ollama';
import { instant, manualClock, type OllamaOptions, startOllama } from '../../src/demo/ollama.ts';

const bounded = { timeout: 10_000 };

const shared = { bytes: 333, digest: `sha256:${'5'.repeat(64)}` };

const tiny = {
  name: 'all-minilm:22m',
  capabilities: ['embedding'],
  family: 'bert',
  parameterSize: '23M',
  quantization: 'F16',
  contextLength: 512,
  embeddingLength: 384,
  layers: [{ bytes: 45_949_216 }, { bytes: 11_357 }, { bytes: 16 }, shared],
  pullMs: 60,
};

/** A layer that is there is reported however fast the others come. */
const neighbour = { name: 'neighbour', layers: [{ bytes: 1 }, shared] };

const qwen = {
  name: 'qwen3:8b',
  bytes: 5_225_388_164,
  family: 'qwen3',
  parameterSize: '8.2B',
  quantization: 'Q4_K_M',
  contextLength: 40_960,
  embeddingLength: 4096,
  capabilities: ['completion', 'tools', 'thinking'],
  memoryBytes: 6_862_180_352,
  modifiedAt: new Date('2026-08-14T19:07:33.412Z'),
};

const embedder = {
  name: 'bge-m3',
  bytes: 1_157_672_605,
  family: 'bert',
  capabilities: ['embedding'],
  modifiedAt: new Date('2026-06-11T07:45:12Z'),
};

async function started(t: TestContext, options: OllamaOptions = {}) {
  const server = await startOllama({ timings: instant, ...options });
  t.after(() => server.close());
  return { server, client: new Ollama({ host: server.url }) };
}

async function collect<T>(lines: AsyncIterable<T>): Promise<T[]> {
  const all = [];
  for await (const line of lines) all.push(line);
  return all;
}

const real = process.env.OLLAMA_REAL_URL;
const realModel = process.env.OLLAMA_REAL_MODEL;

for (const kind of ['emulated', 'real'] as const) {
  const skip = kind === 'real' && !real && 'OLLAMA_REAL_URL names no server';
  const skipModel = skip || (kind === 'real' && !realModel && 'OLLAMA_REAL_MODEL names no model to pull and delete');

  describe(`any Ollama (${kind})`, { ...bounded, timeout: kind === 'real' ? 600_000 : 10_000 }, () => {
    const reach = async (t: TestContext) => {
      if (kind === 'real') return { client: new Ollama({ host: real ?? '' }), url: real ?? '' };
      const { client, server } = await started(t, { models: [qwen, neighbour], registry: [tiny] });
      return { client, url: server.url };
    };

    test('says its version in numbers', { skip }, async t => {
      const { client } = await reach(t);
      assert.match((await client.version()).version, /^\d+\.\d+\.\d+/);
    });

    test('lists models with tag, digest without prefix, size and a date', { skip }, async t => {
      const { client } = await reach(t);
      for (const model of (await client.list()).models) {
        assert.match(model.name, /:[^/]+$/);
        assert.equal(model.name, model.model);
        assert.match(model.digest, /^[0-9a-f]{64}$/);
        assert.ok(Number.isSafeInteger(model.size));
        assert.match(String(model.modified_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/);
      }
    });

    test('does not find a model that is not there', { skip }, async t => {
      const { client } = await reach(t);
      const error = { status_code: 404, error: "model 'no-such-model-here' not found" };
      await assert.rejects(client.generate({ model: 'no-such-model-here', prompt: '' }), error);
      await assert.rejects(client.show({ model: 'no-such-model-here' }), error);
      await assert.rejects(client.delete({ model: 'no-such-model-here' }), error);
    });

    test('refuses a name that breaks the grammar', { skip }, async t => {
      const { client } = await reach(t);
      await assert.rejects(client.pull({ model: 'two words' }), { status_code: 400, error: 'invalid model name' });
    });

    test('refuses a keep-alive text without a unit', { skip }, async t => {
      const { client } = await reach(t);
      await assert.rejects(client.generate({ model: 'any', prompt: '', keep_alive: '-1' }), {
        status_code: 400,
        error: 'time: missing unit in duration "-1"',
      });
    });

    test('refuses pages of strangers with an empty body', { skip }, async t => {
      const { url } = await reach(t);
      const answer = await fetch(`${url}/api/version`, { headers: { origin: 'https://stranger.example' } });
      assert.equal(answer.status, 403);
      assert.equal(await answer.text(), '');
    });

    test('answers unknown routes and methods in plain text', { skip }, async t => {
      const { url } = await reach(t);
      const missing = await fetch(`${url}/api/no-such-route`);
      assert.deepEqual([missing.status, await missing.text()], [404, '404 page not found']);
      const wrong = await fetch(`${url}/api/tags`, { method: 'PUT' });
      assert.deepEqual([wrong.status, await wrong.text()], [405, '405 method not allowed']);
      assert.equal(wrong.headers.get('content-type'), 'text/plain');
    });

    test('pulls, loads, unloads and deletes a small embedding model', { skip: skipModel }, async t => {
      const { client, url } = await reach(t);
      const model = (kind === 'real' && realModel) || tiny.name;

      const lines = await collect(await client.pull({ model, stream: true }));
      assert.equal(lines[0]?.status, 'pulling manifest');
      assert.equal(lines.at(-1)?.status, 'success');
      assert.ok(lines.some(line => /^pulling [0-9a-f]{12}$/.test(line.status) && line.total > 0));
      assert.ok((await client.list()).models.some(row => row.name === model));

      await assert.rejects(client.generate({ model, prompt: '' }), {
        status_code: 400,
        error: `"${model}" does not support generate`,
      });
      const loaded = await fetch(`${url}/api/embed`, {
        method: 'POST',
        body: JSON.stringify({ model, input: '', keep_alive: -1 }),
      });
      assert.equal(await loaded.text(), JSON.stringify({ model, embeddings: [] }));
      const row = (await client.ps()).models.find(each => each.name === model);
      assert.ok(Number(String(row?.expires_at).slice(0, 4)) > 2300);
      assert.ok((await client.embed({ model, input: 'a' })).embeddings[0]?.every(Number.isFinite));

      const unloaded = await client.generate({ model, prompt: '', keep_alive: 0 });
      assert.equal(unloaded.done_reason, 'unload');
      await client.delete({ model });
      assert.ok(!(await client.list()).models.some(each => each.name === model));
    });
  });
}

describe('the library', bounded, () => {
  test('is listed newest first, with what the client needs', async t => {
    const { client } = await started(t, { models: [embedder, qwen] });
    const { models } = await client.list();
    assert.deepEqual(
      models.map(model => model.name),
      ['qwen3:8b', 'bge-m3:latest'],
    );
    assert.deepEqual(
      { ...models[0], digest: undefined },
      {
        name: 'qwen3:8b',
        model: 'qwen3:8b',
        modified_at: '2026-08-14T21:07:33.412364907+02:00',
        size: 5_225_388_164,
        digest: undefined,
        details: {
          parent_model: '',
          format: 'gguf',
          family: 'qwen3',
          families: ['qwen3'],
          parameter_size: '8.2B',
          quantization_level: 'Q4_K_M',
          context_length: 40_960,
          embedding_length: 4096,
        },
        capabilities: ['completion', 'tools', 'thinking'],
      },
    );
  });

  test('shows a model by any spelling of its name', async t => {
    const { client } = await started(t, { models: [embedder] });
    for (const model of ['bge-m3', 'BGE-M3:Latest', 'library/bge-m3', 'registry.ollama.ai/library/bge-m3:latest']) {
      const shown = await client.show({ model });
      assert.deepEqual(shown.capabilities, ['embedding']);
      assert.deepEqual(shown.model_info, { 'general.architecture': 'bert' });
    }
  });

  test('changes under the client when somebody adds or removes a model', async t => {
    const { client, server } = await started(t, { models: [qwen] });
    server.addModel({ name: 'someuser/tool:7b', bytes: 7 });
    assert.equal((await client.list()).models.length, 2);
    server.removeModel('qwen3:8b');
    assert.deepEqual(
      (await client.list()).models.map(model => model.name),
      ['someuser/tool:7b'],
    );
  });

  test('keeps a deleted model in memory until its time is over', async t => {
    const clock = manualClock();
    const { client } = await started(t, { clock, models: [qwen] });
    await client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: '1m' });
    await client.delete({ model: 'qwen3:8b' });
    assert.deepEqual((await client.list()).models, []);
    assert.equal((await client.ps()).models[0]?.name, 'qwen3:8b');
    await clock.advance(60_000);
    assert.deepEqual((await client.ps()).models, []);
  });
});

describe('cloud models', bounded, () => {
  const stub = {
    name: 'gpt-oss:120b-cloud',
    bytes: 384,
    family: 'gptoss',
    remote: { model: 'gpt-oss:120b', host: 'https://ollama.com:443' },
  };

  test('are listed as stubs and never run here', async t => {
    const { client, server } = await started(t, { models: [stub] });
    const [row] = (await client.list()).models;
    assert.partialDeepStrictEqual(row, {
      name: 'gpt-oss:120b-cloud',
      size: 384,
      remote_model: 'gpt-oss:120b',
      remote_host: 'https://ollama.com:443',
    });
    assert.equal(row?.details.format, '');
    await assert.rejects(client.generate({ model: 'gpt-oss:120b-cloud', prompt: '' }), {
      status_code: 401,
      error: 'unauthorized',
    });
    assert.deepEqual(server.loaded(), []);
  });

  test('are refused where the cloud is switched off', async t => {
    const { client } = await started(t, { models: [stub], cloud: 'disabled' });
    await assert.rejects(client.generate({ model: 'gpt-oss:120b:cloud', prompt: '' }), {
      status_code: 403,
      error: 'ollama cloud is disabled: remote model is unavailable',
    });
  });

  test('are pulled under the name of their stub', async t => {
    const { client } = await started(t, { registry: [{ ...stub, layers: [{ bytes: 384 }] }] });
    await client.pull({ model: 'gpt-oss:120b:cloud' });
    assert.equal((await client.list()).models[0]?.name, 'gpt-oss:120b-cloud');
  });
});
