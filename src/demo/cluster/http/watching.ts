import type { Clock } from '../../host/clock.ts';
import type { Reply } from '../../host/reply.ts';
import { StatusError } from '../status.ts';
import { apiVersionOf, type Kind, resourceOf, tableOf } from '../store/kinds.ts';
import type { KubernetesObject } from '../store/object.ts';
import type { Change, Store } from '../store/store.ts';
import { shown } from '../store/views.ts';
import { selection, type Test, versionIn } from './reads.ts';
import type { Showing } from './table.ts';

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

interface OpenWatch {
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
  readonly view: Showing;
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
  const { store, kind, watches, query, clock, gone } = request;
  const line = writer(request.view);
  const events = createOutbox();
  const over = new AbortController();
  const sayChange = (change: Change) => {
    const event = eventOf(change, object => shown(kind, request.version, object), test);
    if (event) events.say(event);
  };
  const bookmark = () => events.say(bookmarkOf(request));
  const wantsBookmarks = query.get('allowWatchBookmarks') === 'true';

  try {
    sayPast(request, test, from, events.say, sayChange);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    yield line({ type: 'ERROR', object: error.status });
    return;
  }
  const deaf = store.listen(change => {
    if (change.resource === tableOf(kind)) sayChange(change);
  });
  const open = { ...events, resource: resourceOf(kind), cut: request.cut };
  watches.add(open);
  gone.addEventListener('abort', events.end, { once: true });
  if (gone.aborted) events.end();
  const seconds = Number(query.get('timeoutSeconds')) || usualTimeoutSeconds;
  void after(clock, seconds * 1000, over.signal, () => {
    if (wantsBookmarks) bookmark();
    events.end();
  });
  if (wantsBookmarks) void every(clock, bookmarkMs, over.signal, bookmark);

  try {
    for (;;) {
      const event = await events.next(gone);
      if (!event) return;
      yield line(event);
    }
  } finally {
    over.abort();
    deaf();
    watches.delete(open);
    gone.removeEventListener('abort', events.end);
  }
}

/** What happened before the watch began, as far as it is asked for; or all there is. Throws `Expired`. */
function sayPast(
  request: WatchRequest,
  test: Test,
  from: number | undefined,
  say: (event: WatchEvent) => void,
  sayChange: (change: Change) => void,
) {
  const { store, kind, version, query } = request;
  const sendsInitial = query.get('sendInitialEvents') === 'true';
  if (from !== undefined && from !== 0 && !sendsInitial) {
    for (const change of store.since(tableOf(kind), from)) sayChange(change);
    return;
  }
  const objects = store.list(tableOf(kind)).map(object => shown(kind, version, object));
  for (const object of objects.filter(test)) say({ type: 'ADDED', object });
  if (sendsInitial) say(bookmarkOf(request, { 'k8s.io/initial-events-end': 'true' }));
}

/** Says how far the watch has come, though nothing happened. */
const bookmarkOf = ({ store, kind, version }: WatchRequest, annotations?: object): WatchEvent => ({
  type: 'BOOKMARK',
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

/** Events that wait to be sent. */
interface Outbox {
  say(event: WatchEvent): void;
  /** The next one, once there is one and it may go out; undefined when there will be none, and when the client is gone. */
  next(gone: AbortSignal): Promise<WatchEvent | undefined>;
  freeze(): void;
  thaw(): void;
  /** After what is in it. */
  end(): void;
}

function createOutbox(): Outbox {
  const waiting: WatchEvent[] = [];
  let news = Promise.withResolvers<void>();
  let isFrozen = false;
  let isOver = false;
  const wake = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  return {
    say(event) {
      waiting.push(event);
      wake();
    },
    async next(gone) {
      for (;;) {
        if (gone.aborted) return undefined;
        if (!isFrozen && (waiting.length > 0 || isOver)) return waiting.shift();
        await news.promise;
      }
    },
    freeze() {
      isFrozen = true;
    },
    thaw() {
      isFrozen = false;
      wake();
    },
    end() {
      isOver = true;
      wake();
    },
  };
}

/** Objects as the client wants to see them; bookmarks and errors as they are. */
function writer(view: Showing): (event: WatchEvent) => string {
  let isFirst = true;
  return ({ type, object }) => {
    const isObject = type !== 'BOOKMARK' && type !== 'ERROR';
    const seen = isObject ? view.object(object as KubernetesObject, isFirst) : object;
    if (isObject) isFirst = false;
    return `${JSON.stringify({ type, object: seen })}\n`;
  };
}

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
