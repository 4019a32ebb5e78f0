import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  complaintIn,
  loadedOf,
  modelOf,
  namesInstance,
  readDownload,
  readEntries,
} from '../../../src/drivers/lmstudio/wire.ts';
import { fixtureJson } from './fixtures.ts';

const backend = 'lmstudio';
/** Without what is unknown, as clients see it. */
const known = <T>(rows: T[] | undefined): T[] | undefined => rows && JSON.parse(JSON.stringify(rows));
const models = (document: unknown) => known(readEntries(document)?.map(row => modelOf(backend, row)));
const loaded = (document: unknown) => known(readEntries(document)?.flatMap(row => loadedOf(backend, 'box', row)));

test('the library: a reasoning model, a plain one, one that sees, one that embeds', () => {
  const gguf = { backend, format: 'gguf', quantization: 'Q4_K_M', downloaded: true };
  assert.deepEqual(models(fixtureJson('models.json')), [
    {
      ...gguf,
      name: 'qwen/qwen3-8b',
      sizeBytes: 5_027_784_512,
      family: 'qwen3',
      parameterSize: '8B',
      contextLength: 40_960,
      capabilities: ['completion', 'tools', 'thinking'],
    },
    {
      ...gguf,
      name: 'ibm/granite-4-micro',
      sizeBytes: 2_098_202_112,
      family: 'granite',
      parameterSize: '3B',
      contextLength: 131_072,
      capabilities: ['completion', 'tools'],
    },
    {
      ...gguf,
      name: 'google/gemma-3-4b',
      sizeBytes: 3_341_279_232,
      family: 'gemma3',
      parameterSize: '4B',
      contextLength: 131_072,
      capabilities: ['completion', 'vision'],
    },
    {
      ...gguf,
      name: 'text-embedding-nomic-embed-text-v1.5',
      sizeBytes: 84_106_624,
      contextLength: 2048,
      capabilities: ['embedding'],
    },
  ]);
});

test('fractional bits, nulls, the older spelling of types: each costs its own field at most', () => {
  assert.deepEqual(
    models(fixtureJson('models-odd.json'))?.map(row => [
      row.name,
      row.sizeBytes,
      row.format,
      row.family,
      row.parameterSize,
      row.quantization,
      row.contextLength,
      row.capabilities,
    ]),
    [
      ['twice/model', 5_027_784_512, 'gguf', 'qwen3', '8B', 'Q4_K_M', 40_960, ['completion', 'tools']],
      ['mlx/model', 5_027_784_512, 'mlx', undefined, undefined, '4bit', 40_960, ['completion']],
      ['bare', 5_027_784_512, undefined, 'qwen3', '8B', undefined, 40_960, ['completion', 'tools']],
      ['Case/Model', 5_027_784_512, 'gguf', 'qwen3', '8B', 'Q4_K_M', 40_960, ['completion', 'tools']],
      ['case/model', 5_027_784_512, 'gguf', 'qwen3', '8B', 'Q4_K_M', 40_960, ['completion', 'tools']],
      ['emb-v0-spelling', 84_106_624, 'gguf', undefined, undefined, 'Q4_K_M', 2048, ['embedding']],
      ['nulls', undefined, 'gguf', 'qwen3', '8B', undefined, undefined, ['completion', 'tools']],
      ['qwen3-8b@q8_0', 5_027_784_512, 'gguf', 'qwen3', '8B', 'Q4_K_M', 40_960, ['completion', 'tools']],
    ],
  );
});

test('every copy in memory is a row under the name of its model, told apart by its instance', () => {
  const row = {
    backend,
    name: 'twice/model',
    sizeBytes: 5_027_784_512,
    status: 'loaded',
    node: 'box',
  };
  assert.deepEqual(loaded(fixtureJson('models-odd.json')), [
    { ...row, contextLength: 4096 },
    { ...row, instance: 'twice/model:2', contextLength: 16_384 },
    { ...row, instance: 'my own name', contextLength: 32_768 },
    { ...row, name: 'bare', contextLength: 40_960 },
  ]);
  assert.deepEqual(loaded(fixtureJson('models.json')), [{ ...row, name: 'qwen/qwen3-8b', contextLength: 8192 }]);
});

