/**
 * What the emulated Lemonade and a real one have in common, and the recorded documents that it can reproduce. How to run
 * the first part against a real server stands in `src/demo/lemonade.ts`.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import {
  type EmulatedModel,
  instant,
  type LemonadeOptions,
  manualClock,
  startLemonade,
} from '../../src/demo/lemonade.ts';

const bounded = { timeout: 10_000 };
const recorded = (name: string) =>
  JSON.parse(readFileSync(new URL(`../fixtures/lemonade/${name}`, import.meta.url), 'utf8'));

const GiB = 2 ** 30;

/** The models of the recorded list; their sizes are GiB, as the server has measured them. */
const library: EmulatedModel[] = [
  {
    name: 'Qwen3-0.6B-GGUF',
    checkpoint: 'unsloth/Qwen3-0.6B-GGUF:Q4_0',
    labels: ['chat', 'reasoning', 'tool-calling'],
    bytes: 0.355 * GiB,
    maxContextWindow: 40_960,
  },
  {
    name: 'qwen3-it-4b-FLM',
    checkpoint: 'qwen3-it:4b',
    recipe: 'flm',
    device: 'npu',
    labels: ['chat', 'reasoning'],
    bytes: 3.1 * GiB,
    contextLength: 262_144,
  },
  {
    name: 'nomic-embed-text-v1-GGUF',
    checkpoint: 'nomic-ai/nomic-embed-text-v1-GGUF:Q4_K_S',
    labels: ['embeddings'],
    bytes: 0.073 * GiB,
  },
  {
    name: 'Tiny-Test-Model-GGUF',
    checkpoint: 'unsloth/gemma-3-270m-it-GGUF:gemma-3-270m-it-UD-IQ2_M.gguf',
    labels: ['hot'],
    bytes: 0.168 * GiB,
  },
  {
    name: 'Whisper-Tiny',
    checkpoint: 'ggerganov/whisper.cpp:ggml-tiny.bin',
    recipe: 'whispercpp',
    labels: ['transcription'],
    bytes: 0.072 * GiB,
  },
  {
    name: 'SmolLM2-135M-Instruct-Hybrid',
    checkpoint: 'amd/SmolLM2-135M-Instruct-onnx-ryzenai-1.7-hybrid',
    recipe: 'ryzenai-llm',
    labels: [],
    bytes: 0.233 * GiB,
  },
  { name: 'user.Big', checkpoint: 'acme/sharded-GGUF:Q4_K_M', labels: ['chat', 'custom'], bytes: 61.7 * GiB },
];

const notYet = {
  name: 'Not-Yet',
  checkpoint: 'acme/notyet-GGUF:Q8_0',
  files: [{ name: 'notyet-Q8_0.gguf', bytes: 9.9e9 }],
};

const team: EmulatedModel = {
  name: 'My-Team',
  recipe: 'collection.omni',
  components: ['Qwen3-0.6B-GGUF', 'Whisper-Tiny'],
  labels: ['chat', 'Vision', 'vision '],
};

async function started(t: TestContext, options: LemonadeOptions = {}) {
  const server = await startLemonade({ timings: instant, ...options });
  t.after(() => server.close());
  const get = async (path: string) => (await fetch(server.url + path)).json();
  return { server, get };
}

const real = process.env.LEMONADE_REAL_URL;

