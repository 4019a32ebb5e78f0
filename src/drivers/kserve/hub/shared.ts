import { unlessAborted } from '../../../live/source.ts';
import type { Found } from './facts.ts';

/** Somebody who waits for an answer. */
export interface Reader {
  readonly signal: AbortSignal;
  /** How long they wait, in milliseconds since the epoch. */
  readonly until: number;
}

/** A look-up under way. */
export interface Looking {
  readonly signal: AbortSignal;
  /** Milliseconds that the most patient reader still waits. */
  leftMs(): number;
}

interface SharedOptions<T> {
  now(): number;
  /** An answer that fails otherwise than with a miss while nobody waits for it. */
  onLost(error: unknown): void;
  /** So many answers are kept, the last read ones… */
  readonly entries: number;
  /** …as long as they are not heavier than this together. */
  readonly weight: number;
  weigh(value: T): number;
}

/** As long as any request to the Hub may take, in milliseconds. */
const longestMs = 30_000;
/** Look-ups that nobody waits for any more. */
const mostUnattended = 8;

/**
 * Answers that are looked up once for everybody who asks, and kept for a while. A miss is not kept.
 *
 * A look-up belongs to nobody: a reader who leaves takes nothing away from the others. With the last one gone it goes on,
 * so that what is too slow for one call is there for the next one.
 */
export function createShared<T>(options: SharedOptions<T>) {
  const { now } = options;
  const kept = new Map<string, { readonly value: T; readonly at: number; readonly weight: number }>();
  const flights = new Map<string, Flight<T>>();
  let weight = 0;

  function fresh(key: string, keepMs: number): T | undefined {
    const found = kept.get(key);
    if (!found) return undefined;
    const age = now() - found.at;
    forget(key);
    if (age < 0 || age >= keepMs) return undefined;
    keep(key, found);
    return found.value;
  }

  function forget(key: string) {
    weight -= kept.get(key)?.weight ?? 0;
    kept.delete(key);
  }

  function keep(key: string, entry: { readonly value: T; readonly at: number; readonly weight: number }) {
    forget(key);
    kept.set(key, entry);
    weight += entry.weight;
    for (const oldest of kept.keys()) {
      if (kept.size <= options.entries && weight <= options.weight) break;
      forget(oldest);
    }
  }

  function start(key: string, look: (looking: Looking) => Promise<Found<T>>): Flight<T> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new Error('time is up')), longestMs).unref();
    const flight: Flight<T> = {
      abort,
      readers: 0,
      until: 0,
      // Not before its first reader has joined it.
      done: Promise.resolve()
        .then(() => look({ signal: abort.signal, leftMs: () => flight.until - now() }))
        .then(found => {
          if (found.value !== undefined)
            keep(key, { value: found.value, at: now(), weight: options.weigh(found.value) });
          return found;
        })
        .finally(() => {
          clearTimeout(timer);
          if (flights.get(key) === flight) flights.delete(key);
        }),
    };
    flight.done.catch(error => {
      if (flight.readers === 0 && !abort.signal.aborted) options.onLost(error);
    });
    flights.set(key, flight);
    return flight;
  }

  function leave(flight: Flight<T>) {
    if (--flight.readers > 0) return;
    const unattended = [...flights].filter(([, { readers }]) => readers === 0);
    for (const [key, { abort }] of unattended.slice(0, -mostUnattended)) {
      flights.delete(key);
      abort.abort(new Error('nobody waits'));
    }
  }

  return {
    /** Rejects when the reader's signal aborts, and with what `look` rejects with. What is kept is answered at once. */
    async read(
      key: string,
      keepMs: number,
      reader: Reader,
      look: (looking: Looking) => Promise<Found<T>>,
    ): Promise<Found<T>> {
      const value = fresh(key, keepMs);
      if (value !== undefined) return { value };
      reader.signal.throwIfAborted();
      if (reader.until <= now()) throw new Error('time is up');
      const flight = flights.get(key) ?? start(key, look);
      flight.readers++;
      flight.until = Math.max(flight.until, reader.until);
      try {
        return await unlessAborted(flight.done, reader.signal);
      } finally {
        leave(flight);
      }
    },
  };
}

interface Flight<T> {
  readonly done: Promise<Found<T>>;
  readonly abort: AbortController;
  readers: number;
  /** How long the most patient reader waits. */
  until: number;
}
