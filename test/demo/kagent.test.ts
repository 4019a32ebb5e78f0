import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type EmulatedCluster, type KubernetesObject, manualClock, startCluster } from '../../src/demo/cluster.ts';
import { type KagentDefinitionOptions, kagentDefinition, startKagent } from '../../src/demo/kagent.ts';
import { readinessOf } from '../../src/wiring/kagent/readiness.ts';

const resource = 'modelconfigs.kagent.dev';
const delayMs = 2_000;

const modelConfig = (name: string, spec: object = {}, version = 'v1alpha3') => ({
  apiVersion: `kagent.dev/${version}`,
  kind: 'ModelConfig',
  metadata: { name, namespace: 'kagent' },
  spec: { provider: 'OpenAI', model: name, ...spec },
});
const secret = (name: string, ...keys: string[]) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'kagent' },
  stringData: Object.fromEntries(keys.map(key => [key, 'placeholder'])),
});

async function start(t: TestContext, definition?: KagentDefinitionOptions, ...objects: object[]) {
  const clock = manualClock();
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kagent' } };
  const cluster = await startCluster({ clock, objects: [kagentDefinition(definition), namespace, ...objects] });
  const kagent = startKagent(cluster, { clock, delayMs });
  t.after(async () => {
    kagent.stop();
    await cluster.close();
  });
  return { clock, cluster, kagent };
}

const found = (cluster: EmulatedCluster, name: string) => cluster.get(resource, name, 'kagent') as KubernetesObject;
const readiness = (cluster: EmulatedCluster, name: string) => readinessOf(found(cluster, name).status);
const conditions = (cluster: EmulatedCluster, name: string) =>
  (found(cluster, name).status as { conditions: Record<string, unknown>[] }).conditions;

test('a ModelConfig is judged after a while, and again when its generation is new', async t => {
  const { clock, cluster } = await start(t, {}, modelConfig('there', { ollama: { host: 'http://a:1' } }));
  cluster.put(modelConfig('new'));
  await clock.advance(delayMs - 1);
  for (const name of ['there', 'new']) assert.deepEqual(found(cluster, name).status, undefined);
  await clock.advance(1);
  for (const name of ['there', 'new']) assert.equal(readiness(cluster, name).ready, true, name);
  const lastTransitionTime = '2026-08-22T08:00:02Z';
  assert.deepEqual(
    conditions(cluster, 'new').map(({ reason, message, ...rest }) => rest),
    ['Accepted', 'ResolvedRefs'].map(type => ({ type, status: 'True', observedGeneration: 1, lastTransitionTime })),
  );

  cluster.update<{ spec: object }>(resource, 'new', 'kagent', object => {
    object.spec = { ...object.spec, model: 'newer' };
  });
  assert.equal(conditions(cluster, 'new')[0]?.observedGeneration, 1);
  await clock.advance(delayMs);
  assert.deepEqual(
    conditions(cluster, 'new').map(({ observedGeneration, lastTransitionTime }) => [
      observedGeneration,
      lastTransitionTime,
    ]),
    [
      [2, lastTransitionTime],
      [2, lastTransitionTime],
    ],
  );
});

test('it is not ready while its Secret is missing, and says which', async t => {
  const { clock, cluster } = await start(t);
  cluster.put(modelConfig('a', { apiKeySecret: 'a-key', apiKeySecretKey: 'OPENAI_API_KEY' }));
  cluster.put(modelConfig('b', { apiKeySecret: 'b-key' }));
  await clock.advance(delayMs);
  const [accepted, resolved] = conditions(cluster, 'a');
  assert.deepEqual([accepted?.status, resolved?.status], ['True', 'False']);
  const missing = { ready: false, message: 'Secret kagent/a-key not found' };
  assert.deepEqual(readiness(cluster, 'a'), missing);

  cluster.put(secret('a-key', 'OTHER'));
  await clock.advance(delayMs - 1);
  assert.deepEqual(readiness(cluster, 'a'), missing);
  await clock.advance(1);
  assert.deepEqual(readiness(cluster, 'a'), { ready: false, message: 'Secret kagent/a-key has no key OPENAI_API_KEY' });
  assert.equal(readiness(cluster, 'b').message, 'Secret kagent/b-key not found');

  cluster.put(secret('a-key', 'OPENAI_API_KEY'));
  await clock.advance(delayMs);
  assert.equal(readiness(cluster, 'a').ready, true);
  assert.deepEqual(
    conditions(cluster, 'a').map(({ lastTransitionTime }) => lastTransitionTime),
    ['2026-08-22T08:00:02Z', '2026-08-22T08:00:06Z'],
  );

  cluster.remove('secrets', 'a-key', 'kagent');
  await clock.advance(delayMs);
  assert.deepEqual(readiness(cluster, 'a'), missing);
});

test('the definition says which versions there are and which is stored; each of them is judged', async t => {
  const table: [KagentDefinitionOptions, preferred: string, stored: string][] = [
    [{}, 'v1alpha3', 'v1alpha3'],
    [{ stored: 'v1alpha2' }, 'v1alpha3', 'v1alpha2'],
    [{ versions: ['v1alpha2'] }, 'v1alpha2', 'v1alpha2'],
    [{ versions: ['v1alpha3'], stored: 'v1alpha2' }, 'v1alpha3', 'v1alpha2'],
  ];
  for (const [definition, preferred, stored] of table) {
    const { clock, cluster } = await start(t, definition);
    const asked = await fetch(`${cluster.url}/apis/kagent.dev`);
    const group = (await asked.json()) as { preferredVersion: { version: string } };
    assert.equal(group.preferredVersion.version, preferred);
    cluster.put(modelConfig('a', {}, preferred));
    await clock.advance(delayMs);
    assert.equal(found(cluster, 'a').apiVersion, `kagent.dev/${stored}`);
    assert.equal(readiness(cluster, 'a').ready, true, JSON.stringify(definition));
  }
});

test('what goes meanwhile is left alone, and so is everything once it is stopped', async t => {
  const { clock, cluster, kagent } = await start(t);
  cluster.put(modelConfig('gone'));
  cluster.put({ ...modelConfig('going'), metadata: { name: 'going', namespace: 'kagent', finalizers: ['a/b'] } });
  cluster.remove(resource, 'gone', 'kagent');
  cluster.remove(resource, 'going', 'kagent');
  await clock.advance(delayMs);
  assert.equal(cluster.get(resource, 'gone', 'kagent'), undefined);
  assert.equal(found(cluster, 'going').status, undefined);

  cluster.put(modelConfig('late'));
  kagent.stop();
  cluster.put(modelConfig('later'));
  await clock.advance(delayMs);
  for (const name of ['late', 'later']) assert.equal(found(cluster, name).status, undefined);
});

test('without a definition it waits for one', async t => {
  const { clock, cluster } = await start(t);
  cluster.remove('customresourcedefinitions.apiextensions.k8s.io', resource);
  cluster.put(secret('a-key'));
  await clock.advance(delayMs);
  cluster.put(kagentDefinition());
  cluster.put(modelConfig('a'));
  await clock.advance(delayMs);
  assert.equal(readiness(cluster, 'a').ready, true);
});
