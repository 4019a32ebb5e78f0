import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { backendError, errorCodes } from '../../src/errors.ts';
import { fakeDriver, hang } from '../support/gateway.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';
import { callTool, type Json, request } from './muster.ts';
import { schemaCheck } from './schemaCheck.ts';
import { serveTools } from './serving.ts';

const inTime = { timeout: 8_000 };

/** A model that says everything a backend can say. */
const talkative = {
  name: 'rich:7b',
  sizeBytes: 4_700_000_000,
  digest: 'a'.repeat(64),
  modifiedAt: new Date('2026-01-02T03:04:05.678Z'),
  format: 'gguf',
  family: 'qwen2',
  parameterSize: '7.6B',
  quantization: 'Q4_K_M',
  contextLength: 32_768,
  runtime: 'llamacpp',
  capabilities: ['completion', 'tools'],
  node: 'host-1',
  path: '/models/rich',
  downloaded: true,
};

test(
  'every tool answers one text whose JSON equals its structured content and fits its output schema',
  inTime,
  async t => {
    const ollama = fakeDriver({ models: [talkative, 'plain:1b'] });
    const { url, mcp } = await serveTools(t, {
      drivers: [ollama, fakeDriver({ name: 'lemonade', models: ['other:1b'] }), servingDriver()],
      wiring: fakeWiring(),
    });
    const { result } = await request(url, 'tools/list');
    const checks = new Map(result.tools.map((tool: Json) => [tool.name, schemaCheck(tool.outputSchema)]));
    const seen = new Set<string>();

    async function ask(name: string, args: object = {}) {
      const { isError, text, data, structuredContent } = await callTool(url, name, args);
      assert.equal(isError, false, `${name}: ${text}`);
      assert.deepEqual(data, structuredContent);
      assert.equal(text, JSON.stringify(structuredContent, null, 2));
      assert.equal((checks.get(name) as ReturnType<typeof schemaCheck>)(data), '', name);
      seen.add(name);
      return data;
    }

    const { job, created } = await ask('pull_model', { model: 'new:1b' });
    assert.equal(created, true);
    assert.equal((await ask('get_job', { id: job.id })).model, 'new:1b');
    assert.equal((await ask('list_jobs')).jobs.length, 1);
    await ask('cancel_job', { id: job.id });
    assert.equal((await ask('load_model', { model: 'rich:7b', keepAlive: '10m' })).loaded, true);
    assert.equal((await ask('list_loaded_models')).loaded[0].name, 'rich:7b');
    const rich = await ask('get_model', { model: 'rich:7b' });
    assert.equal(rich.running.backend, 'ollama');
    assert.equal(rich.modifiedAt, '2026-01-02T03:04:05.678Z');
    const wired = await ask('wire_model', { model: 'rich:7b', apiKeyPassthrough: 'true' });
    assert.equal(wired.modelConfig.apiKeyPassthrough, true);
    assert.deepEqual(await ask('unwire_model', { model: 'rich:7b' }), {
      backend: 'ollama',
      model: 'rich:7b',
      modelConfig: null,
    });
    assert.equal((await ask('list_presets')).presets[0].name, 'qwen3-14b');
    assert.equal((await ask('search_models', { query: 'qwen3', limit: '5' })).results[0].id, 'Qwen/Qwen3-14B-AWQ');
    assert.equal((await ask('check_fit', { preset: 'qwen3-14b' })).fits, true);
    assert.equal((await ask('explain_fit', { preset: 'qwen3-14b' })).nodes[0].obstacles[0].code, 'not-ready');
    assert.deepEqual(await ask('unload_model', { model: 'rich:7b' }), {
      backend: 'ollama',
      model: 'rich:7b',
      loaded: false,
    });
    assert.deepEqual(await ask('delete_model', { model: 'plain:1b', unwire: 'false' }), {
      backend: 'ollama',
      model: 'plain:1b',
      deleted: true,
      unwired: false,
    });
    assert.equal((await ask('get_backend')).backend, 'ollama');
    assert.equal((await ask('list_backends')).backends.length, 3);
    assert.deepEqual((await ask('get_info')).backends, ['ollama', 'lemonade', 'kserve']);
    assert.equal((await ask('list_nodes')).nodes.length, 2);
    assert.deepEqual(
      (await ask('list_models')).models.map((model: Json) => model.name),
      ['rich:7b', 'new:1b', 'other:1b'],
    );

    // These two answer nothing but refusals where there is no Kubernetes.
    const refusing = ['add_backend', 'remove_backend'];
    assert.deepEqual([...seen, ...refusing].sort(), mcp.toolNames);
  },
);

