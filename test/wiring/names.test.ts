import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameOf, nameOfObject, nameOnBackend, placeholderNameOf } from '../../src/wiring/kagent/names.ts';

const long = (tag: string) => `hf.co/${'a'.repeat(80)}/repo:${tag}`;
/** What the API server takes as a name. */
const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

test('the name for a reference', () => {
  const table: [reference: string, name: string, prefix?: string][] = [
    ['smollm2:135m', 'smollm2-135m'],
    ['hf.co/org/Repo:Q4_K_M', 'hf-co-org-repo-q4-k-m'],
    ['ibm/granite-4-micro', 'ibm-granite-4-micro'],
    ['qwen3-it-4b-FLM', 'qwen3-it-4b-flm'],
    ['7b-model', 'm-7b-model'],
    ['--weird__name--', 'weird-name'],
    [' smollm2:135m\n', 'smollm2-135m'],
    ['', 'model'],
    ['///', 'model'],
    ['模型', 'model'],
    ['smollm2:135m', 'mm-smollm2-135m', 'mm-'],
    ['smollm2:135m', 'mm-smollm2-135m', 'mm'],
    ['7b-model', 'mm-m-7b-model', 'mm'],
    ['', 'mm-model', 'mm'],
    ['smollm2:135m', 'smollm2-135m', ' - '],
    ['smollm2:135m', 'team-a-smollm2-135m', 'Team_A'],
  ];
  for (const [reference, name, prefix] of table) assert.equal(nameOf(reference, prefix), name, reference);
});

test('a long reference is cut, and told from its siblings by a hash', () => {
  assert.equal(nameOf(long('Q8')), `hf-co-${'a'.repeat(48)}-0e475f86`);
  assert.equal(nameOf(long('Q4')), `hf-co-${'a'.repeat(48)}-1a47726a`);
  assert.equal(nameOf(long('Q8').toUpperCase()), nameOf(long('Q8')), 'of the reference in lower case');
  assert.equal(nameOf('b'.repeat(63)), 'b'.repeat(63));
  assert.match(nameOf('b'.repeat(64)), /^b{54}-[0-9a-f]{8}$/);
  assert.match(nameOf(`${'b'.repeat(53)}-${'c'.repeat(20)}`), /^b{53}-[0-9a-f]{8}$/, 'no dash before the dash');
  assert.match(nameOf('b'.repeat(61), 'mm'), /^mm-b{51}-[0-9a-f]{8}$/);
});

test('a reference of 300 characters has a name, whatever it is made of', () => {
  for (const sign of ['x', '9', 'ü', '/', 'a/', 'é-', '.'])
    for (const prefix of ['', 'p', '0'])
      for (const backend of ['ollama', 'x'.repeat(80)]) {
        const name = nameOf(sign.repeat(300), prefix);
        for (const each of [name, nameOnBackend(name, backend, sign.repeat(300)), placeholderNameOf(name)])
          assert.match(each, label, `${sign} ${prefix} ${backend}`);
      }
});

test('an object that serves a model keeps its name, unless a prefix is configured', () => {
  assert.equal(nameOfObject('qwen3-4b-instruct'), 'qwen3-4b-instruct');
  assert.equal(nameOfObject('0-qwen.v1'), '0-qwen.v1');
  assert.equal(nameOfObject('qwen3-4b-instruct', 'mm-'), 'mm-qwen3-4b-instruct');
  assert.equal(nameOfObject('0-qwen.v1', 'mm'), 'mm-m-0-qwen-v1');
});

test('a second backend has a name of its own', () => {
  assert.equal(nameOnBackend('shared-1b', 'lemonade', 'shared:1b'), 'shared-1b-lemonade');
  const fits = 'c'.repeat(56);
  assert.equal(nameOnBackend(fits, 'ollama', fits), `${fits}-ollama`);
  const [q4, q8] = ['Q4', 'Q8'].map(tag => nameOnBackend(nameOf(long(tag)), 'ollama', long(tag)));
  assert.equal(q8, `hf-co-${'a'.repeat(41)}-0e475f86-ollama`);
  assert.equal(q4, `hf-co-${'a'.repeat(41)}-1a47726a-ollama`);
  assert.equal(q8?.length, 63);
});

test('the placeholder Secret is named after its ModelConfig', () => {
  assert.equal(placeholderNameOf('qwen3-4b-flm'), 'qwen3-4b-flm-api-key');
  assert.equal(placeholderNameOf('d'.repeat(55)), `${'d'.repeat(55)}-api-key`);
  assert.equal(placeholderNameOf('d'.repeat(63)), `${'d'.repeat(55)}-api-key`);
  assert.equal(placeholderNameOf(`${'d'.repeat(54)}-0e475f86`), `${'d'.repeat(54)}-api-key`);
});
