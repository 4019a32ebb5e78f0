import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Ollama } from 'ollama';
import { instant, manualClock, type OllamaOptions, startOllama } from '../../src/demo/ollama.ts';

const bounded = { timeout: 10_000 };

const qwen = {
  name: 'qwen3:8b',
  bytes: 5_225_388_164,
  contextLength: 40_960,
  capabilities: ['completion', 'tools', 'thinking'],
  memoryBytes: 6_862_180_352,
};

const embedder = { name: 'bge-m3', bytes: 1_157_672_605, capabilities: ['embedding'] };

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

describe('memory', bounded, () => {
  test('holds a loaded model for the keep-alive and then lets go', async t => {
    const clock = manualClock();
    const { client } = await started(t, { clock, models: [qwen] });
    const answer = await client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: '10m' });
    assert.equal(answer.done_reason, 'load');
    assert.equal(answer.response, '');

    const [row] = (await client.ps()).models;
    assert.equal(row?.size, 6_862_180_352);
    assert.equal(row?.size_vram, 6_862_180_352);
    assert.partialDeepStrictEqual(row, { context_length: 4096 });
    assert.equal(String(row?.expires_at), '2026-08-22T10:10:00.000364907+02:00');

    await clock.advance(10 * 60_000 - 1);
    assert.equal((await client.ps()).models.length, 1);
    await clock.advance(1);
    assert.equal((await client.ps()).models.length, 0);
  });

  test('lists a model as loading, for as long as loading takes', async t => {
    const clock = manualClock();
    const { client, server } = await started(t, { clock, models: [{ ...qwen, loadMs: 30_000 }] });
    const load = client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: 600 });
    await clock.sleeping();
    assert.equal((await client.ps()).models.length, 1);
    assert.equal(server.loaded()[0]?.busy, 1);
    await clock.advance(30_000);
    assert.equal((await load).done_reason, 'load');
    assert.deepEqual(
      server.loaded().map(({ busy, expiresAt }) => [busy, expiresAt?.toISOString()]),
      [[0, '2026-08-22T08:10:30.000Z']],
    );
  });

  test('forgets a load whose client has gone', async t => {
    const clock = manualClock();
    const { server } = await started(t, { clock, models: [{ ...qwen, loadMs: 30_000 }] });
    const abort = new AbortController();
    const body = JSON.stringify({ model: 'qwen3:8b' });
    const load = fetch(`${server.url}/api/generate`, { method: 'POST', body, signal: abort.signal });
    await clock.sleeping();
    abort.abort();
    await assert.rejects(load);
    assert.equal(await (await server.requested('/api/generate')).ended, 'cut');
    assert.deepEqual(server.loaded(), []);
  });

  test('is kept by a chat, which re-arms the timer without changing it', async t => {
    const clock = manualClock();
    const { client, server } = await started(t, { clock, models: [qwen] });
    await client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: '10m' });
    await clock.advance(9 * 60_000);
    const answer = await client.chat({ model: 'qwen3:8b', messages: [{ role: 'user', content: 'Hello' }] });
    assert.equal(answer.message.role, 'assistant');
    assert.equal(answer.done_reason, 'stop');
    assert.ok(answer.eval_count > 0);
    assert.equal(server.loaded()[0]?.expiresAt?.toISOString(), '2026-08-22T08:19:00.000Z');
  });

  test('streams a completion in words that make up the answer', async t => {
    const { client } = await started(t, { models: [qwen], complete: (model, prompt) => `${model} heard ${prompt}` });
    const lines = await collect(await client.generate({ model: 'qwen3:8b', prompt: 'a word', stream: true }));
    assert.equal(lines.map(line => line.response).join(''), 'qwen3:8b heard a word');
    assert.deepEqual(
      lines.map(line => line.done),
      [false, false, false, false, true],
    );
  });

  test('shows a model that must go, but is still in use, as expired', async t => {
    const clock = manualClock();
    const { client, server } = await started(t, { clock, models: [qwen], timings: { ...instant, tokenMs: 1000 } });
    const stream = client.generate({ model: 'qwen3:8b', prompt: 'talk', stream: true });
    await clock.sleeping();
    await clock.advance(500);
    server.unload('qwen3:8b');
    await clock.advance(500);
    const [row] = (await client.ps()).models;
    assert.equal(String(row?.expires_at), '2026-08-22T10:00:00.500364907+02:00');
    const rest = collect(await stream);
    await clock.advance(60_000);
    await rest;
    assert.deepEqual((await client.ps()).models, []);
  });

  test('is shared by two names over the same weights, under the name that loaded them', async t => {
    const layers = [{ bytes: 5_000, digest: `sha256:${'5'.repeat(64)}` }];
    const { client } = await started(t, {
      models: [
        { name: 'llama3.2', layers },
        { name: 'llama3.2:3b', layers },
      ],
    });
    await client.generate({ model: 'llama3.2:3b', prompt: '' });
    await client.generate({ model: 'llama3.2:latest', prompt: '' });
    assert.deepEqual(
      (await client.ps()).models.map(row => row.name),
      ['llama3.2:3b'],
    );
  });

  test('is listed with the longest time first', async t => {
    const { client, server } = await started(t, { models: [qwen, embedder, { name: 'third', bytes: 1 }] });
    server.load('qwen3:8b', '5m');
    server.load('third', -1);
    server.load('bge-m3', '1h');
    assert.deepEqual(
      (await client.ps()).models.map(row => row.name),
      ['third:latest', 'bge-m3:latest', 'qwen3:8b'],
    );
  });

  test('takes a model anew when a request wants another context', async t => {
    const { client } = await started(t, { models: [qwen] });
    await client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: -1 });
    await client.generate({ model: 'qwen3:8b', prompt: '', options: { num_ctx: 8192 } });
    const [row] = (await client.ps()).models;
    assert.partialDeepStrictEqual(row, { context_length: 8192 });
    assert.ok(!String(row?.expires_at).startsWith('23'));
  });

  test('lies on the CPU where the request or the model says so', async t => {
    const { client } = await started(t, { models: [qwen, { ...embedder, memoryBytes: 900, vramBytes: 450 }] });
    await client.generate({ model: 'qwen3:8b', prompt: '', options: { num_gpu: 0 } });
    await client.embed({ model: 'bge-m3', input: '' });
    const shares = Object.fromEntries((await client.ps()).models.map(row => [row.name, [row.size, row.size_vram]]));
    assert.deepEqual(shares, { 'qwen3:8b': [6_862_180_352, 0], 'bge-m3:latest': [900, 450] });
  });

  test('tells of a load that fails in the words of the runner', async t => {
    const loadError = "llama runner process has terminated: error loading model: tensor 'output.weight' not found";
    const { client, server } = await started(t, { models: [{ ...qwen, loadError }] });
    await assert.rejects(client.generate({ model: 'qwen3:8b', prompt: '' }), { status_code: 500, error: loadError });
    assert.deepEqual(server.loaded(), []);
  });

  test('answers an unload of what is not loaded as a success', async t => {
    const { client } = await started(t, { models: [qwen] });
    const answer = await client.generate({ model: 'qwen3:8b', prompt: '', keep_alive: '0s' });
    assert.equal(answer.done_reason, 'unload');
  });

  test('refuses what a model cannot do', async t => {
    const { client } = await started(t, { models: [embedder, { name: 'plain', bytes: 1 }] });
    const messages = [{ role: 'user', content: 'hi' }];
    const tools = [{ type: 'function', function: { name: 'f' } }];
    await assert.rejects(client.chat({ model: 'bge-m3', messages }), { error: '"bge-m3" does not support chat' });
    await assert.rejects(client.chat({ model: 'plain', messages, think: true }), {
      error: '"plain" does not support thinking',
    });
    await assert.rejects(client.chat({ model: 'plain', messages, tools }), {
      error: 'registry.ollama.ai/library/plain:latest does not support tools',
    });
  });
});
