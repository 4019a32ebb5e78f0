import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadedOf } from '../../../src/drivers/lemonade/model.ts';
import { readHealth } from '../../../src/drivers/lemonade/wire.ts';
import { fixtureJson, known } from './fixtures.ts';
import { model } from './host.ts';

const host = { backend: 'lemonade', node: 'box' };
const rows = (document: unknown) => readHealth(document)?.loaded.map(entry => known(loadedOf(host, entry, undefined)));
const one = (entry: object) => rows({ all_models_loaded: [{ model_name: 'x', ...entry }] })?.[0] ?? {};

test('two loaded models: a pinned one on the NPU and one that embeds; nothing of the host is passed on', () => {
  const health = readHealth(fixtureJson('health.json'));
  assert.deepEqual([health?.status, health?.version], ['ok', '11.7.0']);
  assert.deepEqual(rows(fixtureJson('health.json')), [
    { ...host, name: 'qwen3-it-4b-FLM', contextLength: 32_768, status: 'loaded', device: 'npu', pinned: true },
    { ...host, name: 'nomic-embed-text-v1-GGUF', contextLength: 4096, status: 'loaded', device: 'gpu', pinned: false },
  ]);
});

test('every state: what answers is loaded, what comes or goes has its own word, old servers have no states', () => {
  assert.deepEqual(
    rows(fixtureJson('health-states.json'))?.map(({ name, status, device, contextLength, pinned }) => [
      name,
      status,
      device,
      contextLength,
      pinned,
    ]),
    [
      ['Busy', 'loaded', 'gpu', 4096, false],
      ['Auto-Ctx', 'loaded', 'gpu npu', undefined, false],
      ['Spaced', 'loaded', 'gpu npu', undefined, false],
      ['Coming', 'loading', undefined, 4096, false],
      ['Shrunk', 'loaded', 'gpu', 4096, false],
      ['Going', 'evicting', 'cpu', 4096, false],
      ['Qwen3-0.6B-GGUF', 'loaded', 'gpu', 4096, undefined],
    ],
  );
});

test('the state is the word of the server, or of the process behind the model', () => {
  const table: [string | null | undefined, unknown, string][] = [
    ['ready', 'ready', 'loaded'],
    [' Ready ', undefined, 'loaded'],
    [undefined, undefined, 'loaded'],
    [null, 'stopped', 'loaded'],
    ['', '', 'loaded'],
    ['in_use', 'busy', 'loaded'],
    ['downsizing', 'ready', 'loaded'],
    ['downsized', 'stopped', 'loaded'],
    ['warming', 'READY', 'loaded'],
    ['Warming', 'stopped', 'warming'],
    ['loading', 'ready', 'loading'],
    ['EVICTING', 'ready', 'evicting'],
    ['unloaded', 'exited', 'unloaded'],
  ];
  for (const [status, backend_health, expected] of table)
    assert.equal(one({ status, backend_health }).status, expected, JSON.stringify([status, backend_health]));
});

test('both spellings of several devices are one, and none is no device', () => {
  const table: [unknown, string | undefined][] = [
    ['cpu|gpu|npu', 'cpu gpu npu'],
    ['gpu npu', 'gpu npu'],
    [' GPU | NPU ', 'gpu npu'],
    ['none', undefined],
    ['', undefined],
    [7, undefined],
    [undefined, undefined],
  ];
  for (const [device, expected] of table) assert.equal(one({ device }).device, expected, String(device));
});

test('the size is that of the listed model; the context is that of the load, else of the listed model', () => {
  const listed = model('x', { sizeBytes: 355_000_000, contextLength: 40_960 });
  const entries = readHealth({
    all_models_loaded: [
      { model_name: 'x', recipe_options: { ctx_size: 4096 } },
      { model_name: 'x', recipe_options: { ctx_size: -1 } },
      { model_name: 'x', recipe_options: null },
    ],
  });
  assert.deepEqual(
    entries?.loaded.map(entry => [
      loadedOf(host, entry, listed).sizeBytes,
      loadedOf(host, entry, listed).contextLength,
    ]),
    [
      [355_000_000, 4096],
      [355_000_000, 40_960],
      [355_000_000, 40_960],
    ],
  );
});

test('rows of every wrong type are left out or degrade field by field', () => {
  const all_models_loaded = [null, 3, [], {}, { model_name: '' }, { model_name: ' ' }, { model_name: 'a', pinned: 1 }];
  assert.deepEqual(rows({ status: 'ok', all_models_loaded }), [{ ...host, name: 'a', status: 'loaded' }]);
  assert.deepEqual(rows({ status: 'ok', all_models_loaded: 'none' }), []);
});

test('servers that hold one model say its name only', () => {
  assert.deepEqual(rows({ status: 'ok', model_loaded: 'Old' }), [{ ...host, name: 'Old', status: 'loaded' }]);
  assert.deepEqual(rows({ status: 'ok', model_loaded: null }), []);
  assert.deepEqual(rows({ status: 'ok', model_loaded: 'Old', all_models_loaded: [] }), []);
});

test('a health document has a status or the loaded models; what has neither is another product', () => {
  assert.deepEqual(readHealth({ all_models_loaded: [] }), { status: undefined, version: undefined, loaded: [] });
  for (const document of [{}, { error: 'Unexpected' }, { version: '1' }, { status: true }, [], null, 'ok', undefined])
    assert.equal(readHealth(document), undefined, JSON.stringify(document));
});
