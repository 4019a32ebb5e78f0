import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusal, secretOf, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, openAI, servedModel } from './modelConfigs.ts';

const labelsOf = (backend: string) => ({
  'app.kubernetes.io/managed-by': 'model-manager',
  'model-manager.giantswarm.io/backend': backend,
});

test('a model of Ollama is known by a ModelConfig without a key', async t => {
  const { kagent, callOf, modelConfig, secrets, asked } = await startLab(t);
  const ref = await kagent.wire(callOf(), ollamaModel());
  assert.deepEqual(ref, {
    name: 'qwen2-5-0-5b',
    namespace: 'kagent',
    apiVersion: 'kagent.dev/v1alpha3',
    provider: 'Ollama',
    model: 'qwen2.5:0.5b',
    ready: false,
    message: 'not yet reconciled',
    managed: true,
    providerModel: 'qwen2.5:0.5b',
    endpoint: 'http://172.21.0.1:11434',
    apiKeyPassthrough: undefined,
    apiKeySecret: undefined,
    backend: 'ollama',
  });
  const written = modelConfig('qwen2-5-0-5b');
  assert.deepEqual(written?.metadata.labels, labelsOf('ollama'));
  assert.deepEqual(written?.metadata.annotations, { 'model-manager.giantswarm.io/model': 'qwen2.5:0.5b' });
  assert.deepEqual(written?.spec, {
    provider: 'Ollama',
    model: 'qwen2.5:0.5b',
    ollama: { host: 'http://172.21.0.1:11434' },
  });
  assert.deepEqual(secrets(), []);
  assert.deepEqual(
    asked().filter(each => !each.startsWith('discovery')),
    ['list modelconfigs.kagent.dev', 'create modelconfigs.kagent.dev'],
  );
});

test('the Secret comes before the ModelConfig that reads it, both written as model-manager', async t => {
  const { kagent, callOf, modelConfig, secret, asked, cluster } = await startLab(t);
  const ref = await kagent.wire(callOf(), lemonadeModel());
  assert.equal(ref.apiKeySecret, 'qwen3-4b-flm-api-key');
  assert.deepEqual(modelConfig('qwen3-4b-flm')?.spec, {
    provider: 'OpenAI',
    model: 'qwen3-4b-FLM',
    openAI: { baseUrl: 'http://172.21.0.1:13305/api/v1' },
    apiKeySecret: 'qwen3-4b-flm-api-key',
    apiKeySecretKey: 'OPENAI_API_KEY',
  });
  const made = secret('qwen3-4b-flm-api-key');
  assert.equal(made?.type, 'Opaque');
  assert.deepEqual(made?.metadata.labels, { 'app.kubernetes.io/managed-by': 'model-manager' });
  assert.deepEqual(made?.data, { OPENAI_API_KEY: Buffer.from('placeholder').toString('base64') });
  assert.deepEqual(
    asked().filter(each => !each.startsWith('discovery')),
    [
      'list modelconfigs.kagent.dev',
      'get secrets qwen3-4b-flm-api-key',
      'create secrets',
      'create modelconfigs.kagent.dev',
    ],
  );
  for (const { verb, query } of cluster.requests)
    if (verb === 'create') assert.equal(query.get('fieldManager'), 'model-manager');
});

test('a served model is known by the name of its object', async t => {
  const { kagent, callOf, modelConfig, secrets } = await startLab(t);
  const ref = await kagent.wire(callOf(), servedModel());
  assert.deepEqual(
    [ref.name, ref.model, ref.providerModel],
    ['qwen3-4b-instruct', 'Qwen/Qwen3-4B-Instruct', 'qwen3-4b'],
  );
  assert.deepEqual(modelConfig('qwen3-4b-instruct')?.spec, {
    provider: 'OpenAI',
    model: 'qwen3-4b',
    openAI: { baseUrl: 'https://models.example.com/model-serving/qwen3-4b-instruct/v1' },
    apiKeyPassthrough: true,
  });
  assert.deepEqual(secrets(), []);
});

