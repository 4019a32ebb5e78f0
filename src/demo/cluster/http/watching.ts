import type { Clock } from '../../host/clock.ts';
import type { Reply } from '../../host/reply.ts';
import { StatusError } from '../status.ts';
import { apiVersionOf, type Kind, resourceOf, tableOf } from '../store/kinds.ts';
import type { KubernetesObject } from '../store/object.ts';
import type { Change, Store } from '../store/store.ts';
import { shown } from '../store/views.ts';
import { selection, type Test, versionIn } from './reads.ts';

/** The watches that are open, and what can be done to them from outside. */
export interface Watches {
  add(watch: OpenWatch): void;
  delete(watch: OpenWatch): void;
  /** Breaks the connections of those of a resource, or of all. */
  cut(resource?: string): void;
  /** From now on they say nothing, though they stay open; what they missed follows when the result is called. */
  freeze(resource?: string): () => void;
  /** Ends them in order. */
  end(resource: string): void;
}

export interface OpenWatch {
  /** As in a request: `events.events.k8s.io`. */
  readonly resource: string;
  cut(): void;
  freeze(): void;
  thaw(): void;
  end(): void;
}

export function openWatches(): Watches {
  const watches = new Set<OpenWatch>();
  const of = (resource: string | undefined) =>
    [...watches].filter(watch => resource === undefined || watch.resource === resource);
  return {
    add: watch => void watches.add(watch),
    delete: watch => void watches.delete(watch),
    cut(resource) {
      for (const watch of of(resource)) watch.cut();
    },
    freeze(resource) {
      const frozen = of(resource);
      for (const watch of frozen) watch.freeze();
      return () => {
        for (const watch of frozen) watch.thaw();
      };
    },
    end(resource) {
      for (const watch of of(resource)) watch.end();
    },
  };
}

export interface WatchRequest {
  readonly store: Store;
  readonly kind: Kind;
  readonly version: string;
  readonly namespace: string;
  readonly query: URLSearchParams;
  readonly clock: Clock;
  readonly watches: Watches;
  readonly gone: AbortSignal;
  /** Breaks the connection. */
  cut(): void;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: object;
}

const bookmarkMs = 60_000;
/** Without `timeoutSeconds`; a server says a random time of that order. */
const usualTimeoutSeconds = 1_800;

/** A stream of events, each a line. Throws a `StatusError` for what cannot be read. */
export function watched(request: WatchRequest): Reply {
  const { kind, namespace, query } = request;
  const test = selection(kind, namespace, query);
  const from = versionIn(query);
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private' },
    body: lines(request, test, from),
  };
}

async function* lines(request: WatchRequest, test: Test, from: number | undefined): AsyncGenerator<string> {
  const { store, kind, version, query, clock, watches, gone } = request;
  const over = new AbortController();
  const waiting: WatchEvent[] = [];
  let news = Promise.withResolvers<void>();
  let isFrozen = false;
  const wake = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  const say = (event: WatchEvent) => {
    waiting.push(event);
    wake();
  };
  const end = () => {
    over.abort();
    wake();
  };
  const sayChange = (change: Change) => {
    const event = eventOf(change, object => shown(kind, version, object), test);
    if (event) say(event);
  };
  const bookmark = (annotations?: object) => ({
    type: 'BOOKMARK' as const,
    object: {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind.group, version),
      metadata: {
        resourceVersion: String(store.version),
        creationTimestamp: null,
        ...(annotations && { annotations }),
      },
    },
  });

  const wantsBookmarks = query.get('allowWatchBookmarks') === 'true';
  const sendsInitial = query.get('sendInitialEvents') === 'true';
  try {
    if (from === undefined || from === 0 || sendsInitial) {
      const objects = store.list(tableOf(kind)).map(object => shown(kind, version, object));
      for (const object of objects.filter(test)) say({ type: 'ADDED', object });
      if (sendsInitial) say(bookmark({ 'k8s.io/initial-events-end': 'true' }));
    } else {
      for (const change of store.since(tableOf(kind), from)) sayChange(change);
    }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    yield line({ type: 'ERROR', object: error.status });
    return;
  }

  const deaf = store.listen(change => {
    if (change.resource === tableOf(kind)) sayChange(change);
  });
  const open: OpenWatch = {
    resource: resourceOf(kind),
    cut: request.cut,
    freeze() {
      isFrozen = true;
    },
    thaw() {
      isFrozen = false;
      wake();
    },
    end,
  };
  watches.add(open);
  gone.addEventListener('abort', end, { once: true });
  if (gone.aborted) end();
  const seconds = Number(query.get('timeoutSeconds')) || usualTimeoutSeconds;
  const timeout = () => {
    if (wantsBookmarks) say(bookmark());
    end();
  };
  void after(clock, seconds * 1000, over.signal, timeout);
  if (wantsBookmarks) void every(clock, bookmarkMs, over.signal, () => say(bookmark()));

  try {
    for (;;) {
      const event = isFrozen ? undefined : waiting.shift();
      if (event) yield line(event);
      else if (over.signal.aborted && (!isFrozen || gone.aborted)) return;
      else await news.promise;
    }
  } finally {
    over.abort();
    deaf();
    watches.delete(open);
    gone.removeEventListener('abort', end);
  }
}

const line = (event: WatchEvent) => `${JSON.stringify(event)}\n`;

/** What a change is to somebody who sees the selected objects only. */
function eventOf(
  change: Change,
  show: (object: KubernetesObject) => KubernetesObject,
  test: Test,
): WatchEvent | undefined {
  const before = change.previous && show(change.previous);
  const object = show(change.object);
  const was = before !== undefined && test(before);
  const is = change.type !== 'DELETED' && test(object);
  if (was && is) return { type: 'MODIFIED', object };
  if (is) return { type: 'ADDED', object };
  if (!was) return undefined;
  // As it was when it was still selected, with the version of what took it out.
  const { resourceVersion } = object.metadata;
  return { type: 'DELETED', object: { ...before, metadata: { ...before.metadata, resourceVersion } } };
}

async function after(clock: Clock, ms: number, signal: AbortSignal, act: () => void): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch {
    return; // The watch is over.
  }
  act();
}

async function every(clock: Clock, ms: number, signal: AbortSignal, act: () => void): Promise<void> {
  while (!signal.aborted) await after(clock, ms, signal, act);
}
