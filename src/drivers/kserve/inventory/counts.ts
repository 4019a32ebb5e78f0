/** What was counted in the cache and when: per node where only some nodes have the claim, else once. */
import { isDeepStrictEqual } from 'node:util';
import { type Call, createCall } from '../../../call.ts';
import type { InventoryRefresh } from '../../../domain.ts';
import { GatewayError, messageOf } from '../../../errors.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { keepRows } from '../../../live/rows.ts';
import { createListeners, nextRevision, type Observation, type Source, unlessAborted } from '../../../live/source.ts';
import { type CacheLocation, holdsClaim, isPinned } from '../nodes/cacheLocation.ts';
import type { NodeView } from '../nodes/node.ts';
import { readNodes } from '../nodes.ts';
import type { KserveSettings } from '../settings.ts';
import { formatDuration } from '../units.ts';
import { unanswered } from '../world/seen.ts';
import type { CacheEntry, Count } from './entry.ts';
import { type Nodes, scanGate } from './gate.ts';

/** By what the cache is counted. */
export interface CacheAround {
  readonly settings: KserveSettings;
  /** Absent when the cache is off, or nobody knows where its claim lives. */
  readonly location: CacheLocation | undefined;
}

/** What is known of one place. */
export interface PlaceCount {
  /** Absent where every node sees the same. */
  readonly node: string | undefined;
  /** The last that were counted; absent when that never came about. */
  readonly entries: readonly CacheEntry[] | undefined;
  readonly scannedAt: Date | undefined;
  readonly warnings: readonly string[];
  /** Why the newest count failed. */
  readonly error: string | undefined;
  /** It is being counted. */
  readonly refreshing: boolean;
  /** Why what is here may be outdated. */
  readonly reason: string | undefined;
}

export interface Counts extends Source<readonly PlaceCount[]> {
  /** What was counted is known to be outdated: it is counted again for the next reader, and now if somebody listens. */
  invalidate(): void;
  /** The same, and begins to count at once where that is allowed; answers whether it did, and does not wait for it. */
  recount(call: Call): Promise<InventoryRefresh>;
}

export interface CountsOptions {
  readonly around: Source<CacheAround>;
  readonly nodes: Source<readonly KubernetesObject[]>;
  /** Counts one place; throws why that did not come about. */
  count(call: Call, settings: KserveSettings, node: string | undefined): Promise<Count>;
  /** The gateway's own, for what nobody asked for. */
  readonly call: Call;
}

interface Place {
  shown: PlaceCount;
  /** Counts invalidations: what began before the newest one may have missed what happened. */
  generation: number;
  freshUntil: number;
  /** It is not counted before this: what failed just now would fail again. */
  quietUntil: number;
  running: { readonly done: Promise<void>; readonly generation: number } | undefined;
}

/** Beyond the time that a count has, when nobody waits for it; in milliseconds. */
const detachedMs = 60_000;
/** After a failure nothing is counted for this long, in milliseconds. */
const quietMs = 30_000;
/** What an answer needs after the count, in milliseconds. */
const reserveMs = 2_000;

