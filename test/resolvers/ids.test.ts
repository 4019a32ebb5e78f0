import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GraphQLInterfaceType } from 'graphql';
import { backendError } from '../../src/errors.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { callOf } from '../support/backends.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { servingDriver } from '../support/serving.ts';

const encoded = (text: string) => Buffer.from(text).toString('base64');

/** Two backends with models of odd names, one of them loaded, one at several places, and a job. */
function world() {
  const places = [
    { name: 'acme/nova', path: 'nova', node: 'a', downloaded: true },
    { name: 'acme/nova', path: 'nova', node: 'b', downloaded: true },
    { name: 'acme/nova', path: 'nova-large', node: 'a', downloaded: false },
  ];
  const ollama = fakeDriver({ models: ['hf.co/org/repo:Q4_K_M', '模型:1b', 'shared:1b', ...places] });
  const lemonade = fakeDriver({ name: 'lemonade', models: ['shared:1b', 'a/b'] });
  ollama.world.loaded = [{ backend: 'ollama', name: 'hf.co/org/repo:Q4_K_M' }];
  lemonade.world.loaded = [{ backend: 'lemonade', name: 'shared:1b' }];
  const gateway = testGateway({ drivers: [ollama, lemonade, servingDriver()] });
  const spec = { type: 'pull', backend: 'ollama', model: 'x', key: 'x', wire: false } as const;
  gateway.jobs.start(callOf(), spec, async () => {});
  return { ollama, lemonade, gateway };
}

const everything = `{
  backends { items { id __typename name } }
  models { items { id __typename name backendName } }
  loadedModels { items { id __typename name backendName } }
  nodes { items { id __typename name backendName } }
  jobs { items { id __typename jobId } }
  presets { items { id __typename name backendName } }
}`;

const byId = `query ($id: ID!) { node(id: $id) {
  id __typename
  ... on Backend { name } ... on Model { name backendName } ... on LoadedModel { name backendName }
  ... on NodeInfo { name backendName } ... on Job { jobId } ... on Preset { name backendName }
} }`;

const nodeOf = (gateway: Gateway, id: string) => askGraph(gateway, byId, { id });

test('whatever has an id is found by it, the same thing again', async () => {
  const { gateway } = world();
  const { data } = await askGraph(gateway, everything);
  const things = Object.values(data as Record<string, { items: { id: string; __typename: string }[] }>).flatMap(
    ({ items }) => items,
  );
  assert.equal(things.length, 17);
  for (const thing of things) {
    assert.deepEqual(await nodeOf(gateway, thing.id), { data: { node: thing }, errors: [] });
  }
  assert.equal(new Set(things.map(({ id }) => id)).size, things.length, 'no two share an id');
  const types = schema.getPossibleTypes(schema.getType('Node') as GraphQLInterfaceType).map(({ name }) => name);
  assert.deepEqual(new Set(things.map(({ __typename }) => __typename)), new Set(types), 'this test asks for all types');
});

test('what is gone is null', async () => {
  const { gateway } = world();
  for (const id of [
    'Backend:nope',
    'Model:ollama/nope',
    'Model:nope/shared:1b',
    'Model:shared:1b',
    'Model:/shared:1b',
    'LoadedModel:ollama/shared:1b',
    'NodeInfo:nope/x',
    'Job:0123456789abcdef',
    'Preset:kserve/nope',
    'Preset:nope/qwen3-14b',
  ]) {
    assert.deepEqual(await nodeOf(gateway, encoded(id)), { data: { node: null }, errors: [] }, id);
  }
});

test('what is no id is refused, with a way to get one', async () => {
  const { gateway, ollama } = world();
  const texts = [
    '',
    'nope',
    'Model:ollama/shared:1b',
    encoded('Info:1'),
    encoded('Query:1'),
    encoded('Model:'),
    encoded('x'),
    '\u0000',
    'x'.repeat(10_000),
  ];
  for (const id of texts) {
    const { data, errors } = await nodeOf(gateway, id);
    assert.equal(data.node, null);
    assert.match(
      errors[0] ?? '',
      /^node: invalid_request: invalid request: "id" is ".*", which is no id of anything here; take it/,
    );
    assert.ok((errors[0] ?? '').length < 300);
  }
  assert.deepEqual(ollama.asked, []);
});

test('a backend that cannot say is an error, not an absence; the others are not asked', async () => {
  const { gateway, ollama, lemonade } = world();
  ollama.script.models = async (): Promise<never> => {
    throw backendError('ollama: down');
  };
  assert.deepEqual(await nodeOf(gateway, encoded('Model:ollama/shared:1b')), {
    data: { node: null },
    errors: ['node: backend_error: ollama: down'],
  });
  assert.deepEqual(lemonade.asked, []);
});

test('ids stay: they are made of names and places, and nothing else', async () => {
  const { gateway } = world();
  const { data } = await askGraph(gateway, everything);
  assert.deepEqual(
    data.models.items.map(({ id }: { id: string }) => Buffer.from(id, 'base64').toString()),
    [
      'Model:ollama/hf.co/org/repo:Q4_K_M',
      'Model:ollama/模型:1b',
      'Model:ollama/shared:1b',
      'Model:ollama/acme/nova#nova@a',
      'Model:ollama/acme/nova#nova@b',
      'Model:ollama/acme/nova#nova-large',
      'Model:lemonade/shared:1b',
      'Model:lemonade/a/b',
    ],
  );
});
