import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClusterOptions, type Rule, startCluster } from '../../src/demo/cluster.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import { createKserveDriver } from '../../src/drivers/kserve/index.ts';
import { invalidRequest } from '../../src/errors.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { createWatches } from '../../src/kubernetes/watches.ts';
import { scriptedHub, served, worldOf } from '../drivers/kserve/driverLab.ts';
import { clusterNodes, discoveryRef, flagsOf } from '../drivers/kserve/world.ts';
import {
  documentMap,
  documentText,
  kagentNamespace,
  namespace,
  namespaceOf,
  startOnCluster,
} from '../support/cluster.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';
import { ask, eventually, openStream, startServer, type TestServer } from '../support/server.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';

const all = 'pull load unload delete wire unwire'.split(' ');
const fields = (names: readonly string[]) => names.map(name => `${name} { allowed reason }`).join(' ');
const modelsQuery = `{ models { items { name actions { ${fields(all)} } } errors { message } } }`;
const backendQuery = `query ($name: String) { backend(name: $name) { actions { ${fields(['pull', 'load', 'unload', 'delete', 'remove'])} } } }`;

type Answers = Readonly<Record<string, { readonly allowed: boolean | null; readonly reason: string | null }>>;

async function answerOf(server: TestServer, query: string, variables: object = {}) {
  const { json } = await ask(server, query, variables);
  assert.equal(json.errors, undefined, JSON.stringify(json.errors));
  return json.data;
}

const modelsOf = async (server: TestServer): Promise<{ name: string; actions: Answers }[]> =>
  (await answerOf(server, modelsQuery)).models.items;
const backendOf = async (server: TestServer, name?: string): Promise<Answers> =>
  (await answerOf(server, backendQuery, { name })).backend.actions;
/** `load: why`; nothing for what is allowed. */
const refusals = (actions: Answers | undefined) =>
  Object.entries(actions ?? {}).flatMap(([name, { allowed, reason }]) => (allowed ? [] : [`${name}: ${reason}`]));
const allowedIn = (actions: Answers | undefined) =>
  Object.entries(actions ?? {}).flatMap(([name, { allowed }]) => (allowed ? [name] : []));

const everything: Rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };

/** A gateway with this account at a cluster that serves models, over HTTP. */
async function startServing(
  objects: readonly object[] = [],
  users: ClusterOptions['users'] = { gateway: { rules: [everything] } },
) {
  const more = [...[namespace, kagentNamespace].map(namespaceOf), kagentDefinition(), ...objects];
  // Without a claim there is no cache to look into.
  const cluster = await startCluster({ users, objects: worldOf({ storage: null, more }) });
  const bearer = async () => ({ headers: { authorization: `Bearer ${cluster.tokenOf('gateway')}` } });
  const client = createKubernetesClient({ ...openServer(cluster.url), identity: bearer });
  const watches = createWatches({ client, log: silent });
  const { hub } = scriptedHub();
  const ownNamespace = discoveryRef.namespace;
  const kserve = createKserveDriver({ client, watches, flags: flagsOf(), ownNamespace, hub, log: silent });
  const lemonade = fakeDriver({ kind: 'lemonade', name: 'lemonade', models: ['a:1b'] });
  const world = await startOnCluster({
    cluster,
    drivers: [kserve, { ...lemonade, agentAccess: placeholder }],
    user: 'gateway',
    flags: ['--auto-wire=false'],
  });
  const server = await startServer({ gateway: world.gateway });
  return {
    cluster,
    server,
    reviews: () => cluster.requests.filter(({ resource }) => resource.startsWith('selfsubjectaccessreviews')).length,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
      await cluster.close();
    },
  };
}

const placeholder = ({ name: model }: { readonly name: string }) =>
  ({ protocol: 'openai', url: 'http://lemonade.invalid/api/v1', model, key: 'placeholder' }) as const;

const node = clusterNodes[0]?.metadata.name ?? '';
const manyServed = (count: number) =>
  Array.from({ length: count }, (_, at) => `model-${at}`).flatMap(name =>
    served(name, node, { spec: { model: { uri: `hf://acme-labs/${name}`, name: `acme-labs/${name}` } } }),
  );

test('what a backend cannot do is refused in the words of the mutation', async () => {
  const driver = fakeDriver({ models: ['a:1b'], capabilities: { delete: false, unload: false } });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver], wiringOff: 'it is off' }) });
  const [model] = await modelsOf(server);
  const wiring = 'operation not supported: agent wiring is disabled (it is off)';
  assert.deepEqual(refusals(model?.actions), [
    'unload: operation not supported: unload on ollama',
    'delete: operation not supported: delete on ollama',
    `wire: ${wiring}`,
    `unwire: ${wiring}`,
  ]);
  assert.deepEqual(model?.actions.load, { allowed: true, reason: null });
  for (const [field, mutation] of [
    ['unload', 'unloadModel(model: "a:1b") { model }'],
    ['delete', 'deleteModel(model: "a:1b") { model }'],
    ['wire', 'wireModel(model: "a:1b") { model }'],
  ] as const) {
    const { json } = await ask(server, `mutation { ${mutation} }`);
    assert.equal(model?.actions[field]?.reason, json.errors[0].message);
  }
  assert.deepEqual(refusals(await backendOf(server)), [
    'unload: operation not supported: unload on ollama',
    'delete: operation not supported: delete on ollama',
    'remove: conflict: backend ollama is configured statically by the chart values (--backends); it cannot be removed here',
  ]);
});

