import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalogue, type LoadedModel } from '../../src/domain.ts';
import { testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';
import { servingDriver } from '../support/serving.ts';

test('the graph has all reasons, or the one that is asked for', async () => {
  const gateway = testGateway({ drivers: [] });
  const all = await askGraph(gateway, '{ reasons { code where texts meaning remedy from } }');
  assert.deepEqual(all.errors, []);
  assert.deepEqual(
    all.data.reasons.map(({ code }: { code: string }) => code),
    catalogue.map(({ code }) => code),
  );
  const question = 'query ($code: String) { reasons(code: $code) { code where texts from } }';
  const one = async (code: string | null) => (await askGraph(gateway, question, { code })).data.reasons;
  assert.deepEqual(await one('WaitingForPod'), [
    { code: 'WaitingForPod', where: ['SCHEDULING'], texts: ['waiting for the predictor pod'], from: null },
  ]);
  const [killed] = await one('OOMKilled');
  assert.deepEqual(killed.texts, []);
  assert.equal(killed.from, 'Kubernetes');
  assert.deepEqual(await one('NoSuchReason'), []);
  assert.deepEqual(await one(''), []);
  assert.equal((await one(null)).length, catalogue.length);
});

test('a step explains its reason where somebody described it', async () => {
  const kserve = servingDriver({ capabilities: { loadedModels: true } });
  const served: LoadedModel = {
    backend: 'kserve',
    name: 'nova-4b',
    steps: [
      { name: 'scheduling', state: 'done' },
      { name: 'nodeStarting', state: 'inProgress', reason: 'NodeStarting', message: 'nominated to node a' },
      { name: 'loading', state: 'failed', reason: 'SomethingNew' },
    ],
  };
  kserve.world.loaded = [served];
  const { data, errors } = await askGraph(
    testGateway({ drivers: [kserve] }),
    '{ loadedModels { items { steps { reason explanation { code meaning remedy } } } } }',
  );
  assert.deepEqual(errors, []);
  const [first, second, third] = data.loadedModels.items[0].steps;
  assert.deepEqual(first, { reason: null, explanation: null });
  assert.equal(second.explanation.code, 'NodeStarting');
  assert.match(second.explanation.remedy, /^Nothing, it goes on by itself/);
  assert.deepEqual(third, { reason: 'SomethingNew', explanation: null });
});
