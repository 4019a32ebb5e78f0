/** Two processes on one cluster: what one of them leaves undone, the other finishes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import { type EmulatedOllama, startOllama } from '../../src/demo/ollama.ts';
import { namespace, namespaceOf } from '../support/cluster.ts';
import { eventually, openStream, send, textOf } from '../support/server.ts';
import { folder, start } from './running.ts';

/** How long the backend takes; it goes no further while nobody asks. */
const pullMs = 4_000;

interface World {
  readonly cluster: EmulatedCluster;
  readonly ollama: EmulatedOllama;
  /** One more process; resolves when it is ready. */
  replica(): Promise<{ readonly url: string; readonly process: ReturnType<typeof start> }>;
}

async function startWorld(t: TestContext): Promise<World> {
  const cluster = await startCluster();
  t.after(() => cluster.close());
  cluster.put(namespaceOf(namespace));
  const ollama = await startOllama({ registry: [{ name: 'slow:1b', layers: [{ bytes: 4_000 }], pullMs }] });
  t.after(() => ollama[Symbol.asyncDispose]());
  const kubeconfig = folder(t).put('kubeconfig', cluster.kubeconfig());
  return {
    cluster,
    ollama,
    async replica() {
      const process = start(t, [
        ...['serve', '--listen', '127.0.0.1:0', '--log-format', 'json', '--kubeconfig', kubeconfig],
        ...['--namespace', namespace, '--backends', 'ollama', '--ollama-endpoint', ollama.url],
        ...['--job-store', 'kubernetes', '--disable-wiring'],
      ]);
      await process.wrote('model-manager serves');
      const url = /"url":"([^"]+)"/.exec(process.out)?.[1] ?? assert.fail('it says where it listens');
      const isReady = async () => (await send(`${url}/readyz`)).status === 200;
      while (!(await isReady())) await new Promise(resolve => setTimeout(resolve, 50));
      return { url, process };
    },
  };
}

const pulls = (ollama: EmulatedOllama) => ollama.requests.filter(({ path }) => path === '/api/pull').length;
const pull = async (url: string) => (await send(`${url}/api/v1/models/pull`, { model: 'slow:1b' })).json.job;
const jobAt = async (url: string, id: string) => (await send(`${url}/api/v1/jobs/${id}`)).json;

/** Follows a job at a replica: every state that it tells. */
async function follow(url: string, id: string) {
  const stream = await openStream(`${url}/graphql`, { query: textOf('watchJob'), variables: { id } });
  const told: { phase: string; bytesCompleted: number; jobId: string }[] = [];
  const reading = (async () => {
    for (;;) {
      const { job } = (await stream.nextPayload()).data.job;
      told.push(job);
      if (job.phase !== 'PENDING' && job.phase !== 'RUNNING') return;
    }
  })();
  return { told, reading };
}

for (const [what, signal] of [
  ['killed', 'SIGKILL'],
  ['stopped', 'SIGINT'],
] as const) {
  test(`when the owner of a pull is ${what}, the other finishes it as the same job`, { timeout: 120_000 }, async t => {
    const { ollama, replica } = await startWorld(t);
    const [one, two] = await Promise.all([replica(), replica()]);
    const { id } = await pull(one.url);
    assert.equal((await pull(two.url)).id, id, 'the other joins it');
    const { told, reading } = await follow(two.url, id);
    await eventually(() => told.some(({ bytesCompleted }) => bytesCompleted > 0), 'that it moves');
    assert.equal(pulls(ollama), 1);

    one.process.kill(signal);
    await one.process.ended;
    await reading;
    assert.equal(pulls(ollama), 2, 'it is asked for once more, by the one that took it over');
    assert.equal(told.at(-1)?.phase, 'SUCCEEDED');
    assert.deepEqual([...new Set(told.map(({ phase }) => phase))].slice(-2), ['RUNNING', 'SUCCEEDED']);
    const bytes = told.map(({ bytesCompleted }) => bytesCompleted);
    assert.deepEqual(
      bytes,
      bytes.toSorted((a, b) => a - b),
      'what is there never gets less',
    );
    assert.equal((await jobAt(two.url, id)).phase, 'succeeded');
    assert.match(two.process.out, /"msg":"pull taken over"/);

    const three = await replica();
    assert.deepEqual(await jobAt(three.url, id), await jobAt(two.url, id), 'one that starts knows it, too');
  });
}
