import type { Logger } from 'pino';
import type { Call, Caller } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { nextRevision, type Observation, type Source, unlessAborted } from '../live/source.ts';
import { createBackoff } from './backoff.ts';
import type { KubernetesClient, Selection } from './client.ts';
import { createCache } from './reflector/cache.ts';
import { createDemand } from './reflector/demand.ts';
import { createEchoes } from './reflector/echoes.ts';
import { createElapsed } from './reflector/elapsed.ts';
import { isExpired, notInstalled, retryAfter, unexpected } from './reflector/failures.ts';
import { keepWatching } from './reflector/watching.ts';
import type { KubernetesObject, Resource } from './resource.ts';

/** A resource by its name, and how to find out which version of it to use. */
export interface Locator<T extends KubernetesObject> {
  /** `pods`, `modelconfigs.kagent.dev` */
  readonly name: string;
  /**
   * Asked at first, and again after the server said that it has no such resource. Throws a `GatewayError` that says why
   * there is none.
   */
  locate(call: Call): Promise<Resource<T>>;
}

/** Why a watch was begun anew: its version had expired, it broke, or nothing came for too long. */
export type RestartReason = 'expired' | 'broken' | 'silent';

export interface ReflectorOptions<T extends KubernetesObject> {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>;
  readonly resource: Locator<T>;
  readonly selection: Selection;
  /** The call that lists and watches: it serves everybody, so it belongs to nobody's request. */
  callFor(signal: AbortSignal): Call;
  /** Whether it watches as a person, with their token, and not as the gateway. */
  readonly personal?: boolean;
  readonly log: Logger;
  readonly onRestart?: ((reason: RestartReason) => void) | undefined;
}

export interface ReflectorState {
  /** Whether the objects were listed since it began to run. */
  readonly synced: boolean;
  readonly watching: boolean;
  /** When the server last said anything. */
  readonly lastEventAt: Date | undefined;
  /** Watches that broke, or were found dead. */
  readonly restarts: number;
  /** Lists that were asked for. */
  readonly lists: number;
  /** Objects that were left out because nothing could be made of them. */
  readonly malformed: number;
  /** Times that a listener threw. */
  readonly listenerErrors: number;
  /** Why it is behind, or sees nothing at all. */
  readonly error: GatewayError | undefined;
}

/** Objects as a watch tells them, sorted by namespace and name. Those that did not change keep their identity. */
export interface Reflector<T extends KubernetesObject> extends Source<readonly T[]> {
  readonly state: ReflectorState;
  /** Whether it does nothing and may be forgotten: nor has a server asked it to wait. */
  readonly idle: boolean;
  /** Resolves when what was written shows here: at once when nothing runs, after a second at the latest. */
  seen(written: KubernetesObject, signal: AbortSignal): Promise<void>;
  /** The same of an object that was removed. */
  gone(removed: KubernetesObject, signal: AbortSignal): Promise<void>;
}

/** A watch that lived this long was a good one: what ends it is no failure yet, in milliseconds. */
const healthyMs = 10_000;
/** A watch that lived this long was granted, in milliseconds. */
const grantedMs = 2_000;
/** Between two lists of which the first succeeded, in milliseconds. */
const betweenListsMs = 5_000;
/** Between attempts that are made because somebody asks, in milliseconds. */
const betweenAsksMs = 1_000;
/** A server ends a watch after a time between these, in seconds; not all watches at once. */
const shortestWatch = 240;
const longestWatch = 480;
/**
 * A person's watch is begun anew this often at least, in seconds, so that the server looks again at what they may see: who
 * may see something no longer is told nothing more of it within a minute.
 */
const shortestOwnWatch = 25;
const longestOwnWatch = 45;

/** A failure, and what ends it: a list, or a watch that is granted. */
interface Trouble {
  readonly of: 'list' | 'watch';
  readonly error: GatewayError;
}

/**
 * Lists objects and then watches them, while somebody listens, and a little longer than somebody reads.
 *
 * A watch that ends is resumed where it stood. After a failure the next attempt begins with a list, since only an answer
 * shows that the server is there: of a watch on which nothing happens one cannot tell. Attempts that fail are made at
 * growing intervals; what was last seen stands beside the failure. Only what a person may see no longer does not.
 */
