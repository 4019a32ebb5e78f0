/** Chaos cases 15, 18, 20 and 21: hosts that die, hang, are something else, or become another version of themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allFaces, through } from '../support/facts.ts';
import { type Hosts, startHosts } from '../support/hosts.ts';
import { jobEnd, jobWhen } from '../support/jobs.ts';
import { pullToTheEnd } from '../support/pulling.ts';
import { openStream, startServer, textOf, within } from '../support/server.ts';

const inTime = { timeout: 30_000 };
const backends = ['ollama', 'lemonade', 'lmstudio'] as const;
type Backend = (typeof backends)[number];
const modelOf = { ollama: 'small:1b', lemonade: 'Small-GGUF', lmstudio: 'acme/small' } as const;
const others = (backend: Backend) => backends.filter(each => each !== backend);

type Row = { readonly backend: string; readonly name: string };
const namesOf = (rows: readonly Row[]) => rows.map(({ backend, name }) => `${backend}/${name}`).toSorted();
const everyModel = (of: readonly Backend[]) => of.map(backend => `${backend}/${modelOf[backend]}`).toSorted();

/** Hosts that have a model each. */
const startFull = (lookMs?: number): Promise<Hosts> =>
  startHosts({
    ollama: {
      models: [{ name: modelOf.ollama, bytes: 1000, capabilities: ['completion', 'tools'], contextLength: 4096 }],
    },
    lemonade: { models: [{ name: modelOf.lemonade, bytes: 1e9 }] },
    lmstudio: { models: [{ name: modelOf.lmstudio, bytes: 1000 }] },
    ...(lookMs && { lookMs }),
  });

const timings = { tickMs: 100 };
for (const backend of backends) {
  test(
    `chaos 15: ${backend} is killed in mid-pull: the job failed where it was, and a new pull gets there`,
    inTime,
    async () => {
      await using world = await startHosts({
        ollama: { timings, registry: [{ name: modelOf.ollama, layers: [{ bytes: 1000 }], pullMs: 1_000 }] },
        lemonade: {
          timings,
          registry: [{ name: modelOf.lemonade, files: [{ name: 'a.gguf', bytes: 1000 }], pullMs: 1_000 }],
        },
        lmstudio: { registry: [{ name: modelOf.lmstudio, bytes: 1000, pullMs: 1_000 }] },
      });
      await using server = await startServer({ gateway: world.gateway });
      const model = modelOf[backend];
      const { job } = await through('REST', server, 'pullModel', { backend, model });
      if (backend === 'lmstudio') await world.lmstudio.requested('/api/v1/models/download');
      else await world.clock.sleeping();
      await world.clock.advance(500);
      const { bytesCompleted } = await jobWhen(world.gateway, job.id, each => each.bytesCompleted >= 300);

      await world[backend].restart();
      const failed = await jobEnd(world.gateway, job.id);
      assert.equal(failed.phase, 'failed');
      assert.ok(failed.error, 'it says why');
      assert.ok(
        failed.bytesCompleted >= bytesCompleted && failed.bytesCompleted < 1000,
        `${failed.bytesCompleted} bytes`,
      );
      assert.match(await through('REST', server, 'getModel', { backend, model }), /^not_found/);

      // What the host has kept is not downloaded again.
      const kept = backend === 'lemonade' ? [...world.lemonade.partials().values()][0] : 0;
      if (backend === 'lemonade') assert.ok(kept && kept >= bytesCompleted);
      const began = world.clock.now();
      const again = await pullToTheEnd(world, server, backend, model);
      assert.deepEqual([again.phase, again.bytesCompleted], ['succeeded', 1000]);
      if (kept) assert.ok(world.clock.now() - began < 1_000, 'it went on where it was');
      assert.equal((await through('REST', server, 'getModel', { backend, model })).name, model);
    },
  );
}

const healthPathsOf = {
  ollama: ['/api/tags', '/api/ps', '/api/version', '/'],
  lemonade: ['/api/v1/health', '/api/v1/models', '/api/v1/system-info'],
  lmstudio: ['/api/v1/models'],
} as const;

