/** A reflector over an API server that exists in memory only, and does what a test tells it. */
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { type Call, createCall } from '../../src/call.ts';
import { GatewayError } from '../../src/errors.ts';
import type { KubernetesClient, ObjectList, Selection, WatchEvent, WatchOptions } from '../../src/kubernetes/client.ts';
import { createReflector, type ReflectorOptions } from '../../src/kubernetes/reflector.ts';
import { type ConfigMap, configMaps, type Resource } from '../../src/kubernetes/resource.ts';
import { mockTime, settled, start } from '../live/clock.ts';
import { silent } from '../support/gateway.ts';

export const seconds = 1_000;
export const minutes = 60 * seconds;

/** Milliseconds between moments. */
export const gaps = (moments: readonly number[]) =>
  moments.slice(1).map((at, place) => at - (moments[place] as number));

/** An object; `version` is its resource version. */
export const config = (name: string, version: number, uid = `uid-${name}`, namespace = 'kagent'): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, uid, resourceVersion: String(version) },
});

export const added = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: 'ADDED', object });
export const modified = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: 'MODIFIED', object });
export const deleted = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: 'DELETED', object });
export const bookmark = (version: number): WatchEvent<ConfigMap> => ({
  type: 'BOOKMARK',
  resourceVersion: String(version),
});

export const expired = () =>
  new GatewayError('backend_error', 'too old resource version', { details: { reason: 'Expired' } });
export const refused = () => new GatewayError('unavailable', 'connection refused');
export const reset = () => new GatewayError('unavailable', 'connection lost (ECONNRESET)');
export const putOff = (retryAfterMs: number) =>
  new GatewayError('rate_limited', 'too many requests', { details: { retryAfterMs } });
export const forbidden = (verb: string) =>
  new GatewayError('forbidden', `cannot ${verb} configmaps in namespace kagent`);

/** One watch, as the server sees it. */
export interface ServedWatch {
  readonly call: Call;
  readonly options: WatchOptions;
  readonly at: number;
  /** Whether the client is still there. */
  readonly isOpen: boolean;
  send(...events: WatchEvent<ConfigMap>[]): void;
  end(): void;
  fail(error: unknown): void;
}

export interface ScriptedServer extends Pick<KubernetesClient, 'list' | 'watch'> {
  /** What is in the cluster. */
  objects: ConfigMap[];
  version: number;
  /** What the next requests do; may throw, or hang. Lists do not care whether anybody still waits. */
  onList: (call: Call) => void | Promise<void>;
  onWatch: (watch: ServedWatch) => void;
  /** When there were lists, in milliseconds since the epoch. */
  readonly lists: number[];
  readonly watches: ServedWatch[];
  readonly calls: Call[];
  readonly resources: Resource[];
  readonly selections: Selection[];
  /** Watches whose client is still there. */
  readonly open: readonly ServedWatch[];
}

export function scriptedServer(): ScriptedServer {
  const server: ScriptedServer = {
    objects: [config('a', 1), config('b', 2)],
    version: 10,
    onList: () => {},
    onWatch: () => {},
    lists: [],
    watches: [],
    calls: [],
    resources: [],
    selections: [],
    get open() {
      return server.watches.filter(watch => watch.isOpen);
    },
    async list<T>(call: Call, resource: Resource, selection: Selection) {
      server.lists.push(Date.now());
      server.calls.push(call);
      server.resources.push(resource);
      server.selections.push(selection);
      await server.onList(call);
      const list: ObjectList<ConfigMap> = { items: [...server.objects], resourceVersion: String(server.version) };
      return list as unknown as ObjectList<T>;
    },
    watch<T>(call: Call, _resource: Resource, _selection: Selection, options: WatchOptions) {
      server.calls.push(call);
      return serve(call, options, watch => {
        server.watches.push(watch);
        server.onWatch(watch);
      }) as AsyncIterable<WatchEvent<unknown>> as AsyncIterable<WatchEvent<T>>;
    },
  };
  return server;
}

/** A watch that brings what `begun` sends over it. */
async function* serve(call: Call, options: WatchOptions, begun: (watch: ServedWatch) => void) {
  const events: WatchEvent<ConfigMap>[] = [];
  let ending: (() => void) | undefined;
  let isOpen = true;
  let news = Promise.withResolvers<void>();
  const tell = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  const finish = (how: () => void) => {
    isOpen = false;
    ending ??= how;
    tell();
  };
  call.signal.addEventListener('abort', () =>
    finish(() => {
      throw call.signal.reason;
    }),
  );
  begun({
    call,
    options,
    at: Date.now(),
    get isOpen() {
      return isOpen;
    },
    send(...more) {
      events.push(...more);
      tell();
    },
    end: () => finish(() => {}),
    fail: error =>
      finish(() => {
        throw error;
      }),
  });
  for (;;) {
    const event = events.shift();
    if (event) yield event;
    else if (ending) return ending();
    else await news.promise;
  }
}

/** Lines of a log as objects. */
export function logLines() {
  const lines: { level: string; msg: string; resource?: string; namespace?: string }[] = [];
  const log = pino(
    { level: 'info', base: null, timestamp: false, formatters: { level: level => ({ level }) } },
    { write: (line: string) => lines.push(JSON.parse(line)) },
  );
  return { log, lines };
}

export function reflecting(t: TestContext, options: Partial<ReflectorOptions<ConfigMap>> = {}) {
  const time = mockTime(t);
  t.mock.method(Math, 'random', () => 0.5);
  const server = scriptedServer();
  const reflector = createReflector<ConfigMap>({
    client: server,
    resource: { name: 'configmaps', locate: async () => configMaps },
    selection: { namespace: 'kagent' },
    callFor: signal => createCall({ log: silent, signal }),
    log: silent,
    ...options,
  });
  return {
    server,
    reflector,
    time: {
      ...time,
      /** Passes in small steps, so that what one timer sets off can set the next. */
      async passSlowly(ms: number, stepMs = 100) {
        for (let passed = 0; passed < ms; passed += stepMs) await time.pass(Math.min(stepMs, ms - passed));
      },
    },
    /** Listens until the test is over. */
    async listen(listener = () => {}) {
      const leave = reflector.subscribe(listener);
      t.after(leave);
      await settled();
      return leave;
    },
    names: () => reflector.current?.value?.map(({ metadata }) => metadata.name),
    /** Seconds since the test began. */
    since: (at: number) => (at - start) / seconds,
  };
}
