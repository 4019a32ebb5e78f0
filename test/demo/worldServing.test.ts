import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { recordOf } from '../../src/demo/cluster/store/object.ts';
import type { KubernetesObject } from '../../src/demo/cluster.ts';
import { cacheVolume, servingNamespace } from '../../src/demo/world/serving.ts';
import { startDemo } from '../support/demo.ts';
import { type RestAnswer, rest } from '../support/rest.ts';
import { eventually, openStream, send } from '../support/server.ts';

const pulled = 'support-assistant-8b';

interface GraphAnswer {
  readonly errors?: unknown;
  readonly data: Record<string, { items: Record<string, unknown>[]; errors: unknown }>;
}

/** The demo, as clients of its gateway see what it serves in the cluster. */
async function start(t: TestContext, ...flags: string[]) {
  const demo = await startDemo(t, '--kserve-poll-interval', '20ms', ...flags);
  const ask = (line: string, body?: unknown): Promise<RestAnswer> => rest(demo.url, line, { body });
  /** The items of a list of the graph. */
  async function rowsOf(list: 'models' | 'loadedModels' | 'nodes', fields: string) {
    const query = `{ ${list}(backend: "kserve") { items { ${fields} } errors { message } } }`;
    const { json } = await send(`${demo.url}/graphql`, { query });
    const { data, errors } = json as GraphAnswer;
    assert.deepEqual([errors, data[list]?.errors], [undefined, null]);
    return data[list]?.items ?? [];
  }
  const models = () => rowsOf('models', 'name path downloaded loaded');
  const isCached = (path: string) => async () => (await models()).some(row => row.path === path && row.downloaded);
  /** Time goes by while a pod of a Job is under way: the gateway's own time, which is real, is not to be overtaken. */
  const moves = () =>
    demo.world.cluster
      .list<KubernetesObject>('pods', servingNamespace)
      .some(
        ({ metadata, status }) => /^mm-/.test(metadata.name) && /Pending|Running/.test(String(recordOf(status).phase)),
      );
  const live = (holds: () => boolean | Promise<boolean>, what: string) => demo.live(holds, what, moves);
  /** Until what lies in the cache was looked at. */
  await live(isCached('gemma-3-4b-gguf'), 'the cache was counted');
  const directory = (name: string) => demo.world.kubelet.content(cacheVolume).find(({ dir }) => dir === name);
  const jobNames = () =>
    demo.world.cluster.list('jobs.batch', servingNamespace).map(({ metadata }) => metadata.name.slice(0, 8));
  return { ...demo, live, always: demo.live, ask, rowsOf, models, isCached, directory, jobNames };
}

test('the cluster shows its nodes, its presets, and the models that are cached or served', async t => {
  const { rowsOf, models, ask } = await start(t);
  const fields = 'name eligible eligibilityReason gpuCount reservedBytes cache { claim models shared inventory }';
  const nodes = await rowsOf('nodes', fields);
  const cache = { claim: 'hf-cache', models: 3, shared: true, inventory: 'daemonset' };
  const reserved = Math.round(20.3 * 2 ** 30);
  assert.deepEqual(nodes, [
    { name: 'gpu-l4-a', eligible: true, eligibilityReason: null, gpuCount: 1, reservedBytes: 0, cache },
    { name: 'gpu-l4-b', eligible: true, eligibilityReason: null, gpuCount: 1, reservedBytes: 0, cache },
    { name: 'gpu-l4-x4', eligible: true, eligibilityReason: null, gpuCount: 4, reservedBytes: reserved, cache },
    {
      name: 'gpu-l4-z',
      eligible: false,
      eligibilityReason: 'taint dedicated=research:NoSchedule not tolerated (set the GPU pool taint)',
      gpuCount: 1,
      reservedBytes: 0,
      cache,
    },
  ]);
  const { json } = await ask('GET /api/v1/presets');
  assert.equal(json.presets.length, 11);
  const rows = (await models()).map(({ name, path, downloaded, loaded }) => [name, path, downloaded, loaded]);
  assert.deepEqual(rows, [
    ['Qwen/Qwen3-0.6B', 'qwen3-0-6b-cpu', true, true],
    ['Qwen/Qwen3-8B', 'qwen3-8b-l4', true, true],
    ['ggml-org/gemma-3-4b-it-GGUF', 'gemma-3-4b-gguf', true, false],
  ]);
  const loaded = await rowsOf('loadedModels', 'name status node');
  assert.deepEqual(loaded, [
    { name: 'Qwen/Qwen3-0.6B', status: 'Ready', node: 'worker-a' },
    { name: 'Qwen/Qwen3-8B', status: 'Ready', node: 'gpu-l4-x4' },
  ]);
});

