import assert from 'node:assert/strict';
import { test } from 'node:test';
import { downloadBytesOf, type HubFile, indexFile, weigh } from '../../../src/drivers/kserve/hub/weights.ts';

const files = (sizes: Readonly<Record<string, number | undefined>>): HubFile[] =>
  Object.entries(sizes).map(([path, bytes]) => ({ path, bytes }));

const shards = ['model-1.safetensors', 'model-2.safetensors'];
const sharded = (first: number | undefined, second: number | undefined) =>
  files({ 'model-1.safetensors': first, 'model-2.safetensors': second, 'original/consolidated.safetensors': 5_000 });

test('the total of the index counts while it is within one percent of its shards', () => {
  const weighed = (totalBytes: number | undefined) => weigh(sharded(600, 400), { totalBytes, shards });
  for (const total of [990, 1_000, 1_010])
    assert.deepEqual(weighed(total), { bytes: total, source: 'safetensors-index' }, String(total));
  for (const total of [989, 1_011, 2_000, 1, undefined])
    assert.deepEqual(weighed(total), { bytes: 1_000, source: 'safetensors-shards' }, String(total));
});

test('each shard counts once, and one that is not there not at all', () => {
  const index = { totalBytes: 1_000, shards: [...shards, 'model-1.safetensors', 'model-3.safetensors'] };
  assert.deepEqual(weigh(sharded(600, 400), index), { bytes: 1_000, source: 'safetensors-index' });
});

test('shards that weigh nothing, or nobody knows what, say nothing against the total', () => {
  for (const listed of [sharded(0, 0), sharded(undefined, 400), files({})])
    assert.deepEqual(weigh(listed, { totalBytes: 70, shards }), { bytes: 70, source: 'safetensors-index' });
});

test('an index that says nothing leaves the word to the files', () => {
  const index = { totalBytes: undefined, shards };
  assert.equal(weigh(sharded(undefined, 400), index), undefined, 'a sum with an unknown size is unknown');
  assert.deepEqual(weigh(files({ 'other.safetensors': 7 }), index), { bytes: 7, source: 'tree' });
});

test('without an index all safetensors count, wherever they are, and nothing beside them', () => {
  const listed = files({ 'a.safetensors': 1, 'b/c.SAFETENSORS': 2, 'pytorch_model.bin': 100, [indexFile]: 1_000 });
  assert.deepEqual(weigh(listed), { bytes: 3, source: 'tree' });
});

test('without safetensors other weights count, in any letters', () => {
  const names = ['a.bin', 'b.pt', 'c.pth', 'd.GGUF', 'e.ckpt', 'f.msgpack', 'g/h5.h5', 'i.Onnx'];
  const others = { 'config.json': 100, 'a.bin.index.json': 100, bin: 100, 'README.md': 100 };
  const listed = files({ ...Object.fromEntries(names.map(name => [name, 1])), ...others });
  assert.deepEqual(weigh(listed), { bytes: names.length, source: 'tree' });
});

test('nothing that weighs is no weight', () => {
  assert.equal(weigh(files({ 'README.md': 10 })), undefined);
  assert.equal(weigh(files({ 'model.safetensors': 0 })), undefined);
  assert.equal(weigh([]), undefined);
});

test('a sum that cannot be counted exactly is unknown', () => {
  const huge = Number.MAX_SAFE_INTEGER;
  assert.equal(weigh(files({ 'a.gguf': huge, 'b.gguf': huge })), undefined);
  assert.equal(downloadBytesOf(files({ a: huge, b: huge }), []), undefined);
});

test('everything is downloaded but what is ignored', () => {
  const listed = files({ 'a.bin': 1, 'b/c.bin': 2, 'd.json': 4, 'e/f.json': 8 });
  assert.equal(downloadBytesOf(listed, []), 15);
  assert.equal(downloadBytesOf(listed, ['*.bin', ' ']), 12);
  assert.equal(downloadBytesOf(listed, ['e/*', 'd.json']), 3);
  assert.equal(downloadBytesOf([...listed, { path: 'x.bin' }], []), undefined);
  assert.equal(
    downloadBytesOf([...listed, { path: 'x.bin' }], ['*.bin']),
    12,
    'nobody asks for the size of what stays',
  );
  assert.equal(downloadBytesOf([], []), 0);
});
