import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusal, secretOf, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, servedModel } from './modelConfigs.ts';

test('what we made of a model goes, with its Secret; nothing there is no error', async t => {
  const { kagent, callOf, modelConfigs, secrets, asked } = await startLab(t);
  await kagent.wire(callOf(), lemonadeModel());
  await kagent.wire(callOf(), ollamaModel());
  asked();
  await kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM');
  assert.deepEqual([modelConfigs(), secrets()], [['qwen2-5-0-5b'], []]);
  assert.deepEqual(asked(), [
    'list modelconfigs.kagent.dev',
    'get secrets qwen3-4b-flm-api-key',
    'delete modelconfigs.kagent.dev qwen3-4b-flm',
    'delete secrets qwen3-4b-flm-api-key',
  ]);
  await kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM');
  await kagent.unwire(callOf(), 'lemonade', 'qwen2.5:0.5b');
  assert.deepEqual(modelConfigs(), ['qwen2-5-0-5b']);
});

test('which one goes', async t => {
  type Written = Parameters<typeof modelConfig>[0];
  const table: [written: Written[], left: string[]][] = [
    [[{ name: 'x', backend: 'ollama', model: 'a/b:1' }], []],
    [[{ name: 'x', model: 'a/b:1' }], []],
    [[{ name: 'a-b-1', backend: 'ollama' }], []],
    [[{ name: 'a-b-1-ollama', backend: 'ollama' }], []],
    // Somebody else's, another backend's, another model's that has the same name.
    [[{ name: 'a-b-1', backend: false, model: 'a/b:1' }], ['a-b-1']],
    [[{ name: 'a-b-1', backend: 'lemonade', model: 'a/b:1' }], ['a-b-1']],
    [[{ name: 'a-b-1', backend: 'ollama', model: 'a-b:1' }], ['a-b-1']],
    // One that names no backend is not this one's when another is.
    [
      [
        { name: 'x', backend: 'ollama', model: 'a/b:1' },
        { name: 'y', model: 'a/b:1' },
      ],
      ['y'],
    ],
    [
      [
        { name: 'x', backend: 'ollama', model: 'a/b:1' },
        { name: 'y', backend: 'ollama', model: 'a/b:1' },
      ],
      [],
    ],
  ];
  for (const [written, left] of table) {
    const { kagent, callOf, modelConfigs, cluster } = await startLab(t, { objects: written.map(modelConfig) });
    await kagent.unwire(callOf(), 'ollama', 'a/b:1');
    assert.deepEqual(modelConfigs(), left, JSON.stringify(written));
    await cluster.close();
  }
});

test('a Secret that is not ours stays', async t => {
  const { kagent, callOf, secrets } = await startLab(t, {
    objects: [secretOf('team-key', false), secretOf('marked-key', true)],
  });
  for (const name of ['team-key', 'marked-key']) {
    await kagent.wire(callOf(), lemonadeModel(), { passthrough: false, secret: { name, key: 'K' } });
    await kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM');
  }
  assert.deepEqual(secrets(), ['marked-key', 'team-key']);
});

test('somebody else’s that took the name in the meantime stays', async t => {
  const theirs = modelConfig({ name: 'qwen2-5-0-5b', backend: false });
  const {
    kagent,
    callOf,
    modelConfig: read,
  } = await startLab(t, {
    between: (client, cluster) => ({
      remove(call, resource, name, namespace, object) {
        const found = cluster.get('modelconfigs.kagent.dev', name, namespace);
        if (found?.metadata.uid === object?.uid) {
          cluster.remove('modelconfigs.kagent.dev', name, namespace);
          cluster.put(theirs);
        }
        return client.remove(call, resource, name, namespace, object);
      },
    }),
  });
  await kagent.wire(callOf(), ollamaModel());
  await kagent.unwire(callOf(), 'ollama', 'qwen2.5:0.5b');
  assert.deepEqual(read('qwen2-5-0-5b')?.metadata.labels, theirs.metadata.labels);
});

test('ours that is made again and again is given up with words', async t => {
  const { kagent, callOf, modelConfigs } = await startLab(t, {
    between: (client, cluster) => ({
      remove(call, resource, name, namespace, object) {
        const { metadata, ...rest } = cluster.get('modelconfigs.kagent.dev', name, namespace) ?? assert.fail();
        cluster.remove('modelconfigs.kagent.dev', name, namespace);
        const { uid: _, resourceVersion: __, ...same } = metadata;
        cluster.put({ ...rest, metadata: same });
        return client.remove(call, resource, name, namespace, object);
      },
    }),
  });
  await kagent.wire(callOf(), ollamaModel());
  assert.match(
    await refusal(kagent.unwire(callOf(), 'ollama', 'qwen2.5:0.5b')),
    /^conflict conflict: the ModelConfig of qwen2.5:0.5b is being changed by others at the same time; try again$/,
  );
  assert.deepEqual(modelConfigs(), ['qwen2-5-0-5b']);
});

