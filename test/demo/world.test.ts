import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { clusterPortBeside } from '../../src/commands/demo.ts';
import { type KubernetesObject, startCluster } from '../../src/demo/cluster.ts';
import { startWorld } from '../../src/demo/world.ts';
import { readinessOf } from '../../src/wiring/kagent/readiness.ts';
import { startDemo } from '../support/demo.ts';
import { openStream } from '../support/server.ts';

const modelConfigs = 'modelconfigs.kagent.dev';
const served = ['qwen3-0-6b-cpu', 'qwen3-8b-l4'];

const isReady = ({ status }: KubernetesObject) => readinessOf(status).ready;

test('what the day pulls and loads is known to agents two seconds later, and what it deletes no longer', async t => {
  const { clock, world, url, live } = await startDemo(t);
  const cameAt = new Map<string, number>();
  const readyAfter = new Map<string, number>();
  const gone = new Set<string>();
  world.cluster.watch(({ type, resource, object }) => {
    if (resource !== modelConfigs) return;
    const { name } = object.metadata;
    if (type === 'ADDED') cameAt.set(name, clock.now());
    if (type === 'MODIFIED' && isReady(object)) readyAfter.set(name, clock.now() - (cameAt.get(name) ?? 0));
    if (type === 'DELETED') gone.add(name);
  });
  const defaultModel = () => world.cluster.get<KubernetesObject>(modelConfigs, 'default-model-config', 'kagent');
  await clock.advance(2_000);
  assert.ok(isReady(defaultModel() as KubernetesObject), 'that of somebody else is ready');
  await live(() => served.every(name => readyAfter.has(name)), 'what is served in the cluster is ready');
  const before = defaultModel();
  readyAfter.clear();

  const told: string[] = [];
  const life = world.live(url, event => told.push(event));
  const pulled = ['llama3-2-3b', 'qwen2-5-vl-7b-instruct-gguf'];
  const loaded = ['gemma-3-4b-it-gguf', 'qwen3-8b'];
  await live(() => readyAfter.size === 4, 'all that the day pulls and loads is ready');
  assert.deepEqual(
    [...readyAfter].sort(([a], [b]) => (a < b ? -1 : 1)),
    [...loaded, ...pulled].sort().map(name => [name, 2_000]),
  );
  await live(() => told.filter(event => /qwen3:8b is loaded/.test(event)).length === 2, 'the day begins again');
  assert.deepEqual([...gone].sort(), pulled);
  assert.equal(defaultModel(), before, 'that of somebody else is as it was');

  await world[Symbol.asyncDispose]();
  await life;
});

test('LM Studio is there by its document, whoever changes that', async t => {
  const { world, url } = await startDemo(t);
  const query = 'subscription { backends { snapshot items { id name source } removed } }';
  const stream = await openStream(`${url}/graphql`, { query });
  const rows = new Map<string, string>();
  /** Takes events until these are known. */
  async function known(...wanted: string[]) {
    while (!isDeepStrictEqual([...rows.values()].sort(), wanted)) {
      const { snapshot, items, removed } = (await stream.nextPayload(`${wanted}`)).data.backends;
      if (snapshot) rows.clear();
      for (const { id, name, source } of items) rows.set(id, `${name} ${source}`);
      for (const id of removed) rows.delete(id);
    }
  }
  await known('kserve STATIC', 'lemonade STATIC', 'lmstudio PERSON', 'ollama STATIC');

  const place = ['configmaps', 'model-backend-lmstudio', world.namespace] as const;
  const document = world.cluster.get<KubernetesObject>(...place);
  assert.ok(document);
  world.cluster.remove(...place);
  await known('kserve STATIC', 'lemonade STATIC', 'ollama STATIC');
  world.cluster.put(document);
  await known('kserve STATIC', 'lemonade STATIC', 'lmstudio PERSON', 'ollama STATIC');
  stream.leave();
});

test('the API server of its cluster is at the port that is asked for, unless somebody else is', async () => {
  const cluster = await startCluster();
  const port = Number(new URL(cluster.url).port);
  {
    await using world = await startWorld({ clusterPort: port });
    assert.notEqual(world.cluster.url, cluster.url);
  }
  await cluster.close();
  await using world = await startWorld({ clusterPort: port });
  assert.equal(world.cluster.url, cluster.url);
});

test('where the gateway of the demo is to listen, the API server of its cluster does not', () => {
  assert.equal(clusterPortBeside([]), 8090);
  assert.equal(clusterPortBeside(['--listen=:8080', '--metrics-listen=:9464']), 8090);
  for (const flag of ['--listen=:8090', '--metrics-listen=:8090', '--metrics-listen=127.0.0.1:8090'])
    assert.equal(clusterPortBeside([flag]), 0, flag);
});