test('a backend that fails costs its own rows, and is named under errors', async t => {
  const broken = fakeDriver({ name: 'lemonade' });
  broken.script.models = async () => {
    throw backendError('lemonade: connection refused');
  };
  const { url } = await serveTools(t, { drivers: [fakeDriver({ models: ['a:1b'] }), broken] });
  const { data, structuredContent } = await callTool(url, 'list_models');
  assert.deepEqual(data.errors, { lemonade: 'lemonade: connection refused' });
  assert.equal(data.models.length, 1);
  assert.deepEqual(data, structuredContent);
  const { result } = await request(url, 'tools/list');
  const { outputSchema } = result.tools.find((tool: Json) => tool.name === 'list_models');
  assert.equal(schemaCheck(outputSchema)(data), '');
});

test('a refusal is a result with a code and a sentence, and nothing else', async t => {
  const shared = ['shared:1b'];
  const { url } = await serveTools(t, {
    drivers: [
      fakeDriver({ models: shared }),
      fakeDriver({ name: 'lemonade', models: shared, capabilities: { pull: false } }),
    ],
  });
  const refusals: [string, unknown, string][] = [
    ['get_model', {}, 'backend_error: required argument "model" not found'],
    ['get_model', { model: 5 }, 'backend_error: argument "model" is not a string'],
    ['get_model', { model: '' }, 'invalid_request: invalid request: "model" is required'],
    ['get_model', { model: '../x' }, 'invalid_request: invalid request: "model" is "../x", '],
    ['get_model', { model: 'nope' }, 'not_found: model not found: nope is on none of the backends (ollama, lemonade)'],
    ['get_model', { model: 'shared:1b' }, 'conflict: conflict: shared:1b exists on ollama, lemonade; name the backend'],
    ['list_models', { backend: 'nope' }, 'invalid_request: invalid request: unknown backend "nope" '],
    ['pull_model', { model: 'a', backend: 'lemonade' }, 'unsupported: operation not supported: pull on lemonade'],
    ['load_model', {}, 'invalid_request: invalid request: model or preset is required'],
    ['load_model', { model: '', preset: '' }, 'invalid_request: invalid request: model or preset is required'],
    ['get_job', {}, 'backend_error: required argument "id" not found'],
    ['get_job', { id: '0123456789abcdef' }, 'not_found: job not found: 0123456789abcdef'],
    ['cancel_job', { id: 1 }, 'backend_error: argument "id" is not a string'],
    // Arguments that are no object are none.
    ['get_model', null, 'backend_error: required argument "model" not found'],
    ['get_model', 'shared:1b', 'backend_error: required argument "model" not found'],
    ['get_model', ['shared:1b'], 'backend_error: required argument "model" not found'],
  ];
  for (const [name, args, text] of refusals) {
    const reply = await callTool(url, name, args);
    assert.equal(reply.text.slice(0, text.length), text, JSON.stringify([name, args]));
    assert.equal(reply.isError, true);
    assert.equal(reply.structuredContent, undefined);
    assert.ok((errorCodes as string[]).includes(reply.code ?? ''), reply.text);
  }
});

test('without a backend the tools say how to get one, and get_info works', async t => {
  const { url } = await serveTools(t, { drivers: [] });
  assert.match((await callTool(url, 'list_models')).text, /^no_backend: no backend registered: /);
  assert.deepEqual((await callTool(url, 'list_backends')).data, { backends: [] });
  assert.deepEqual((await callTool(url, 'get_info')).data.backends, []);
});

test('unknown arguments are ignored, no arguments are none', async t => {
  const { url } = await serveTools(t, { drivers: [fakeDriver({ models: ['a:1b'] })] });
  assert.equal((await callTool(url, 'list_models', { colour: 'red' })).data.models.length, 1);
  assert.equal((await callTool(url, 'list_models', null)).data.models.length, 1);
  const { result } = await request(url, 'tools/call', { name: 'list_models' });
  assert.equal(result.structuredContent.models.length, 1);
});

test('an unknown tool is a protocol error, so is an unknown method', async t => {
  const { url } = await serveTools(t);
  assert.deepEqual((await request(url, 'tools/call', { name: 'x', arguments: {} })).error, {
    code: -32602,
    message: "tool 'x' not found: tool not found",
  });
  assert.equal((await request(url, 'no/such/method')).error?.code, -32601);
});

