import type { WatchEvent } from '../client.ts';

export interface WatchingOptions<T> {
  /** Begins a watch after the newest version that is known. */
  open(signal: AbortSignal): AsyncIterable<WatchEvent<T>>;
  /** Told every event, some twice: two watches may run at a time. */
  onEvent(event: WatchEvent<T>): void;
  /** A watch was found dead, and another has taken its place. */
  onDead(): void;
}

/** Silence after which a second watch is begun beside the first, in milliseconds. */
const doubtMs = 40_000;
/**
 * Silence after which a watch is dead, in milliseconds. Servers send a bookmark to each about once a minute, so one that
 * is healthy and quiet is never ended for its silence.
 */
const deadMs = 70_000;
/** How much sooner than the first the second watch may bring a change, in milliseconds. */
const aheadMs = 1_000;

interface Stream {
  readonly abort: AbortController;
}

/**
 * Watches until the server ends the watch, or `signal` aborts (it resolves), or the watch breaks (it rejects).
 *
 * A connection that died without a word looks like one on which nothing happens. So after `doubtMs` without an event a
 * second watch is begun where the first stands: whatever the first has missed arrives there at once, and from then on
 * nothing can be missed. The first event of the first watch ends the second; a change that only the second brings, or
 * more silence than a minute's bookmark leaves, ends the first. A quiet resource costs one request a minute, and no list.
 */
export function keepWatching<T>({ open, onEvent, onDead }: WatchingOptions<T>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  let second: Stream | undefined;
  let secondIsAhead = false;
  let first = begin();
  signal.addEventListener('abort', finish, { once: true });
  after(doubtMs, doubt);
  return promise;

  function begin(): Stream {
    const stream = { abort: new AbortController() };
    consume(stream).then(
      () => ended(stream),
      error => broke(stream, error),
    );
    return stream;
  }

  async function consume(stream: Stream) {
    for await (const event of open(stream.abort.signal)) {
      if (stream.abort.signal.aborted) return;
      onEvent(event);
      // Who hears of the event may be the last to want it.
      if (!isOver) heard(stream, event);
    }
  }

  function heard(stream: Stream, event: WatchEvent<T>) {
    if (stream === first) {
      dismissSecond();
      after(doubtMs, doubt);
    } else if (event.type !== 'BOOKMARK' && !secondIsAhead) {
      secondIsAhead = true;
      after(aheadMs, replace);
    }
  }

  function doubt() {
    second = begin();
    after(deadMs - doubtMs, replace);
  }

  /** The second watch takes the place of the first. */
  function replace() {
    first.abort.abort();
    onDead();
    if (!second) return finish();
    const silentMs = secondIsAhead ? aheadMs : deadMs - doubtMs;
    first = second;
    second = undefined;
    secondIsAhead = false;
    after(doubtMs - silentMs, doubt);
  }

  function dismissSecond() {
    second?.abort.abort();
    second = undefined;
    secondIsAhead = false;
  }

  function ended(stream: Stream) {
    if (stream.abort.signal.aborted) return;
    if (stream === second) second = undefined;
    else finish();
  }

  /** One that breaks is enough: what broke the second will hardly spare the first. */
  function broke(stream: Stream, error: unknown) {
    if (stream.abort.signal.aborted) return;
    reject(error);
    finish();
  }

  function finish() {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener('abort', finish);
    first.abort.abort();
    dismissSecond();
    resolve();
  }

  function after(ms: number, what: () => void) {
    clearTimeout(timer);
    timer = setTimeout(what, ms).unref();
  }
}
