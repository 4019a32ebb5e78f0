import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linesOf } from '../../src/drivers/lines.ts';
import { all } from './scripted.ts';

async function* from(chunks: Iterable<Uint8Array>) {
  yield* chunks;
}

const what = 'ollama: POST /api/pull';

test('bytes become the same lines wherever they are cut, blank ones and the unfinished last one included', async () => {
  const bytes = Buffer.from('ein Schlüssel\r\n\n 視覚 \r\r\n🚧');
  const lines = [
    { text: 'ein Schlüssel', complete: true },
    { text: '', complete: true },
    { text: ' 視覚 \r', complete: true },
    { text: '🚧', complete: false },
  ];
  for (let cut = 0; cut <= bytes.length; cut++)
    assert.deepEqual(await all(linesOf(from([bytes.subarray(0, cut), bytes.subarray(cut)]), what)), lines);
  assert.deepEqual(await all(linesOf(from(Array.from(bytes, byte => Uint8Array.of(byte))), what)), lines);
  assert.deepEqual(await all(linesOf(from([]), what)), []);
  assert.deepEqual(await all(linesOf(from([Buffer.from('a\n\r')]), what)), [{ text: 'a', complete: true }]);
});

test('a line without an end is given up at its bound, one that fits is read', async () => {
  const piece = Buffer.from('x'.repeat(1000));
  function* endless() {
    for (;;) yield piece;
  }
  await assert.rejects(
    all(linesOf(from(endless()), what, 10_000)),
    /^GatewayError: ollama: POST \/api\/pull: a line of more than 10000 characters$/,
  );
  await assert.rejects(all(linesOf(from(endless()), what)), /a line of more than 4194304 characters$/);
  const long = Buffer.from(`${'y'.repeat(9_000)}\n`);
  assert.equal((await all(linesOf(from([Buffer.concat([long, long, long])]), what, 10_000))).length, 3);
});
