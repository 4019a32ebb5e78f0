import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../src/call.ts';
import { unavailable } from '../../src/errors.ts';
import type { KubernetesClient } from '../../src/kubernetes/client.ts';
import { createLogger } from '../../src/log.ts';
import type { WiringTarget } from '../../src/wiring/wiring.ts';
import { silent } from '../support/gateway.ts';
import { type Lab, refusal, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, servedModel } from './modelConfigs.ts';

const users = {
  alice: {
    rules: [
      { verbs: ['*'], apiGroups: ['kagent.dev'], resources: ['modelconfigs'], namespaces: ['kagent'] },
      { verbs: ['get', 'create', 'delete'], apiGroups: [''], resources: ['secrets'], namespaces: ['kagent'] },
    ],
  },
};

const everything = ({ modelConfigs, secrets, modelConfig: read, secret }: Lab) => [
  modelConfigs().map(read),
  secrets().map(secret),
];

test('all of it is done as the one who calls', async t => {
  const { kagent, callOf, cluster } = await startLab(t, { users });
  const call = callOf('alice');
  await kagent.wire(call, lemonadeModel());
  await kagent.wire(call, lemonadeModel(), { passthrough: true });
  await kagent.unwire(call, 'lemonade', 'qwen3-4b-FLM');
  await kagent.wiredOn(call, 'lemonade');
  await kagent.backendsOf(call, 'm');
  assert.deepEqual(new Set(cluster.requests.map(({ user }) => user)), new Set(['alice']));
});

test('who may not do a part of it is told which, and nothing is done by half', async t => {
  const wire: Work = ({ kagent, callOf }) => kagent.wire(callOf('alice'), lemonadeModel());
  const rewire: Work = ({ kagent, callOf }) => kagent.wire(callOf('alice'), lemonadeModel(), { passthrough: true });
  const unwire: Work = ({ kagent, callOf }) => kagent.unwire(callOf('alice'), 'lemonade', 'qwen3-4b-FLM');
  type Work = (lab: Lab) => Promise<unknown>;
  const table: [verb: string, resource: string, isWired: boolean, work: Work][] = [
    ['list', 'modelconfigs.kagent.dev', false, wire],
    ['get', 'secrets', false, wire],
    ['create', 'secrets', false, wire],
    ['create', 'modelconfigs.kagent.dev', false, wire],
    ['update', 'modelconfigs.kagent.dev', true, rewire],
    ['list', 'modelconfigs.kagent.dev', true, unwire],
    ['get', 'secrets', true, unwire],
    ['delete', 'modelconfigs.kagent.dev', true, unwire],
  ];
  for (const [verb, resource, isWired, work] of table) {
    const lab = await startLab(t, { users });
    if (isWired) await wire(lab);
    const before = everything(lab);
    const [plural = '', ...group] = resource.split('.');
    lab.cluster.revoke('alice', { verbs: [verb], apiGroups: [group.join('.')], resources: [plural] });
    const words = await refusal(work(lab));
    assert.ok(words.startsWith(`forbidden cannot ${verb} ${resource}`), words);
    assert.match(words, /in namespace kagent: .*User "alice".*; this is needed to /);
    assert.deepEqual(everything(lab), before, `${verb} ${resource}`);
    await lab.cluster.close();
  }
});

test('a token that has expired is told, in whatever is done', async t => {
  const { kagent, callOf, cluster } = await startLab(t, { users });
  const call = callOf('alice');
  cluster.expireToken('alice');
  for (const work of each(kagent, call)) assert.match(await refusal(work), /^unauthenticated .*sign in again/);
});

const each = (kagent: WiringTarget, call: ReturnType<Lab['callOf']>) => [
  kagent.wire(call, ollamaModel()),
  kagent.unwire(call, 'ollama', 'm'),
  kagent.wiredOn(call, 'ollama'),
  kagent.backendsOf(call, 'm'),
];