test('wiring again refreshes: the spec is new as a whole, what others added elsewhere stays', async t => {
  const { kagent, callOf, cluster, modelConfig, asked } = await startLab(t);
  const call = callOf();
  await kagent.wire(call, ollamaModel());
  const { spec } = modelConfig('qwen2-5-0-5b') ?? {};
  asked();
  await kagent.wire(call, ollamaModel());
  assert.deepEqual(asked(), ['list modelconfigs.kagent.dev'], 'nothing to say anew');

  cluster.update<ReturnType<typeof reconciled>>('modelconfigs.kagent.dev', 'qwen2-5-0-5b', 'kagent', reconciled);
  const ref = await kagent.wire(call, ollamaModel());
  const after = modelConfig('qwen2-5-0-5b');
  assert.deepEqual([ref.ready, ref.message], [true, 'accepted']);
  assert.deepEqual(after?.spec, spec);
  assert.deepEqual(after?.metadata.labels, { ...labelsOf('ollama'), team: 'a' });
  assert.equal(after?.metadata.annotations?.note, 'by hand');
  assert.deepEqual(after?.status, { conditions: [{ type: 'Accepted', status: 'True', message: 'accepted' }] });
  const { query } = cluster.requests.find(({ verb }) => verb === 'update') ?? {};
  assert.equal(query?.get('fieldManager'), 'model-manager');
});

/** What people and kagent do to a ModelConfig. */
function reconciled(object: {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: Record<string, unknown>;
  status: unknown;
}) {
  object.metadata.labels.team = 'a';
  object.metadata.annotations.note = 'by hand';
  object.spec.defaultHeaders = { 'x-team': 'a' };
  object.status = { conditions: [{ type: 'Accepted', status: 'True', message: 'accepted' }] };
  return object;
}

test('one that names no backend is taken in', async t => {
  const {
    kagent,
    callOf,
    modelConfig: written,
    modelConfigs,
  } = await startLab(t, {
    objects: [modelConfig({ name: 'by-hand', model: 'qwen2.5:0.5b' })],
  });
  const ref = await kagent.wire(callOf(), ollamaModel());
  assert.deepEqual([ref.name, ref.backend], ['by-hand', 'ollama']);
  assert.deepEqual(written('by-hand')?.metadata.labels, labelsOf('ollama'));
  assert.deepEqual(modelConfigs(), ['by-hand']);
});

test('a second backend has a name of its own, and keeps it', async t => {
  const { kagent, callOf, modelConfigs } = await startLab(t);
  const [ollama, lemonade] = [ollamaModel('shared:1b'), lemonadeModel('shared:1b')];
  assert.equal((await kagent.wire(callOf(), ollama)).name, 'shared-1b');
  assert.equal((await kagent.wire(callOf(), lemonade)).name, 'shared-1b-lemonade');
  await kagent.unwire(callOf(), 'ollama', 'shared:1b');
  assert.equal((await kagent.wire(callOf(), lemonade)).name, 'shared-1b-lemonade');
  assert.deepEqual(modelConfigs(), ['shared-1b-lemonade']);
});

test('the key follows what is asked, and what was made for it goes', async t => {
  const { kagent, callOf, secrets, secret } = await startLab(t, { objects: [secretOf('team-key', false)] });
  const call = callOf();
  const wired = async (apiKey?: Parameters<typeof kagent.wire>[2]) => {
    const { apiKeyPassthrough, apiKeySecret } = await kagent.wire(call, lemonadeModel(), apiKey);
    return [apiKeyPassthrough, apiKeySecret, secrets()];
  };
  const placeholder = 'qwen3-4b-flm-api-key';
  assert.deepEqual(await wired(), [undefined, placeholder, [placeholder, 'team-key']]);
  assert.deepEqual(await wired({ passthrough: true }), [true, undefined, ['team-key']]);
  assert.deepEqual(await wired(), [undefined, placeholder, [placeholder, 'team-key']]);
  const callers = { passthrough: false, secret: { name: 'team-key', key: 'TOKEN' } };
  assert.deepEqual(await wired(callers), [undefined, 'team-key', ['team-key']]);
  assert.deepEqual(await wired(), [undefined, placeholder, [placeholder, 'team-key']]);
  await kagent.unwire(call, 'lemonade', 'qwen3-4b-FLM');
  assert.deepEqual(secrets(), ['team-key']);
  assert.equal(secret('team-key')?.metadata.labels, undefined);
});

test('a Secret of somebody else that has the name of ours is left as it is', async t => {
  const theirs = secretOf('qwen3-4b-flm-api-key', false);
  const { kagent, callOf, secret, secrets } = await startLab(t, { objects: [theirs] });
  const before = secret('qwen3-4b-flm-api-key');
  assert.equal((await kagent.wire(callOf(), lemonadeModel())).apiKeySecret, 'qwen3-4b-flm-api-key');
  await kagent.wire(callOf(), lemonadeModel(), { passthrough: true });
  await kagent.wire(callOf(), lemonadeModel());
  await kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM');
  assert.deepEqual(secrets(), ['qwen3-4b-flm-api-key']);
  assert.deepEqual(secret('qwen3-4b-flm-api-key'), before);
});