test('each preset gets the verdict that it is there for', async t => {
  const { ask, rowsOf } = await start(t);
  const weights = (said: string, source: string) => `^${said} GiB weights \\(${source}\\)`;
  const expected: [preset: string, fits: boolean, cached: boolean, reason: string][] = [
    ['gemma-3-27b-h100', false, false, '^no eligible node: .*machine-pool=gpu-h100'],
    ['gemma-3-4b-gguf', true, true, 'declares 2\\.4 GiB of weights, the Hub holds 7\\.0 GiB$'],
    ['gpt-oss-20b', true, false, weights('12\\.8', 'safetensors-index')],
    ['mistral-small-24b-x4', true, false, weights('44\\.7', 'safetensors-index')],
    ['qwen2-5-7b-x2', true, false, weights('14\\.2', 'safetensors-index')],
    ['qwen3-0-6b-cpu', true, true, 'on worker-b \\(allocatable\\)$'],
    ['qwen3-0-6b-wrong-args', true, false, 'on worker-b \\(allocatable\\)$'],
    ['qwen3-0-6b-wrong-image', true, false, 'on worker-b \\(allocatable\\)$'],
    ['qwen3-8b-l4', true, true, weights('15\\.3', 'safetensors-index')],
    ['support-assistant-70b', false, false, 'exceed the 90\\.0 GiB available on gpu-l4-x4'],
    ['support-assistant-8b', true, false, weights('15\\.0', 'tree')],
  ];
  const presets = (await ask('GET /api/v1/presets')).json.presets.map(({ name }: { name: string }) => name);
  assert.deepEqual(
    expected.map(([name]) => name),
    presets,
  );
  for (const [preset, fits, cached, reason] of expected) {
    const { json } = await ask('POST /api/v1/models/fit-check', { preset });
    assert.deepEqual([json.fits, json.cached ?? false], [fits, cached], preset);
    assert.match(json.reason, new RegExp(reason), preset);
  }
  const { json: large } = await ask('POST /api/v1/models/fit-check', { preset: 'mistral-small-24b-x4' });
  const node = (await rowsOf('nodes', 'name freeBytes freeGpus')).find(({ name }) => name === large.node);
  assert.ok(Number(node?.freeBytes) >= large.requiredBytes, 'what is served leaves it memory');
  assert.equal(node?.freeGpus, 3, 'but no four GPUs: it is served on a node that comes for it');
});

test('without a node the pool is judged by the sizes it can grow to', async t => {
  const { world, ask, live, rowsOf } = await start(t);
  const { cluster } = world;
  for (const { metadata } of cluster.list('nodes')) {
    if (metadata.labels?.['nvidia.com/gpu.present']) cluster.remove('nodes', metadata.name);
  }
  await live(async () => (await rowsOf('nodes', 'name')).length === 0, 'they are gone');
  const verdict = async (preset: string) => (await ask('POST /api/v1/models/fit-check', { preset })).json;
  const large = await verdict('mistral-small-24b-x4');
  assert.deepEqual([large.fits, large.instanceType], [true, 'g6.12xlarge']);
  const small = await verdict(pulled);
  assert.deepEqual([small.fits, small.instanceType], [true, 'g6.2xlarge']);
  assert.match((await verdict('support-assistant-70b')).reason, /no size of the pool \(2xlarge, 12xlarge\) hosts/);
});

test('the Hub is searched with the token of the cluster, and hits know their presets', async t => {
  const { ask } = await start(t);
  const { json } = await ask('GET /api/v1/search?q=support-assistant');
  const hits = json.results.map(({ id, presets }: Record<string, unknown>) => [id, presets]);
  assert.deepEqual(hits, [
    ['acme/support-assistant-70b-fp8', ['support-assistant-70b']],
    ['acme/support-assistant-8b', [pulled]],
  ]);
});

async function pullAndDelete(t: TestContext, mode: string) {
  const { url, live, ask, isCached, directory, jobNames } = await start(t, '--kserve-inventory-mode', mode);
  const pull = await ask('POST /api/v1/models/pull', { backend: 'kserve', model: pulled });
  assert.equal(pull.status, 202);
  const { id } = pull.json.job;
  const query = `subscription { job(id: "${id}") { job { phase status percent bytesCompleted bytesTotal } } }`;
  const stream = await openStream(`${url}/graphql`, { query });
  const seen: { phase: string; status: string; percent: number; bytesCompleted: number; bytesTotal: number }[] = [];
  const following = (async () => {
    while (seen.at(-1)?.phase !== 'SUCCEEDED') {
      seen.push((await stream.nextPayload('the job')).data.job.job);
      assert.notEqual(seen.at(-1)?.phase, 'FAILED', seen.at(-1)?.status);
    }
  })();
  let isOver = false;
  void following.finally(() => {
    isOver = true;
  });
  // Time stands still until what was downloaded by now is known.
  for (const part of [0.2, 0.6]) {
    const bytes = 16e9 * part;
    await live(() => (directory(pulled)?.bytes ?? 0) > bytes, `${part} is downloaded`);
    await eventually(() => seen.some(({ bytesCompleted }) => bytesCompleted > bytes), `${part} is told`);
  }
  await live(() => isOver, 'the pull is over');
  await following;
  stream.leave();
  const percents = seen.map(({ percent }) => percent);
  assert.deepEqual(
    percents,
    percents.toSorted((a, b) => a - b),
  );
  assert.ok(percents.filter(percent => percent > 0 && percent < 100).length >= 2, `${percents}`);
  assert.deepEqual([seen.at(-1)?.status, seen.at(-1)?.percent], ['downloaded', 100]);
  assert.ok(seen.some(({ status }) => status === 'downloading'));

  assert.deepEqual(
    [directory(pulled)?.bytes, directory(pulled)?.marker?.model],
    [seen.at(-1)?.bytesTotal, 'acme/support-assistant-8b'],
  );
  await live(isCached(pulled), 'it is listed');
  const { json } = await ask('POST /api/v1/models/fit-check', { preset: pulled });
  assert.deepEqual([json.cached, json.cacheSource], [true, 'scan']);

  let deleted: RestAnswer | undefined;
  const deletion = ask(`DELETE /api/v1/models/${pulled}?backend=kserve`).then(answer => {
    deleted = answer;
  });
  await live(() => deleted !== undefined, 'it is deleted');
  await deletion;
  assert.equal(deleted?.status, 200);
  assert.equal(directory(pulled), undefined);
  await live(async () => !(await isCached(pulled)()), 'it is listed no more');
  await live(() => jobNames().every(name => name === 'mm-pull-'), 'what looked and removed is gone');
}

