/** What ends subscription servers elsewhere, one test each: ours goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import {
  eventually,
  openSocket,
  openStream,
  send,
  startServer,
  type TestServer,
  textOf,
  turn,
} from '../support/server.ts';
import { createLab, watchThings } from './lab.ts';

/** Somebody who watches, over either transport: how to get the next payload, and how to leave without a word. */
interface Watcher {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  next(): Promise<any>;
  pause(): void;
  resume(): void;
  vanish(): void;
}

const transports: Array<[string, (server: TestServer, query?: string) => Promise<Watcher>]> = [
  [
    'a stream',
    async (server, query = watchThings) => {
      const stream = await openStream(server.graphqlUrl, { query });
      const { pause, resume, leave, nextPayload } = stream;
      return { next: nextPayload, pause, resume, vanish: leave };
    },
  ],
  [
    'a socket',
    async (server, query = watchThings) => {
      const socket = await openSocket(server.socketUrl);
      socket.send({ id: '1', type: 'subscribe', payload: { query } });
      return {
        next: async () => (await socket.next()).payload,
        pause: () => socket.raw.pause(),
        resume: () => socket.raw.resume(),
        vanish: () => socket.raw.terminate(),
      };
    },
  ],
];

for (const [what, watch] of transports) {
  test(`a queue that overflows while ${what} is stuck: 5,000 updates in one go end nothing`, async () => {
    const lab = createLab({ name: 'a' });
    await using server = await startServer({ schema: lab.schema });
    const [stuck, other] = await Promise.all([watch(server), watch(server)]);
    await Promise.all([stuck.next(), other.next()]);
    stuck.pause();
    for (let update = 1; update <= 5_000; update++) lab.set({ name: `b${update}` });
    for (;;) {
      const { things } = (await other.next()).data;
      if (things.things[0]?.name === 'b5000') break;
    }
    stuck.resume();
    for (;;) {
      const { things } = (await stuck.next()).data;
      if (things.things[0]?.name === 'b5000') break;
    }
    assert.equal((await send(`${server.url}/healthz`)).text, 'ok');
  });

  test(`a generator that never ends: who leaves ${what} that is quiet is let go within a second`, async () => {
    const lab = createLab();
    await using server = await startServer({ schema: lab.schema });
    const watcher = await watch(server);
    await watcher.next();
    assert.equal(lab.counts.listening, 1);
    assert.equal(server.counts.members, 1);
    watcher.vanish();
    await eventually(() => server.counts.members === 0, 'no member left', 1_000);
    assert.equal(lab.counts.listening, 0, 'nothing is watched for nobody');
  });

  test(`an error in one event: it is in that event, and ${what} goes on`, async () => {
    const lab = createLab({ name: 'a' });
    await using server = await startServer({ schema: lab.schema });
    const watcher = await watch(server);
    assert.equal((await watcher.next()).errors, undefined);

    lab.set({ name: 'a' }, { name: 'b', broken: new Error('a bug at /srv/app/secret.ts') });
    const broken = await watcher.next();
    assert.deepEqual(broken.data.things.things, [{ name: null }]);
    assert.deepEqual(broken.errors[0].path, ['things', 'things', 0, 'name']);
    assert.equal(broken.errors[0].extensions.code, 'internal_error');
    assert.doesNotMatch(JSON.stringify(broken), /secret/);
    const [, id] = /request (\S+)$/.exec(broken.errors[0].message) ?? [];
    assert.ok(server.logged.some(line => line.includes(id as string) && line.includes('a bug at')));

    lab.set({ name: 'a' }, { name: 'c', broken: new GatewayError('unavailable', 'backend unavailable: no route') });
    const known = await watcher.next();
    assert.equal(known.errors[0].message, 'backend unavailable: no route');
    assert.deepEqual(known.errors[0].extensions, { code: 'unavailable', http: { status: 503 } });

    lab.set({ name: 'a' }, { name: 'd' });
    const fine = await watcher.next();
    assert.equal(fine.errors, undefined);
    assert.deepEqual(fine.data.things.things, [{ name: 'd' }]);
  });

  test(`events of one subscription in ${what} of another: there are none`, async () => {
    const drivers = [fakeDriver({ name: 'one', models: ['a'] }), fakeDriver({ name: 'two', models: ['b'] })];
    const gateway = testGateway({ drivers });
    await using server = await startServer({ gateway });
    const queryOf = (backend: string) => `subscription { models(backend: "${backend}") { items { backendName } } }`;
    const [one, two] = [await watch(server, queryOf('one')), await watch(server, queryOf('two'))];
    for (let round = 0; round < 5; round++) {
      for (const [watcher, name] of [
        [one, 'one'],
        [two, 'two'],
      ] as const) {
        const { models } = (await watcher.next()).data;
        assert.deepEqual(models.items, [{ backendName: name }]);
      }
      for (const [index, driver] of drivers.entries()) {
        driver.world.models = [{ backend: driver.name, name: 'a', sizeBytes: round }];
        gateway.registry.backends[index]?.changed();
      }
    }
  });
}

test('a warning of too many listeners: a hundred subscribers make none', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  await using server = await startServer();
  const socket = await openSocket(server.socketUrl);
  for (let id = 0; id < 60; id++) {
    socket.send({ id: String(id), type: 'subscribe', payload: { query: textOf('watchModels') } });
    await socket.next();
  }
  const streams = await Promise.all(
    Array.from({ length: 40 }, () => openStream(server.graphqlUrl, { query: textOf('watchModels') })),
  );
  await turn();
  process.off('warning', note);
  assert.deepEqual(warnings, []);
  for (const stream of streams) stream.leave();
});

test('a source that breaks: a socket is told by an error, a stream is cut, neither is told that it is complete', async () => {
  const lab = createLab({ name: 'a' });
  await using server = await startServer({ schema: lab.schema });
  const stream = await openStream(server.graphqlUrl, { query: watchThings });
  const socket = await openSocket(server.socketUrl);
  socket.send({ id: '1', type: 'subscribe', payload: { query: watchThings } });
  await Promise.all([stream.next(), socket.next()]);
  lab.breakEvents(new Error('out of order'));
  const told = await socket.next();
  assert.deepEqual([told.type, told.payload[0].extensions.code], ['error', 'internal_error']);
  await stream.ended;
  assert.deepEqual(stream.unread, []);
  assert.ok(server.logged.some(line => line.includes('out of order')));
  assert.equal((await send(`${server.url}/healthz`)).text, 'ok');
});
