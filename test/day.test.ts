/** One day on three hosts, lived through each face in turn: all faces, and who watches, say the same of every hour of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allFaces, type Face, type Facts, factsOf, keeper, through, watching } from './support/facts.ts';
import { type Hosts, startHosts } from './support/hosts.ts';
import { jobEnd, jobWhen } from './support/jobs.ts';
import { openStream, send, startServer } from './support/server.ts';

const GiB = 2 ** 30;
const timings = { tickMs: 100 };
const minute = 60_000;
const onDisk = { loaded: false, expiresAt: null, pinned: false };

/** What differs from host to host. */
const hosts = [
  { backend: 'ollama', model: 'small:1b', keepAlive: '10m' },
  { backend: 'lemonade', model: 'Small-GGUF', keepAlive: '-1' },
  { backend: 'lmstudio', model: 'acme/small', keepAlive: '10m' },
] as const;

const start = () =>
  startHosts({
    ollama: { timings, registry: [{ name: 'small:1b', layers: [{ bytes: GiB }], pullMs: 1_000 }] },
    lemonade: {
      timings,
      registry: [{ name: 'Small-GGUF', files: [{ name: 'small.gguf', bytes: GiB }], pullMs: 1_000 }],
    },
    lmstudio: { registry: [{ name: 'acme/small', bytes: GiB, pullMs: 1_000 }] },
  });

/** Somebody chats with every model, at its host. */
async function chat({ ollama, lemonade, lmstudio }: Hosts) {
  const messages = [{ role: 'user', content: 'hello' }];
  const chats = [
    send(`${ollama.url}/api/chat`, { model: 'small:1b', messages, stream: false }),
    send(`${lemonade.url}/api/v1/chat/completions`, { model: 'Small-GGUF', messages }),
    send(`${lmstudio.url}/v1/chat/completions`, { model: 'acme/small', messages }),
  ];
  for (const { status, text } of await Promise.all(chats)) assert.equal(status, 200, text);
}

for (const face of allFaces) {
  test(`a day on three hosts through ${face}`, { timeout: 30_000 }, async () => {
    await using world = await start();
    const { clock, gateway } = world;
    await using server = await startServer({ gateway });
    const watchers = [
      keeper(await openStream(server.graphqlUrl, { query: watching.models }), 'models'),
      keeper(await openStream(server.graphqlUrl, { query: watching.jobs }), 'jobs'),
    ];

    const act = (operation: string, asksOf: (host: (typeof hosts)[number]) => object) =>
      Promise.all(hosts.map(host => through(face, server, operation, { backend: host.backend, ...asksOf(host) })));

    /** What every face and everybody who watches says by now: the same. */
    async function facts(): Promise<Facts> {
      world.lookAgain();
      const [first, ...others] = await Promise.all(allFaces.map((each: Face) => factsOf(each, server)));
      for (const other of others) assert.deepEqual(other, first);
      for (const watcher of watchers) await watcher.until(first as Facts);
      return first as Facts;
    }
    const running = async () => (await facts()).models.map(({ loaded }) => loaded);

    assert.deepEqual(await facts(), { models: [], jobs: [] });

    // Morning: everything is pulled.
    const pulls = await act('pullModel', ({ model }) => ({ model }));
    const ids: string[] = pulls.map(({ job }) => job.id);
    await world.lmstudio.requested('/api/v1/models/download');
    await clock.sleeping(2);
    await clock.advance(500);
    // Lemonade's many events are passed on a few times a second.
    const halfway = { ollama: 0.5 * GiB, lemonade: 0.3 * GiB, lmstudio: 0.5 * GiB } as const;
    for (const [place, { backend }] of hosts.entries())
      await jobWhen(gateway, ids[place] ?? '', ({ bytesCompleted }) => bytesCompleted >= Math.floor(halfway[backend]));
    for (const job of (await facts()).jobs) {
      assert.equal(job.phase, 'running', job.model);
      assert.ok(job.percent >= 30 && job.percent <= 50, `${job.model} is at ${job.percent} %`);
      assert.equal(job.bytesTotal, GiB, job.model);
    }
    await clock.advance(1_000);
    for (const id of ids) await jobEnd(gateway, id);
    const pulled = await facts();
    assert.deepEqual(
      pulled.jobs.map(({ phase, bytesCompleted, percent }) => [phase, bytesCompleted, percent]),
      hosts.map(() => ['succeeded', GiB, 100]),
    );
    assert.deepEqual(pulled.models, [
      // Lemonade lists whole GiB as if they were GB.
      { model: 'lemonade/Small-GGUF', sizeBytes: 1e9, ...onDisk },
      { model: 'lmstudio/acme/small', sizeBytes: GiB, ...onDisk },
      { model: 'ollama/small:1b', sizeBytes: GiB, ...onDisk },
    ]);

    // Noon: everything is loaded, and asked for once more.
    for (let round = 0; round < 2; round++) {
      for (const model of await act('loadModel', ({ model, keepAlive }) => ({ model, keepAlive })))
        assert.equal(model.loaded, true, JSON.stringify(model));
    }
    const loaded = await facts();
    const leavesAt = (ms: number) => new Date(clock.now() + ms).toISOString();
    assert.deepEqual(
      loaded.models.map(({ model, expiresAt, pinned }) => [model, expiresAt && Date.parse(expiresAt), pinned]),
      [
        ['lemonade/Small-GGUF', null, true],
        ['lmstudio/acme/small', null, false],
        ['ollama/small:1b', Date.parse(leavesAt(10 * minute)), false],
      ],
    );
    assert.equal(world.lmstudio.loaded().length, 1, 'LM Studio has one copy, however often it was loaded');

    // Afternoon: who is used stays longer.
    await clock.advance(4 * minute);
    await chat(world);
    const used = await facts();
    const expiries = used.models.map(({ expiresAt }) => expiresAt && Date.parse(expiresAt) - clock.now());
    assert.deepEqual(expiries.slice(0, 2), [null, null]);
    assert.ok(Number(expiries[2]) > 4 * minute, `it stays for ${expiries[2]} ms more`);
    assert.notEqual(used.models[2]?.expiresAt, loaded.models[2]?.expiresAt);
    assert.equal(world.lmstudio.loaded().length, 1);

    // Evening: everything is unloaded; then loaded once more, and all hosts restart.
    for (const { loaded } of await act('unloadModel', ({ model }) => ({ model }))) assert.equal(loaded, false);
    assert.deepEqual(await running(), [false, false, false]);
    await act('loadModel', ({ model, keepAlive }) => ({ model, keepAlive }));
    assert.deepEqual(await running(), [true, true, true]);
    await Promise.all([world.ollama.restart(), world.lemonade.restart(), world.lmstudio.restart()]);
    const restarted = await facts();
    assert.deepEqual(restarted.models, pulled.models);
    assert.deepEqual(restarted.jobs, pulled.jobs);

    // Night: everything is deleted where that can be done.
    const [ofOllama, ofLemonade, ofLmstudio] = await act('deleteModel', ({ model }) => ({ model }));
    assert.deepEqual([ofOllama.deleted, ofLemonade.deleted], [true, true]);
    assert.match(ofLmstudio, /^unsupported: /);
    const last = await facts();
    assert.deepEqual(
      last.models.map(({ model }) => model),
      ['lmstudio/acme/small'],
    );
    assert.deepEqual(last.jobs, pulled.jobs);
  });
}
