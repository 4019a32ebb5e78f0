/** Watches of an emulated API server, with the real client over real sockets, in a time that a test lets pass. */
import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createCall } from '../../src/call.ts';
import { type ClusterOptions, startCluster } from '../../src/demo/cluster.ts';
import { realClock } from '../../src/demo/host/clock.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { type ConfigMap, configMaps } from '../../src/kubernetes/resource.ts';
import { createWatches } from '../../src/kubernetes/watches.ts';
import type { Source } from '../../src/live/source.ts';
import { watch } from '../../src/live/watch.ts';
import { start } from '../live/clock.ts';
import { silent } from '../support/gateway.ts';

export const seconds = 1_000;
export const minutes = 60 * seconds;

export const settings = (name: string, value: string): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value },
});

/** Milliseconds between moments. */
export const gaps = (moments: readonly number[]) =>
  moments.slice(1).map((at, place) => at - (moments[place] as number));

/** Lets everything happen that needs no time. */
async function settle() {
  for (let turns = 0; turns < 40; turns++) await turn();
}

// The HTTP client keeps one timer for ever: it is to be of the real time.
await using warm = await startCluster();
await createKubernetesClient(openServer(warm.url)).list(createCall({ log: silent }), configMaps, {});

export interface LabOptions extends ClusterOptions {
  /** By how much the cluster's clock is ahead of ours, in milliseconds. */
  readonly skewMs?: number;
  /** Whose token we have; without users none is needed. */
  readonly user?: string;
  readonly log?: Logger;
}

export async function startLab(t: TestContext, { skewMs = 0, user, log = silent, ...options }: LabOptions = {}) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: start });
  // For those who have imported a timer by its name.
  syncBuiltinESMExports();
  const clock = { ...realClock, now: () => Date.now() + skewMs };
  const cluster = await startCluster({ clock, objects: [settings('a', '1'), settings('b', '1')], ...options });
  const access = openServer(cluster.url);
  const headers = (): Record<string, string> => (user ? { authorization: `Bearer ${cluster.tokenOf(user)}` } : {});
  const client = createKubernetesClient({ ...access, identity: async () => ({ headers: headers() }) });
  const watches = createWatches({ client, log });
  const call = () => createCall({ log: silent });

  const endings: (() => unknown)[] = [];
  // All that runs has to end in the time that it began in: what is left would disturb the timers of the next test.
  t.after(async () => {
    for (const end of endings) await end();
    await cluster.close();
    await settle();
    t.mock.timers.reset();
    syncBuiltinESMExports();
  });

  return {
    cluster,
    client,
    watches,
    call,
    settle,
    /** Is called when the test is over. */
    atEnd: (end: () => unknown) => void endings.push(end),
    /** Lets time pass, a step at a time. */
    async pass(ms: number, stepMs = 250) {
      for (let passed = 0; passed < ms; passed += stepMs) {
        t.mock.timers.tick(Math.min(stepMs, ms - passed));
        await settle();
      }
    },
    /** Moments of the requests of a kind, on our clock. */
    asked: (verb: string, resource = 'configmaps') =>
      cluster.requests.filter(each => each.verb === verb && each.resource === resource).map(({ at }) => at - skewMs),
    /** Subscribes until the test is over. */
    subscribe<T>(source: Source<T>) {
      const states = watch(source);
      const seen: { readonly value: T | undefined; readonly error: string | undefined; readonly revision: number }[] =
        [];
      let ended = false;
      void (async () => {
        for await (const { value, error, revision } of states) seen.push({ value, error: error?.message, revision });
        ended = true;
      })();
      endings.push(() => states.return());
      return {
        seen,
        get last() {
          return seen.at(-1);
        },
        get ended() {
          return ended;
        },
      };
    },
  };
}

/** `a=1 b=2` */
export const valuesOf = (objects: readonly ConfigMap[] | undefined) =>
  objects?.map(({ metadata, data }) => `${metadata.name}=${data?.value}`).join(' ');