test('a Secret that may not be removed is named', async t => {
  const { kagent, callOf, modelConfigs, cluster } = await startLab(t);
  await kagent.wire(callOf(), lemonadeModel());
  cluster.fault({ kind: 'answer', status: 403, verb: 'delete', resource: 'secrets' });
  assert.match(
    await refusal(kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM')),
    /^forbidden the ModelConfig is removed, but its Secret kagent\/qwen3-4b-flm-api-key is not: cannot delete secrets/,
  );
  assert.deepEqual(modelConfigs(), []);
});

test('who may not see the Secret removes nothing by half', async t => {
  const { kagent, callOf, modelConfigs, secrets, cluster } = await startLab(t);
  await kagent.wire(callOf(), lemonadeModel());
  cluster.fault({ kind: 'answer', status: 403, verb: 'get', resource: 'secrets' });
  assert.match(await refusal(kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM')), /^forbidden cannot get secrets/);
  assert.deepEqual([modelConfigs(), secrets()], [['qwen3-4b-flm'], ['qwen3-4b-flm-api-key']]);
});

test('what is wired of a backend, and which backends a reference is wired on', async t => {
  const objects = [
    modelConfig({ name: 'theirs', backend: false, model: 'shared:1b' }),
    modelConfig({ name: 'by-hand', model: 'shared:1b' }),
    modelConfig({ name: 'old', backend: 'lemonade', spec: { provider: 'OpenAI', model: 'from-spec' } }),
    modelConfig({ name: 'no-spec', backend: 'lemonade', spec: 'none' }),
    modelConfig({ name: 'c-d-1', backend: 'lemonade', spec: { provider: 'OpenAI', model: 'other' } }),
  ];
  const { kagent, callOf } = await startLab(t, { objects });
  const call = callOf();
  for (const reference of ['shared:1b', 'a/b:1']) await kagent.wire(call, lemonadeModel(reference));
  await kagent.wire(call, ollamaModel('shared:2b'));
  await kagent.wire(call, servedModel());
  assert.deepEqual((await kagent.wiredOn(call, 'lemonade')).toSorted(), [
    'a/b:1',
    'from-spec',
    'no-spec',
    'other',
    'shared:1b',
  ]);
  assert.deepEqual(await kagent.wiredOn(call, 'ollama'), ['shared:2b']);
  assert.deepEqual(await kagent.wiredOn(call, 'lmstudio'), []);
  assert.deepEqual(await kagent.backendsOf(call, 'shared:1b'), ['lemonade']);
  assert.deepEqual(await kagent.backendsOf(call, 'shared:2b'), ['ollama']);
  assert.deepEqual(await kagent.backendsOf(call, 'c/d:1'), ['lemonade'], 'by its name, as it is unwired');
  assert.deepEqual(await kagent.backendsOf(call, 'a-b:1'), []);
  assert.deepEqual(await kagent.backendsOf(call, 'Qwen/Qwen3-4B-Instruct'), ['kserve']);
});

test('one that names no backend is wired on none that has a name', async t => {
  const { kagent, callOf } = await startLab(t, { objects: [modelConfig({ name: 'x', model: 'm' })] });
  assert.deepEqual(await kagent.backendsOf(callOf(), 'm'), [undefined]);
  for (const backend of ['ollama', '']) assert.deepEqual(await kagent.wiredOn(callOf(), backend), []);
});

test('a backend is emptied by what is wired on it', async t => {
  const { kagent, callOf, modelConfigs, secrets } = await startLab(t, {
    objects: [
      modelConfig({ name: 'old', backend: 'lemonade', spec: { provider: 'OpenAI', model: 'from-spec' } }),
      modelConfig({ name: 'no-spec', backend: 'lemonade', spec: 'none' }),
      modelConfig({ name: 'anybodys', spec: { provider: 'OpenAI', model: 'from-spec' } }),
    ],
  });
  await kagent.wire(callOf(), lemonadeModel());
  await kagent.wire(callOf(), ollamaModel());
  for (const reference of await kagent.wiredOn(callOf(), 'lemonade'))
    await kagent.unwire(callOf(), 'lemonade', reference);
  assert.deepEqual([modelConfigs(), secrets()], [['anybodys', 'qwen2-5-0-5b'], []]);
});

test('a Secret that a removal left behind goes with the next one', async t => {
  const { kagent, callOf, cluster, secrets } = await startLab(t);
  const model = lemonadeModel();
  const ref = await kagent.wire(callOf(), model);
  cluster.remove('modelconfigs.kagent.dev', ref.name, 'kagent');
  assert.equal(secrets().length, 1);
  await kagent.unwire(callOf(), model.backend, model.reference);
  assert.deepEqual(secrets(), []);
});
