import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isBound, recordsIn, recordsToWrite, recordToForget } from '../../../src/drivers/kserve/inventory/records.ts';
import { servedModels } from '../../../src/drivers/kserve/serving/served.ts';
import { locationOf, objectsOf, plain, presets, settingsWith } from './world.ts';

const settings = settingsWith({ cache: { enabled: true } });
const pinned = locationOf(settings, 'cache-pinned.yaml');
const elsewhere = { ...pinned, volume: 'pv-other' };
const [index] = objectsOf('inventory/index-configmap.yaml');
const known = recordsIn(index);
const served = servedModels({
  objects: objectsOf('inventory/served.yaml'),
  pods: [],
  presets,
  gpuResource: 'nvidia.com/gpu',
});
const now = new Date('2026-10-05T08:00:00.789Z');

test('the index is read leniently', () => {
  assert.deepEqual([...known.keys()], ['nova-4b', 'old-one']);
  assert.equal(known.get('nova-4b')?.preset, 'nova-4b');
  assert.equal(known.get('old-one')?.revision, '');
  const broken = { a: '{', b: '[]', c: '{"model":5}', d: '{"model":"o/n","claim":7}', e: 8 };
  const read = recordsIn({ metadata: { name: 'i' }, data: broken as never });
  assert.deepEqual([...read.keys()], ['d']);
  assert.equal(read.get('d')?.claim, '');
  assert.equal(recordsIn(undefined).size, 0);
  assert.equal(recordsIn({ metadata: { name: 'i' }, data: 'x' as never }).size, 0);
});

test('a record is bound to the claim and the volume there are now', () => {
  const bound = [...known.values()].filter(record => isBound(record, pinned)).map(({ dir }) => dir);
  assert.deepEqual(bound, ['nova-4b']);
  assert.equal(
    [...known.values()].some(record => isBound(record, locationOf(settings, 'cache-unbound.yaml'))),
    false,
  );
  assert.equal(
    [...known.values()].some(record => isBound(record, undefined)),
    false,
  );
});

test('what is served from the Hub is put on record, once', () => {
  const news = recordsToWrite(known, served, settings, pinned, now);
  assert.deepEqual(plain(news), [
    {
      model: 'north-ai/Atlas-70B-Chat',
      revision: 'fp8',
      dir: 'atlas-70b-x4',
      preset: 'atlas-70b-x4',
      inferenceService: 'atlas-70b-x4',
      claim: 'hf-cache',
      volume: 'pv-local',
      recordedAt: '2026-10-05T08:00:00Z',
    },
    {
      model: 'tinkerers/Hand-Made',
      revision: '',
      dir: 'hand-made',
      inferenceService: 'hand-made',
      claim: 'hf-cache',
      volume: 'pv-local',
      recordedAt: '2026-10-05T08:00:00Z',
    },
  ]);
  const data = Object.fromEntries(news.map(record => [record.dir, JSON.stringify(record)]));
  const after = recordsIn({ metadata: { name: 'i' }, data });
  assert.deepEqual(recordsToWrite(after, served, settings, pinned, new Date(0)), [], 'an equal record is no write');
  assert.equal(recordsToWrite(after, served, settings, elsewhere, now).length, 2, 'another volume is news');
});

test('nothing is recorded of a cache that is off or not bound, nor of what is going', () => {
  const off = settingsWith({ cache: { enabled: false } });
  assert.deepEqual(recordsToWrite(known, served, off, pinned, now), []);
  for (const file of ['cache-unbound.yaml', undefined]) {
    assert.deepEqual(recordsToWrite(known, served, settings, locationOf(settings, file), now), []);
  }
  assert.deepEqual(recordsToWrite(known, served, settings, undefined, now), []);
  const going = served.map(each => ({ ...each, deleting: true }));
  assert.deepEqual(recordsToWrite(known, going, settings, pinned, now), []);
});

test('an unload drops its own record when that is of another cache', () => {
  const forgotten = (name: string, location = pinned, by = settings) =>
    recordToForget(known, { name, directory: name }, by, location);
  assert.equal(forgotten('old-one'), 'old-one');
  assert.equal(forgotten('nova-4b'), undefined, 'what is there stays on record');
  assert.equal(forgotten('nova-4b', elsewhere), 'nova-4b');
  assert.equal(forgotten('nova-4b', pinned, settingsWith({ cache: { enabled: false } })), 'nova-4b');
  assert.equal(forgotten('unknown'), undefined);
  assert.equal(
    recordToForget(known, { name: 'another', directory: 'old-one' }, settings, pinned),
    undefined,
    'it is not its own',
  );
});