export function createCounts({ around, nodes, count, call: own }: CountsOptions): Counts {
  const listeners = createListeners(begin, () => stop());
  let places = new Map<string, Place>();
  let current: Observation<readonly PlaceCount[]> | undefined;
  /** Why nobody knows where to count. */
  let problem: GatewayError | undefined;
  let nodesRead: { readonly of: readonly KubernetesObject[]; readonly nodes: readonly NodeView[] } | undefined;
  let stop = () => {};

  function show() {
    const value = [...places.values()].map(({ shown }) => shown);
    const isSame =
      value.length === current?.value?.length &&
      value.every((each, at) => each === current?.value?.[at]) &&
      problem?.message === current.error?.message;
    if (isSame) return;
    const revision = nextRevision(current?.revision ?? 0, Date.now());
    current = { revision, observedAt: new Date(), value, error: problem };
    listeners.notify();
  }

  function change(place: Place, news: Partial<PlaceCount>) {
    const next = { ...place.shown, ...news };
    if (!isDeepStrictEqual(next, place.shown)) place.shown = next;
  }

  /** The places there are now; those that were there keep what was counted. */
  function settle(location: CacheLocation, seen: Nodes | undefined): Place[] {
    const next = new Map<string, Place>();
    for (const node of nodesOf(location, seen)) {
      const key = JSON.stringify([location.claim, location.volume, node]);
      next.set(key, places.get(key) ?? newPlace(node));
    }
    places = next;
    return [...next.values()];
  }

  /** Begins what is to be counted. Returns the places that are. */
  async function begun(call: Call, wanted: (place: Place) => boolean): Promise<Place[]> {
    const { value, error } = await around.read(call);
    problem = value ? undefined : error;
    if (value && !value.settings.cache.enabled) places = new Map();
    if (!value?.location) {
      show();
      return [];
    }
    const { settings, location } = value;
    const needsNodes = isPinned(location) || settings.gpuPool?.nodeSelector !== undefined;
    const seen = needsNodes ? await readNodeViews(call) : undefined;
    const closed = await scanGate(settings, location, async () => seen ?? { nodes: [] });
    const started: Place[] = [];
    for (const place of settle(location, seen)) {
      if (place.running) started.push(place);
      else if (!wanted(place) || !isStale(place)) continue;
      else if (closed) change(place, { reason: closed });
      else if (Date.now() >= place.quietUntil) {
        start(place, settings, call);
        started.push(place);
      }
    }
    show();
    return started;
  }

  async function readNodeViews(call: Call): Promise<Nodes> {
    const { value, error } = await nodes.read(call);
    // Reading a thousand of them takes a while, and most of the time they are the same.
    if (value && value !== nodesRead?.of) nodesRead = { of: value, nodes: readNodes(value) };
    if (value && nodesRead) return { nodes: nodesRead.nodes };
    return { problem: error?.message ?? unanswered };
  }

  function start(place: Place, settings: KserveSettings, { caller, requestId, deadline }: Call) {
    const { ttl, timeout, mode } = settings.inventory;
    const isDetached = deadline - Date.now() < timeout;
    const call = createCall({
      caller,
      requestId,
      log: own.log,
      timeoutMs: isDetached ? timeout + detachedMs : timeout,
    });
    const { generation } = place;
    const done = count(call, settings, place.shown.node).then(
      counted => {
        const entries = keepRows<CacheEntry>(({ dir }) => dir)(place.shown.entries, counted.entries);
        place.freshUntil = generation === place.generation ? Date.now() + ttl : 0;
        over({ entries, warnings: counted.warnings, scannedAt: new Date(), error: undefined });
      },
      (error: unknown) => {
        const isKnown = error instanceof GatewayError;
        own.log[isKnown ? 'warn' : 'error']({ err: error }, 'the cache could not be counted');
        place.quietUntil = Date.now() + Math.min(ttl, quietMs);
        over({ error: isKnown ? messageOf(error) : 'unexpected error while counting; the log has it' });
      },
    );
    function over(news: Partial<PlaceCount>) {
      place.running = undefined;
      change(place, { ...news, refreshing: false, reason: undefined });
      show();
      if (generation !== place.generation && listeners.size > 0) kick(() => true);
    }
    place.running = { done, generation };
    const reason = isDetached && mode === 'pod' ? inBackground(timeout) : undefined;
    change(place, { refreshing: true, reason });
  }

  async function refresh(call: Call): Promise<void> {
    for (let round = 0; round < 2; round++) {
      const started = await begun(call, () => true);
      const outdated = started.filter(({ running, generation }) => running && running.generation < generation);
      await wait(started, call);
      // What was invalidated meanwhile is counted once more.
      if (outdated.length === 0) return;
    }
  }

  /** As long as the caller has: for a pod all the time it may take or none, for an agent until the answer is due. */
  async function wait(started: readonly Place[], call: Call) {
    const settings = around.current?.value?.settings;
    const left = call.deadline - Date.now();
    if (started.length === 0 || !settings || (settings.inventory.mode === 'pod' && left < settings.inventory.timeout))
      return;
    const done = Promise.all(started.map(({ running }) => running?.done));
    if (left === Number.POSITIVE_INFINITY) return void (await unlessAborted(done, call.signal));
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, Math.max(0, left - reserveMs));
    await unlessAborted(Promise.race([done, late.promise]), call.signal).finally(() => clearTimeout(timer));
    for (const place of started) {
      if (place.running) change(place, { reason: 'the agent has not answered yet; asking in the background' });
    }
    show();
  }

  /** What somebody who listens is to see, without anybody waiting for it. */
  function kick(wanted: (place: Place) => boolean) {
    const { caller, log } = own;
    const call = createCall({ caller, log });
    begun(call, wanted).catch((error: unknown) => log.warn({ err: error }, 'the cache could not be counted'));
  }

  function begin() {
    // That the claim gets bound, or a node comes, is what a first count waits for.
    const onChange = () => kick(({ shown }) => shown.entries === undefined && shown.error === undefined);
    const stops = [around.subscribe(onChange), nodes.subscribe(onChange)];
    stop = () => {
      for (const each of stops) each();
    };
    kick(() => true);
  }

  function invalidate() {
    for (const place of places.values()) {
      place.generation++;
      place.freshUntil = 0;
      place.quietUntil = 0;
    }
    if (listeners.size > 0) kick(() => true);
  }

  return {
    get current() {
      return current;
    },
    async read(call) {
      await refresh(call);
      return current as Observation<readonly PlaceCount[]>;
    },
    subscribe: listeners.add,
    invalidate,
    async recount(call) {
      invalidate();
      const started = await begun(call, () => true);
      if (started.length > 0) return { refreshing: true };
      const shown = [...places.values()].map(place => place.shown);
      return { refreshing: false, reason: shown.find(({ reason }) => reason !== undefined)?.reason };
    },
  };
}

const newPlace = (node: string | undefined): Place => ({
  shown: {
    node,
    entries: undefined,
    scannedAt: undefined,
    warnings: [],
    error: undefined,
    refreshing: false,
    reason: undefined,
  },
  generation: 0,
  freshUntil: 0,
  quietUntil: 0,
  running: undefined,
});

const isStale = ({ freshUntil }: Place) => Date.now() >= freshUntil;

const inBackground = (timeout: number) =>
  `the caller's deadline leaves less than ${formatDuration(timeout)} for a scan pod; scanning in the background`;

/** The nodes to count on, by the names of their Nodes; none is one place for all. */
function nodesOf(location: CacheLocation, seen: Nodes | undefined): readonly (string | undefined)[] {
  if (!isPinned(location)) return [undefined];
  const views = seen && 'nodes' in seen ? seen.nodes : [];
  return location.nodes.map(host => {
    const node = views.find(each => holdsClaim({ ...location, nodes: [host] }, each));
    return node?.name ?? host;
  });
}
