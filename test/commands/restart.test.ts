/** The gateway as it is started, on a cluster that goes on without it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { startCluster } from '../../src/demo/cluster.ts';
import { downloadJob } from '../../src/drivers/kserve/downloads/job.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { clusterNodes, discoveryRef, objectsOf, presetFiles, settingsWith } from '../drivers/kserve/world.ts';
import { namespaceOf } from '../support/cluster.ts';
import { silent } from '../support/gateway.ts';
import { refusalOf, rest } from '../support/rest.ts';
import { eventually } from '../support/server.ts';

const serving = 'model-serving';

/** What is answered once it `holds`; the last answer when it does not come to that in time. */
async function answered<A>(ask: () => Promise<A>, holds: (answer: A) => boolean): Promise<A> {
  const end = performance.now() + 20_000;
  for (;;) {
    const answer = await ask();
    if (holds(answer) || performance.now() > end) return answer;
  }
}

async function start() {
  const cluster = await startCluster({
    objects: [
      ...[serving, discoveryRef.namespace].map(namespaceOf),
      ...objectsOf('cluster/discovery.yaml'),
      ...objectsOf('cluster/cache-shared.yaml'),
      ...presetFiles.flatMap(objectsOf),
      ...clusterNodes,
    ],
  });
  const flags = ['--backends', 'kserve', '--namespace', discoveryRef.namespace, '--listen', '127.0.0.1:0'];
  // There are no nodes that would run a pod that counts.
  const usual = ['--disable-wiring', '--kserve-poll-interval', '100ms', '--kserve-inventory-timeout', '100ms'];
  const { settings } = parseServe([...flags, ...usual], {}, { buildable: ['kserve'] });
  const begin = async () => {
    const { url, stop } = await serve(settings, silent, {}, openServer(cluster.url));
    const send = (line: string, body?: object) => rest(url, line.replace(' ', ' /api/v1/'), { body });
    return { send, [Symbol.asyncDispose]: stop };
  };
  return { cluster, begin, [Symbol.asyncDispose]: () => cluster.close() };
}

test('a download goes on while the gateway is stopped, and is a running pull of the next one', {
  timeout: 60_000,
}, async () => {
  await using world = await start();
  const { cluster } = world;
  const repository = 'acme-labs/Nova-4B-Instruct';
  const plan = { repository, revision: 'v1', directory: 'nova-4b', preset: 'nova-4b', bytesTotal: 100 };
  cluster.put(downloadJob(settingsWith({ cache: { enabled: true } }), plan));
  const there = () => cluster.list('jobs.batch', serving).length;

  for (const isLast of [false, true]) {
    {
      await using gateway = await world.begin();
      const { send } = gateway;
      const list = async () => (await send('GET jobs')).json.jobs;
      const [job, ...more] = await answered(list, ([first]) => first?.status === 'waiting for the download pod');
      assert.equal(more.length, 0);
      assert.deepEqual(
        [job.type, job.backend, job.model, job.preset, job.phase, job.status, job.bytesTotal],
        ['pull', 'kserve', `${repository}:v1`, 'nova-4b', 'running', 'waiting for the download pod', 100],
      );
      const pull = await send('POST models/pull', { model: `hf://${repository}:v1`, preset: 'nova-4b' });
      assert.deepEqual([pull.status, pull.json.created, pull.json.job.id], [202, false, job.id]);
      if (isLast) {
        await send(`DELETE jobs/${job.id}`);
        await eventually(() => there() === 0, 'the Job is removed');
      }
    }
    assert.equal(there(), isLast ? 0 : 1);
  }
});

test('a model that only a preset has is answered, and is not there to be deleted', { timeout: 60_000 }, async () => {
  await using world = await start();
  await using gateway = await world.begin();
  const { send } = gateway;
  const nova = {
    backend: 'kserve',
    name: 'acme-labs/Nova-4B-Instruct',
    preset: 'nova-4b',
    downloaded: false,
    loaded: false,
  };
  for (const reference of ['nova-4b', 'ACME-labs/nova-4b-instruct', 'hf://acme-labs/Nova-4B-Instruct:main']) {
    const { status, json } = await send(`GET models/${encodeURIComponent(reference)}`);
    assert.equal(status, 200, reference);
    assert.deepEqual({ ...json, ...nova }, json, reference);
    assert.ok(json.sizeBytes > 0);
    assert.equal(
      refusalOf(await send(`DELETE models/${encodeURIComponent(reference)}`)),
      `404 not_found: model not found: ${nova.name} is not in the cache`,
    );
  }
  const missing = '404 not_found: model not found: no/where is neither cached, served nor a preset';
  assert.equal(refusalOf(await send('GET models/no/where')), missing);
  assert.equal(refusalOf(await send('DELETE models/no/where')), missing);

  const [map] = objectsOf('cluster/preset-nova-4b.yaml') as unknown as [{ metadata: object; data: object }];
  const text = JSON.stringify({ metadata: { name: 'twin' }, spec: { model: { id: nova.name } } });
  world.cluster.put({ ...map, metadata: { ...map.metadata, name: 'twin' }, data: { 'preset.yaml': text } });
  const ambiguous = async () => refusalOf(await send(`GET models/${nova.name}`));
  assert.equal(
    await answered(ambiguous, words => words.startsWith('400')),
    `400 invalid_request: invalid request: 2 presets serve ${nova.name} (nova-4b, twin); pass preset to choose one`,
  );
  assert.equal((await send('GET models/twin')).json.preset, 'twin');
});