for (const backend of backends) {
  test(
    `chaos 18: ${backend} takes requests and never answers: the others are there in time, and it is unhealthy`,
    inTime,
    async () => {
      await using world = await startFull(3_000);
      await using server = await startServer({ gateway: world.gateway });
      for (const path of healthPathsOf[backend]) world[backend].fault({ kind: 'hang', path });
      for (const face of allFaces) {
        const asked = Promise.all([through(face, server, 'listModels'), through(face, server, 'listBackends')]);
        const [list, status] = await within(asked, `the answers of ${face}`, 8_000);
        assert.deepEqual(namesOf(list.models), everyModel(others(backend)), face);
        const errors = Array.isArray(list.errors)
          ? list.errors.map((each: Row) => each.backend)
          : Object.keys(list.errors);
        assert.deepEqual(errors, [backend], face);
        for (const { backend: name, healthy, message } of status.backends) {
          assert.equal(healthy, name !== backend, `${face}: ${name}: ${message}`);
          if (!healthy) assert.match(message, /answer/);
        }
      }
      const alone = await within(through('MCP', server, 'listModels', { backend }), 'its own refusal', 9_000);
      assert.match(alone, /^backend_error: /);
    },
  );
}

for (const [what, answer] of [
  ['a web page', { contentType: 'text/html', body: '<html><title>Sign in</title></html>' }],
  ['an error in a 200', { body: '{"error":"no such thing"}' }],
] as const) {
  for (const backend of backends) {
    test(
      `chaos 20: in place of ${backend} something answers ${what}: it is not taken for ${backend}`,
      inTime,
      async () => {
        await using world = await startFull();
        await using server = await startServer({ gateway: world.gateway });
        const clear = healthPathsOf[backend].map(path => world[backend].fault({ kind: 'answer', path, ...answer }));
        const list = await through('REST', server, 'listModels');
        assert.deepEqual(namesOf(list.models), everyModel(others(backend)));
        assert.deepEqual(Object.keys(list.errors), [backend]);
        for (const face of allFaces) {
          const { healthy, message } = await through(face, server, 'getBackend', { backend });
          assert.equal(healthy, false, face);
          assert.match(message, /Sign in|no such thing/, 'it says what was found');
          const refusal = await through(face, server, 'loadModel', { backend, model: modelOf[backend] });
          assert.match(refusal, /^backend_error: /, face);
        }
        for (const each of clear) each();
        world.lookAgain();
        assert.equal((await through('REST', server, 'getBackend', { backend })).healthy, true);
        assert.deepEqual(namesOf((await through('REST', server, 'listModels')).models), everyModel(backends));
      },
    );
  }
}

/** From today's version to ones without fields and routes, and back. */
const versionsOf = {
  ollama: ['0.33.0', '0.20.0', '0.6.0', '0.3.0', '0.1.30', '0.33.0'],
  lemonade: ['11.7.0', '10.3.0', '9.1.0', '8.1.0', '11.7.0'],
  lmstudio: ['0.4.20', '0.4.0', '0.3.39', '0.4.20'],
} as const;

for (const backend of backends) {
  test(
    `chaos 21: ${backend} becomes older and newer while it is watched: rows have less in them, and nothing breaks`,
    inTime,
    async () => {
      await using world = await startFull();
      await using server = await startServer({ gateway: world.gateway });
      const stream = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
      await stream.nextPayload('the whole state');
      for (const version of versionsOf[backend]) {
        await world[backend].stop();
        await world[backend].start(version);
        world.lookAgain();
        const tooOld = backend === 'lmstudio' && version === '0.3.39';
        const list = await through('REST', server, 'listModels');
        assert.deepEqual(namesOf(list.models), everyModel(tooOld ? others(backend) : backends), version);
        const { healthy, message } = await through('MCP', server, 'getBackend', { backend });
        assert.equal(healthy, !tooOld, `${version}: ${message}`);
        for (const operation of ['listLoaded', 'listNodes'])
          for (const face of allFaces) assert.equal(typeof (await through(face, server, operation)), 'object', version);
      }
      const { models } = await through('REST', server, 'listModels');
      assert.equal(models.length, 3);
      for (const { data } of stream.unread) assert.doesNotMatch(data ?? '', /internal_error/);
      assert.deepEqual(
        server.logged.filter(line => JSON.parse(line).level >= 50),
        [],
        'nothing unexpected is in the log',
      );
      stream.leave();
    },
  );
}
