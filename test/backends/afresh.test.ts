import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadModel, unloadModel } from '../../src/backends/actions.ts';
import { askBackends } from '../../src/backends/ask.ts';
import { createCall } from '../../src/call.ts';
import { backendError } from '../../src/errors.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';

test('who has something done reaches a host that is back at once, though looks are still kept away from it', async () => {
  const driver = fakeDriver({ models: ['a'] });
  const gateway = testGateway({ drivers: [driver] });
  const [backend] = gateway.registry.backends;
  const call = createCall({ log: silent });
  driver.script.models = async () => {
    throw backendError('connection refused');
  };
  for (let n = 0; n < 4; n++) {
    await assert.rejects(askBackends(call, gateway.registry.backends, 'models'), /connection refused/);
    backend?.changed();
  }
  delete driver.script.models;
  const { model } = await loadModel(gateway, call, { model: 'a' });
  assert.equal(model.running?.name, 'a');
  await unloadModel(gateway, call, { model: 'a' });
});
