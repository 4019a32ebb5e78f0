import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextQueryOf, readFiles, readHits, readIndex, readRepository } from '../../../src/drivers/kserve/hub/wire.ts';

const nothings = [undefined, null, 7, 'text', true];

test('a repository has an id', () => {
  for (const none of [...nothings, [], {}, { id: 7 }, { id: '' }, { error: 'no' }])
    assert.equal(readRepository(none), undefined, JSON.stringify(none));
  assert.deepEqual(readRepository({ id: 'a/b' }), { id: 'a/b', gated: false, private: false });
  assert.deepEqual(readRepository({ modelId: 'a/b', gated: 'auto', private: true }), {
    id: 'a/b',
    gated: true,
    private: true,
  });
  const gated = (value: unknown) => readRepository({ id: 'a/b', gated: value })?.gated;
  assert.deepEqual([false, 'auto', 'manual', true, null, 0, ''].map(gated), [
    false,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('files have the size of their content, or none', () => {
  for (const none of [...nothings, {}]) assert.equal(readFiles(none), undefined);
  const row = (size: unknown, lfs?: unknown) => ({ type: 'file', path: 'x', size, ...(lfs !== undefined && { lfs }) });
  const bytes = (size: unknown, lfs?: unknown) => readFiles([row(size, lfs)])?.[0]?.bytes;
  assert.equal(bytes(12), 12);
  assert.equal(bytes(0), 0);
  assert.equal(bytes(135, { size: 5_000 }), 5_000);
  for (const bad of [-1, 1.5, Number.NaN, 2 ** 53, '12', null, undefined, [], Number.POSITIVE_INFINITY]) {
    assert.equal(bytes(bad), undefined, `size ${bad}`);
    assert.equal(bytes(135, { size: bad }), undefined, `lfs.size ${bad}: the other one is the pointer's`);
  }
  assert.equal(bytes(135, null), 135);
});

test('what is no file is left out', () => {
  const rows = [{ type: 'directory', path: 'd', size: 0 }, null, 7, [], { type: 'file' }, { type: 'file', path: '' }];
  assert.deepEqual(readFiles([...rows, { type: 'file', path: '__proto__', size: 1 }]), [
    { path: '__proto__', bytes: 1 },
  ]);
});

test('an index has a total, or shards, or both', () => {
  const empties = [{}, { metadata: {}, weight_map: {} }, { metadata: 7, weight_map: 'x' }, { error: 'no' }];
  for (const none of [...nothings, [], ...empties]) assert.equal(readIndex(none), undefined, JSON.stringify(none));
  const map = { a: 'm1', b: 'm2', c: 'm1', d: 7, e: null };
  assert.deepEqual(readIndex({ metadata: { total_size: 10 }, weight_map: map }), {
    totalBytes: 10,
    shards: ['m1', 'm2'],
  });
  assert.deepEqual(readIndex({ weight_map: map }), { totalBytes: undefined, shards: ['m1', 'm2'] });
  const total = (size: unknown) => readIndex({ metadata: { total_size: size }, weight_map: map })?.totalBytes;
  assert.equal(total(8.04e9), 8_040_000_000);
  assert.equal(total(10.4), 10);
  for (const bad of [0, -5, Number.NaN, 1e300, '10', null, {}]) assert.equal(total(bad), undefined, String(bad));
});

test('hits as the Hub gives them, whole or short, and nothing that is none', () => {
  for (const none of [...nothings, {}]) assert.equal(readHits(none), undefined);
  const [whole, short, ...others] =
    readHits([
      {
        id: 'a/b',
        author: 'A',
        downloads: 5,
        likes: 2,
        gated: 'manual',
        private: true,
        pipeline_tag: 'text-generation',
        library_name: 'vllm',
        tags: ['x', 7, 'y'],
        lastModified: '2026-09-01T00:00:00.000Z',
      },
      { modelId: 'c/d', downloads: -1, likes: 'many', tags: 'x', lastModified: 'yesterday' },
      { downloads: 7 },
      null,
    ]) ?? [];
  assert.deepEqual(whole, {
    id: 'a/b',
    author: 'A',
    downloads: 5,
    likes: 2,
    gated: true,
    private: true,
    pipelineTag: 'text-generation',
    library: 'vllm',
    tags: ['x', 'y'],
    lastModified: new Date('2026-09-01T00:00:00.000Z'),
  });
  assert.deepEqual(JSON.parse(JSON.stringify(short)), { id: 'c/d', author: 'c', gated: false, private: false });
  assert.deepEqual(others, []);
});

test('the next page is the query of a link', () => {
  const next = '<https://huggingface.co/api/models/a/b/tree/main?recursive=true&cursor=Zm9v%3D>; rel="next"';
  assert.equal(nextQueryOf(next), '?recursive=true&cursor=Zm9v%3D');
  assert.equal(nextQueryOf(`<https://h/x?c=1>; rel="prev", ${next}`), '?recursive=true&cursor=Zm9v%3D');
  assert.equal(nextQueryOf('</x?c=1#part>; rel=next'), '?c=1');
  for (const none of [
    undefined,
    '',
    'next',
    '<https://h/x?c=1>',
    '<https://h/x?c=1>; rel="last"',
    '<https://h/x>; rel="next"',
  ])
    assert.equal(nextQueryOf(none), undefined, none);
});
