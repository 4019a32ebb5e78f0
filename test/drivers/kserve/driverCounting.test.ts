import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callTool } from '../../mcp/muster.ts';
import { workedMs } from '../../support/eventLoop.ts';
import { startFaces } from '../../support/faces.ts';
import { within } from '../../support/server.ts';
import { nova, served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes, discoveryRef } from './world.ts';

const [pattern] = clusterNodes;
const node = pattern?.metadata.name ?? '';
const nodeNamed = (name: string) => ({ ...(pattern as object), metadata: { ...pattern?.metadata, name } });
const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

const grown = {
  nodes: (count: number): readonly object[] => many(count, index => nodeNamed(`node-${index}`)),
  'pods of the namespace': (count: number): readonly object[] =>
    many(count, index => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `other-${index}`, namespace: 'model-serving' },
      spec: { containers: [{ name: 'main', image: 'x' }] },
    })),
  'served models and their pods': (count: number): readonly object[] =>
    many(count, index => served(`nova-${index}`, node)).flat(),
  presets: (count: number): readonly object[] =>
    many(count, index => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: `preset-${index}`,
        namespace: discoveryRef.namespace,
        labels: { 'agent-platform.giantswarm.io/serving-preset': 'true' },
      },
      data: {
        'preset.yaml': JSON.stringify({
          metadata: { name: `p-${index}` },
          spec: { model: { id: `acme/m-${index}` }, requirements: { weightsGiB: 1 } },
        }),
      },
    })),
};

type Lab = Awaited<ReturnType<typeof startDriver>>;

const questions: Record<string, (lab: Lab) => Promise<unknown>> = {
  nodes: async ({ driver }) => driver.nodes?.(tenSeconds()),
  presets: async ({ driver }) => driver.presets?.(tenSeconds()),
  models: ({ driver }) => driver.models(tenSeconds()),
  loaded: async ({ driver }) => driver.loaded?.(tenSeconds()),
  checkFit: async ({ driver }) => driver.checkFit?.(tenSeconds(), { preset: 'nova-4b' }),
  explain: async ({ driver }) => driver.explain?.(tenSeconds(), { preset: 'nova-4b' }),
  describe: ({ driver }) => driver.describe(tenSeconds()),
};

/** Requests that are no watch, in words. */
const asked = ({ cluster }: Lab) =>
  cluster.requests
    .filter(({ verb }) => verb !== 'watch')
    .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);

/** What is asked first, and then again; in a cluster whose gate is closed, so that nothing goes on beside it. */
async function counted(more: readonly object[], question: string) {
  await using lab = await startDriver({ objects: worldOf({ more, storage: 'cache-unbound.yaml' }) });
  const ask = questions[question] ?? assert.fail();
  await within(ask(lab), question);
  const first = asked(lab);
  await within(ask(lab), question);
  assert.deepEqual(asked(lab), first, 'asked again it is nothing');
  return first.length;
}

for (const question of Object.keys(questions)) {
  for (const [what, grow] of Object.entries(grown)) {
    test(`${question} ask the API server no more with more ${what}, and nothing when asked again`, async () => {
      const few = await counted(grow(1), question);
      assert.ok(few > 0 && few <= 8, `${few} requests`);
      assert.equal(await counted(grow(100), question), few);
    });
  }
}

test('so it is through REST and MCP', async () => {
  const countOn = async (more: readonly object[]) => {
    await using lab = await startDriver({ objects: worldOf({ more, storage: 'cache-unbound.yaml' }) });
    await using faces = await startFaces({ drivers: [lab.driver] });
    const { send, url } = faces.rest;
    const ask = async () => {
      for (const list of ['nodes', 'models', 'presets']) {
        const { status, json } = await send(`GET ${list}`);
        assert.deepEqual([status, json.errors ?? []], [200, []]);
      }
      for (const [tool, asks] of [
        ['list_nodes', {}],
        ['list_models', {}],
        ['check_fit', { preset: 'nova-4b' }],
        ['explain_fit', { preset: 'nova-4b' }],
      ] as const) {
        const { isError, text } = await callTool(`${url}/mcp`, tool, asks);
        assert.ok(!isError, `${tool}: ${text}`);
      }
    };
    await ask();
    const first = asked(lab);
    await ask();
    assert.deepEqual(asked(lab), first, 'asked again it is nothing');
    return first.length;
  };
  const few = await countOn([...grown.nodes(1), ...served('nova-0', node)]);
  const lots = Object.values(grown).flatMap(grow => grow(60));
  assert.equal(await countOn(lots), few);
});

test('what is served is put on record once, however many there are and whoever asks', async () => {
  for (const count of [1, 50]) {
    await using lab = await startDriver({
      objects: worldOf({ more: many(count, n => served(`nova-${n}`, node)).flat() }),
    });
    lab.ends('mm-scan-', 'END\n');
    const writes = () => lab.requested('configmaps').filter(({ verb }) => ['create', 'update', 'patch'].includes(verb));
    await within(lab.driver.models(lab.call), 'models');
    const written = await within(lab.cluster.requested({ verb: 'create', resource: 'configmaps' }), 'the index');
    assert.equal(Object.keys((written.body as { data: object }).data).length, count);
    for (let n = 0; n < 5; n++) await lab.driver.models(tenSeconds());
    assert.equal(writes().length, 1);
  }
});

test('a thousand nodes, with annotations that are no budgets, are told fast and each with its reason', async () => {
  const raws = ['NaN', 'lots', '0', '-4', '1e400', '', '0x10', '１２'];
  const annotation = 'model-manager.giantswarm.io/memory-budget-gib';
  const nodes = many(1_000, index => ({
    ...nodeNamed(`node-${String(index).padStart(4, '0')}`),
    metadata: {
      ...pattern?.metadata,
      name: `node-${String(index).padStart(4, '0')}`,
      annotations: { [annotation]: raws[index % raws.length] },
    },
  }));
  await using lab = await startDriver({ objects: worldOf({ nodes, storage: 'cache-unbound.yaml' }) });
  const rows = (await lab.driver.nodes?.(tenSeconds())) ?? [];
  assert.equal(rows.length, 1_000);
  rows.slice(0, raws.length).forEach(({ budgetBytes, budgetSource, message }, index) => {
    assert.deepEqual([budgetBytes, budgetSource], [24_152_899_584, 'gpu-labels'], raws[index]);
    assert.ok(message?.startsWith(`ignoring annotation ${annotation}=`), `${raws[index]}: ${message}`);
  });
  const began = workedMs();
  for (let n = 0; n < 100; n++) await lab.driver.nodes?.(tenSeconds());
  assert.ok(workedMs() - began < 1_000, 'nothing is computed again');
  const fit = await lab.driver.checkFit?.(tenSeconds(), { model: nova, preset: 'nova-4b' });
  assert.deepEqual([fit?.fits, fit?.node], [true, 'node-0000']);
});
