import { setTimeout as sleep } from 'node:timers/promises';
import { type Memory, startChild } from './child.ts';
import { Crowd, eventStream, type Protocol } from './crowd.ts';
import { compare, type Measure } from './measure.ts';
import type { Row } from './table.ts';

const subscriberCount = 50;
const changes = 30;
/** A subscriber is told of changes at most this often; they are further apart, in milliseconds. */
const pauseMs = 350;
/** Without a request for so many milliseconds, everything is read and watched. */
const quietMs = 3_000;

const query = `subscription { loadedModels(backend: "kserve") { snapshot items { name status message phase steps { name state } } } }`;

/** A watch of one object, as a client of the API server has it. */
function plainWatch(namespace: string, name: string): Protocol {
  const path = `/apis/serving.kserve.io/v1alpha2/namespaces/${namespace}/llminferenceservices`;
  const hello = `GET ${path}?watch=true&fieldSelector=metadata.name%3D${name} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  return {
    hello: Buffer.from(hello),
    create: () => bytes => bytes.toString('latin1').split('"type":"').length - 1,
  };
}

/** From a change of an object at the API server to the sockets of who follows what is served; the reference watches the object. */
export async function serving(): Promise<Row[]> {
  await using cluster = await startChild('cluster');
  await using gateway = await startChild('serving');
  const apiServer = await cluster.ask<string>('url');
  const port = await gateway.ask<number>('start', apiServer);
  using ours = new Crowd(port, eventStream(query));
  using plain = new Crowd(
    Number(new URL(apiServer).port),
    plainWatch(await cluster.ask<string>('namespace'), 'model-000'),
  );
  await ours.grow(subscriberCount);
  await plain.grow(subscriberCount);
  const reach =
    (crowd: Crowd): Measure =>
    async () => {
      await sleep(pauseMs);
      const began = performance.now();
      await Promise.all([crowd.next(), cluster.ask('change')]);
      // Both ways the gateway works for its own subscribers: what it costs is no difference.
      return { wall: performance.now() - began, cpu: Number.NaN };
    };
  // At first agents are told of every model.
  let before = -1;
  for (let now = 0; now !== before; now = await cluster.ask<number>('requests')) {
    before = await cluster.ask<number>('requests');
    await sleep(quietMs);
  }
  const { ours: our, reference, ratio } = await compare(reach(ours), reach(plain), changes);
  const asked = (await cluster.ask<number>('requests')) - before;
  if (asked > 0) throw new Error(`${asked} requests were made while everything is watched`);
  const { p99 } = await gateway.ask<{ readonly p99: number }>('delay');
  const { rss } = await gateway.ask<Memory>('memory');
  const alone = { reference: Number.NaN, ratio: undefined };
  return [
    {
      what: `one change of 300 served models to ${subscriberCount} subscribers over SSE`,
      unit: 'ms',
      ours: our.wall,
      reference: reference.wall,
      ratio: { wall: ratio.wall },
      goal: { figure: 'ours', most: 100 },
    },
    {
      what: 'event loop late meanwhile, at the 99th percentile',
      unit: 'ms',
      ours: p99,
      ...alone,
      goal: { figure: 'ours', most: 50 },
    },
    { what: 'memory with them', unit: 'MB', ours: rss / 1e6, ...alone, goal: { figure: 'ours', most: 200 } },
  ];
}
