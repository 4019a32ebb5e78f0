/** Which loaded entry is the one of a model. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askBackends } from '../../src/backends/ask.ts';
import { capableBackends } from '../../src/backends/registry.ts';
import type { LoadedModel, Model } from '../../src/domain.ts';
import { callOf, registryOf } from '../support/backends.ts';
import { fakeDriver } from '../support/gateway.ts';

/** By the model's path, the object that serves it. */
async function running(models: readonly Omit<Model, 'backend'>[], loaded: readonly Omit<LoadedModel, 'backend'>[]) {
  const driver = fakeDriver({ models });
  driver.world.loaded = loaded.map(entry => ({ ...entry, backend: driver.name }));
  const registry = registryOf([driver]);
  const { rows } = await askBackends(callOf(), capableBackends(registry, undefined), 'models');
  return Object.fromEntries(rows.map(({ name, path, running }) => [path ?? name, running?.resource]));
}

test('of two objects that serve a model, each is that of its own place', async () => {
  const models = [
    { name: 'acme/nova', path: 'nova-small' },
    { name: 'acme/nova', path: 'nova-large' },
    { name: 'acme/nova', path: 'acme/nova' },
  ];
  const loaded = [
    { name: 'acme/nova', instance: 'nova-large', resource: 'nova-large' },
    { name: 'acme/nova', instance: 'nova-small', resource: 'nova-small' },
  ];
  assert.deepEqual(await running(models, loaded), {
    'nova-small': 'nova-small',
    'nova-large': 'nova-large',
    'acme/nova': 'nova-small',
  });
});

test('what is served from the place under another name is it, unless the name is served elsewhere', async () => {
  const models = [
    { name: 'acme/nova', path: 'nova' },
    { name: 'acme/lyra', path: 'lyra' },
  ];
  const loaded = [
    { name: 'acme/renamed', resource: 'nova' },
    { name: 'acme/lyra', resource: 'elsewhere' },
    { name: 'acme/other', resource: 'lyra' },
  ];
  assert.deepEqual(await running(models, loaded), { nova: 'nova', lyra: 'elsewhere' });
});

test('without a path there is only the name', async () => {
  assert.deepEqual(await running([{ name: 'a' }, { name: 'b' }], [{ name: 'a' }, { name: 'c', resource: 'b' }]), {
    a: undefined,
    b: undefined,
  });
});
