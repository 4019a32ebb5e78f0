import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isRemote,
  loadedOf,
  looksLikeLemonade,
  modelOf,
  readEntries,
  readVersion,
} from '../../../src/drivers/ollama/wire.ts';
import { fixtureJson } from './fixtures.ts';

/** Without the fields that are unknown, so that a table shows what is known. */
const known = (row: object) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
const models = (document: unknown) => readEntries(document)?.map(row => known(modelOf('ollama', row)));
const now = Date.parse('2026-08-22T08:00:00Z');
const loaded = (document: unknown) => readEntries(document)?.map(row => known(loadedOf('ollama', row, now)));

test('the version is read, and what has none is no version document', () => {
  assert.equal(readVersion(fixtureJson('api-version.json')), '0.33.0');
  assert.equal(readVersion({ version: '0.34.0-rc2', more: 1 }), '0.34.0-rc2');
  for (const document of [{ version: 5 }, { version: '' }, { error: 'Unexpected endpoint' }, [], null, 'x', undefined])
    assert.equal(readVersion(document), undefined);
});

test('the list of a current server: five downloads, three date styles, a cloud stub', () => {
  const rows = models(fixtureJson('api-tags.json')) ?? [];
  assert.deepEqual(rows[0], {
    backend: 'ollama',
    name: 'qwen3:8b',
    sizeBytes: 5_225_388_164,
    digest: '801dcad02f38c48984c325de964ab7c9213d4c51f101cd2f6aeacff576868987',
    modifiedAt: new Date('2026-08-14T19:07:33.412Z'),
    format: 'gguf',
    family: 'qwen3',
    parameterSize: '8.2B',
    quantization: 'Q4_K_M',
    contextLength: 40_960,
    capabilities: ['completion', 'tools', 'thinking'],
  });
  assert.deepEqual(
    rows.map(({ name, modifiedAt }) => [name, (modifiedAt as Date).toISOString()]),
    [
      ['qwen3:8b', '2026-08-14T19:07:33.412Z'],
      ['gemma3:latest', '2026-08-02T09:30:05.540Z'],
      ['hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M', '2026-07-29T01:00:00.000Z'],
      ['bge-m3:latest', '2026-06-11T07:45:12.000Z'],
      ['gpt-oss:120b-cloud', '2026-05-20T12:00:00.123Z'],
    ],
  );
  assert.deepEqual(rows[3]?.capabilities, ['embedding']);
  assert.deepEqual((readEntries(fixtureJson('api-tags.json')) ?? []).map(isRemote), [false, false, false, false, true]);
  assert.equal('format' in (rows[4] ?? {}), false);
});

test('the list of an old server has no capabilities and no context, which is unknown and not empty', () => {
  const rows = models(fixtureJson('api-tags-old.json')) ?? [];
  assert.deepEqual(rows[1], {
    backend: 'ollama',
    name: 'nomic-embed-text:latest',
    sizeBytes: 274_302_450,
    digest: '531e67a59846756e7b8c8ba5b7e33ae8991351b0c656f95171409fbda8115de8',
    modifiedAt: new Date('2024-10-01T08:15:00Z'),
    format: 'gguf',
    family: 'nomic-bert',
    parameterSize: '137M',
    quantization: 'F16',
  });
  assert.equal(rows[0]?.name, 'llama3.2:3b');
});

test('one bad entry hides neither its good fields nor the others', () => {
  const backend = 'ollama';
  assert.deepEqual(models(fixtureJson('api-tags-odd.json')), [
    {
      backend,
      name: 'good:latest',
      sizeBytes: 1_000_000_000,
      digest: '770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c',
      modifiedAt: new Date('2026-08-01T00:00:00Z'),
      format: 'gguf',
      family: 'llama',
      parameterSize: '1B',
      quantization: 'unknown',
    },
    { backend, name: 'no-details:latest', sizeBytes: 2_000_000_000 },
    { backend, name: 'only-model:7b', sizeBytes: 3_000_000_000 },
    {
      backend,
      name: 'Odd-Size:latest',
      digest: '990cb8ebd0afb7150da453a213036a92f2c05e091df0d803e62d257ea7796c27',
    },
    {
      backend,
      name: 'fields-of-tomorrow:latest',
      sizeBytes: 4_000_000_000,
      digest: '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881',
      modifiedAt: new Date('2027-01-01T04:30:00Z'),
      format: 'gguf',
      family: 'new',
      capabilities: ['completion', 'telepathy'],
    },
  ]);
});

