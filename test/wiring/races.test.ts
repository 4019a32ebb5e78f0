import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conflict } from '../../src/errors.ts';
import type { KubernetesClient } from '../../src/kubernetes/client.ts';
import { createLogger } from '../../src/log.ts';
import type { ModelConfig } from '../../src/wiring/kagent/modelConfig.ts';
import { refusal, secretOf, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, openAI, servedModel } from './modelConfigs.ts';

/** Does something once, before the first ModelConfig is created. */
const beforeCreation = (client: KubernetesClient, act: () => unknown): Partial<KubernetesClient> => {
  let isDone = false;
  return {
    async create(call, resource, object) {
      if (resource.plural === 'modelconfigs' && !isDone) {
        isDone = true;
        await act();
      }
      return client.create(call, resource, object);
    },
  };
};

test('many who wire one model at once make one object', async t => {
  const { kagent, another, callOf, modelConfigs, secrets, secret } = await startLab(t);
  const gateways = [kagent, another(), another(), another()];
  const refs = await Promise.all(
    gateways.flatMap(gateway => [gateway.wire(callOf(), lemonadeModel()), gateway.wire(callOf(), lemonadeModel())]),
  );
  assert.deepEqual(new Set(refs.map(({ name }) => name)), new Set(['qwen3-4b-flm']));
  assert.deepEqual([modelConfigs(), secrets()], [['qwen3-4b-flm'], ['qwen3-4b-flm-api-key']]);
  assert.ok(secret('qwen3-4b-flm-api-key'));
});

test('two backends that wire a model of one name at once have a name each', async t => {
  const { kagent, another, callOf, modelConfigs, secrets } = await startLab(t);
  const [a, b] = await Promise.all([
    kagent.wire(callOf(), lemonadeModel('shared:1b')),
    another().wire(callOf(), { ...lemonadeModel('shared:1b'), backend: 'lmstudio' }),
  ]);
  assert.notEqual(a.name, b.name);
  assert.equal(modelConfigs().length, 2);
  assert.deepEqual(secrets(), [a.apiKeySecret, b.apiKeySecret].toSorted(), 'and nothing is left of the first attempt');
});

test('a name that another backend takes in the meantime is theirs, and ours is the second', async t => {
  const theirs = modelConfig({ name: 'shared-1b', backend: 'ollama', model: 'shared:1b' });
  const { kagent, callOf, modelConfigs, secrets } = await startLab(t, {
    between: (client, cluster) => beforeCreation(client, () => cluster.put(theirs)),
  });
  assert.equal((await kagent.wire(callOf(), lemonadeModel('shared:1b'))).name, 'shared-1b-lemonade');
  assert.deepEqual(modelConfigs(), ['shared-1b', 'shared-1b-lemonade']);
  assert.deepEqual(secrets(), ['shared-1b-lemonade-api-key'], 'nothing is left of the first attempt');
});

test('a Secret that somebody makes in the meantime is used as it is', async t => {
  const { kagent, callOf, secret, asked } = await startLab(t, {
    between: (client, cluster) => ({
      create(call, resource, object) {
        if (resource.plural === 'secrets') cluster.put(secretOf(object.metadata.name, false));
        return client.create(call, resource, object);
      },
    }),
  });
  const { apiKeySecret = '' } = await kagent.wire(callOf(), lemonadeModel());
  const { metadata } = secret(apiKeySecret) ?? assert.fail('it is gone');
  assert.equal(metadata.labels, undefined);
  assert.equal(asked().filter(each => each.startsWith('list')).length, 1, 'without beginning again');
});

test('what has the name of an object that is to go, and came after it, stays', async t => {
  const access = { url: 'http://old.serving.svc:8000/v1', key: 'placeholder', object: 'old' } as const;
  const taken = new Set<string>();
  const lines: string[] = [];
  const log = createLogger({ format: 'json', stream: { write: line => lines.push(line) } });
  const {
    kagent,
    callOf,
    modelConfig: read,
    modelConfigs,
    secret,
  } = await startLab(t, {
    log,
    between: (client, cluster) => ({
      remove(call, resource, name, namespace, object) {
        const isFirst = !taken.has(name);
        taken.add(name);
        const kind = resource.group === '' ? 'secrets' : 'modelconfigs.kagent.dev';
        if (isFirst) cluster.remove(kind, name, namespace);
        if (isFirst) cluster.put(kind === 'secrets' ? secretOf(name, false) : modelConfig({ name, backend: false }));
        return client.remove(call, resource, name, namespace, object);
      },
    }),
  });
  await kagent.wire(callOf(), servedModel(access));
  await kagent.wire(callOf(), servedModel({ ...access, object: 'new' }));
  assert.deepEqual(modelConfigs(), ['new', 'old']);
  assert.deepEqual(read('old')?.metadata.labels, { team: 'a' });
  await kagent.wire(callOf(), servedModel({ ...access, object: 'new' }), { passthrough: true });
  assert.ok(taken.has('new-api-key'));
  const { metadata } = secret('new-api-key') ?? assert.fail('it is gone');
  assert.equal(metadata.labels, undefined);
  assert.deepEqual(lines, [], 'and that is no failure');
});

