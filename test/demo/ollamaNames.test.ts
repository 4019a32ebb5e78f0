import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  display,
  inExistingSpelling,
  type Name,
  parseName,
  splitSource,
  stubName,
} from '../../src/demo/ollama/names.ts';

const parsed = (reference: string): Name => parseName(reference) ?? assert.fail(`${reference} is a name`);

describe('a name', () => {
  for (const [reference, shown] of [
    ['gemma3', 'gemma3:latest'],
    ['library/gemma3', 'gemma3:latest'],
    ['registry.ollama.ai/library/gemma3:4b', 'gemma3:4b'],
    ['someuser/tool:7b', 'someuser/tool:7b'],
    ['hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M', 'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M'],
    ['localhost:5000/library/x', 'localhost:5000/library/x:latest'],
    ['_private-1.5', '_private-1.5:latest'],
  ] as const) {
    test(`${reference} is shown as ${shown}`, () => assert.equal(display(parsed(reference)), shown));
  }

  for (const reference of [
    '',
    ' ',
    'two words',
    'modèle',
    ':7b',
    'x:',
    'user/',
    '/x',
    'us.er/x',
    '-x',
    'x'.repeat(81),
  ]) {
    test(`${JSON.stringify(reference)} is none`, () => assert.equal(parseName(reference), undefined));
  }

  test('takes the spelling that exists, each part on its own', () => {
    const existing = [parsed('Llama3.2:3b'), parsed('qwen3:8B')];
    assert.equal(display(inExistingSpelling(parsed('llama3.2:8b'), existing)), 'Llama3.2:8B');
    assert.equal(display(inExistingSpelling(parsed('new:1B'), existing)), 'new:1B');
  });

  test('says by its suffix where it should run', () => {
    assert.deepEqual(splitSource('gpt-oss:120b-cloud'), { base: 'gpt-oss:120b', source: 'cloud', conflict: false });
    assert.deepEqual(splitSource('gpt-oss:cloud'), { base: 'gpt-oss', source: 'cloud', conflict: false });
    assert.deepEqual(splitSource('gemma3:4b:local'), { base: 'gemma3:4b', source: 'local', conflict: false });
    assert.deepEqual(splitSource('local:5000/library/x-cloud'), {
      base: 'local:5000/library/x-cloud',
      conflict: false,
    });
    assert.equal(splitSource('x:cloud:local').conflict, true);
    assert.deepEqual([stubName('gpt-oss:120b'), stubName('gpt-oss')], ['gpt-oss:120b-cloud', 'gpt-oss:cloud']);
  });
});