for (const kind of ['emulated', 'real'] as const) {
  const skip = kind === 'real' && !real && 'LEMONADE_REAL_URL names no server';

  describe(`any Lemonade (${kind})`, { ...bounded, timeout: kind === 'real' ? 60_000 : 10_000 }, () => {
    const reach = async (t: TestContext) =>
      kind === 'real' ? (real ?? '') : (await started(t, { models: library, registry: [notYet] })).server.url;
    const asked = async (url: string, init?: RequestInit) => {
      const answer = await fetch(url, init);
      return { status: answer.status, body: JSON.parse(await answer.text()) };
    };

    test('says that it is well, its version, and what is in memory', { skip }, async t => {
      const { status, body } = await asked(`${await reach(t)}/api/v1/health`);
      assert.equal(status, 200);
      assert.equal(body.status, 'ok');
      assert.match(body.version, /^\d+\.\d+\.\d+/);
      assert.ok(Array.isArray(body.all_models_loaded));
    });

    test('lists models with checkpoint, recipe and labels; the whole catalog when asked for it', { skip }, async t => {
      const url = await reach(t);
      const { body: downloaded } = await asked(`${url}/api/v1/models`);
      const { body: all } = await asked(`${url}/api/v1/models?show_all=true`);
      assert.equal(downloaded.object, 'list');
      for (const row of downloaded.data) {
        assert.equal(row.created, 1234567890);
        assert.deepEqual(
          [typeof row.id, typeof row.checkpoint, typeof row.recipe, row.downloaded, Array.isArray(row.labels)],
          ['string', 'string', 'string', true, true],
        );
      }
      assert.ok(all.data.length > downloaded.data.length);
      assert.ok(all.data.some((row: { downloaded: boolean }) => !row.downloaded));
    });

    test('has the same routes under four prefixes, and knows no doubled or trailing slash', { skip }, async t => {
      const url = await reach(t);
      for (const prefix of ['/api/v1', '/api/v0', '/v1', '/v0']) {
        assert.equal((await asked(`${url}${prefix}/health`)).status, 200, prefix);
      }
      for (const path of ['//api/v1/health', '/api/v1/health/', '/api/v1/no-such-route']) {
        const { status, body } = await asked(url + path);
        assert.deepEqual([status, body.error.type], [404, 'not_found'], path);
      }
    });

    test('refuses to be asked with GET what takes a POST', { skip }, async t => {
      assert.deepEqual(await asked(`${await reach(t)}/api/v1/load`), {
        status: 405,
        body: { error: 'Method Not Allowed. Use POST for this endpoint' },
      });
    });

    test('does not find a model that is not in the catalog', { skip }, async t => {
      const body = JSON.stringify({ model_name: 'no-such-model-here' });
      const { status, body: refusal } = await asked(`${await reach(t)}/api/v1/load`, { method: 'POST', body });
      assert.equal(status, 404);
      assert.partialDeepStrictEqual(refusal.error, {
        code: 'model_not_found',
        param: 'model',
        requested_model: 'no-such-model-here',
        type: 'model_not_found',
      });
    });

    test('passes for an Ollama of a version that never changes', { skip }, async t => {
      const url = await reach(t);
      assert.deepEqual((await asked(`${url}/api/version`)).body, { version: '0.16.1' });
      for (const { name, digest } of (await asked(`${url}/api/tags`)).body.models) {
        assert.match(name, /:latest$/);
        assert.equal(digest, `sha256:${'0'.repeat(64)}`);
      }
    });

    test('describes its machine', { skip }, async t => {
      const { body } = await asked(`${await reach(t)}/api/v1/system-info`);
      assert.equal(typeof body['Physical Memory'], 'string');
      assert.equal(typeof body.devices.cpu.family, 'string');
    });
  });
}

describe('recorded documents', bounded, () => {
  test('the list of models, with what is not downloaded, a collection, and what the next release adds', async t => {
    const { get } = await started(t, { version: '11.8.0', models: [...library, team], registry: [notYet] });
    const { data } = await get('/api/v1/models?show_all=true');
    const expected: { id: string }[] = recorded('models.json').data;
    for (const row of expected)
      assert.deepEqual(
        data.find(({ id }: { id: string }) => id === row.id),
        row,
      );
    assert.equal(data.length, expected.length);
    const listed = await get('/api/v1/models');
    assert.equal(listed.data.length, expected.length - 1);
  });

  test('the list of an old release, with names that show their namespace', async t => {
    const gone = { source: undefined, suggested: undefined, recipe_options: undefined, components: undefined };
    const row = { ...gone, checkpoints: undefined };
    const { get } = await started(t, {
      version: '9.0.0',
      models: [
        {
          name: 'Qwen2.5-7B-Instruct-NPU',
          checkpoint: 'amd/Qwen2.5-7B-Instruct-awq-uint4-asym-onnx',
          recipe: 'oga-npu',
          row,
        },
        {
          name: 'user.Phi-4-Mini-GGUF',
          checkpoint: 'unsloth/Phi-4-mini-instruct-GGUF:Q4_K_M',
          bytes: 2.49e9,
          row: { ...row, labels: null },
        },
      ],
    });
    assert.deepEqual(await get('/api/v1/models'), recorded('models-old.json'));
  });

  test('the health of a server with a pinned model on the NPU and an embedding model', async t => {
    const { server, get } = await started(t, { clock: manualClock(3_000_418), models: library });
    server.load('qwen3-it-4b-FLM', { pinned: true, contextLength: 32_768 });
    server.load('nomic-embed-text-v1-GGUF');
    const expected = recorded('health.json');
    const health = await get('/api/v1/health');
    assert.deepEqual(health.all_models_loaded, expected.all_models_loaded);
    assert.partialDeepStrictEqual(health, expected);
  });

  test('the health of a server with models in every state', async t => {
    const clock = manualClock(3_000_418);
    const model = (name: string, variant: string, more: Partial<EmulatedModel> = {}) => ({
      name,
      checkpoint: `org/${variant}`,
      bytes: 1,
      ...more,
    });
    const { server, get } = await started(t, {
      clock,
      timings: { ...instant, tokenMs: 1000, unloadMs: 1000 },
      listsLoading: true,
      maxModels: 9,
      models: [
        model('Busy', 'busy-GGUF:Q4_K_M'),
        model('Auto-Ctx', 'auto-GGUF:Q4_K_M', { device: 'gpu|npu' }),
        model('Coming', 'coming-GGUF:Q8_0', { loadMs: 60_000 }),
        model('Shrunk', 'shrunk-GGUF:Q8_0'),
        model('Going', 'going-GGUF:Q8_0', { device: 'cpu' }),
      ],
    });
    server.load('Busy');
    server.load('Auto-Ctx', { contextLength: -1 });
    server.load('Shrunk', {}, 'downsized');
    server.load('Going');
    const post = (path: string, body: object) =>
      fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
    const chat = await post('/v1/chat/completions', { model: 'Busy', stream: true, messages: [] });
    const load = post('/v1/load', { model_name: 'Coming' });
    const unload = post('/v1/unload', { model_name: 'Going' });
    await clock.sleeping(3);

    const rows: { model_name: string }[] = (await get('/api/v1/health')).all_models_loaded;
    const expected: { model_name: string }[] = recorded('health-states.json').all_models_loaded;
    const seen = ['Busy', 'Auto-Ctx', 'Coming', 'Shrunk', 'Going'];
    assert.deepEqual(rows.map(row => row.model_name).sort(), [...seen].sort());
    for (const name of seen) {
      const named = ({ model_name }: { model_name: string }) => model_name === name;
      assert.deepEqual(rows.find(named), expected.find(named));
    }
    await clock.advance(60_000);
    await Promise.all([chat.text(), load, unload]);
  });

  test('the health of a server that knows no states yet', async t => {
    const { server, get } = await started(t, { version: '10.7.0', clock: manualClock(3_000_418), models: library });
    server.load('Qwen3-0.6B-GGUF');
    assert.deepEqual((await get('/api/v1/health')).all_models_loaded, [
      recorded('health-states.json').all_models_loaded.at(-1),
    ]);
  });

  test('the description of a machine with an NPU', async t => {
    const { get } = await started(t);
    const { model_storage: storage, recipes, ...expected } = recorded('system-info.json');
    const described = await get('/api/v1/system-info');
    assert.partialDeepStrictEqual(described, expected);
    assert.deepEqual(Object.keys(described.model_storage), Object.keys(storage));
    assert.equal(typeof recipes, typeof described.recipes);
  });

  for (const [place, { answer }] of recorded('system-info-odd.json').cases.entries()) {
    test(`the description of odd machine ${place + 1}`, async t => {
      const { get } = await started(t, { system: answer });
      assert.partialDeepStrictEqual(await get('/api/v1/system-info'), answer);
    });
  }

  test('the devices under the names of older releases', async t => {
    const devices = async (version: string) =>
      Object.keys((await (await started(t, { version })).get('/api/v1/system-info')).devices);
    assert.deepEqual(await devices('10.2.0'), ['cpu', 'amd_igpu', 'amd_dgpu', 'amd_npu', 'nvidia_dgpu']);
    assert.deepEqual(await devices('9.3.0'), ['cpu', 'amd_igpu', 'amd_dgpu', 'npu', 'nvidia_dgpu']);
  });
});

