import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readInventory } from '../../../src/drivers/kserve/inventory/agent.ts';
import type { CacheEntry } from '../../../src/drivers/kserve/inventory/entry.ts';
import { parseScan, scanOutputLimit } from '../../../src/drivers/kserve/inventory/scanOutput.ts';
import { jsonOf, plain, textOf } from './world.ts';

const expected = jsonOf('inventory/expected.json');

/** Times as the fixtures write them. */
const written = (entries: readonly CacheEntry[]) =>
  JSON.parse(JSON.stringify(plain(entries)).replaceAll('.000Z"', 'Z"'));

function scanned(output: string) {
  const read = parseScan(output);
  return 'value' in read ? read.value : assert.fail(read.problem);
}

test('the output of a scan is what was counted', () => {
  const { entries, warnings } = scanned(textOf('inventory/scan-output.log'));
  assert.deepEqual(written(entries), expected.entries);
  assert.deepEqual(warnings, []);
});

test('without the last column a directory holds a model', () => {
  const [entry] = scanned(textOf(`inventory/${expected.oldFormat.file}`)).entries;
  const [{ dir, bytes, files, hasModel }] = expected.oldFormat.entries;
  assert.deepEqual({ ...entry, mtime: undefined }, { dir, bytes, files, hasModel, mtime: undefined });
});

test('an output without its end is none', () => {
  const problem = { problem: 'scan output truncated (no END line)' };
  assert.deepEqual(parseScan(textOf(`inventory/${expected.truncated.file}`)), problem);
  assert.deepEqual(parseScan(''), problem);
  assert.deepEqual(parseScan('DIR\ta\t1\t1\t1\t1\nEND of story'), problem);
  const line = `DIR\t${'x'.repeat(90)}\t1\t1\t1\t1\n`;
  const long = line.repeat(Math.ceil(scanOutputLimit / line.length));
  assert.deepEqual(parseScan(`${long}END\n`), problem, 'what is longer than was asked for is not the whole');
  assert.equal(scanned(`${line.repeat(1000)}END`).entries.length, 1);
});

test('what is not of the script is no directory', () => {
  const { entries, warnings } = scanned(
    [
      'find: /cache/private: Permission denied',
      'DIR\t.model-manager\t1\t1\t1\t0',
      'DIR\t\t1\t1\t1\t1',
      'DIR\t../etc\t1\t1\t1\t1',
      'DIR\tnegative\t-1\t1\t1\t1',
      'DIR\trounded\t1.44835e+10\t1\t1\t1',
      'DIR\thuge\t9999999999999999\t1\t1\t1',
      'DIR\todd\t1\t1\t1\tmaybe',
      'DIR\tgood one\t5\t2\tnever\t0\r',
      'DIR\tgood one\t7\t7\t7\t1',
      'MARKER\tgood one\t{"model":',
      'MARKER\tgood one\t[]',
      'MARKER\tnobody\t{"model":"a/b"}',
      'DIR',
      'dir\tlower\t1\t1\t1\t1',
      'END',
      'DIR\tlate\t1\t1\t1\t1',
    ].join('\n'),
  );
  assert.deepEqual(entries, [{ dir: 'good one', bytes: 5, files: 2, mtime: undefined, hasModel: false }]);
  assert.deepEqual(warnings, ['10 lines about the cache could not be read']);
});

test('a marker counts that names a model, and only for what can be read of it', () => {
  const marker = (json: string) => scanned(`DIR\ta\t1\t1\t1\t0\nMARKER\ta\t${json}\nEND`).entries[0]?.marker;
  assert.deepEqual(plain(marker('{"model":" o/n ","bytesExpected":-1,"completedAt":"soon","job":5}')), {
    model: 'o/n',
  });
  assert.equal(marker('{"model":""}'), undefined);
  assert.equal(marker('{"model":{"a":1}}'), undefined);
  assert.equal(marker(`{"model":"${'x'.repeat(600)}"}`), undefined);
  assert.equal(marker('{"model":"a\\u0000b"}'), undefined);
  assert.equal(marker('{"__proto__":{"model":"o/n"}}'), undefined);
  assert.equal(({} as { model?: string }).model, undefined);
});

test('names with what cannot be printed are told apart from lines', () => {
  const { entries } = scanned('DIR\ta\u0007b\u2028c\t1\t1\t1\t1\nDIR\tü ñ 模型\t2\t1\t1\t1\nEND');
  assert.deepEqual(
    entries.map(({ dir }) => dir),
    ['a?b\u2028c', 'ü ñ 模型'],
  );
});

test('an agent answers the same', () => {
  const count = readInventory(jsonOf('inventory/agent-inventory.json'));
  assert.deepEqual(written(count?.entries ?? []), expected.entries);
  assert.deepEqual(count?.warnings, []);
});

test('an agent that answers garbage is heard as far as it can be', () => {
  for (const garbage of [undefined, null, 'x', [], {}, { entries: 'none' }, { entries: { dir: 'a' } }]) {
    assert.equal(readInventory(garbage), undefined);
  }
  const count = readInventory({
    entries: [
      { dir: 'old', bytes: 1, files: 1 },
      { dir: 'old', bytes: 2, files: 2 },
      { dir: 'said-no', bytes: 1, files: 1, hasModel: 'yes', mtime: 'never', marker: 'x' },
      { dir: '.hidden', bytes: 1, files: 1 },
      { dir: 'a/b', bytes: 1, files: 1 },
      { dir: 'x', bytes: -1, files: 1 },
      { dir: 'y', bytes: 1.5, files: 1 },
      null,
      7,
    ],
    warnings: ['cannot read\nprivate', 5],
  });
  assert.deepEqual(plain(count?.entries), [
    { dir: 'old', bytes: 1, files: 1, hasModel: true },
    { dir: 'said-no', bytes: 1, files: 1, hasModel: false },
  ]);
  assert.deepEqual(count?.warnings, ['cannot read private', '6 entries of the agent could not be read']);
});