test('rows of every wrong type are left out or degrade field by field', () => {
  const rows = [
    null,
    7,
    'x',
    [],
    {},
    { name: 5 },
    { name: 5, model: 'kept:1b' },
    { name: 'a:1b', size: '12', digest: 1, modified_at: 12, details: 'x', capabilities: 'completion' },
    { name: 'b:1b', size: 1.5, capabilities: ['', 3, 'vision', null], details: { context_length: -1, format: {} } },
    { name: 'c:1b', size: 2 ** 60, modified_at: 'model 7', details: { context_length: 0 }, capabilities: [] },
    JSON.parse('{"name":"d:1b","size":0,"__proto__":{"polluted":true}}'),
  ];
  const backend = 'ollama';
  assert.deepEqual(models({ models: rows }), [
    { backend, name: 'kept:1b' },
    { backend, name: 'a:1b' },
    { backend, name: 'b:1b', capabilities: ['vision'] },
    { backend, name: 'c:1b' },
    { backend, name: 'd:1b', sizeBytes: 0 },
  ]);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('null is an empty list; a document without the list is none of Ollama', () => {
  assert.deepEqual(models(fixtureJson('api-tags-null.json')), []);
  assert.deepEqual(models({ models: [] }), []);
  for (const document of [{}, { models: {} }, { error: 'x' }, { data: [] }, [], null, 'x', undefined])
    assert.equal(readEntries(document), undefined);
});

test('a loaded model carries what the server placed and when it lets go', () => {
  assert.deepEqual(loaded(fixtureJson('api-ps.json')), [
    {
      backend: 'ollama',
      name: 'qwen3:8b',
      sizeBytes: 6_862_180_352,
      digest: '801dcad02f38c48984c325de964ab7c9213d4c51f101cd2f6aeacff576868987',
      vramBytes: 6_862_180_352,
      contextLength: 4096,
      expiresAt: new Date('2026-08-22T08:05:00.917Z'),
      status: 'loaded',
    },
  ]);
});

test('for ever is no date, the past is stopping, 0 on the accelerator stays 0, and null is unknown', () => {
  const rows = loaded(fixtureJson('api-ps-edge.json')) ?? [];
  assert.deepEqual(
    rows.map(({ name, status, vramBytes, expiresAt }) => [name, status, vramBytes, expiresAt]),
    [
      ['pinned:latest', 'loaded', 0, undefined],
      ['half:latest', 'loaded', 4_500_000_000, new Date('2026-08-22T08:05:00Z')],
      ['stopping:latest', 'stopping', 1_000_000_000, new Date('2020-01-01T00:00:00Z')],
      ['zero-time:latest', 'loaded', undefined, undefined],
      ['no-longer-in-tags:latest', 'loaded', undefined, new Date('2026-08-22T08:09:59.1Z')],
    ],
  );
});

test('a list of zero digests is that of a Lemonade Server, an empty one is nobody in particular', () => {
  const zero = '0'.repeat(64);
  const rows = (...digests: (string | undefined)[]) =>
    readEntries({ models: digests.map((digest, i) => ({ name: `m${i}:latest`, digest })) }) ?? [];
  assert.ok(looksLikeLemonade(rows(zero, zero)));
  assert.ok(looksLikeLemonade(rows(`sha256:${zero}`)));
  assert.ok(!looksLikeLemonade(rows(zero, 'a'.repeat(64))));
  assert.ok(!looksLikeLemonade(rows(undefined)));
  assert.ok(!looksLikeLemonade([]));
});
