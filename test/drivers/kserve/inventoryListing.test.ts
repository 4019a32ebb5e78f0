import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cachedModels,
  findListed,
  modelOfPreset,
  removableDirectory,
} from '../../../src/drivers/kserve/inventory/listing.ts';
import { type CacheRecord, recordsIn } from '../../../src/drivers/kserve/inventory/records.ts';
import { parseScan } from '../../../src/drivers/kserve/inventory/scanOutput.ts';
import { servedModels } from '../../../src/drivers/kserve/serving/served.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { jsonOf, objectsOf, plain, presets, textOf } from './world.ts';

const expected = jsonOf('inventory/expected.json');
const scan = parseScan(textOf('inventory/scan-output.log'));
const entries = 'value' in scan ? scan.value.entries : assert.fail(scan.problem);
const served = servedModels({
  objects: objectsOf('inventory/served.yaml'),
  pods: [],
  presets,
  gpuResource: 'nvidia.com/gpu',
});
const [index] = objectsOf('inventory/index-configmap.yaml');
const facts = {
  backend: 'kserve',
  target: undefined,
  places: [{ node: expected.node, entries }],
  records: recordsIn(index),
  presets,
  served,
};

const entry = (dir: string, more: object = {}) => ({ dir, bytes: 1, files: 1, hasModel: true, ...more });
const record = (dir: string, more: Partial<CacheRecord> = {}): [string, CacheRecord] => [
  dir,
  { dir, model: 'rec/Orded', revision: '', inferenceService: 'x', claim: 'c', recordedAt: '', ...more },
];
const bare = { ...facts, places: [], records: new Map(), presets: [], served: [] };
const [atlas, , lyra] = served;
if (!atlas || !lyra) assert.fail('the fixture serves three models');

test('the list of the fixture', () => {
  const rows = plain(cachedModels(facts)).map(({ backend, ...row }) => row);
  const written = JSON.parse(JSON.stringify(rows).replaceAll('.000Z"', 'Z"'));
  assert.deepEqual(written, expected.models);
});

test('a directory is named by the first that knows it', () => {
  const named = (more: object, dir = 'nova-4b') =>
    cachedModels({ ...bare, places: [{ entries: [entry(dir)] }], ...more }).find(({ path }) => path === dir)?.name;
  const inDir = { ...atlas, name: 'other', directory: 'nova-4b', model: 'live/Model' };
  const ofName = { ...atlas, name: 'nova-4b', directory: 'elsewhere', model: 'served/Model' };
  const marked = { places: [{ entries: [entry('nova-4b', { marker: { model: 'mark/Er' } })] }] };
  const records = new Map([record('nova-4b')]);
  assert.equal(named({ ...marked, records, presets, served: [inDir] }), 'mark/Er');
  assert.equal(named({ records, presets, served: [inDir] }), 'live/Model');
  assert.equal(named({ records, presets }), 'rec/Orded');
  assert.equal(named({ presets, served: [ofName] }), 'acme-labs/Nova-4B-Instruct');
  assert.equal(named({ served: [ofName] }), 'served/Model');
  assert.equal(named({}), 'nova-4b');
});

test('its preset is that of its name, else of the record, else the only one that serves the model', () => {
  const presetOf = (dir: string, more: object) =>
    cachedModels({ ...bare, presets, places: [{ entries: [entry(dir)] }], ...more }).find(({ path }) => path === dir)
      ?.preset;
  assert.equal(presetOf('nova-4b', { records: new Map([record('nova-4b', { preset: 'pico-1b-cpu' })]) }), 'nova-4b');
  const [nova] = presets.filter(({ name }) => name === 'nova-4b');
  const twin = { ...nova, name: 'nova-twin' };
  const two = [...presets, twin];
  const recorded = (preset: string, model = 'ACME-labs/nova-4b-instruct') => ({
    presets: two,
    records: new Map([record('dir', { preset, model })]),
  });
  assert.equal(presetOf('dir', recorded('nova-twin')), 'nova-twin');
  assert.equal(presetOf('dir', recorded('pico-1b-cpu')), undefined, 'it serves another model, and two serve this');
  assert.equal(presetOf('dir', recorded('gone', 'acme-labs/Pico-1B')), 'pico-1b-cpu');
});

