/** F9, F10 and F15: subscribers that leave, that do not read, and that hear nothing for long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, fetch } from 'undici';
import { createLab, watchTexts } from '../http/lab.ts';
import { callOf } from '../support/backends.ts';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { jobWhen } from '../support/jobs.ts';
import {
  eventually,
  openSocket,
  openStream,
  send,
  startServer,
  type TestServer,
  textOf,
  turn,
  within,
} from '../support/server.ts';

const inTime = { timeout: 30_000 };
const quiet = ['watchModels', 'watchLoaded', 'watchBackends', 'watchJobs'] as const;

/** Subscribes over either transport; resolves when the first event is there, to how to vanish. */
const transports: readonly [string, (server: TestServer, query: string) => Promise<() => void>][] = [
  [
    'a socket',
    async (server, query) => {
      const socket = await openSocket(server.socketUrl);
      socket.send({ id: '1', type: 'subscribe', payload: { query } });
      await socket.next('the first event');
      return () => socket.raw.terminate();
    },
  ],
  [
    'a stream',
    async (server, query) => {
      const stream = await openStream(server.graphqlUrl, { query });
      await stream.next('the first event');
      return stream.leave;
    },
  ],
];

for (const [what, subscribe] of transports) {
  test(
    `F9: who vanishes from ${what} while nothing happens is let go before anything else happens, and so is the watch`,
    inTime,
    async () => {
      const driver = fakeDriver({ models: ['a'] });
      await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
      const vanish = await Promise.all(quiet.map(name => subscribe(server, textOf(name))));
      assert.equal(server.counts.members, quiet.length);
      for (const each of vanish) each();
      // The next sign of life of a stream, which would find out as well, is 15 s away.
      await eventually(() => server.counts.members === 0, 'the end of every subscription', 8_000);
      // What is outdated would be looked at again at once by whoever watches it.
      const looks = driver.asked.length;
      server.gateway.registry.backends[0]?.changed();
      // Its timer would be up before this one.
      await new Promise(resolve => setTimeout(resolve, 0));
      assert.equal(driver.asked.length, looks, 'nobody looks any more');
    },
  );

  test(`F9: a look that is under way for who vanishes from ${what} is given up`, inTime, async () => {
    const driver = fakeDriver({ models: ['a'] });
    await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
    const vanish = await subscribe(server, textOf('watchLoaded'));
    const hanging = hang();
    driver.script.loaded = hanging.answer;
    server.gateway.registry.backends[0]?.changed();
    await within(hanging.reached, 'the look');
    vanish();
    await within(hanging.aborted, 'the end of the look', 8_000);
  });
}

test(
  'F10: 5,000 updates while one socket is stuck: the others have them all, and it has the newest when it reads again',
  inTime,
  async () => {
    const lab = createLab({ name: '0' });
    const filler = 'x'.repeat(20_000);
    await using server = await startServer({ schema: lab.schema });
    const watcher = async () => {
      const socket = await openSocket(server.socketUrl);
      socket.send({ id: '1', type: 'subscribe', payload: { query: watchTexts } });
      const next = async (): Promise<number> => {
        const { things } = (await socket.next('an event')).payload.data.things;
        return Number(things[0].name);
      };
      assert.equal(await next(), 0);
      return { socket, next };
    };
    const [stuck, other] = await Promise.all([watcher(), watcher()]);
    stuck.socket.raw.pause();
    const last = 5_000;
    let seen = 0;
    const reading = (async () => {
      while (seen < last) seen = await other.next();
    })();
    for (let update = 1; update <= last; update++) {
      lab.set({ name: String(update), text: filler });
      if (update % 10 === 0) await turn();
    }
    await within(reading, 'the newest state for who reads', 30_000);
    stuck.socket.raw.resume();
    let events = 0;
    for (let state = 0; state < last; events++) state = await stuck.next();
    assert.ok(events < last / 10, `${events} events were kept for the one that did not read`);
    assert.equal((await send(`${server.url}/healthz`)).text, 'ok');
  },
);

test(
  'F15: clients that end a silent answer keep every kind of stream, as long as the server says something',
  inTime,
  async t => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const driver = fakeDriver({ models: ['a'] });
    driver.script.pull = async function* ({ signal }) {
      yield { status: 'downloading', bytesCompleted: 1, bytesTotal: 2 };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const gateway = testGateway({ drivers: [driver] });
    await using server = await startServer({ gateway });
    const { json } = await send(`${server.url}/api/v1/models/pull`, { model: 'b' });
    await jobWhen(gateway, json.job.id, ({ bytesCompleted }) => bytesCompleted === 1);

    const bodyTimeout = 1_000;
    const dispatcher = new Agent({ bodyTimeout });
    const open = async (name: string, variables = {}) => {
      const { body } = await fetch(server.graphqlUrl, {
        method: 'POST',
        headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
        body: JSON.stringify({ query: textOf(name), variables }),
        dispatcher,
      });
      assert.ok(body);
      return body.getReader();
    };
    const drain = async (stream: Awaited<ReturnType<typeof open>>) => {
      while (!(await stream.read()).done);
    };
    const streams = await Promise.all([...quiet.map(name => open(name)), open('watchJob', { id: json.job.id })]);

    // 330 s of its clock, more than a timeout of the client's.
    const began = performance.now();
    const beating = setTimeout(() => {
      t.mock.timers.tick(15_000);
      beating.refresh();
    }, 100);
    try {
      await Promise.all(
        streams.map(async stream => {
          let comments = 0;
          while (comments < 22) {
            const { done, value } = await within(stream.read(), 'something to read');
            assert.equal(done, false, 'the stream goes on');
            comments += String(Buffer.from(value ?? []))
              .split('\n\n')
              .filter(part => part === ':').length;
          }
        }),
      );
    } finally {
      clearTimeout(beating);
    }
    assert.ok(performance.now() - began > bodyTimeout, 'the client would have ended them');

    // Without the comments it does.
    const ends = await within(Promise.allSettled(streams.map(drain)), 'the end of the silent streams');
    assert.deepEqual(
      ends.map(end => end.status === 'rejected' && end.reason.cause?.code),
      streams.map(() => 'UND_ERR_BODY_TIMEOUT'),
    );
    await gateway.jobs.cancel(callOf(), json.job.id);
    await dispatcher.close();
  },
);
