import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelOf } from '../../../src/drivers/lemonade/model.ts';
import { isDownloaded, readModels } from '../../../src/drivers/lemonade/wire.ts';
import { fixtureJson, known } from './fixtures.ts';

const models = (document: unknown) =>
  readModels(document)
    ?.filter(isDownloaded)
    .map(entry => known(modelOf('lemonade', entry)));
const backend = 'lemonade';

test('the list of a current server: every recipe, what is not downloaded left out, a collection without a size', () => {
  assert.deepEqual(models(fixtureJson('models.json')), [
    {
      backend,
      name: 'Qwen3-0.6B-GGUF',
      sizeBytes: 355_000_000,
      format: 'gguf',
      quantization: 'Q4_0',
      runtime: 'llamacpp',
      capabilities: ['completion', 'thinking', 'tools'],
    },
    {
      backend,
      name: 'qwen3-it-4b-FLM',
      sizeBytes: 3_100_000_000,
      contextLength: 262_144,
      runtime: 'flm',
      capabilities: ['completion', 'thinking'],
    },
    {
      backend,
      name: 'nomic-embed-text-v1-GGUF',
      sizeBytes: 73_000_000,
      format: 'gguf',
      quantization: 'Q4_K_S',
      runtime: 'llamacpp',
      capabilities: ['embedding'],
    },
    {
      backend,
      name: 'Tiny-Test-Model-GGUF',
      sizeBytes: 168_000_000,
      format: 'gguf',
      quantization: 'UD-IQ2_M',
      runtime: 'llamacpp',
      capabilities: ['completion'],
    },
    {
      backend,
      name: 'Whisper-Tiny',
      sizeBytes: 72_000_000,
      runtime: 'whispercpp',
      capabilities: ['transcription'],
    },
    {
      backend,
      name: 'SmolLM2-135M-Instruct-Hybrid',
      sizeBytes: 233_000_000,
      format: 'onnx',
      runtime: 'ryzenai-llm',
      capabilities: ['completion'],
    },
    {
      backend,
      name: 'Big',
      sizeBytes: 61_700_000_000,
      format: 'gguf',
      quantization: 'Q4_K_M',
      runtime: 'llamacpp',
      capabilities: ['completion', 'custom'],
    },
    { backend, name: 'My-Team', runtime: 'collection.omni', capabilities: ['completion', 'vision'] },
  ]);
});

test('the list of an old server has neither flag nor labels: everything in it is downloaded', () => {
  assert.deepEqual(models(fixtureJson('models-old.json')), [
    { backend, name: 'Qwen2.5-7B-Instruct-NPU', format: 'onnx', runtime: 'oga-npu' },
    {
      backend,
      name: 'user.Phi-4-Mini-GGUF',
      sizeBytes: 2_490_000_000,
      format: 'gguf',
      quantization: 'Q4_K_M',
      runtime: 'llamacpp',
      capabilities: ['completion'],
    },
  ]);
});

const one = (entry: object) => models({ data: [{ id: 'x', ...entry }] })?.[0] ?? {};

test('format and quantization come from the checkpoint, and are unknown where it does not say', () => {
  const table: [unknown, string | undefined, string | undefined][] = [
    ['unsloth/Qwen3-GGUF:UD-Q4_K_XL', 'gguf', 'UD-Q4_K_XL'],
    ['org/repo:model.Q8_0.gguf', 'gguf', 'Q8_0'],
    ['org/repo:folder/Model-F16-00001-of-00002.GGUF', 'gguf', 'F16'],
    ['org/repo-gguf:bf16', 'gguf', 'bf16'],
    ['org/repo-gguf:q2-tuned-IQ3_XXS.gguf', 'gguf', 'IQ3_XXS'],
    ['org/repo-gguf:gpt-oss-20b-mxfp4.gguf', 'gguf', undefined],
    ['https://h/org/repo-GGUF:Q5_1', 'gguf', 'Q5_1'],
    ['org/repo-GGUF', 'gguf', undefined],
    ['org/repo:weights.safetensors', 'safetensors', undefined],
    ['org/repo:model.onnx', 'onnx', undefined],
    ['amd/Phi-onnx-q4', 'onnx', undefined],
    ['qwen3-it:4b', undefined, undefined],
    ['plain:Q4_0', undefined, undefined],
    ['kokoro', undefined, undefined],
    ['', undefined, undefined],
    [null, undefined, undefined],
  ];
  for (const [checkpoint, format, quantization] of table) {
    const row = one({ checkpoint });
    assert.deepEqual([row.format, row.quantization], [format, quantization], String(checkpoint));
  }
});

test('labels become capabilities: known ones by our words, advertising none, completion first', () => {
  const table: [unknown, string | undefined, string[] | undefined][] = [
    [['reasoning', 'chat', 'chat'], 'llamacpp', ['completion', 'thinking']],
    [['vision', 'tool-calling', 'hot', 'mtp', 'experimental'], 'flm', ['completion', 'vision', 'tools']],
    [['embedding', 'embeddings'], 'llamacpp', ['embedding']],
    [['classifier'], 'whatever', ['classification']],
    [['reranking'], 'llamacpp', ['reranking']],
    [['image'], 'sd-cpp', ['image']],
    [['custom'], 'sd-cpp', ['custom']],
    [['coding'], 'LLAMACPP', ['completion', 'coding']],
    [[' Chat ', '', 7, null, 'TTS'], 'kokoro', ['completion', 'tts']],
    [[], 'cloud', ['completion']],
    [['hot'], 'kokoro', undefined],
    [{ chat: true }, 'vllm', ['completion']],
    [undefined, undefined, undefined],
  ];
  for (const [labels, recipe, expected] of table)
    assert.deepEqual(one({ labels, recipe }).capabilities, expected, JSON.stringify([labels, recipe]));
});

test('a size is decimal GB throughout; what is no size is unknown', () => {
  const table: [unknown, number | undefined][] = [
    [2.49, 2_490_000_000],
    [0.012, 12_000_000],
    [1e-9, 1],
    [0, undefined],
    [-1, undefined],
    ['2.49', undefined],
    [null, undefined],
    [1e300, undefined],
  ];
  for (const [size, bytes] of table) assert.equal(one({ size }).sizeBytes, bytes, String(size));
  assert.equal(models(JSON.parse('{"data":[{"id":"x","size":1e999}]}'))?.[0]?.sizeBytes, undefined);
});

test('one bad entry hides neither its good fields nor the others', () => {
  const rows = [
    null,
    7,
    [],
    {},
    { id: '' },
    { id: ' ' },
    { id: 5 },
    { id: 'a', recipe: 1, checkpoint: {}, labels: 'chat', downloaded: 'no', context_length: -1, size: {} },
    { id: 'b', context_length: 4096, cost_per_token: 1, models: [], downloaded: null },
    { id: 'c', downloaded: false },
    JSON.parse('{"id":"d","__proto__":{"polluted":true}}'),
  ];
  assert.deepEqual(models({ data: rows }), [
    { backend, name: 'a' },
    { backend, name: 'b', contextLength: 4096 },
    { backend, name: 'd' },
  ]);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('a document without the list is none of Lemonade', () => {
  assert.deepEqual(models({ object: 'list', data: [] }), []);
  for (const document of [{}, { data: null }, { data: {} }, { models: [] }, { error: 'x' }, [], null, 'x', undefined])
    assert.equal(readModels(document), undefined);
});
