import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AskedCapability,
  backendOrDefault,
  capableBackends,
  findBackend,
  requireCapability,
} from '../../src/backends/registry.ts';
import { registryOf } from '../support/backends.ts';
import { fakeDriver } from '../support/gateway.ts';

const none = registryOf([]);
const three = registryOf([
  fakeDriver({ name: 'ollama' }),
  fakeDriver({ name: 'kserve', capabilities: { loadedModels: false, presets: true } }),
  fakeDriver({ name: 'lemonade', capabilities: { presets: true } }),
]);
const namesOf = (backends: readonly { readonly name: string }[]) => backends.map(({ name }) => name);
const noBackend = { code: 'no_backend', status: 412 };

test('a backend is found by its name, white space around it cut, and nothing is no name', () => {
  assert.equal(findBackend(three, 'kserve')?.name, 'kserve');
  assert.equal(findBackend(three, '\tkserve\n')?.name, 'kserve');
  for (const name of [undefined, null, '', ' \n']) {
    assert.equal(findBackend(three, name), undefined);
    assert.equal(backendOrDefault(three, name).name, 'ollama', 'the first is the default');
  }
  for (const name of ['Kserve', 'ks', 'kserve,ollama', 'constructor']) {
    assert.throws(() => findBackend(three, name), {
      code: 'invalid_request',
      message: `invalid request: unknown backend "${name}" (configured: ollama, kserve, lemonade)`,
    });
    assert.throws(() => backendOrDefault(three, name), { code: 'invalid_request' });
    assert.throws(() => capableBackends(three, name, 'search'), { code: 'invalid_request' });
  }
});

test('where there is no backend at all, every name is one too many', () => {
  for (const name of [undefined, '', 'ollama']) {
    assert.throws(() => findBackend(none, name), noBackend);
    assert.throws(() => backendOrDefault(none, name), noBackend);
    assert.throws(() => capableBackends(none, name, 'presets'), noBackend);
  }
});

test('those that can are asked, in order; the named one only if it can', () => {
  assert.deepEqual(namesOf(capableBackends(three, undefined)), ['ollama', 'kserve', 'lemonade']);
  assert.deepEqual(namesOf(capableBackends(three, '', 'loadedModels')), ['ollama', 'lemonade']);
  assert.deepEqual(namesOf(capableBackends(three, null, 'presets')), ['kserve', 'lemonade']);
  assert.deepEqual(namesOf(capableBackends(three, 'lemonade', 'presets')), ['lemonade']);
  assert.throws(() => capableBackends(three, 'ollama', 'presets'), { code: 'unsupported' });
  assert.throws(() => capableBackends(three, undefined, 'search'), { code: 'unsupported' });
});

test('what cannot be done has the words that clients match on', () => {
  const words: Record<AskedCapability, string> = {
    pull: 'pull on x',
    delete: 'delete on x',
    load: 'load on x',
    unload: 'unload on x',
    loadedModels: 'listing loaded models',
    nodeInventory: 'node inventory',
    presets: 'presets',
    fitCheck: 'fit check',
    search: 'search',
  };
  const nothing = Object.fromEntries(Object.keys(words).map(capability => [capability, false]));
  const registry = registryOf([fakeDriver({ name: 'x', capabilities: nothing })]);
  const [backend] = registry.backends;
  assert.ok(backend);
  for (const [capability, what] of Object.entries(words) as [AskedCapability, string][]) {
    const refusal = { code: 'unsupported', status: 501, message: `operation not supported: ${what}` };
    assert.throws(() => requireCapability(backend, capability), refusal);
    assert.throws(() => capableBackends(registry, undefined, capability), refusal);
    assert.throws(() => capableBackends(registry, 'x', capability), refusal);
  }
});