test('two long names may come to one Secret; it stays as long as one of them reads it', async t => {
  const { kagent, callOf, modelConfigs, secrets } = await startLab(t);
  const [a, b] = ['Q8', 'Q4'].map(tag => lemonadeModel(`hf.co/${'a'.repeat(80)}/repo:${tag}`));
  assert.ok(a && b);
  await kagent.wire(callOf(), a);
  await kagent.wire(callOf(), b);
  assert.equal(modelConfigs().length, 2);
  assert.deepEqual(secrets(), [`hf-co-${'a'.repeat(48)}-api-key`]);
  await kagent.wire(callOf(), a, { passthrough: true });
  assert.equal(secrets().length, 1);
  await kagent.wire(callOf(), a);
  await kagent.unwire(callOf(), 'lemonade', a.reference);
  assert.equal(secrets().length, 1);
  await kagent.unwire(callOf(), 'lemonade', b.reference);
  assert.deepEqual(secrets(), []);
});

test('a served model whose object has another name by now has one ModelConfig, under that name', async t => {
  const { kagent, callOf, modelConfigs, secrets } = await startLab(t);
  const inCluster = { url: 'http://old.serving.svc.cluster.local:8000/v1', key: 'placeholder' } as const;
  await kagent.wire(callOf(), servedModel({ ...inCluster, object: 'old' }));
  assert.deepEqual([modelConfigs(), secrets()], [['old'], ['old-api-key']]);
  await kagent.wire(callOf(), servedModel({ ...inCluster, object: 'new' }));
  assert.deepEqual([modelConfigs(), secrets()], [['new'], ['new-api-key']]);
  // Its address has moved to the gateway of models.
  await kagent.wire(callOf(), servedModel({ object: 'new' }));
  assert.deepEqual([modelConfigs(), secrets()], [['new'], []]);
});

test('somebody else’s for the same endpoint is the answer, and nothing is written', async t => {
  const spec = openAI('https://Models.example.com/v1', 'qwen3-4b');
  const theirs = modelConfig({ name: 'theirs', backend: false, spec });
  const { kagent, callOf, asked, modelConfig: read } = await startLab(t, { objects: [theirs] });
  const before = read('theirs');
  const ref = await kagent.wire(callOf(), servedModel());
  assert.deepEqual([ref.name, ref.managed, ref.backend], ['theirs', false, undefined]);
  assert.deepEqual(read('theirs'), before);
  assert.deepEqual(
    asked().filter(each => !each.startsWith('discovery')),
    ['list modelconfigs.kagent.dev'],
  );
});

test('a name that is taken is taken from nobody, and nothing is written', async t => {
  const objects = [
    modelConfig({ name: 'theirs', backend: false }),
    modelConfig({ name: 'a-b-1', backend: 'lemonade', model: 'a/b:1' }),
  ];
  const { kagent, callOf, modelConfigs, secrets, modelConfig: read } = await startLab(t, { objects });
  const before = modelConfigs().map(read);
  assert.equal(
    await refusal(kagent.wire(callOf(), lemonadeModel('theirs'))),
    'conflict conflict: ModelConfig kagent/theirs exists but is not managed by model-manager',
  );
  assert.match(
    await refusal(kagent.wire(callOf(), lemonadeModel('a-b:1'))),
    /^conflict .*kagent\/a-b-1.* is that of a\/b:1 on lemonade; unwire that model first$/,
  );
  assert.match(
    await refusal(kagent.wire(callOf(), servedModel(), { passthrough: false, secret: { name: 's', key: 'k' } })),
    /^invalid_request /,
  );
  assert.deepEqual(modelConfigs().map(read), before);
  assert.deepEqual(secrets(), []);
});

test('it takes as many requests in a full namespace as in an empty one', async t => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      modelConfig({ name: `m-${index}`, backend: 'ollama', model: `m:${index}` }),
    );
  const [few, full] = [await startLab(t, { objects: many(3) }), await startLab(t, { objects: many(300) })];
  for (const { kagent, callOf } of [few, full]) {
    await kagent.wire(callOf(), lemonadeModel());
    await kagent.wire(callOf(), lemonadeModel(), { passthrough: true });
    await kagent.unwire(callOf(), 'lemonade', 'qwen3-4b-FLM');
  }
  assert.deepEqual(full.asked(), few.asked());
});

test('the prefix begins every name', async t => {
  const { kagent, callOf, modelConfigs, secrets } = await startLab(t, { prefix: 'mm' });
  await kagent.wire(callOf(), lemonadeModel());
  await kagent.wire(callOf(), servedModel());
  assert.deepEqual(modelConfigs(), ['mm-qwen3-4b-flm', 'mm-qwen3-4b-instruct']);
  assert.deepEqual(secrets(), ['mm-qwen3-4b-flm-api-key']);
});
