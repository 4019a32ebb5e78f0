import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { usedMemory } from '../support/memory.ts';
import { eventually, openSocket, openStream, startServer, type TestServer, turn } from '../support/server.ts';
import { assertExecutedOnce, createLab, type Thing, watchTexts } from './lab.ts';

const updates = 10_000;
/** A change is so large that a queue of all of them would be 100 MB, and so is the whole state. */
const filler = 'x'.repeat(10_000);
const thing = (update: number): Thing => ({ name: 'it', text: `${update} ${filler}` });

/** A stream that keeps nothing but what came last. */
async function skim(server: TestServer) {
  const req = request(server.graphqlUrl, {
    method: 'POST',
    agent: false,
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
  });
  req.on('error', () => {});
  req.end(JSON.stringify({ query: watchTexts }));
  const response = await new Promise<IncomingMessage>(resolve => req.once('response', resolve));
  response.on('error', () => {});
  let tail = '';
  response.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString('latin1')).slice(-12_000);
  });
  return {
    hasSeen: (update: number) => tail.includes(`"text":"${update} `),
    leave: () => void req.destroy(),
  };
}

test(`a paused stream and a paused socket, ${updates} updates: memory stays flat, nobody waits, and then they have the newest state`, async () => {
  const lab = createLab(thing(0));
  await using server = await startServer({ schema: lab.schema });
  const [stream, socket] = await Promise.all([
    openStream(server.graphqlUrl, { query: watchTexts }),
    openSocket(server.socketUrl),
  ]);
  socket.send({ id: '1', type: 'subscribe', payload: { query: watchTexts } });
  await stream.next('the first event');
  await socket.next('the first event');
  stream.pause();
  socket.raw.pause();
  const other = await skim(server);
  const live = await openSocket(server.socketUrl);
  let seenLive = '';
  live.raw.removeAllListeners('message');
  live.raw.on('message', (data: Buffer) => {
    seenLive = data.subarray(0, 200).toString();
  });
  live.send({ id: '1', type: 'subscribe', payload: { query: watchTexts } });

  const update = async (from: number, to: number) => {
    for (let number = from; number <= to; number++) {
      lab.set(thing(number));
      await turn();
    }
  };
  // The buffers of the system fill first, and the heap finds its size.
  await update(1, updates / 5);
  const before = await usedMemory();
  let most = before;
  for (let tenth = 2; tenth < 10; tenth++) {
    await update((tenth * updates) / 10 + 1, ((tenth + 1) * updates) / 10);
    const now = await usedMemory();
    most = { heap: Math.max(most.heap, now.heap), rss: Math.max(most.rss, now.rss) };
  }
  assert.ok(most.heap - before.heap < 20, `the heap grew from ${before.heap} to ${most.heap} MB`);
  assert.ok(most.rss - before.rss < 20, `the process grew from ${before.rss} to ${most.rss} MB`);

  await eventually(() => other.hasSeen(updates), 'the last update, for those who read');
  await eventually(() => seenLive.includes(`"text":"${updates} `), 'the last update on a socket that is read');
  assertExecutedOnce(lab);
  // Each event as what changed, and a few as the whole state for whoever fell behind.
  assert.ok(lab.counts.executions.size < updates * 1.5, `${lab.counts.executions.size} executions`);

  const isNewest = (event: { things: Thing[] }) => event.things[0]?.text?.startsWith(`${updates} `);
  // What had left for them comes first; then one event stands for thousands.
  const drain = async (next: () => Promise<{ snapshot: boolean; things: Thing[]; revision: number }>) => {
    let [events, revision, snapshots] = [0, 0, 0];
    for (;;) {
      const event = await next();
      events++;
      assert.ok(event.revision > revision);
      revision = event.revision;
      if (event.snapshot) snapshots++;
      if (!isNewest(event)) continue;
      assert.equal(event.snapshot, true, 'it is whole, whatever was missed');
      assert.deepEqual(event.things, [thing(updates)]);
      return { events, snapshots };
    }
  };
  stream.resume();
  const streamed = await drain(async () => (await stream.nextPayload()).data.things);
  socket.raw.resume();
  const received = await drain(async () => (await socket.next()).payload.data.things);
  for (const { events, snapshots } of [streamed, received]) {
    assert.ok(events < updates / 5, `${events} events were kept for it`);
    assert.ok(snapshots <= 2, 'only the last one is whole, and perhaps one before');
  }
  stream.leave();
  other.leave();
  for (const each of [socket, live]) each.raw.terminate();
});