test('rows of every wrong type are left out or degrade field by field', () => {
  const odd = { backend, capabilities: ['completion'], downloaded: true };
  const rows = [
    null,
    7,
    'x',
    [],
    {},
    { key: 5 },
    { key: '' },
    { key: ' ' },
    { key: 'a', size_bytes: '12', quantization: 'Q4', capabilities: 'vision', variants: {}, loaded_instances: 'yes' },
    { key: 'b', size_bytes: 1.5, max_context_length: -1, capabilities: { vision: 'yes', trained_for_tool_use: 1 } },
    { key: 'c', size_bytes: -1, format: {}, architecture: 3, params_string: [], type: null, variants: [1, 'c@q4'] },
    { key: 'd', size_bytes: 2 ** 60, quantization: { name: '', bits_per_weight: 'x' }, type: 'hologram', future: {} },
    JSON.parse('{"key":"e","size_bytes":0,"__proto__":{"polluted":true}}'),
  ];
  assert.deepEqual(models({ models: rows }), [
    { ...odd, name: 'a' },
    { ...odd, name: 'b' },
    { ...odd, name: 'c' },
    { ...odd, name: 'd' },
    { ...odd, name: 'e', sizeBytes: 0 },
  ]);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  assert.deepEqual(readEntries({ models: rows })?.[2]?.variants, ['c@q4']);
  const instances = [null, 'x', [], {}, { id: '', config: null }, { id: 'f:2', config: { context_length: 0 } }];
  assert.deepEqual(
    known(readEntries({ models: [{ key: 'f', loaded_instances: instances }] })?.[0]?.instances.slice()),
    [{}, {}, { id: 'f:2' }],
  );
});

test('an empty library is one; a document without the list is none of LM Studio', () => {
  assert.deepEqual(models({ models: [] }), []);
  for (const document of [{}, { models: null }, { models: {} }, { error: 'x' }, { data: [] }, [], null, 'x', undefined])
    assert.equal(readEntries(document), undefined);
});

test('a download is read for what it has; fractions are cut and what is no amount is unknown', () => {
  const table: [unknown, unknown][] = [
    [
      { job_id: 'j', status: 'downloading', total_size_bytes: 10, downloaded_bytes: 4.9, bytes_per_second: 1.5 },
      { id: 'j', state: 'downloading', bytesTotal: 10, bytesCompleted: 4, bytesPerSecond: 1 },
    ],
    [fixtureJson('download-already.json'), { state: 'already_downloaded' }],
    [{ status: 'x', job_id: '', total_size_bytes: -1, downloaded_bytes: '7' }, { state: 'x' }],
    [{ status: 'x', job_id: 7, total_size_bytes: null, downloaded_bytes: Number.NaN }, { state: 'x' }],
    [{ status: 'x', total_size_bytes: 1e300, bytes_per_second: Number.POSITIVE_INFINITY }, { state: 'x' }],
    [
      { status: 'failed', error: { message: 'why' } },
      { state: 'failed', error: 'why' },
    ],
    [{ status: 'failed', error: null }, { state: 'failed' }],
    [{ status: '' }, undefined],
    [{ status: 3 }, undefined],
    [{ job_id: 'j' }, undefined],
    [null, undefined],
    ['x', undefined],
  ];
  for (const [document, expected] of table)
    assert.deepEqual(known([readDownload(document)])?.[0], expected ?? null, JSON.stringify(document));
});

test('only an answer that names the instance is one to a load or an unload', () => {
  assert.ok(namesInstance({ instance_id: 'a:2', status: 'loaded' }));
  for (const document of [{}, { instance_id: '' }, { instance_id: 3 }, { status: 'loaded' }, null, 'x'])
    assert.ok(!namesInstance(document));
});

test('the error of a document is found in every form; null is none', () => {
  const table: [unknown, unknown][] = [
    [{ error: 'text' }, { text: 'text' }],
    [{ error: '' }, { text: 'no reason given' }],
    [{ error: false }, { text: 'false' }],
    [{ error: ['a'] }, { text: '["a"]' }],
    [{ error: { type: 'unknown', message: 'm', code: 'c', param: 'p' } }, { text: 'm', type: 'unknown', code: 'c' }],
    [{ error: { type: 3 } }, { text: '{"type":3}' }],
    [{ models: [], error: 'and yet' }, { text: 'and yet' }],
  ];
  for (const [document, expected] of table) assert.deepEqual(known([complaintIn(document)])?.[0], expected);
  for (const document of [{ error: null }, {}, [], null, 'error', undefined])
    assert.equal(complaintIn(document), undefined);
});
