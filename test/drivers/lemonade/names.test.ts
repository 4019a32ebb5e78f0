import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalName, findModel, mayBeListedAs, named } from '../../../src/drivers/lemonade/names.ts';
import { model } from './host.ts';

test('a reference is canonical as it is: ids have no tags, and their case counts', () => {
  assert.equal(canonicalName(' Qwen3-0.6B-GGUF '), 'Qwen3-0.6B-GGUF');
  assert.equal(canonicalName('user.Two'), 'user.Two');
  assert.notEqual(canonicalName('two'), canonicalName('Two'));
});

test('a reference finds the exact model, else the only one that differs in case', () => {
  const own = { capabilities: ['completion', 'custom'] };
  const models = [
    model('Two'),
    model('two'),
    model('Qwen3-0.6B-GGUF'),
    model('Mine', own),
    model('user.Taken', own),
    model('Taken'),
    model('Folder', own),
  ];
  const table: [string, string | undefined][] = [
    ['Two', 'Two'],
    ['two', 'two'],
    ['TWO', undefined],
    [' qwen3-0.6b-gguf ', 'Qwen3-0.6B-GGUF'],
    ['Qwen3-0.6B-GGUF:latest', undefined],
    ['Mine', 'Mine'],
    ['user.Mine', 'Mine'],
    ['USER.mine', 'Mine'],
    ['extra.Folder', 'Folder'],
    ['user.Taken', 'user.Taken'],
    ['Taken', 'Taken'],
    ['user.Two', undefined],
    ['user.qwen3-0.6b-gguf', undefined],
    ['user.', undefined],
    ['', undefined],
    ['  ', undefined],
    ['../../etc/passwd', undefined],
  ];
  for (const [reference, name] of table) assert.equal(findModel(models, reference)?.name, name, reference);
});

test('a model of an old server is found with its prefix only: without it, the name is that of the catalog', () => {
  const models = [model('user.Phi-4-Mini-GGUF')];
  assert.equal(findModel(models, 'user.phi-4-mini-gguf')?.name, 'user.Phi-4-Mini-GGUF');
  assert.equal(findModel(models, 'Phi-4-Mini-GGUF'), undefined);
});

test('what was pulled by its full name may be listed by its public one', () => {
  for (const listed of ['user.X', 'X']) assert.ok(mayBeListedAs('user.X', listed));
  assert.ok(mayBeListedAs('extra.X', 'X'));
  assert.ok(!mayBeListedAs('X', 'user.X'));
  assert.ok(!mayBeListedAs('user.X', 'x'));
});

test('a blank name is refused', () => {
  for (const name of ['', ' ', '\t\n'])
    assert.throws(() => named(name), /^GatewayError: invalid request: a model reference is required$/);
  assert.equal(named('x'), 'x');
});
