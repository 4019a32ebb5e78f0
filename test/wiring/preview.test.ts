/** Plans of wiring: what they say is what is written, and they write nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WirableModel } from '../../src/domain.ts';
import { type Lab, refusal, secretOf, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, servedModel } from './modelConfigs.ts';

const isWrite = (request: string) => /^(create|update|patch|delete)/.test(request);

/** Asks for the plan, and has it done: both name the same objects. */
async function plannedAndDone({ kagent, callOf, asked, cluster }: Lab, model: WirableModel) {
  const plan = await kagent.plan(callOf(), model);
  assert.deepEqual(asked().filter(isWrite), [], 'only looked');
  const before = cluster.requests.length;
  await kagent.wire(callOf(), model);
  const done = cluster.requests.slice(before).filter(({ method }) => method !== 'GET');
  const named = done.flatMap(({ body, verb, resource, name }) => {
    const { kind, metadata } = (body ?? {}) as { kind?: string; metadata?: { name: string } };
    return verb === 'delete' ? [`- ${resource.split('.')[0]} ${name}`] : [`${kind} ${metadata?.name}`];
  });
  assert.deepEqual(
    named.filter(each => !each.startsWith('-')),
    plan.manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
  );
  assert.deepEqual(
    named.filter(each => each.startsWith('-')),
    plan.deletes.map(({ kind, name }) => `- ${kind.toLowerCase()}s ${name}`),
  );
  asked();
  return plan;
}

test('what is planned is what is written: anew, again, and over what was there', async t => {
  const lab = await startLab(t);
  const first = await plannedAndDone(lab, lemonadeModel());
  assert.deepEqual(
    first.manifests.map(({ kind }) => kind),
    ['Secret', 'ModelConfig'],
  );
  assert.equal(first.known, undefined);
  const again = await plannedAndDone(lab, lemonadeModel());
  assert.deepEqual([again.manifests, again.known?.name], [[], 'qwen3-4b-flm']);
  const { access } = lemonadeModel();
  const moved = await plannedAndDone(lab, { ...lemonadeModel(), access: { ...access, url: 'http://10.0.0.9:1/v1' } });
  assert.deepEqual(
    moved.manifests.map(({ kind, spec, status }) => [kind, (spec as { openAI: object }).openAI, status]),
    [['ModelConfig', { baseUrl: 'http://10.0.0.9:1/v1' }, undefined]],
  );
  assert.deepEqual(Object.keys(moved.manifests[0]?.metadata ?? {}), ['name', 'namespace', 'labels', 'annotations']);
  // It needs no key any more, and its Secret goes.
  const keyless = await plannedAndDone(lab, { ...lemonadeModel(), access: { ...access, key: 'none' } });
  assert.deepEqual(keyless.deletes, [{ kind: 'Secret', namespace: 'kagent', name: 'qwen3-4b-flm-api-key' }]);
});

test('a served model whose object has another name by now: the old ModelConfig is among what goes', async t => {
  const lab = await startLab(t);
  const model = servedModel();
  await lab.kagent.wire(lab.callOf(), model);
  lab.asked();
  const plan = await plannedAndDone(lab, { ...model, access: { ...model.access, object: 'renamed' } });
  assert.deepEqual(
    plan.deletes.filter(({ kind }) => kind === 'ModelConfig').map(({ name }) => name),
    ['qwen3-4b-instruct'],
  );
});

test('a Secret of somebody else is neither written nor shown', async t => {
  const theirs = secretOf('qwen3-4b-flm-api-key', false);
  const { kagent, callOf } = await startLab(t, { objects: [theirs] });
  const plan = await kagent.plan(callOf(), lemonadeModel());
  assert.deepEqual(
    plan.manifests.map(({ kind }) => kind),
    ['ModelConfig'],
  );
  assert.doesNotMatch(JSON.stringify(plan), new RegExp(`theirs|${theirs.data.OPENAI_API_KEY}`));
});

test('what wiring is refused with, its plan is refused with', async t => {
  const taken = modelConfig({ name: 'qwen2-5-0-5b', backend: false });
  const named = await startLab(t, { objects: [taken] });
  const none = await startLab(t, { versions: [] });
  for (const { kagent, callOf, asked } of [named, none]) {
    const planned = await refusal(kagent.plan(callOf(), ollamaModel()));
    assert.equal(planned, await refusal(kagent.wire(callOf(), ollamaModel())));
    assert.match(planned, /^(conflict|unsupported) /);
    assert.deepEqual(asked().filter(isWrite), []);
  }
});

test('what would be unwired is what is unwired then', async t => {
  const { kagent, callOf, modelConfigs, secrets, asked } = await startLab(t);
  const model = lemonadeModel();
  assert.deepEqual(await kagent.planUnwire(callOf(), model.backend, model.reference), []);
  await kagent.wire(callOf(), model);
  asked();
  assert.deepEqual(await kagent.planUnwire(callOf(), model.backend, model.reference), [
    { kind: 'ModelConfig', namespace: 'kagent', name: 'qwen3-4b-flm' },
    { kind: 'Secret', namespace: 'kagent', name: 'qwen3-4b-flm-api-key' },
  ]);
  assert.deepEqual(asked().filter(isWrite), []);
  await kagent.unwire(callOf(), model.backend, model.reference);
  assert.deepEqual([...modelConfigs(), ...secrets()], []);
  const { kagent: without, callOf: call } = await startLab(t, { versions: [] });
  assert.deepEqual(await without.planUnwire(call(), model.backend, model.reference), []);
});