describe('names', bounded, () => {
  test('are shown without their namespace, taken with and without it, and differ by case', async t => {
    const { server, get } = await started(t, { models: [{ name: 'user.Two', bytes: 1 }] });
    assert.deepEqual(server.models(), ['Two']);
    for (const name of ['Two', 'user.Two']) assert.equal((await get(`/v1/models/${name}`)).id, 'Two');
    assert.equal((await get('/v1/models/two')).error.code, 'model_not_found');
  });

  test('keep their namespace when the catalog has another model of that name', async t => {
    const { server } = await started(t, {
      models: [{ name: 'user.Two', bytes: 1 }],
      registry: [{ name: 'Two', files: [{ name: 'two.gguf', bytes: 1 }] }],
    });
    assert.deepEqual(server.models(), ['user.Two']);
  });
});

describe('sizes', bounded, () => {
  const bytes = 12_582_912;
  const size = async (t: TestContext, version: string, pulled: boolean) => {
    const files = [{ name: 'a.gguf', bytes }];
    const { server, get } = await started(
      t,
      pulled ? { version, registry: [{ name: 'A', files }] } : { version, models: [{ name: 'A', files }] },
    );
    if (pulled) await fetch(`${server.url}/v1/pull`, { method: 'POST', body: '{"model_name":"A"}' });
    return (await get('/v1/models')).data[0].size;
  };

  test('are GiB once the server has measured them, and GB before', async t => {
    assert.equal(await size(t, '11.7.0', true), 0.012);
    assert.equal(await size(t, '11.7.0', false), 0.012);
    assert.equal(await size(t, '10.9.0', true), 0.012);
    assert.equal(await size(t, '10.9.0', false), 0.013);
    assert.equal(await size(t, '10.5.0', true), 0.013);
  });

  test('are exact in the list of a model’s files', async t => {
    const files = [
      { name: 'a-Q4_K_M.gguf', bytes: 9_437_184 },
      { name: 'mmproj-F16.gguf', bytes: 3_145_728 },
    ];
    const { get } = await started(t, { models: [{ name: 'A', files }] });
    assert.deepEqual(await get('/api/v1/models/A/files'), {
      model_id: 'A',
      files: [
        { name: 'a-Q4_K_M.gguf', role: 'main', size_bytes: 9_437_184, exists: true },
        { name: 'mmproj-F16.gguf', role: 'mmproj', size_bytes: 3_145_728, exists: true },
      ],
    });
  });
});