test('a server that is no API server is told', async t => {
  const { kagent, callOf, cluster } = await startLab(t);
  const headers = { 'content-type': 'text/html' };
  cluster.fault({ kind: 'answer', status: 200, headers, body: '<html><h1>Sign in</h1></html>' });
  for (const work of each(kagent, callOf()))
    assert.match(await refusal(work), /^backend_error .*no answer of a Kubernetes/);
});

test('a server that is away is told', async t => {
  const { kagent, callOf, cluster } = await startLab(t);
  await cluster.stop();
  for (const work of each(kagent, callOf())) assert.match(await refusal(work), /^unavailable .*cannot be reached/);
});

test('without kagent nothing can be wired, and nothing is', async t => {
  const { kagent, callOf, secrets } = await startLab(t, { versions: [] });
  assert.match(
    await refusal(kagent.wire(callOf(), lemonadeModel())),
    /^unsupported .*kagent's ModelConfig CRD is not installed in the cluster \(looked for kagent.dev\/v1alpha3\)/,
  );
  assert.deepEqual(secrets(), []);
  await kagent.unwire(callOf(), 'lemonade', 'm');
  assert.deepEqual(await kagent.wiredOn(callOf(), 'lemonade'), []);
  assert.deepEqual(await kagent.backendsOf(callOf(), 'm'), []);
});

test('a namespace that is not there is named', async t => {
  const { another, callOf } = await startLab(t);
  for (const model of [ollamaModel(), lemonadeModel()])
    assert.match(
      await refusal(another('nowhere').wire(callOf(), model)),
      /^unavailable .*namespace nowhere .*does not exist/,
    );
});

/** ModelConfigs cannot be created. */
const withoutCreation = (client: KubernetesClient, before: () => void = () => {}): Partial<KubernetesClient> => ({
  async create(call, resource, object) {
    if (resource.plural !== 'modelconfigs') return client.create(call, resource, object);
    before();
    throw unavailable('the server is going down');
  },
});

test('a Secret that was made for nothing goes; one that somebody reads by then stays', async t => {
  const alone = await startLab(t, { between: client => withoutCreation(client) });
  assert.match(await refusal(alone.kagent.wire(alone.callOf(), lemonadeModel())), /going down$/);
  assert.deepEqual(alone.secrets(), []);

  const spec = { provider: 'OpenAI', model: 'm', apiKeySecret: 'qwen3-4b-flm-api-key', apiKeySecretKey: 'K' };
  const read = await startLab(t, {
    between: (client, cluster) =>
      withoutCreation(client, () => cluster.put(modelConfig({ name: 'reader', backend: false, spec }))),
  });
  assert.match(await refusal(read.kagent.wire(read.callOf(), lemonadeModel())), /going down$/);
  assert.deepEqual(read.secrets(), ['qwen3-4b-flm-api-key']);
});

test('it is taken back also when the caller has left', async t => {
  const leaving = new AbortController();
  const { kagent, secrets, modelConfigs } = await startLab(t, {
    between: client => ({
      create(call, resource, object) {
        if (resource.plural === 'modelconfigs') leaving.abort();
        return client.create(call, resource, object);
      },
    }),
  });
  const call = createCall({ log: silent, signal: leaving.signal });
  assert.match(await refusal(kagent.wire(call, lemonadeModel())), /cancelled by the caller|aborted/);
  assert.deepEqual([secrets(), modelConfigs()], [[], []]);
});

test('what is written is the answer, also when the caller leaves before it shows', async t => {
  const leaving = new AbortController();
  const { kagent, cluster } = await startLab(t, {
    between: client => ({
      async create(call, resource, object) {
        const written = await client.create(call, resource, object);
        leaving.abort();
        return written;
      },
    }),
  });
  const own = createCall({ log: silent });
  t.after(kagent.known.subscribe(() => {}));
  await kagent.known.read(own);
  cluster.freezeWatches();
  const ref = await kagent.wire(createCall({ log: silent, signal: leaving.signal }), ollamaModel());
  assert.equal(ref.name, 'qwen2-5-0-5b');
});

