import assert from 'node:assert/strict';
import { test } from 'node:test';
import { graphql } from 'graphql';
import type { Estimate, LoadedModel, Step } from '../../src/domain.ts';
import type { Source } from '../../src/live/source.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { remaining } from '../../src/resolvers/serving/remaining.ts';
import { callTool } from '../mcp/muster.ts';
import { callOf } from '../support/backends.ts';
import { startFaces } from '../support/faces.ts';
import { testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { servingDriver } from '../support/serving.ts';

const now = Date.parse('2026-10-05T08:10:00Z');
const ago = (seconds: number) => new Date(now - seconds * 1000);
const learned = (seconds: number, samples = 3): Estimate => ({ seconds, basis: 'learned', samples });
const published = (seconds: number): Estimate => ({ seconds, basis: 'published', samples: 0 });
const pending = (name: Step['name'], typical?: Estimate): Step => ({ name, state: 'pending', typical });
const ready = pending('ready');
const pulling = (seconds: number): Step => ({
  name: 'pullingImage',
  state: 'inProgress',
  since: ago(seconds),
  typical: published(240),
});
const weights = (bytesCompleted: number | undefined, seconds = 60): Step => ({
  name: 'downloadingWeights',
  state: 'inProgress',
  since: ago(seconds),
  bytesCompleted,
  bytesTotal: 1000,
  typical: published(72),
});

const table: Record<string, { readonly steps: readonly Step[]; readonly rest: string | undefined }> = {
  'what is to come is summed': {
    steps: [pending('pullingImage', published(240)), pending('loading', learned(60)), ready],
    rest: '300 published 0',
  },
  'the step in progress counts less the time it has taken': { steps: [pulling(40), ready], rest: '200 published 0' },
  'the basis is that of the largest part': {
    steps: [pulling(200), pending('loading', learned(60)), ready],
    rest: '100 learned 3',
  },
  'a step that takes too long counts as nothing': {
    steps: [pulling(500), pending('loading', learned(60)), ready],
    rest: '60 learned 3',
  },
  'the last step takes too long': { steps: [pulling(500), ready], rest: '0 published 0' },
  'a step exactly at its time is not': { steps: [pulling(240), ready], rest: '0 published 0' },
  'a step that began later than now has taken no time': { steps: [pulling(-30), ready], rest: '240 published 0' },
  'a step that began nobody knows when counts as a whole': {
    steps: [{ ...pulling(0), since: undefined }, ready],
    rest: '240 published 0',
  },
  'weights take as long as at their own speed': { steps: [weights(250), ready], rest: '180 measured 0' },
  'weights that are slower than typical are not': { steps: [weights(500, 600), ready], rest: '600 measured 0' },
  'weights that are all there': { steps: [weights(1000), ready], rest: '0 measured 0' },
  'more weights than there should be': { steps: [weights(1200), ready], rest: '0 measured 0' },
  'weights of which too little is there to tell': { steps: [weights(9), ready], rest: '12 published 0' },
  'weights that nobody counts': { steps: [weights(undefined), ready], rest: '12 published 0' },
  'weights that began this moment': { steps: [weights(500, 0), ready], rest: '72 published 0' },
  'what is done does not count': {
    steps: [{ ...pulling(400), state: 'done', finishedAt: ago(100) }, pending('loading', learned(60)), ready],
    rest: '60 learned 3',
  },
  'nobody can tell of one step': { steps: [pulling(40), pending('loading'), ready], rest: undefined },
  'a step failed': { steps: [{ ...pulling(40), state: 'failed' }, pending('loading', learned(60))], rest: undefined },
  'its runtime crashes again and again': {
    steps: [
      { ...pulling(40), state: 'done' },
      { ...pending('loading', learned(60)), state: 'inProgress', reason: 'CrashLoop' },
    ],
    rest: undefined,
  },
  'it is ready': { steps: [{ ...ready, state: 'done' }], rest: undefined },
  'it has no steps': { steps: [], rest: undefined },
};
for (const [name, { steps, rest }] of Object.entries(table)) {
  test(`remaining: ${name}`, () => {
    const left = remaining(steps, now);
    assert.equal(left && [left.seconds, left.basis, left.samples].join(' '), rest);
  });
}

const serving: LoadedModel = {
  backend: 'kserve',
  name: 'Qwen/Qwen3-14B-AWQ',
  instance: 'qwen',
  status: 'Pending',
  phase: 'pullingImage',
  steps: [
    { name: 'downloadingWeights', state: 'done', since: ago(112), finishedAt: ago(40), typical: learned(70.5) },
    pulling(40),
    pending('loading', learned(60)),
    ready,
  ],
};

function servingOne(rows: readonly LoadedModel[] = [serving]) {
  const driver = servingDriver({ capabilities: { loadedModels: true } });
  driver.world.loaded = [...rows];
  return { driver, gateway: testGateway({ drivers: [driver] }) };
}

const source = `{ loadedModels { items {
  remainingSeconds remainingBasis
  steps { name elapsedSeconds typicalSeconds typicalBasis }
} } }`;

test('the graph tells estimates as of its answer', async t => {
  t.mock.timers.enable({ apis: ['Date'], now });
  const { gateway } = servingOne();
  const { data, errors } = await askGraph(gateway, source);
  assert.deepEqual(errors, []);
  const step = (
    name: string,
    elapsedSeconds: number | null,
    typicalSeconds: number | null,
    typicalBasis: string | null,
  ) => ({ name, elapsedSeconds, typicalSeconds, typicalBasis });
  assert.deepEqual(data.loadedModels.items, [
    {
      remainingSeconds: 260,
      remainingBasis: 'PUBLISHED',
      steps: [
        step('DOWNLOADING_WEIGHTS', 72, 70.5, 'LEARNED'),
        step('PULLING_IMAGE', 40, 240, 'PUBLISHED'),
        step('LOADING', null, 60, 'LEARNED'),
        step('READY', null, null, null),
      ],
    },
  ]);
  t.mock.timers.setTime(now + 5000);
  const later = (await askGraph(gateway, source)).data.loadedModels.items[0];
  assert.equal(later.remainingSeconds, 255);
  assert.deepEqual(
    later.steps.map(({ elapsedSeconds }: { elapsedSeconds: number }) => elapsedSeconds),
    [72, 45, null, null],
  );
});

test('what goes, and what is not served in steps, has no time left', async () => {
  const { steps, phase, ...bare } = serving;
  const { gateway } = servingOne([
    { ...serving, instance: 'a', phase: 'terminating' },
    { ...bare, instance: 'b' },
  ]);
  const { data } = await askGraph(gateway, '{ loadedModels { items { remainingSeconds remainingBasis } } }');
  assert.deepEqual(data.loadedModels.items, Array(2).fill({ remainingSeconds: null, remainingBasis: null }));
});

test('a step that began later than now has taken no time, and one that failed an unknown one', async t => {
  t.mock.timers.enable({ apis: ['Date'], now });
  const { gateway } = servingOne([{ ...serving, steps: [pulling(-30), { ...pulling(30), state: 'failed' }] }]);
  const { data } = await askGraph(gateway, '{ loadedModels { items { steps { elapsedSeconds } } } }');
  assert.deepEqual(data.loadedModels.items[0].steps, [{ elapsedSeconds: 0 }, { elapsedSeconds: null }]);
});

test('what a step has taken is told by the clock that it has its times of', async t => {
  t.mock.timers.enable({ apis: ['Date'], now });
  const own = { ...pulling(630), aheadMs: -600_000 };
  const { gateway } = servingOne([
    { ...serving, steps: [own] },
    { ...serving, instance: 'b', steps: [pulling(30)] },
  ]);
  const query = '{ loadedModels { items { remainingSeconds steps { elapsedSeconds } } } }';
  const { data } = await askGraph(gateway, query);
  const [one, two] = data.loadedModels.items;
  assert.equal(one.steps[0].elapsedSeconds, 30);
  assert.deepEqual(one, two);
});

test('an answer that depends on the time is not one to keep', async () => {
  const { gateway } = servingOne();
  const readsOf = async (fields: string) => {
    const reads = new Map<Source<unknown>, number>();
    const contextValue = { gateway, call: callOf(), reads };
    await graphql({ schema, source: `{ loadedModels { items { ${fields} } } }`, contextValue });
    return reads.size;
  };
  assert.ok((await readsOf('steps { typicalSeconds }')) > 0);
  assert.equal(await readsOf('remainingSeconds'), 0);
  assert.equal(await readsOf('steps { elapsedSeconds }'), 0);
});

test('REST and MCP write the same with estimates as without', async () => {
  const bodies = async (rows: readonly LoadedModel[]) => {
    await using faces = await startFaces({ drivers: [servingOne(rows).driver] });
    const { text } = await faces.rest.send('GET loaded');
    return [text, (await callTool(`${faces.rest.url}/mcp`, 'list_loaded_models', {})).text];
  };
  const plain = { ...serving, steps: serving.steps?.map(({ typical, ...step }) => step) };
  const [rest, tool] = await bodies([serving]);
  assert.match(rest ?? '', /"pullingImage"/);
  assert.match(tool ?? '', /pullingImage/);
  assert.deepEqual([rest, tool], await bodies([plain]));
});
