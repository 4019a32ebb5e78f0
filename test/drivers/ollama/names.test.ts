import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalName, findModel, isCloudName, isNamed } from '../../../src/drivers/ollama/names.ts';

const listed = (...names: string[]) => names.map(name => ({ backend: 'ollama', name }));

test('the canonical name has a tag and neither default host nor default namespace', () => {
  const table: [string, string][] = [
    ['gemma3', 'gemma3:latest'],
    ['gemma3:', 'gemma3:latest'],
    [' gemma3:4b ', 'gemma3:4b'],
    ['library/gemma3', 'gemma3:latest'],
    ['registry.ollama.ai/library/gemma3', 'gemma3:latest'],
    ['Registry.Ollama.AI/Library/gemma3:4b', 'gemma3:4b'],
    ['registry.ollama.ai/someuser/tool:7b', 'someuser/tool:7b'],
    ['someuser/tool', 'someuser/tool:latest'],
    ['hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M', 'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M'],
    ['hf.co/library/x', 'hf.co/library/x:latest'],
    ['huggingface.co/unsloth/x', 'huggingface.co/unsloth/x:latest'],
    ['localhost:5000/library/x', 'localhost:5000/library/x:latest'],
    ['localhost:5000/library/x:1b', 'localhost:5000/library/x:1b'],
    ['Llama3.2', 'Llama3.2:latest'],
    ['gpt-oss:120b:cloud', 'gpt-oss:120b-cloud'],
    ['kimi-k2:cloud', 'kimi-k2:cloud'],
    ['qwen3:8b:local', 'qwen3:8b'],
    ['qwen3:local', 'qwen3:latest'],
    ['', ':latest'],
  ];
  for (const [reference, name] of table) {
    assert.equal(canonicalName(reference), name, reference);
    if (name.length > 8) assert.equal(canonicalName(name), name, 'canonical names are canonical');
  }
});

test('a reference finds the exact model, else the only one that differs in case', () => {
  const models = listed(
    'qwen3:8b',
    'Qwen3:8B',
    'llama3.2:latest',
    'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M',
    'a/B:x',
    'A/b:x',
  );
  const table: [string, string | undefined][] = [
    ['qwen3:8b', 'qwen3:8b'],
    ['Qwen3:8B', 'Qwen3:8B'],
    ['QWEN3:8b', undefined],
    ['Llama3.2', 'llama3.2:latest'],
    ['library/llama3.2', 'llama3.2:latest'],
    ['registry.ollama.ai/library/LLAMA3.2:Latest', 'llama3.2:latest'],
    ['hf.co/unsloth/qwen3-0.6b-gguf:q4_k_m', 'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M'],
    ['huggingface.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M', undefined],
    ['hf.co/unsloth/Qwen3-0.6B-GGUF', undefined],
    ['a/b:x', undefined],
    ['qwen3', undefined],
    ['  ', undefined],
    ['../../etc/passwd', undefined],
  ];
  for (const [reference, name] of table) assert.equal(findModel(models, reference)?.name, name, reference);
});

test('a model whose tag is the word local is found by its literal name', () => {
  const models = listed('mine:local', 'mine:latest');
  assert.equal(findModel(models, 'mine:local')?.name, 'mine:local');
  assert.equal(findModel(models, 'mine')?.name, 'mine:latest');
  assert.equal(findModel(listed('mine:local'), 'mine'), undefined);
});

test('two spellings of one model are the same, two hosts are not', () => {
  assert.ok(isNamed('gemma3:latest', 'registry.ollama.ai/library/Gemma3'));
  assert.ok(!isNamed('hf.co/a/b:latest', 'huggingface.co/a/b'));
  assert.ok(!isNamed('gemma3:4b', 'gemma3'));
});

test('a cloud model is known by its tag alone', () => {
  for (const name of ['gpt-oss:120b-cloud', 'kimi-k2:cloud', 'x:CLOUD', 'a/b:7b-Cloud', 'gpt-oss:120b:cloud'])
    assert.ok(isCloudName(name), name);
  for (const name of ['my-cloud', 'my-cloud:7b', 'cloud', 'localhost:5000/my-cloud', 'x:cloudy', 'x:notcloud'])
    assert.ok(!isCloudName(name), name);
});
