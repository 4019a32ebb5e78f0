import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isIgnored, matches } from '../../../src/drivers/kserve/hub/glob.ts';
import { workedMs } from '../../support/eventLoop.ts';

test('a pattern is for the whole path or the base name', () => {
  const table: [path: string, pattern: string, ignored: boolean][] = [
    ['pytorch_model.bin', '*.bin', true],
    ['original/pytorch_model.bin', '*.bin', true],
    ['original/pytorch_model.bin', 'original/*', true],
    ['original/deep/model.bin', 'original/*', false],
    ['original/deep/model.bin', '*/*/model.bin', true],
    ['original/deep/model.bin', 'original/**', false],
    ['original/model.bin', 'original', false],
    ['.gitattributes', '.git*', true],
    ['.gitattributes', ' .git* ', true],
    ['model.bin', '', false],
    ['model.bin', '  ', false],
    ['MODEL.BIN', '*.bin', false],
    ['a/b', '*', true],
  ];
  for (const [path, pattern, ignored] of table) assert.equal(isIgnored(path, [pattern]), ignored, `${path} ${pattern}`);
  assert.ok(isIgnored('b', ['a', 'b']));
  assert.ok(!isIgnored('b', []));
});

test('stars, question marks, sets and backslashes', () => {
  const table: [glob: string, path: string, match: boolean][] = [
    ['a*c', 'abbc', true],
    ['a*c', 'ac', true],
    ['a*c', 'acb', false],
    ['*a*b*', 'xxaxxbxx', true],
    ['*ab', 'aab', true],
    ['a*', 'a/b', false],
    ['a/*', 'a/', true],
    ['?', 'ü', true],
    ['?', '😀', true],
    ['?', '', false],
    ['?', '/', false],
    ['[a-c]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['[^a-c]x', 'dx', true],
    ['[!a-c]x', 'ax', false],
    ['[]]', ']', true],
    ['[a-]', '-', true],
    ['[\\]]', ']', true],
    ['[', '[', false],
    ['[a', 'a', false],
    ['[a-', 'a', false],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['a\\', 'a', false],
    ['model.(bin)+$', 'model.(bin)+$', true],
    ['model.bin', 'modelxbin', false],
    ['', '', true],
  ];
  for (const [glob, path, match] of table) assert.equal(matches(glob, path), match, `${glob} ${path}`);
});

test('no pattern and no path take long', () => {
  const began = workedMs();
  assert.ok(!matches(`${'*a'.repeat(200)}b`, 'a'.repeat(20_000)));
  assert.ok(!matches(`${'[*'.repeat(5_000)}`, 'a'.repeat(5_000)));
  assert.ok(workedMs() - began < 2_000);
});