test("a driver's own rule for loads is heard", async () => {
  const driver = fakeDriver({ models: ['a:1b', 'embed:1b'] });
  const checkLoad = ({ model }: { readonly model: string }) => {
    if (model.startsWith('embed')) throw invalidRequest(`${model} embeds, it is not loaded`);
  };
  await using server = await startServer({ gateway: testGateway({ drivers: [{ ...driver, checkLoad }] }) });
  const [a, embed] = await modelsOf(server);
  assert.equal(a?.actions.load?.allowed, true);
  assert.equal(embed?.actions.load?.reason, 'invalid request: embed:1b embeds, it is not loaded');
});

test('presets are loaded and pulled where their backend can', async () => {
  const drivers = [servingDriver({ capabilities: { load: true } })];
  await using server = await startServer({ gateway: testGateway({ drivers }) });
  const { presets } = await answerOf(server, `{ presets { items { actions { ${fields(['pull', 'load'])} } } } }`);
  assert.deepEqual(refusals(presets.items[0].actions), ['pull: operation not supported: pull on kserve']);
});

test('what agents cannot reach, and where wiring is not installed, is not wired', async () => {
  const wiring = fakeWiring();
  const driver = { ...fakeDriver({ models: ['a:1b'] }), agentAccess: () => undefined };
  await using server = await startServer({ gateway: testGateway({ drivers: [driver], wiring }) });
  const wire = async () => (await modelsOf(server))[0]?.actions.wire;
  const { json } = await ask(server, 'mutation { wireModel(model: "a:1b") { model } }');
  assert.deepEqual(await wire(), { allowed: false, reason: json.errors[0].message });
  wiring.state.set({ available: false, reason: 'kagent is not there' });
  assert.deepEqual(await wire(), { allowed: false, reason: 'kagent is not there' });
});

test('a model is deleted by who may unwire it too', async () => {
  const wiring = fakeWiring();
  wiring.permit = { allowed: false, reason: 'cannot delete modelconfigs' };
  const drivers = [fakeDriver({ models: ['a:1b'] })];
  await using server = await startServer({ gateway: testGateway({ drivers, wiring }) });
  const [model] = await modelsOf(server);
  assert.deepEqual(
    refusals(model?.actions),
    ['delete', 'wire', 'unwire'].map(name => `${name}: ${wiring.permit.reason}`),
  );
  wiring.permit = { allowed: undefined, reason: 'nobody can tell now' };
  const later = (await modelsOf(server))[0]?.actions.delete;
  assert.deepEqual(later, { allowed: null, reason: 'nobody can tell now' });
});

test('who has asked for all the changes of a minute may ask for none, until when it says; events do not say so', async () => {
  const drivers = [fakeDriver({ models: ['a:1b'], capabilities: { delete: false } })];
  await using server = await startServer({ gateway: testGateway({ drivers }), limits: { mutations: 2 } });
  const unload = 'mutation { unloadModel(model: "a:1b") { model } }';
  await ask(server, unload);
  assert.equal((await backendOf(server)).load?.allowed, true, 'one is left');
  await ask(server, unload);
  const actions = await backendOf(server);
  assert.deepEqual(allowedIn(actions), []);
  assert.match(
    actions.load?.reason ?? '',
    /^too many changes: a caller may ask for 2 in a minute; ask again in \d+ s$/,
  );
  assert.equal(actions.delete?.reason, 'operation not supported: delete on ollama', 'what does not pass goes first');
  const stream = await openStream(server.graphqlUrl, {
    query: `subscription { models { items { actions { load { allowed } } } } }`,
  });
  assert.equal((await stream.nextPayload()).data.models.items[0].actions.load.allowed, true);
});

test('300 models are as many reviews as three', async () => {
  const asked: number[] = [];
  for (const count of [3, 300]) {
    await using world = await startServing(manyServed(count));
    const kserve = (await modelsOf(world.server)).filter(({ name }) => name.startsWith('acme-labs/model-'));
    assert.equal(kserve.length, count);
    for (const { actions } of kserve) {
      assert.equal(actions.unload?.allowed, true);
      assert.match(actions.delete?.reason ?? '', /unload it first/);
    }
    asked.push(world.reviews());
    await modelsOf(world.server);
    assert.equal(world.reviews(), asked.at(-1), 'none again for the next answer');
    const reviewed = world.cluster.requests.flatMap(({ resource, body }) =>
      resource.startsWith('selfsubjectaccessreviews') ? [JSON.stringify(body)] : [],
    );
    assert.equal(new Set(reviewed).size, reviewed.length, 'none twice');
  }
  assert.equal(asked[0], asked[1]);
});

