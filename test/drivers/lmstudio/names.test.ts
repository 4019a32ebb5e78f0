import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalName, findModel, resolvePulled } from '../../../src/drivers/lmstudio/names.ts';
import { type Entry, readEntries } from '../../../src/drivers/lmstudio/wire.ts';
import { model } from './host.ts';

test('a reference finds the exact key, else the only one that differs in case', () => {
  const models = ['twice/model', 'Case/Model', 'case/model', 'qwen3-8b@q8_0', 'bare', 'Bare-2'].map(model);
  const table: [string, string | undefined][] = [
    ['twice/model', 'twice/model'],
    [' twice/model ', 'twice/model'],
    ['Twice/MODEL', 'twice/model'],
    ['case/model', 'case/model'],
    ['Case/Model', 'Case/Model'],
    ['CASE/MODEL', undefined],
    ['qwen3-8b@Q8_0', 'qwen3-8b@q8_0'],
    ['qwen3-8b', undefined],
    ['twice/model:2', undefined],
    ['bare-2', 'Bare-2'],
    ['', undefined],
    ['../../etc/passwd', undefined],
  ];
  for (const [reference, name] of table) assert.equal(findModel(models, reference)?.name, name, reference);
});

test('only the blanks around a reference do not matter', () => {
  assert.equal(canonicalName(' qwen/qwen3-8b\n'), 'qwen/qwen3-8b');
  assert.notEqual(canonicalName('Case/Model'), canonicalName('case/model'));
});

const library = (...keys: (string | { key: string; variants: string[] })[]): Entry[] =>
  readEntries({ models: keys.map(key => (typeof key === 'string' ? { key } : key)) }) ?? [];

test('a download is found under its name, its variant, its name without quant, or as the only new entry', () => {
  const link = 'https://huggingface.co/lmstudio-community/Qwen3-8B-GGUF';
  const variants = { key: 'qwen/qwen3-8b', variants: ['qwen/qwen3-8b@q4_k_m', 'qwen/qwen3-8b@q8_0'] };
  const table: [string, Entry[], string[] | undefined, string | string[]][] = [
    ['a/b', library('a/b', 'new'), ['a/b'], 'a/b'],
    ['A/B', library('a/b'), [], 'a/b'],
    ['QWEN/qwen3-8b@Q8_0', library('other', variants), ['other', 'qwen/qwen3-8b'], 'qwen/qwen3-8b'],
    ['qwen3-8b', library('other', 'Qwen3-8b@q4_k_m'), ['other'], 'Qwen3-8b@q4_k_m'],
    ['qwen3-8b', library('qwen3-8b@q4', 'qwen3-8b@q8'), ['qwen3-8b@q4'], 'qwen3-8b@q8'],
    [link, library('old', 'qwen/qwen3-8b'), ['old'], 'qwen/qwen3-8b'],
    // A name counts for more than being new, which may be somebody else's doing.
    ['qwen3-8b', library('qwen3-8b@q4', 'unrelated'), ['qwen3-8b@q4'], 'qwen3-8b@q4'],
    // Nothing was downloaded, so nothing can be new.
    [link, library('old', 'some-new'), undefined, []],
    // Not one of several.
    [link, library('old', 'new-1', 'new-2'), ['old'], ['new-1', 'new-2']],
    [
      'qwen3-8b',
      library('qwen3-8b@q4', 'qwen3-8b@q8', 'new'),
      ['qwen3-8b@q4', 'qwen3-8b@q8'],
      ['qwen3-8b@q4', 'qwen3-8b@q8'],
    ],
    ['qwen3-8b', library('qwen3-8b@q4', 'qwen3-8b@q8'), [], ['qwen3-8b@q4', 'qwen3-8b@q8']],
    // A likely name is a hint, not a match.
    [link, library('old', 'qwen/qwen3-8b'), ['old', 'qwen/qwen3-8b'], ['qwen/qwen3-8b']],
    ['nope', library('old'), ['old'], []],
    ['nope', library(), [], []],
  ];
  for (const [reference, entries, before, expected] of table) {
    const resolved = resolvePulled(entries, reference, before && new Set(before));
    assert.deepEqual('entry' in resolved ? resolved.entry.key : resolved.candidates, expected, reference);
  }
});