export function createReflector<T extends KubernetesObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, selection } = options;
  const { name } = options.resource;
  const log = options.log.child({ resource: name, ...(selection.namespace && { namespace: selection.namespace }) });
  const demand = createDemand(begin, end);
  const cache = createCache<T>(object => log.warn({ object }, `left out one of ${name} that has no name`));
  const echoes = createEchoes();
  const backoff = createBackoff();
  const elapsed = createElapsed();

  let run: AbortController | undefined;
  /** The last that was known, of an earlier run too; it is `current` once this run has learnt something. */
  let last: Observation<readonly T[]> | undefined;
  let isCurrent = false;
  let trouble: Trouble | undefined;
  let resource: Resource<T> | undefined;
  let mustList = true;
  let hasExpired = false;
  let synced = false;
  let watching = false;
  let lastEventAt: Date | undefined;
  const counts = { restarts: 0, lists: 0, listenerErrors: 0 };
  // These are moments by `elapsed`.
  let listedAt = Number.NEGATIVE_INFINITY;
  let attemptedAt = Number.NEGATIVE_INFINITY;
  /** No request before this. */
  let quietUntil = Number.NEGATIVE_INFINITY;
  /** Readers wait for it: there from the moment an attempt is due until a list has told more. */
  let attempt: PromiseWithResolvers<void> | undefined;
  /** Ends the pause between two attempts. */
  let wake: (() => void) | undefined;

  /** Makes what is known now the newest observation, and tells it when it is news. */
  function show(isConfirmed: boolean) {
    const before = last;
    const error = trouble?.error;
    const isSameError = error?.message === before?.error?.message;
    const isSame = before !== undefined && cache.objects === before.value && isSameError;
    const isNews = !isSame || !isCurrent;
    last = {
      revision: isSame ? before.revision : nextRevision(before?.revision ?? 0, Date.now()),
      observedAt: isConfirmed || !before ? new Date() : before.observedAt,
      value: cache.objects,
      error: isSameError ? before?.error : error,
    };
    isCurrent = true;
    if (isNews) demand.notify();
    if (isConfirmed) echoes.look();
  }

  function failed(next: Trouble) {
    if (next.error.message !== trouble?.error.message) log.warn({ err: next.error }, `cannot ${next.of} ${name}`);
    trouble = next;
    show(false);
  }

  function recovered(by: Trouble['of']) {
    if (trouble?.of !== by) return;
    trouble = undefined;
    log.info(`${name} can be seen again`);
  }

  /** Whoever waits for an attempt is told that there is an outcome. */
  function learnt() {
    attempt?.resolve();
    attempt = undefined;
  }

  async function list(signal: AbortSignal) {
    attempt ??= Promise.withResolvers();
    counts.lists++;
    const call = options.callFor(signal);
    const located = resource ?? (await options.resource.locate(call));
    if (signal.aborted) return;
    resource = located;
    const found = await client.list(call, located, selection);
    if (signal.aborted) return;
    cache.replace(found);
    listedAt = elapsed();
    lastEventAt = new Date();
    mustList = false;
    synced = true;
    recovered('list');
    learnt();
    show(true);
  }

  async function watch(located: Resource<T>, signal: AbortSignal) {
    const timer = setTimeout(granted, grantedMs).unref();
    watching = true;
    try {
      await keepWatching(
        {
          open(ended) {
            const call = options.callFor(ended);
            const timeoutSeconds = watchSeconds(call.caller);
            return client.watch(call, located, selection, { resourceVersion: cache.version, timeoutSeconds });
          },
          onEvent(event) {
            lastEventAt = new Date();
            cache.take(event);
            recovered('watch');
            show(true);
          },
          onDead() {
            counts.restarts++;
            options.onRestart?.('silent');
            log.debug('a watch has gone silent; another takes its place');
          },
        },
        signal,
      );
    } finally {
      clearTimeout(timer);
      if (!signal.aborted) watching = false;
    }

    function granted() {
      if (trouble?.of !== 'watch') return;
      recovered('watch');
      show(true);
    }
  }

  async function keepUp(signal: AbortSignal) {
    let pause = quietUntil - elapsed();
    while (!signal.aborted) {
      if (pause > 0) await rest(pause, signal);
      if (signal.aborted) return;
      attemptedAt = elapsed();
      try {
        if (mustList || !resource) await list(signal);
        if (signal.aborted || !resource) return;
        learnt();
        attemptedAt = elapsed();
        await watch(resource, signal);
        pause = wentWell() ? 0 : backoff.next();
      } catch (error) {
        if (signal.aborted) return;
        learnt();
        pause = afterFailure(error);
      }
    }
  }

  /** Whether what has just ended was a good watch: then failures are counted anew. */
  function wentWell(): boolean {
    const isGood = !mustList && elapsed() - attemptedAt >= healthyMs;
    if (isGood) {
      backoff.reset();
      hasExpired = false;
    }
    return isGood;
  }

  /** Takes note of a failure. Returns how long to wait after it, in milliseconds. */
  function afterFailure(cause: unknown): number {
    const of = mustList ? 'list' : 'watch';
    const wasGood = wentWell();
    const pause = backoff.next();
    const error = cause instanceof GatewayError ? cause : unexpected(cause);
    if (error !== cause) log.error({ err: cause }, `unexpected error while looking at ${name}`);
    if (of === 'watch') {
      counts.restarts++;
      options.onRestart?.(isExpired(error) ? 'expired' : 'broken');
      log.debug({ err: error }, 'a watch broke');
    }
    const isMissing = error.code === 'not_found';
    const isWithdrawn = options.personal === true && (error.code === 'forbidden' || error.code === 'unauthenticated');
    if (isWithdrawn) cache.clear();
    const expired = of === 'watch' && isExpired(error);
    if (expired || isMissing || isWithdrawn || !wasGood) mustList = true;

    const now = elapsed();
    const wait = retryAfter(error);
    quietUntil = now + Math.max(0, wait, mustList ? listedAt + betweenListsMs - now : 0);
    // To have expired happens to everybody who was away for long; only that it happens again says that something is wrong.
    const isTrouble = wait > 0 || isWithdrawn || (expired ? hasExpired : !wasGood);
    hasExpired ||= expired;
    if (isMissing) {
      const wasLocated = resource !== undefined;
      resource = undefined;
      failed({ of: 'list', error: wasLocated ? notInstalled(name, error) : error });
    } else if (isTrouble) failed({ of: isWithdrawn ? 'list' : of, error });
    return Math.max(expired && wasGood ? 0 : pause, quietUntil - now);
  }

  /** A pause: until it is over, somebody asks, or nobody wants to know any more. */
  function rest(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(rise, ms).unref();
      wake = rise;
      signal.addEventListener('abort', rise, { once: true });

      function rise() {
        clearTimeout(timer);
        signal.removeEventListener('abort', rise);
        if (wake === rise) wake = undefined;
        resolve();
      }
    });
  }

  function begin() {
    run = new AbortController();
    mustList = true;
    const now = elapsed();
    // Coming and going is no way around the pauses.
    quietUntil = trouble ? Math.max(quietUntil, attemptedAt + betweenAsksMs) : now;
    isCurrent = now < quietUntil;
    if (!isCurrent) attempt = Promise.withResolvers();
    void keepUp(run.signal);
  }

  function end() {
    run?.abort();
    run = undefined;
    synced = false;
    watching = false;
    backoff.reset();
    learnt();
    echoes.look();
  }

  function ask() {
    const now = elapsed();
    if (!wake || now - attemptedAt < betweenAsksMs || now < quietUntil) return;
    attempt ??= Promise.withResolvers();
    attemptedAt = now;
    wake();
  }

  return {
    get current() {
      return isCurrent ? last : undefined;
    },
    read: call =>
      demand.reading(async () => {
        ask();
        if (attempt) await unlessAborted(attempt.promise, call.signal);
        return last as Observation<readonly T[]>;
      }),
    subscribe: listener =>
      demand.add(() => {
        try {
          listener();
        } catch (error) {
          counts.listenerErrors++;
          log.error({ err: error }, `a listener to ${name} failed`);
        }
      }),
    get state() {
      const { malformed } = cache;
      return { synced, watching, lastEventAt, ...counts, malformed, error: trouble?.error };
    },
    get idle() {
      return !run && elapsed() >= quietUntil;
    },
    seen: (written, signal) => echoes.until(() => !run || (synced && cache.shows(written)), signal),
    gone: (removed, signal) => echoes.until(() => !run || (synced && !cache.has(removed.metadata.uid)), signal),
  };
}

/** Of a person's watch not more than their token is good for. */
function watchSeconds({ token, until }: Caller): number {
  if (!token) return randomBetween(shortestWatch, longestWatch);
  const left = until ? Math.floor((until() - Date.now()) / 1000) : Number.POSITIVE_INFINITY;
  return Math.max(1, Math.min(left, randomBetween(shortestOwnWatch, longestOwnWatch)));
}

const randomBetween = (least: number, most: number) => Math.round(least + Math.random() * (most - least));
