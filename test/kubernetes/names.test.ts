import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelOf, prefixedLabel } from '../../src/kubernetes/names.ts';

test('words as a label', () => {
  const table: [words: string, label: string][] = [
    ['acme-labs/Nova-4B-Instruct', 'acme-labs-nova-4b-instruct'],
    ['Qwen/Qwen3.5__A--B', 'qwen-qwen3-5-a-b'],
    ['01-ai/Yi-34B', 'm-01-ai-yi-34b'],
    ['-/-', 'model'],
    ['', 'model'],
    ['ä/ö', 'model'],
    ['x'.repeat(63), 'x'.repeat(63)],
  ];
  for (const [words, label] of table) assert.equal(labelOf(words), label, words);
});

test('a long label ends in the FNV-1a of what it was made from', () => {
  // Known values of FNV-1a 32: 'a' is e40c292c, 'foobar' bf9cf968; here for longer words, counted by another program.
  const words = `Owner/${'n'.repeat(70)}`;
  assert.equal(labelOf(words), `owner-${'n'.repeat(48)}-12f18079`);
  assert.equal(labelOf(`  ${words} `), labelOf(words), 'of the trimmed words');
  assert.equal(labelOf(words.toUpperCase()), labelOf(words), 'in lower case');
  assert.notEqual(labelOf(`${words}x`), labelOf(words));
  assert.match(labelOf(`${'b'.repeat(53)}/${'c'.repeat(20)}`), /^b{53}-[0-9a-f]{8}$/, 'no dash before the dash');
  assert.match(labelOf(`9${'b'.repeat(62)}`), /^m-9b{51}-[0-9a-f]{8}$/, 'what is put before it counts');
});

test('a label with a prefix is cut as a whole', () => {
  assert.equal(prefixedLabel('mm-pull-', 'nova-4b'), 'mm-pull-nova-4b');
  const label = 'd'.repeat(60);
  assert.equal(prefixedLabel('mm-pull-', label), `mm-pull-${'d'.repeat(46)}-41ecf118`);
  assert.notEqual(prefixedLabel('mm-rm-', label).slice(-8), prefixedLabel('mm-pull-', label).slice(-8));
});
