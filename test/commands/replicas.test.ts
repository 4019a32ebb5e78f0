/** Two processes on one cluster: they tell the same, and what one of them leaves undone, the other finishes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import { type EmulatedOllama, startOllama } from '../../src/demo/ollama.ts';
import { playRecording } from '../../src/demo/playing.ts';
import { worldOf } from '../drivers/kserve/driverLab.ts';
import { instantsOf } from '../drivers/kserve/playedLab.ts';
import { recordingOf } from '../drivers/kserve/recordings.ts';
import { namespace, namespaceOf } from '../support/cluster.ts';
import { eventually, openStream, type Stream, send, textOf, within } from '../support/server.ts';
import { folder, startGateway } from './running.ts';

/** How long the backend takes; it goes no further while nobody asks. */
const pullMs = 4_000;

/** A cluster with these objects. */
async function clusterWith(t: TestContext, objects: readonly object[] = []): Promise<EmulatedCluster> {
  const cluster = await startCluster({ objects: [namespaceOf(namespace), ...objects] });
  t.after(() => cluster.close());
  return cluster;
}

/** One more process on the cluster; resolves when it is ready. */
async function replica(t: TestContext, cluster: EmulatedCluster, backends: readonly string[]) {
  const { gateway, url } = await startGateway(t, [
    ...['--kubeconfig', folder(t).put('kubeconfig', cluster.kubeconfig()), '--namespace', namespace],
    ...['--job-store', 'kubernetes', '--disable-wiring', '--backends', ...backends],
  ]);
  const isReady = async () => (await send(`${url}/readyz`)).status === 200;
  while (!(await isReady())) await new Promise(resolve => setTimeout(resolve, 50));
  return { url, process: gateway };
}

const pulls = (ollama: EmulatedOllama) => ollama.requests.filter(({ path }) => path === '/api/pull').length;
const pull = async (url: string) => (await send(`${url}/api/v1/models/pull`, { model: 'slow:1b' })).json.job;
const jobAt = async (url: string, id: string) => (await send(`${url}/api/v1/jobs/${id}`)).json;

/** Longer than a dead owner holds what it did, which is 15 s. */
const takeOverMs = 60_000;

interface Told {
  readonly phase: string;
  readonly bytesCompleted: number;
}

/** What a stream has brought until now. */
const payloads = ({ unread }: Stream) =>
  unread.filter(({ event }) => event === 'next').map(({ data }) => JSON.parse(data as string).data);

for (const [what, signal] of [
  ['killed', 'SIGKILL'],
  ['stopped', 'SIGINT'],
] as const) {
  test(`when the owner of a pull is ${what}, the other finishes it as the same job`, { timeout: 120_000 }, async t => {
    const cluster = await clusterWith(t);
    const ollama = await startOllama({ registry: [{ name: 'slow:1b', layers: [{ bytes: 4_000 }], pullMs }] });
    t.after(() => ollama[Symbol.asyncDispose]());
    const another = () => replica(t, cluster, ['ollama', '--ollama-endpoint', ollama.url]);
    const [one, two] = await Promise.all([another(), another()]);
    const { id } = await pull(one.url);
    assert.equal((await pull(two.url)).id, id, 'the other joins it');
    const stream = await openStream(`${two.url}/graphql`, { query: textOf('watchJob'), variables: { id } });
    const told = (): Told[] => payloads(stream).map(({ job: { job } }) => job);
    await eventually(() => told().some(({ bytesCompleted }) => bytesCompleted > 0), 'that it moves');
    assert.equal(pulls(ollama), 1);

    one.process.kill(signal);
    await one.process.ended;
    await within(stream.ended, 'the end of the job', takeOverMs);
    assert.equal(pulls(ollama), 2, 'it is asked for once more, by the one that took it over');
    assert.deepEqual([...new Set(told().map(({ phase }) => phase))].slice(-2), ['RUNNING', 'SUCCEEDED']);
    const bytes = told().map(({ bytesCompleted }) => bytesCompleted);
    assert.deepEqual(
      bytes,
      bytes.toSorted((a, b) => a - b),
      'what is there never gets less',
    );
    assert.equal((await jobAt(two.url, id)).phase, 'succeeded');
    assert.match(two.process.out, /"msg":"pull taken over"/);

    const three = await another();
    assert.deepEqual(await jobAt(three.url, id), await jobAt(two.url, id), 'one that starts knows it, too');
  });
}

const timeline = `subscription { serve(model: "nova-4b") { serve {
  phase reason message node endpoint steps { name state reason message since finishedAt }
} } }`;

const toldLast = (stream: Stream) => payloads(stream).at(-1)?.serve.serve;

test('both tell one timeline of a serve, at every instant, and one row of Events', { timeout: 120_000 }, async t => {
  const recording = recordingOf('serve-from-zero');
  const cluster = await clusterWith(t, worldOf({ storage: null, discovery: [], nodes: [] }));
  const replicas = await Promise.all([1, 2].map(() => replica(t, cluster, ['kserve'])));
  const [one, two] = (await Promise.all(
    replicas.map(({ url }) => openStream(`${url}/graphql`, { query: timeline })),
  )) as [Stream, Stream];
  const seen: unknown[] = [];
  /** What stood before the next instant has been told by both, in the same words and with the same times. */
  const asked = async () => {
    const expected = recording.instants[seen.length - 1]?.expect as { phase: string; message?: string } | undefined;
    seen.push(expected?.phase);
    if (!expected) return;
    const isTold = (serve: ReturnType<typeof toldLast>) =>
      serve?.phase === expected.phase.replace(/[A-Z]/g, '_$&').toUpperCase() &&
      (serve?.message ?? undefined) === expected.message;
    const same = () => isTold(toldLast(one)) && isDeepStrictEqual(toldLast(one), toldLast(two));
    await eventually(same, expected.phase).catch(() => {
      assert.deepEqual(toldLast(one), toldLast(two));
      assert.fail(`not told: ${expected.phase}, ${expected.message}, but ${JSON.stringify(toldLast(one))}`);
    });
  };
  await playRecording(
    cluster,
    { instants: instantsOf(recording) },
    { speed: 1, clock: { now: Date.now, sleep: asked } },
  );
  await asked();
  assert.ok(seen.includes('ready'), seen.join(' '));
  const events = () =>
    cluster.list('events', 'model-serving').filter(each => each.reportingComponent === 'model-manager');
  await eventually(() => events().some(({ reason }) => reason === 'Ready'), 'the last Event');
  const reasons = events().map(({ reason }) => reason);
  assert.deepEqual(reasons, [...new Set(reasons)], 'each phase is one Event, though both write it');
});