test('an unexpected error is masked, logged once under its request id, and ends nothing', async t => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const driver = fakeDriver({ models: ['a:1b'] });
  driver.script.unload = async () => {
    throw new TypeError('secret of the house');
  };
  const { url } = await serveTools(t, { drivers: [driver], log });
  const { text } = await callTool(url, 'unload_model', { model: 'a:1b' });
  const [, id] = /^internal_error: .* request (\S+)$/.exec(text) ?? [];
  assert.ok(id, text);
  assert.doesNotMatch(text, /secret/);
  const errors = lines.filter(line => line.level === 50);
  assert.equal(errors.length, 1);
  assert.equal(errors[0]?.requestId, id);
  assert.match(JSON.stringify(errors[0]), /secret of the house/);
  assert.equal((await callTool(url, 'list_models')).isError, false);
});

test('a fault outside of the operations is masked and logged all the same', async t => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { url } = await serveTools(t, {
    log,
    run: async () => {
      throw new RangeError('secret of the house');
    },
  });
  const reply = await callTool(url, 'list_models');
  assert.equal(reply.code, 'internal_error');
  assert.doesNotMatch(reply.text, /secret/);
  assert.equal(lines.length, 1);
});

test('a call leaves one debug line and is told to who counts', async t => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const told: [string, string | undefined][] = [];
  const began = performance.now();
  const { url } = await serveTools(t, {
    log,
    onCall: (tool, code, seconds) => {
      assert.ok(seconds >= 0 && seconds * 1_000 <= performance.now() - began, `${seconds} s`);
      told.push([tool, code]);
    },
  });
  await callTool(url, 'list_models');
  await callTool(url, 'get_model', { model: 'nope' });
  await request(url, 'tools/call', { name: 'x' });
  assert.deepEqual(told, [
    ['list_models', undefined],
    ['get_model', 'not_found'],
  ]);
  const calls = lines.filter(line => line.msg === 'tool called');
  assert.deepEqual(
    calls.map(({ level, tool, code, durationMs, requestId }) => [
      level,
      tool,
      code,
      typeof durationMs,
      typeof requestId,
    ]),
    [
      [20, 'list_models', undefined, 'number', 'string'],
      [20, 'get_model', 'not_found', 'number', 'string'],
    ],
  );
});

test('a backend that hangs is a refusal when the time is up, for reads and for what is done', inTime, async t => {
  const cases = [
    ['models', 'list_models'],
    ['models', 'get_model'],
    ['unload', 'unload_model'],
    ['remove', 'delete_model'],
  ] as const;
  const answers = cases.map(async ([method, name]) => {
    const driver = fakeDriver({ models: ['a:1b'] });
    const hanging = hang();
    driver.script[method] = hanging.answer;
    const { url } = await serveTools(t, { drivers: [driver], timeoutMs: 400 });
    const reply = await callTool(url, name, { model: 'a:1b' });
    assert.match(reply.text, /^backend_error: the backend did not answer in time/, name);
    await hanging.aborted;
  });
  await Promise.all(answers);
});

test('a load that takes longer than a call may goes on, and the answer says where it stands', inTime, async t => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const loading = Promise.withResolvers<void>();
  driver.script.load = () => loading.promise;
  const { url } = await serveTools(t, { drivers: [driver], timeoutMs: 400 });
  const { data } = await callTool(url, 'load_model', { model: 'a:1b' });
  assert.equal(data.loaded, false);
  loading.resolve();
});

test('a client that leaves takes its question to the backend with it', inTime, async t => {
  for (const [method, name] of [
    ['models', 'list_models'],
    ['unload', 'unload_model'],
  ] as const) {
    const driver = fakeDriver({ models: ['a:1b'] });
    const hanging = hang();
    driver.script[method] = hanging.answer;
    const { url } = await serveTools(t, { drivers: [driver] });
    const leaving = new AbortController();
    const left = assert.rejects(callTool(url, name, { model: 'a:1b' }, { signal: leaving.signal }));
    await hanging.reached;
    leaving.abort();
    await left;
    await hanging.aborted;
    delete driver.script[method];
    assert.equal((await callTool(url, 'list_models')).data.models.length, 1);
  }
});

test('an answer of more than a mebibyte arrives whole', inTime, async t => {
  const models = Array.from({ length: 6_000 }, (_, index) => ({ ...talkative, name: `model-${index}:7b` }));
  const { url } = await serveTools(t, { drivers: [fakeDriver({ models })] });
  const { text, data, structuredContent } = await callTool(url, 'list_models');
  assert.ok(text.length > 1024 * 1024);
  assert.equal(data.models.length, 6_000);
  assert.deepEqual(data, structuredContent);
});