test('what cannot be taken back is a line in the log', async t => {
  const lines: string[] = [];
  const log = createLogger({ format: 'json', stream: { write: line => lines.push(line) } });
  const { kagent, callOf, cluster } = await startLab(t, { log, between: client => withoutCreation(client) });
  cluster.fault({ kind: 'answer', status: 500, verb: 'delete', resource: 'secrets' });
  await refusal(kagent.wire(callOf(), lemonadeModel()));
  const told = lines.filter(line => line.includes('half of a wiring is left: Secret kagent/qwen3-4b-flm-api-key'));
  assert.equal(told.length, 1);
});

test('a placeholder Secret that cannot be removed is a line in the log; the model is wired', async t => {
  const lines: string[] = [];
  const log = createLogger({ format: 'json', stream: { write: line => lines.push(line) } });
  const { kagent, callOf, cluster } = await startLab(t, { log });
  await kagent.wire(callOf(), lemonadeModel());
  cluster.fault({ kind: 'answer', status: 403, verb: 'delete', resource: 'secrets' });
  const ref = await kagent.wire(callOf(), lemonadeModel(), { passthrough: true });
  assert.equal(ref.apiKeyPassthrough, true);
  assert.equal(lines.filter(line => line.includes('a placeholder Secret that nothing reads is left')).length, 1);
});

test('a ModelConfig that had to make room is there again when its successor cannot be written', async t => {
  const access = { url: 'http://old.serving.svc:8000/v1', key: 'placeholder', object: 'old' } as const;
  let isBroken = false;
  const {
    kagent,
    callOf,
    modelConfig: read,
    modelConfigs,
    secrets,
  } = await startLab(t, {
    between: client => ({
      create(call, resource, object) {
        const isSuccessor = object.metadata.name === 'new';
        return isBroken && isSuccessor ? Promise.reject(unavailable('no')) : client.create(call, resource, object);
      },
    }),
  });
  await kagent.wire(callOf(), servedModel(access));
  const before = read('old');
  isBroken = true;
  assert.match(await refusal(kagent.wire(callOf(), servedModel({ ...access, object: 'new' }))), /no$/);
  assert.deepEqual([modelConfigs(), secrets()], [['old'], ['old-api-key']]);
  const after = read('old');
  assert.deepEqual(after?.spec, before?.spec);
  assert.deepEqual(after?.metadata.labels, before?.metadata.labels);
  assert.deepEqual(after?.metadata.annotations, before?.metadata.annotations);
});

/** An API server whose schema does not have the field: it drops it without a word. */
const pruning = (client: KubernetesClient): Partial<KubernetesClient> => {
  const pruned = <T extends object>(object: T): T => {
    const { apiKeyPassthrough: _, ...spec } = (object as { spec?: Record<string, unknown> }).spec ?? {};
    return 'spec' in object ? { ...object, spec } : object;
  };
  return {
    create: (call, resource, object) => client.create(call, resource, pruned(object)),
    replace: (call, resource, object) => client.replace(call, resource, pruned(object)),
  };
};

test('a version that cannot say that tokens are passed on is told so, and nothing stays', async t => {
  const {
    kagent,
    callOf,
    modelConfig: read,
    modelConfigs,
    secrets,
  } = await startLab(t, {
    versions: ['v1alpha2'],
    between: pruning,
  });
  assert.match(
    await refusal(kagent.wire(callOf(), servedModel())),
    /^unsupported .*kagent.dev\/v1alpha2 of this cluster has no apiKeyPassthrough in ModelConfigs, .*; upgrade kagent$/,
  );
  assert.deepEqual(modelConfigs(), []);
  await kagent.wire(callOf(), lemonadeModel());
  const before = read('qwen3-4b-flm');
  assert.match(await refusal(kagent.wire(callOf(), lemonadeModel(), { passthrough: true })), /^unsupported /);
  assert.deepEqual(read('qwen3-4b-flm')?.spec, before?.spec);
  assert.deepEqual(secrets(), ['qwen3-4b-flm-api-key']);
});