test('a name that somebody else takes in the meantime is theirs, and the Secret made for it goes', async t => {
  const {
    kagent,
    callOf,
    modelConfig: read,
    secrets,
  } = await startLab(t, {
    between: (client, cluster) =>
      beforeCreation(client, () => cluster.put(modelConfig({ name: 'qwen3-4b-flm', backend: false }))),
  });
  assert.match(await refusal(kagent.wire(callOf(), lemonadeModel())), /exists but is not managed by model-manager$/);
  assert.deepEqual(read('qwen3-4b-flm')?.metadata.labels, { team: 'a' });
  assert.deepEqual(secrets(), []);
});

test('somebody else’s that leads to the same model in the meantime is the answer', async t => {
  const spec = openAI('https://models.example.com', 'qwen3-4b');
  const { kagent, callOf, secrets } = await startLab(t, {
    between: (client, cluster) =>
      beforeCreation(client, () => {
        cluster.put(modelConfig({ name: 'theirs', backend: false, spec }));
        throw conflict('for the sake of it');
      }),
  });
  assert.equal((await kagent.wire(callOf(), servedModel({ key: 'placeholder' }))).name, 'theirs');
  assert.deepEqual(secrets(), [], 'nothing reads what was made for ours');
});

test('what changes while it is refreshed is read again', async t => {
  let changes = 0;
  const {
    kagent,
    callOf,
    modelConfig: read,
  } = await startLab(t, {
    between: (client, cluster) => ({
      replace(call, resource, object) {
        if (changes++ < 2)
          cluster.update<{ metadata: { labels: Record<string, string> } }>(
            'modelconfigs.kagent.dev',
            'qwen2-5-0-5b',
            'kagent',
            ({ metadata }) => {
              metadata.labels[`change-${changes}`] = 'x';
            },
          );
        return client.replace(call, resource, object);
      },
    }),
  });
  await kagent.wire(callOf(), ollamaModel());
  await kagent.wire(callOf(), ollamaModel(), { passthrough: true });
  const { metadata, spec } = read('qwen2-5-0-5b') ?? assert.fail();
  assert.equal((spec as { apiKeyPassthrough?: boolean }).apiKeyPassthrough, true);
  assert.equal(metadata.labels?.['change-1'], 'x');
  assert.equal(metadata.labels?.['change-2'], 'x');
});

test('what changes all the time is given up with words, and left as it is', async t => {
  let tries = 0;
  const {
    kagent,
    callOf,
    modelConfig: read,
    secrets,
  } = await startLab(t, {
    between: () => ({
      async replace() {
        tries++;
        throw conflict('the object has been modified');
      },
    }),
  });
  await kagent.wire(callOf(), lemonadeModel(), { passthrough: true });
  const before = read('qwen3-4b-flm');
  assert.match(
    await refusal(kagent.wire(callOf(), lemonadeModel())),
    /^conflict conflict: ModelConfig kagent\/qwen3-4b-flm is being changed by others at the same time; try again$/,
  );
  assert.equal(tries, 3);
  assert.deepEqual(read('qwen3-4b-flm'), before);
  assert.deepEqual(secrets(), []);
});

test('one that is removed while it is refreshed is made anew', async t => {
  let isFirst = true;
  const { kagent, callOf, modelConfigs } = await startLab(t, {
    between: (client, cluster) => ({
      replace(call, resource, object) {
        if (isFirst) cluster.remove('modelconfigs.kagent.dev', object.metadata.name, 'kagent');
        isFirst = false;
        return client.replace(call, resource, object);
      },
    }),
  });
  await kagent.wire(callOf(), ollamaModel());
  const ref = await kagent.wire(callOf(), ollamaModel(), { passthrough: true });
  assert.equal(ref.apiKeyPassthrough, true);
  assert.deepEqual(modelConfigs(), ['qwen2-5-0-5b']);
});

test('one that another gateway unwires while it is wired again is there or not, never by half', async t => {
  const { kagent, another, callOf, modelConfig: read, secret } = await startLab(t);
  await kagent.wire(callOf(), lemonadeModel());
  for (let round = 0; round < 10; round++) {
    await Promise.all([
      another().unwire(callOf(), 'lemonade', 'qwen3-4b-FLM'),
      kagent.wire(callOf(), lemonadeModel()).catch(error => assert.equal(error.code, 'conflict')),
    ]);
    const found: ModelConfig | undefined = read('qwen3-4b-flm');
    if (found) {
      // The next refresh mends a Secret that went in between.
      await kagent.wire(callOf(), lemonadeModel());
      assert.ok(secret('qwen3-4b-flm-api-key'));
    }
  }
});