for (const mode of ['daemonset', 'pod']) {
  test(`a pull is followed until its model is cached, and a deletion takes it away (${mode})`, t =>
    pullAndDelete(t, mode));
}

test('a model that is downloaded when it is served tells how much is there', async t => {
  const preset = 'qwen2-5-7b-x2';
  const { url, always, ask, directory } = await start(t);
  const query = `subscription { serve(model: "${preset}", backend: "kserve") {
    serve { phase steps { name message bytesCompleted bytesTotal } } } }`;
  const stream = await openStream(`${url}/graphql`, { query });
  const seen: { phase: string; message: string | null; bytesCompleted: number | null; bytesTotal: number }[] = [];
  const following = (async () => {
    while (seen.at(-1)?.phase !== 'READY') {
      const { serve } = (await stream.nextPayload('the serve')).data.serve;
      const step = serve?.steps.find(({ name }: { name: string }) => name === 'DOWNLOADING_WEIGHTS');
      if (step) seen.push({ ...step, phase: serve.phase });
    }
  })();
  assert.equal((await ask('POST /api/v1/models/load', { preset, backend: 'kserve' })).status, 200);
  const completed = () => seen.at(-1)?.bytesCompleted ?? 0;
  for (const part of [0.2, 0.6]) {
    const bytes = 14.2 * 2 ** 30 * part;
    await always(() => (directory(preset)?.bytes ?? 0) > bytes, `${part} is downloaded`);
    await eventually(() => completed() > bytes, `${part} is told`);
    assert.match(seen.at(-1)?.message ?? '', /: \d+\.\d GiB of 14\.2 GiB$/);
  }
  await always(() => seen.at(-1)?.phase === 'READY', 'it is ready');
  await following;
  stream.leave();
  const counted = seen.flatMap(({ bytesCompleted }) => bytesCompleted ?? []);
  assert.deepEqual(
    counted,
    counted.toSorted((a, b) => a - b),
  );
  assert.ok(seen.every(({ bytesCompleted, bytesTotal }) => (bytesCompleted ?? 0) <= bytesTotal));
});

test('what is served is not deleted, and what does not fit or is an image is not pulled', async t => {
  const { ask, live } = await start(t);
  const served = await ask('DELETE /api/v1/models/qwen3-8b-l4?backend=kserve');
  assert.deepEqual(
    [served.status, served.json.error.message],
    [409, 'conflict: Qwen/Qwen3-8B is served by LLMInferenceService qwen3-8b-l4; unload it first'],
  );
  for (const [model, words] of [
    ['support-assistant-70b', /exceed the 90\.0 GiB available/],
    ['gemma-3-27b-h100', /no eligible node/],
    ['gpt-oss-20b', /OCI model image/],
  ] as const) {
    const { json } = await ask('POST /api/v1/models/pull', { backend: 'kserve', model });
    let job: { phase?: string; error?: string } = {};
    await live(async () => {
      job = (await ask(`GET /api/v1/jobs/${json.job.id}`)).json;
      return job.phase === 'failed';
    }, `the pull of ${model} failed`);
    assert.match(job.error ?? '', words);
  }
});

test('a cancelled pull leaves neither Job nor pod', async t => {
  const { world, ask, live, jobNames, directory } = await start(t);
  const pods = () =>
    world.cluster
      .list<KubernetesObject>('pods', servingNamespace)
      .filter(({ metadata }) => metadata.name.startsWith('mm-pull-'));
  const { json } = await ask('POST /api/v1/models/pull', { backend: 'kserve', model: pulled });
  await live(() => (directory(pulled)?.bytes ?? 0) > 0, 'it has begun');
  assert.equal(pods().length, 1);
  assert.equal((await ask(`DELETE /api/v1/jobs/${json.job.id}`)).status, 200);
  await live(() => !jobNames().includes('mm-pull-') && pods().length === 0, 'both are gone');
  assert.equal(directory(pulled)?.marker, undefined);
});
