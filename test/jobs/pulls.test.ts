import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import type { EmulatedOllama, RegistryModel } from '../../src/demo/ollama.ts';
import { startEmulated } from '../support/emulated.ts';
import { allFaces, through } from '../support/facts.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { jobEnd, jobWhen } from '../support/jobs.ts';
import { type RestServer, serveRest } from '../support/rest.ts';
import { eventually } from '../support/server.ts';

const inTime = { timeout: 20_000 };
const timings = { tickMs: 100, firstByteMs: 0, manifestMs: 0, verifyMs: 0 };

const small: RegistryModel = { name: 'small:latest', layers: [{ bytes: 600 }, { bytes: 400 }], pullMs: 1_000 };

/** The gateway in front of an emulated host whose downloads take a second of its clock. */
async function start(registry: readonly RegistryModel[] = [small]) {
  const stack = new AsyncDisposableStack();
  const world = stack.use(await startEmulated({ registry, timings }));
  const server = stack.use(await serveRest({ gateway: world.gateway }));
  const pull = async (model: string) => (await server.send('POST models/pull', { model })).json;
  return {
    ...world,
    server,
    pull,
    /** Pulls until the end, whatever it is. */
    async pullToTheEnd(model: string) {
      const { job } = await pull(model);
      const end = jobEnd(world.gateway, job.id);
      let over = false;
      const ended = end.finally(() => {
        over = true;
      });
      while (!over) await world.clock.advance(100);
      return ended;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const pulls = (ollama: EmulatedOllama) => ollama.requests.filter(({ path }) => path === '/api/pull');
const jobOf = async (server: RestServer, id: string) => (await server.send(`GET jobs/${id}`)).json;

test('a pull of the same model is joined, however its name is spelled', inTime, async () => {
  await using world = await start();
  const first = await world.pull('small');
  assert.equal(first.created, true);
  for (const spelling of [
    'small',
    'small:latest',
    ' small ',
    'library/small',
    'registry.ollama.ai/library/small:latest',
  ]) {
    const { job, created } = await world.pull(spelling);
    assert.deepEqual([created, job.id, job.model], [false, first.job.id, 'small'], spelling);
  }
  const other = await world.pull('small:135m');
  assert.equal(other.created, true);
  await world.ollama.requested('/api/pull', 2);
  assert.deepEqual(
    pulls(world.ollama).map(({ body }) => body),
    [
      { model: 'small', stream: true },
      { model: 'small:135m', stream: true },
    ],
  );
});

test(
  'a pull moves from 0 to 100 percent without going back, and is at 100 only when it has succeeded',
  inTime,
  async () => {
    await using world = await start();
    const { job } = await world.pull('small');
    assert.deepEqual([job.phase, job.percent, job.bytesTotal], ['pending', 0, 0]);
    const seen: { percent: number; bytesCompleted: number; bytesTotal: number; phase: string }[] = [job];
    await world.clock.sleeping();
    while (seen.at(-1)?.phase !== 'succeeded') {
      await world.clock.advance(100);
      seen.push(await jobOf(world.server, job.id));
    }
    for (const [index, { percent, bytesCompleted, bytesTotal, phase }] of seen.entries()) {
      const before = seen[index - 1] ?? { percent: 0, bytesCompleted: 0, bytesTotal: 0 };
      assert.ok(bytesCompleted >= before.bytesCompleted && bytesTotal >= before.bytesTotal);
      assert.ok(bytesCompleted <= bytesTotal);
      assert.equal(percent === 100, phase === 'succeeded');
    }
    assert.ok(seen.some(({ bytesCompleted }) => bytesCompleted > 0 && bytesCompleted < 1000));
    const last = seen.at(-1);
    assert.deepEqual([last?.bytesCompleted, last?.bytesTotal, last?.percent], [1000, 1000, 100]);
    assert.deepEqual(world.ollama.models(), ['small:latest']);
    assert.equal((await world.server.send('GET models/small')).status, 200, 'it is there at once');
  },
);

test('F14: while a complete download is verified the job says so and is not at 100 percent', inTime, async () => {
  await using world = await startEmulated({ registry: [small], timings: { ...timings, verifyMs: 120_000 } });
  await using server = await serveRest({ gateway: world.gateway });
  const { id } = (await server.send('POST models/pull', { model: 'small' })).json.job;
  await world.clock.sleeping();
  await world.clock.advance(1_500);
  await jobWhen(world.gateway, id, ({ status }) => status === 'verifying sha256 digest');
  const verifying = await jobOf(server, id);
  assert.deepEqual([verifying.phase, verifying.status], ['running', 'verifying sha256 digest']);
  assert.ok(verifying.percent < 100 && verifying.percent >= 70, String(verifying.percent));
  await world.clock.advance(120_000);
  await jobEnd(world.gateway, id);
  assert.equal((await jobOf(server, id)).percent, 100);
});

test('a pull that is cancelled ends as cancelled, at the host too, and a later one resumes it', inTime, async () => {
  await using world = await start();
  const { job } = await world.pull('small');
  await world.clock.sleeping();
  await world.clock.advance(500);
  await jobWhen(world.gateway, job.id, ({ bytesCompleted }) => bytesCompleted > 0);
  const answer = await world.server.send(`DELETE jobs/${job.id}`);
  assert.equal(answer.status, 200);
  assert.ok(['running', 'cancelled'].includes(answer.json.phase));
  const ended = await jobEnd(world.gateway, job.id);
  assert.deepEqual([ended.phase, ended.error], ['cancelled', 'cancelled']);
  assert.equal(await pulls(world.ollama)[0]?.ended, 'cut');
  assert.deepEqual(world.ollama.models(), []);
  const [kept] = world.ollama.partials().values();
  assert.ok(kept && kept > 0);

  const again = await world.pullToTheEnd('small');
  assert.equal(again.phase, 'succeeded');
  assert.equal(world.ollama.partials().size, 0);
  const { json, status } = await world.server.send(`DELETE jobs/${again.id}`);
  assert.deepEqual([status, json.phase, json.percent], [200, 'succeeded', 100]);
});

test('a job goes on when the client that asked hangs up', inTime, async () => {
  await using world = await start();
  const client = request(`${world.server.url}/api/v1/models/pull`, { method: 'POST', agent: false });
  client.on('error', () => {});
  client.end('{"model":"small"}');
  await eventually(() => world.gateway.jobs.store.list().length > 0, 'the job');
  client.destroy();
  const [job] = world.gateway.jobs.store.list();
  await world.clock.sleeping();
  await world.clock.advance(2_000);
  assert.equal((await jobEnd(world.gateway, job?.id ?? '')).phase, 'succeeded');
});

test('when the process stops, a pull is interrupted, and the next process resumes it', inTime, async () => {
  await using world = await start();
  const { job } = await world.pull('small');
  await world.clock.sleeping();
  await world.clock.advance(500);
  await world.gateway.jobs.interrupt();
  const { phase, error } = await jobOf(world.server, job.id);
  assert.deepEqual([phase, error], ['failed', 'interrupted: model-manager was stopped; ask again to resume']);
  assert.equal((await world.pullToTheEnd('small')).phase, 'succeeded');
});

const lines = (...events: object[]) => events.map(event => `${JSON.stringify(event)}\n`).join('');
const pulling = { status: 'pulling aaaaaaaaaaaa', digest: 'sha256:aa', total: 1000 };
const ndjson = { kind: 'answer', path: '/api/pull', nth: 1, contentType: 'application/x-ndjson' } as const;

/** F4 and the chaos of downloads: what happens to the first pull, and what its job says. */
const failures: readonly {
  readonly what: string;
  readonly registry?: RegistryModel;
  readonly fault?: Parameters<EmulatedOllama['fault']>[0];
  readonly error: string | RegExp;
  readonly bytes?: number;
}[] = [
  {
    what: 'F4: a model that the registry does not have, told in a 200',
    registry: { ...small, failure: { at: 'manifest', times: 1 } },
    error: 'model not found: ollama: pull model manifest: file does not exist',
  },
  {
    what: 'F4: an error that arrives in two pieces',
    fault: {
      ...ndjson,
      body: lines({ status: 'pulling manifest' }, { error: 'pull model manifest: file does not exist' }),
      pieceBytes: 40,
    },
    error: 'model not found: ollama: pull model manifest: file does not exist',
  },
  {
    what: 'a registry that breaks off',
    registry: { ...small, failure: { at: 500, error: 'max retries exceeded: unexpected EOF', times: 1 } },
    error: 'ollama: max retries exceeded: unexpected EOF',
  },
  {
    what: 'a digest that does not match',
    registry: { ...small, failure: { at: 'verify', times: 1 } },
    error: /^ollama: digest mismatch, file must be downloaded again: want sha256:/,
  },
  {
    what: 'F4: an end without success',
    fault: { ...ndjson, body: lines({ status: 'pulling manifest' }, { ...pulling, completed: 400 }) },
    error: 'ollama: POST /api/pull: the stream ended without success after 400 of 1000 bytes; a new pull resumes',
    bytes: 400,
  },
  {
    what: 'an end in the middle of a line',
    fault: { ...ndjson, body: `${lines({ ...pulling, completed: 400 })}{"status":"succ` },
    error: 'ollama: POST /api/pull: the stream ended without success after 400 of 1000 bytes; a new pull resumes',
    bytes: 400,
  },
  {
    what: 'a connection that is lost in the middle of a line',
    fault: { ...ndjson, body: lines(pulling, { ...pulling, completed: 400 }, pulling), afterBytes: 180 },
    error: /^ollama: POST \/api\/pull: the connection to http:\S+ was lost before the answer was complete/,
    bytes: 400,
  },
  {
    what: 'a web page in place of a stream',
    fault: { ...ndjson, contentType: 'text/html', body: '<html><title>Sign in</title></html>' },
    error: /^ollama: POST \/api\/pull: http:\S+ did not answer like Ollama but with a web page titled "Sign in"/,
  },
  {
    what: 'a line that is a web page',
    fault: { ...ndjson, body: '<html><title>Oops</title></html>\n' },
    error: /^ollama: POST \/api\/pull: a line that is not a JSON object: /,
  },
  {
    what: 'a plain 404',
    fault: { ...ndjson, status: 404, contentType: 'text/plain', body: '404 page not found' },
    error: /^ollama: POST \/api\/pull: http:\S+ has no such endpoint; is this the root address of an Ollama server\?/,
  },
  {
    what: 'a failure of the server',
    fault: { ...ndjson, status: 500, body: '{"error":"open /models: permission denied"}' },
    error: 'ollama: open /models: permission denied (HTTP 500)',
  },
  { what: 'no answer at all', fault: { kind: 'drop', path: '/api/pull', nth: 1 }, error: /was lost before the answer/ },
];

for (const { what, registry = small, fault, error, bytes = 0 } of failures) {
  test(`${what} is a job that fails with a sentence, and the next pull succeeds`, inTime, async () => {
    await using world = await start([registry]);
    if (fault) world.ollama.fault(fault);
    const failed = await world.pullToTheEnd('small');
    const shown = await jobOf(world.server, failed.id);
    assert.equal(shown.phase, 'failed');
    if (typeof error === 'string') assert.equal(shown.error, error);
    else assert.match(shown.error, error);
    assert.ok(shown.bytesCompleted >= bytes);
    assert.ok(shown.percent < 100);
    assert.ok(shown.finishedAt);
    assert.deepEqual(world.ollama.models(), []);
    assert.equal((await world.server.send('GET models/small')).status, 404);

    const again = await world.pullToTheEnd('small');
    assert.deepEqual([again.phase, again.error], ['succeeded', undefined]);
    assert.notEqual(again.id, failed.id);
    assert.equal((await world.server.send('GET models/small')).status, 200);
  });
}

test(
  'a host that is killed in mid-pull is a job that failed where it was, and a new pull starts over',
  inTime,
  async () => {
    await using world = await start();
    const { job } = await world.pull('small');
    await world.clock.sleeping();
    await world.clock.advance(500);
    await jobWhen(world.gateway, job.id, ({ bytesCompleted }) => bytesCompleted >= 400);
    await world.ollama.stop();
    const { phase, error, bytesCompleted } = await jobEnd(world.gateway, job.id);
    assert.equal(phase, 'failed');
    assert.match(error ?? '', /was lost before the answer was complete/);
    assert.ok(bytesCompleted >= 400);
    const refused = await world.pullToTheEnd('small');
    assert.match(refused.error ?? '', /connection refused/);
    await world.ollama.start();
    assert.equal((await world.pullToTheEnd('small')).phase, 'succeeded');
  },
);

test('where a pull goes and what for shows on every face, as the backend decides', inTime, async () => {
  const driver = fakeDriver({ name: 'kserve', kind: 'kserve' });
  const end = Promise.withResolvers<void>();
  driver.script.pull = async function* (_call, { preset }) {
    yield { status: 'downloading', bytesCompleted: 1, bytesTotal: 2, node: 'n1', preset: preset ?? 'chosen' };
    await end.promise;
  };
  const gateway = testGateway({ drivers: [driver] });
  await using server = await serveRest({ gateway });
  for (const [asks, chosen] of [
    [{ model: 'a/b' }, 'chosen'],
    [{ model: 'a/c', preset: 'p', node: 'n7' }, 'p'],
  ] as const) {
    const { json } = await server.send('POST models/pull', asks);
    const { id, preset, node } = json.job;
    const given: { model: string; preset?: string; node?: string } = asks;
    assert.deepEqual([preset, node], [given.preset, given.node], 'what was asked for');
    await jobWhen(gateway, id, ({ status }) => status === 'downloading');
    for (const face of allFaces) {
      const job = await through(face, server.server, 'getJob', { id });
      assert.deepEqual([job.node, job.preset], ['n1', chosen], face);
    }
  }
  end.resolve();
});