test('who may look and nothing else is told so of every action, in the words of its refusal', async () => {
  const looks: Rule = { verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] };
  await using world = await startServing(served('nova-4b', node), { gateway: { rules: [looks] } });
  const { server } = world;
  const models = await modelsOf(server);
  const nova = models.find(({ name }) => name === 'acme-labs/Nova-4B-Instruct')?.actions;
  const lemonade = models.find(({ name }) => name === 'a:1b')?.actions;
  assert.deepEqual(allowedIn(lemonade), ['pull', 'load', 'unload', 'delete', 'unwire'], 'a host asks nobody');
  assert.match(
    lemonade?.wire?.reason ?? '',
    /^cannot create modelconfigs\.kagent\.dev in namespace kagent: no rule allows it; this is needed to wire models/,
  );
  assert.deepEqual(allowedIn(nova), ['unwire'], 'nothing of it is wired');
  for (const [action, begins] of [
    ['pull', 'cannot create jobs.batch in namespace model-serving: '],
    ['load', 'cannot create llminferenceservices.serving.kserve.io in namespace model-serving: '],
    ['unload', 'cannot delete llminferenceservices.serving.kserve.io in namespace model-serving: '],
    ['wire', 'cannot create modelconfigs.kagent.dev in namespace kagent: '],
  ] as const)
    assert.ok(nova?.[action]?.reason?.startsWith(begins), `${action}: ${nova?.[action]?.reason}`);
  const refused = await ask(server, 'mutation { unloadModel(model: "nova-4b", backend: "kserve") { model } }');
  assert.match(refused.json.errors[0].message, /cannot delete llminferenceservices\.serving\.kserve\.io nova-4b in /);
});

test('a wired model takes other rights than one that is not', async () => {
  const looks: Rule = { verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] };
  const writes = (...verbs: string[]): Rule => ({
    verbs,
    apiGroups: ['kagent.dev', ''],
    resources: ['modelconfigs', 'secrets'],
  });
  await using world = await startServing([], { gateway: { rules: [looks, writes('create')] } });
  const { server } = world;
  const lemonade = async () => (await modelsOf(server)).find(({ name }) => name === 'a:1b')?.actions;
  assert.deepEqual(refusals(await lemonade()), []);
  const { json } = await ask(server, 'mutation { wireModel(model: "a:1b", backend: "lemonade") { model } }');
  assert.equal(json.errors, undefined);
  const wired = await lemonade();
  assert.deepEqual(allowedIn(wired), ['pull', 'load', 'unload']);
  assert.match(wired?.wire?.reason ?? '', /^cannot update modelconfigs/);
  assert.match(wired?.unwire?.reason ?? '', /^cannot delete modelconfigs/);
  assert.equal(wired?.delete?.reason, wired?.unwire?.reason, 'it would be unwired first');
  assert.match(
    (await ask(server, 'mutation { deleteModel(model: "a:1b", backend: "lemonade") { model } }')).json.errors[0]
      .message,
    /^cannot delete modelconfigs/,
  );
});

test('a registered backend is removed by who may delete its document', async () => {
  const rules: Rule[] = [{ ...everything, verbs: ['get', 'list', 'watch'] }];
  const kept: Rule = {
    verbs: ['delete'],
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: ['model-backend-ollama'],
  };
  for (const [more, expected] of [
    [
      [],
      /^cannot delete configmaps model-backend-ollama in namespace model-manager: no rule .* remove a registered backend$/,
    ],
    [[kept], undefined],
  ] as const) {
    await using world = await startOnCluster({
      cluster: { users: { gateway: { rules: [...rules, ...more] } } },
      user: 'gateway',
    });
    world.cluster.put(documentMap('ollama', documentText('ollama')));
    await eventually(() => world.gateway.registry.backends.length === 1, 'the backend is registered');
    await using server = await startServer({ gateway: world.gateway });
    const { remove } = await backendOf(server, 'ollama');
    assert.equal(remove?.allowed, expected === undefined);
    if (expected) assert.match(remove?.reason ?? '', expected);
  }
});

test('while the API server is away no button goes: nobody can tell, and it says why', async () => {
  await using world = await startServing(served('nova-4b', node));
  // What is there has been seen; the rights have not.
  await answerOf(world.server, '{ models { items { name } } }');
  await world.cluster.stop();
  const { load, pull, unload } = await backendOf(world.server, 'kserve');
  for (const action of [load, pull, unload]) {
    assert.equal(action?.allowed, null);
    assert.match(
      action?.reason ?? '',
      /^nobody can tell now: cannot create selfsubjectaccessreviews.* cannot be reached/,
    );
  }
});
