/**
 * What the emulated LM Studio and a real one have in common, and the recorded documents that it can reproduce. How to run
 * the first part against a real app stands in `src/demo/lmstudio.ts`.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import {
  type EmulatedModel,
  instant,
  type LmstudioOptions,
  manualClock,
  startLmstudio,
} from '../../src/demo/lmstudio.ts';

const bounded = { timeout: 10_000 };
const recorded = (name: string) =>
  JSON.parse(readFileSync(new URL(`../fixtures/lmstudio/${name}`, import.meta.url), 'utf8'));

const qwen = {
  name: 'qwen/qwen3-8b',
  displayName: 'Qwen3 8B',
  family: 'qwen3',
  quantization: 'Q4_K_M',
  bytes: 5_027_784_512,
  parameterSize: '8B',
  contextLength: 40_960,
  capabilities: ['completion', 'tools', 'thinking'],
  variants: ['qwen/qwen3-8b@q4_k_m'],
};

const library: EmulatedModel[] = [
  qwen,
  {
    name: 'ibm/granite-4-micro',
    displayName: 'Granite 4.0 Micro',
    family: 'granite',
    quantization: 'Q4_K_M',
    bytes: 2_098_202_112,
    parameterSize: '3B',
    contextLength: 131_072,
    capabilities: ['completion', 'tools'],
  },
  {
    name: 'google/gemma-3-4b',
    displayName: 'Gemma 3 4B',
    family: 'gemma3',
    quantization: 'Q4_K_M',
    bytes: 3_341_279_232,
    parameterSize: '4B',
    contextLength: 131_072,
    capabilities: ['completion', 'vision'],
  },
  {
    name: 'text-embedding-nomic-embed-text-v1.5',
    publisher: 'nomic-ai',
    displayName: 'Nomic Embed Text v1.5',
    quantization: 'Q4_K_M',
    bytes: 84_106_624,
    contextLength: 2048,
    capabilities: ['embedding'],
  },
];

async function started(t: TestContext, options: LmstudioOptions = {}) {
  const server = await startLmstudio({ clock: manualClock(), timings: instant, models: library, ...options });
  t.after(() => server.close());
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const answer = await fetch(server.url + path, { method, headers, ...sent });
    return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.json() };
  };
  return { server, call };
}

const real = process.env.LMSTUDIO_REAL_URL;
const token = process.env.LMSTUDIO_REAL_TOKEN;

for (const kind of ['emulated', 'real'] as const) {
  const skip = kind === 'real' && !real && 'LMSTUDIO_REAL_URL names no server';

  describe(`any LM Studio (${kind})`, { ...bounded, timeout: kind === 'real' ? 60_000 : 10_000 }, () => {
    const reach = async (t: TestContext) => {
      const url = kind === 'real' ? (real ?? '') : (await started(t)).server.url;
      const headers = { ...(kind === 'real' && token && { authorization: `Bearer ${token}` }) };
      return async (path: string, init: RequestInit = {}) => {
        const answer = await fetch(url + path, { headers, ...init });
        return { status: answer.status, body: JSON.parse(await answer.text()) };
      };
    };

    test('lists its library with what is in memory', { skip }, async t => {
      const ask = await reach(t);
      const { status, body } = await ask('/api/v1/models');
      assert.equal(status, 200);
      for (const model of body.models) {
        assert.ok(['llm', 'embedding'].includes(model.type));
        assert.equal(typeof model.key, 'string');
        assert.ok(Number.isSafeInteger(model.size_bytes));
        assert.ok(Array.isArray(model.loaded_instances));
        assert.equal('capabilities' in model, model.type === 'llm');
      }
    });

    test('lists the same models to clients of older APIs', { skip }, async t => {
      const ask = await reach(t);
      const keys = (await ask('/api/v1/models')).body.models.map((model: { key: string }) => model.key);
      for (const path of ['/v1/models', '/api/v0/models']) {
        const { object, data } = (await ask(path)).body;
        assert.equal(object, 'list');
        for (const key of keys)
          assert.ok(
            data.some((row: { id: string }) => row.id === key),
            `${key} in ${path}`,
          );
      }
    });

    test('says 200 to what it does not know', { skip }, async t => {
      const ask = await reach(t);
      for (const [method, path] of [
        ['GET', '/api/version'],
        ['GET', '/api/v1/health'],
        ['GET', '//api/v1/models'],
        ['POST', '/api/v1/models/delete'],
      ] as const) {
        const { status, body } = await ask(path, { method });
        assert.deepEqual([status, body.error.split(' (')[0]], [200, 'Unexpected endpoint or method.'], path);
      }
    });

    test('does not find models, instances and downloads that are not there', { skip }, async t => {
      const ask = await reach(t);
      const post = (path: string, body: object) =>
        ask(path, { method: 'POST', body: JSON.stringify(body) }).then(({ status, body: { error } }) => [
          status,
          error.type,
        ]);
      assert.deepEqual(await post('/api/v1/models/load', { model: 'no-such-model-here' }), [404, 'model_not_found']);
      assert.deepEqual(await post('/api/v1/models/unload', { instance_id: 'no-such-instance' }), [
        404,
        'model_not_found',
      ]);
      const { status, body } = await ask('/api/v1/models/download/status/job_none');
      assert.deepEqual([status, body.error.type], [404, 'job_not_found']);
    });
  });
}

describe('recorded documents', bounded, () => {
  test('the library, with a loaded model', async t => {
    const { server, call } = await started(t);
    server.load('qwen/qwen3-8b', { config: { context_length: 8192 } });
    const { type, body } = await call('GET', '/api/v1/models');
    assert.deepEqual(body, recorded('models.json'));
    assert.equal(type, 'application/json; charset=utf-8');
  });

  test('an odd library, with three instances of a model, nulls, and keys that differ by case', async t => {
    const same: Partial<EmulatedModel> = {
      publisher: 'qwen',
      displayName: 'Qwen3 8B',
      family: 'qwen3',
      quantization: 'Q4_K_M',
      bytes: 5_027_784_512,
      parameterSize: '8B',
      contextLength: 40_960,
      capabilities: ['completion', 'tools'],
    };
    const model = (name: string, more: Partial<EmulatedModel> = {}): EmulatedModel => ({
      bytes: 0,
      ...same,
      name,
      ...more,
    });
    const withReasoning = { capabilities: { vision: false, trained_for_tool_use: false, reasoning: null } };
    const { server, call } = await started(t, {
      models: [
        model('twice/model'),
        model('mlx/model', {
          displayName: 'Größe 模型 🦙',
          family: null,
          quantization: '4bit',
          bitsPerWeight: 4.5,
          parameterSize: null,
          format: 'mlx',
          row: withReasoning,
        }),
        model('bare', { quantization: null, format: null, row: { description: 'x' } }),
        model('Case/Model', { row: { type: 'vlm' } }),
        model('case/model'),
        model('emb-v0-spelling', {
          publisher: 'nomic-ai',
          displayName: 'Nomic Embed Text v1.5',
          bytes: 84_106_624,
          parameterSize: null,
          contextLength: 2048,
          capabilities: ['embedding'],
          row: { type: 'embeddings' },
        }),
        model('nulls', {
          row: {
            quantization: { name: null, bits_per_weight: null },
            size_bytes: null,
            loaded_instances: null,
            max_context_length: 0,
          },
        }),
        model('qwen3-8b@q8_0', {
          variants: ['qwen3-8b@q4_k_m', 'qwen3-8b@q8_0'],
          row: { selected_variant: 'qwen3-8b@q8_0' },
        }),
      ],
    });
    server.load('twice/model');
    server.load('twice/model', { config: { context_length: 16_384 } });
    server.load('twice/model', { id: 'my own name', config: { context_length: 32_768 } });
    server.load('bare', { id: '' });
    const { models } = (await call('GET', '/api/v1/models')).body;
    // An instance without any settings is beyond the app.
    models[2].loaded_instances[0].config = {};
    assert.deepEqual({ models }, recorded('models-odd.json'));
  });

  test('the library of a release that knows neither variants nor reasoning', async t => {
    const { call } = await started(t, { version: '0.4.1' });
    const [first] = (await call('GET', '/api/v1/models')).body.models;
    assert.deepEqual(first.capabilities, { vision: false, trained_for_tool_use: true });
    assert.equal('variants' in first, false);
  });

  test('loading twice, and unloading', async t => {
    const { call } = await started(t);
    for (const { request, response } of recorded('load-unload.json').pairs) {
      const { status, body } = await call(request.method, request.path, request.body);
      assert.equal(status, response.status);
      const time = 'load_time_seconds' in body ? { load_time_seconds: response.body.load_time_seconds } : {};
      assert.deepEqual({ ...body, ...time }, response.body);
    }
  });

  const refusals: [string, string, string, object?, LmstudioOptions?][] = [
    ['GET /api/v1/models', 'GET', '/api/v1/models', undefined, { version: '0.3.39' }],
    ['POST /api/v1/models/load', 'POST', '/api/v1/models/load', { model: 'qwen/qwen3-8b' }, { version: '0.3.39' }],
    ['Model nope not found', 'POST', '/api/v1/models/load', { model: 'nope' }],
    ['job_not_found', 'GET', '/api/v1/models/download/status/job_none'],
    ['not_implemented', 'POST', '/api/v1/models/download', { model: 'qwen/qwen3-8b', quantization: 'Q4_K_M' }],
    ['unrecognized_keys', 'POST', '/api/v1/models/load', { model: 'qwen/qwen3-8b', ttl: 60 }],
    ['token is required', 'GET', '/api/v1/models', undefined, { tokens: ['sk-lm-one'] }],
  ];
  for (const [part, method, path, body, options] of refusals) {
    test(`the refusal (${part}) of ${method} ${path}`, async t => {
      const found = recorded('errors.json').cases.find((each: { body: object }) =>
        JSON.stringify(each.body).includes(part),
      );
      const { call } = await started(t, options);
      const answer = await call(method, path, body);
      const { message } = answer.body.error;
      assert.equal(answer.status, found.status);
      if (message) assert.ok(message.startsWith(found.body.error.message));
      const expected = message ? { error: { ...found.body.error, message } } : found.body;
      assert.deepEqual(answer.body, expected);
    });
  }
});

describe('a release before 0.4.0', bounded, () => {
  test('has no management API: everything of it is unexpected, with 200, and changes nothing', async t => {
    const { server, call } = await started(t, { version: '0.3.39' });
    for (const [method, path, body] of [
      ['GET', '/api/v1/models'],
      ['POST', '/api/v1/models/load', { model: 'qwen/qwen3-8b' }],
      ['POST', '/api/v1/models/unload', { instance_id: 'qwen/qwen3-8b' }],
      ['POST', '/api/v1/models/download', { model: 'qwen/qwen3-8b' }],
      ['GET', '/api/v1/models/download/status/job_1'],
    ] as const) {
      assert.deepEqual(await call(method, path, body), {
        status: 200,
        type: 'application/json; charset=utf-8',
        body: { error: `Unexpected endpoint or method. (${method} ${path})` },
      });
    }
    assert.deepEqual([server.loaded(), server.downloads()], [[], []]);
  });

  test('lists models in its own words', async t => {
    const { server, call } = await started(t, { version: '0.3.39' });
    server.load('qwen/qwen3-8b');
    const { data } = (await call('GET', '/api/v0/models')).body;
    assert.deepEqual(data[0], {
      id: 'qwen/qwen3-8b',
      object: 'model',
      type: 'llm',
      publisher: 'qwen',
      arch: 'qwen3',
      compatibility_type: 'gguf',
      quantization: 'Q4_K_M',
      state: 'loaded',
      max_context_length: 40_960,
      loaded_context_length: 4096,
    });
    assert.deepEqual(
      data.map((row: { type: string; state: string }) => `${row.type} ${row.state}`),
      ['llm loaded', 'llm not-loaded', 'vlm not-loaded', 'embeddings not-loaded'],
    );
    assert.equal((await call('GET', '/api/v0/models/ibm/granite-4-micro')).body.id, 'ibm/granite-4-micro');
    assert.equal((await call('GET', '/api/v0/models/nope')).status, 404);
  });

  test('can be updated', async t => {
    const { server, call } = await started(t, { version: '0.3.39' });
    await server.stop();
    await server.start('0.4.0');
    assert.equal((await call('GET', '/api/v1/models')).body.models.length, 4);
  });
});

describe('tokens', bounded, () => {
  test('are wanted for every request where there are any', async t => {
    const { call } = await started(t, { tokens: ['sk-lm-one', 'sk-lm-two'] });
    const status = async (authorization?: string, path = '/api/v1/models') =>
      (await call('GET', path, undefined, authorization ? { authorization } : {})).status;
    assert.equal(await status('Bearer sk-lm-two'), 200);
    assert.equal(await status('Bearer wrong'), 401);
    assert.equal(await status(), 401);
    assert.equal(await status(undefined, '/api/version'), 401);
  });
});

describe('requests', bounded, () => {
  test('without a model, without an instance, or with a body that is no JSON are refused', async t => {
    const { call } = await started(t);
    const post = async (path: string, body: unknown) => {
      const { status, body: answer } = await call('POST', path, body);
      return [status, answer.error.type, answer.error.param];
    };
    assert.deepEqual(await post('/api/v1/models/load', {}), [400, 'invalid_request', 'model']);
    assert.deepEqual(await post('/api/v1/models/unload', { instance_id: '' }), [400, 'invalid_request', 'instance_id']);
    assert.deepEqual(await post('/api/v1/models/download', ''), [400, 'invalid_request', 'model']);
    assert.deepEqual(await post('/api/v1/models/load', '{"model":'), [400, 'invalid_request', undefined]);
  });

  test('are recorded, and meet faults', async t => {
    const { server, call } = await started(t);
    server.fault({ path: '/api/v1/models/load', kind: 'answer', body: '{"type":"llm","status":"loaded"}' });
    const headers = { 'x-test': 'yes' };
    const answer = await call('POST', '/api/v1/models/load', { model: 'qwen/qwen3-8b' }, headers);
    assert.deepEqual(answer.body, { type: 'llm', status: 'loaded' });
    assert.deepEqual(server.loaded(), []);
    const request = await server.requested('/api/v1/models/load');
    assert.deepEqual(
      [request.method, request.body, request.headers['x-test']],
      ['POST', { model: 'qwen/qwen3-8b' }, 'yes'],
    );
  });
});
