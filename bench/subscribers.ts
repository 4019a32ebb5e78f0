import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, type Memory, startChild } from './child.ts';
import { Crowd, eventStream, type Protocol, plainSocket, webSocket } from './crowd.ts';
import { compare, type Measure } from './measure.ts';
import { type Row, rowOf } from './table.ts';

const changes = 15;
/** Jobs are news at most this often; changes are further apart, in milliseconds. */
const pauseMs = 300;

interface Way {
  readonly name: string;
  protocol(query: string): Protocol;
  /** Two numbers of subscribers: between them is measured what one more holds. */
  readonly sizes: readonly [few: number, many: number];
  readonly mostTime: number;
  readonly mostKiB: number;
}

const ways: readonly Way[] = [
  // The server takes no more than 1,024 WebSockets.
  { name: 'graphql-ws', protocol: webSocket, sizes: [500, 1_000], mostTime: 2.2, mostKiB: 35 },
  { name: 'SSE', protocol: eventStream, sizes: [1_000, 5_000], mostTime: 1.5, mostKiB: 16 },
];

/** One change on its way to many subscribers of the same question, and what one costs while nothing happens. */
export async function subscribers(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const way of ways) rows.push(...(await subscribersOf(way)));
  return rows;
}

async function subscribersOf({ name, protocol, sizes, mostTime, mostKiB }: Way): Promise<Row[]> {
  await using gateway = await startChild('gateway');
  await using reference = await startChild('reference');
  const query = await gateway.ask<string>('operation', 'watchJobs');
  using ours = new Crowd(await gateway.ask<number>('port'), protocol(query));
  const event = await oneEvent(gateway, ours);
  await reference.ask('message', event.toString('base64'));
  using plain = new Crowd(await reference.ask<number>('socketPort'), plainSocket(event.length));

  const rows: Row[] = [];
  const idle: { ours: Memory; reference: Memory }[] = [];
  for (const size of sizes) {
    await ours.grow(size);
    await plain.grow(size);
    const change = reach(gateway, ours, size);
    const paused: Measure = () => sleep(pauseMs).then(change);
    const found = await compare(paused, reach(reference, plain, size), changes);
    idle.push({ ours: await gateway.ask<Memory>('memory'), reference: await reference.ask<Memory>('memory') });
    rows.push(rowOf(`one change to ${size} over ${name}, for each`, found, { figure: 'cpu', most: mostTime }));
  }
  const [few, many] = idle as [(typeof idle)[0], (typeof idle)[0]];
  const kiB = (side: 'ours' | 'reference', figure: keyof Memory) =>
    (many[side][figure] - few[side][figure]) / 1024 / (sizes[1] - sizes[0]);
  rows.push({
    what: `memory of an idle subscriber over ${name}`,
    unit: 'KiB',
    ours: kiB('ours', 'rss'),
    reference: kiB('reference', 'rss'),
    ratio: undefined,
    goal: { figure: 'ours', most: mostKiB },
  });
  return rows;
}

/** The bytes of one event, as a first subscriber gets them. */
async function oneEvent(gateway: Child, crowd: Crowd): Promise<Buffer> {
  await crowd.grow(1);
  await Promise.all([crowd.next(), gateway.ask('change')]);
  return crowd.newest;
}

/** What a change costs for each who is told: until all of them have it. */
function reach(server: Child, crowd: Crowd, size: number): Measure {
  return async () => {
    const cpuBefore = await server.cpu();
    const began = performance.now();
    await Promise.all([crowd.next(), server.ask('change')]);
    const wall = ((performance.now() - began) * 1000) / size;
    return { wall, cpu: ((await server.cpu()) - cpuBefore) / size };
  };
}