test('the revision is that of the marker, else of the record', () => {
  const digest = (marker: object | undefined, revision: string) =>
    cachedModels({
      ...bare,
      places: [{ entries: [entry('d', marker && { marker })] }],
      records: new Map([record('d', { revision })]),
    })[0]?.digest;
  assert.equal(digest({ model: 'a/b', revision: 'v1' }, 'v2'), 'v1');
  assert.equal(digest({ model: 'a/b' }, 'v2'), 'v2');
  assert.equal(digest(undefined, ''), undefined);
});

test('what is served is listed once: by its directory where that is seen, else by its object', () => {
  const rows = (nodes: readonly (string | undefined)[], servedOn: string | undefined) =>
    cachedModels({
      ...bare,
      places: nodes.map(node => ({ node, entries: [entry('atlas-70b-x4')] })),
      served: [{ ...atlas, node: servedOn }],
    }).map(({ path, node, downloaded }) => [path, node, downloaded]);
  assert.deepEqual(rows([undefined], 'n1'), [['atlas-70b-x4', undefined, true]]);
  assert.deepEqual(rows(['n1'], undefined), [['atlas-70b-x4', 'n1', true]]);
  assert.deepEqual(rows(['n1'], 'n1'), [['atlas-70b-x4', 'n1', true]]);
  assert.deepEqual(rows(['n1'], 'n2'), [
    ['atlas-70b-x4', 'n1', true],
    ['atlas-70b-x4', 'n2', false],
  ]);
  assert.deepEqual(rows([], 'n2'), [['atlas-70b-x4', 'n2', false]]);
});

test('an empty directory with a marker is a model that is not downloaded', () => {
  const emptied = entry('d', { files: 0, bytes: 0, hasModel: false, marker: { model: 'a/b' } });
  const [row] = cachedModels({ ...bare, places: [{ entries: [emptied] }] });
  assert.deepEqual([row?.name, row?.downloaded], ['a/b', false]);
});

test('rows are sorted by name, then by node', () => {
  const place = (node: string, ...dirs: string[]) => ({ node, entries: dirs.map(dir => entry(dir)) });
  const rows = cachedModels({ ...bare, places: [place('n2', 'b', 'a'), place('n1', 'b', 'C')] });
  assert.deepEqual(
    rows.map(({ name, node }) => `${name} ${node}`),
    ['C n1', 'a n2', 'b n1', 'b n2'],
  );
});

test('a model is found by its repository, its directory or its preset', () => {
  const models = cachedModels(facts);
  assert.equal(findListed(models, 'ACME-labs/nova-4b-INSTRUCT')?.path, 'nova-4b');
  assert.equal(findListed(models, 'someone-else-7b')?.name, 'someone-else-7b');
  assert.equal(findListed(models, 'lyra-20b-oci')?.name, 'orbit/Lyra-20B');
  assert.equal(findListed(models, 'no/Where'), undefined);
});

test('what a preset would bring is its model, that is not there', () => {
  const pico = presets.find(({ name }) => name === 'pico-1b-cpu') ?? assert.fail('there is no such preset');
  assert.deepEqual(plain(modelOfPreset(pico, facts)), {
    backend: 'kserve',
    name: 'acme-labs/Pico-1B',
    sizeBytes: 2576980378,
    downloaded: false,
    preset: 'pico-1b-cpu',
    format: 'vLLM',
    contextLength: 8192,
    capabilities: ['completion'],
  });
});

test('what is served is not deleted, nor what is not there', () => {
  const [nova] = cachedModels({ ...facts, served: [] });
  if (!nova) assert.fail('nova is cached');
  assert.equal(removableDirectory(nova, served), 'nova-4b');
  const refusal = (model: typeof nova, by = served) => {
    try {
      removableDirectory(model, by);
    } catch (error) {
      return [(error as GatewayError).code, (error as GatewayError).message];
    }
    return undefined;
  };
  const servedNova = [{ ...atlas, name: 'nova-live', directory: 'nova-4b', model: 'x/y' }];
  assert.deepEqual(refusal(nova, servedNova), [
    'conflict',
    'conflict: acme-labs/Nova-4B-Instruct is served by LLMInferenceService nova-live; unload it first',
  ]);
  assert.deepEqual(refusal({ ...nova, path: undefined }), [
    'not_found',
    'model not found: acme-labs/Nova-4B-Instruct is not in the cache',
  ]);
  assert.equal(refusal({ ...nova, path: 'a b' })?.[0], 'invalid_request');
});
