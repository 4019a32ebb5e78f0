import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../src/call.ts';
import { startLemonade } from '../../src/demo/lemonade.ts';
import { createOllamaDriver } from '../../src/drivers/ollama/index.ts';
import { silent } from '../support/gateway.ts';

test('a Lemonade where an Ollama should be is given no pull, and its models in memory are not shown', async () => {
  await using lemonade = await startLemonade({
    models: [{ name: 'Small-GGUF', bytes: 1_000 }],
    registry: [{ name: 'Other-GGUF', files: [{ name: 'other.gguf', bytes: 1_000 }] }],
  });
  lemonade.load('Small-GGUF');
  const driver = createOllamaDriver({ endpoint: lemonade.url, keepAliveDefault: '5m' });
  const call = createCall({ log: silent });
  const pull = async () => {
    for await (const _ of driver.pull?.(call, { model: 'Other-GGUF' }) ?? []);
  };
  await assert.rejects(pull(), /Lemonade/);
  await assert.rejects(driver.loaded?.(call) ?? Promise.resolve(), /Lemonade/);
  assert.equal(
    lemonade.requests.some(({ path }) => path === '/api/pull'),
    false,
  );
});
