import { atMost, type Call } from '../call.ts';
import type { Read } from '../config/values.ts';
import { messageOf } from '../errors.ts';
import { createListeners, nextRevision, type Observation, type Source, unlessAborted } from './source.ts';

export interface LookupOptions<T, W, R> {
  /** What to look up for a state of the source, by keys that are equal for what need not be looked up twice. */
  readonly wanted: (value: T) => ReadonlyMap<string, W>;
  readonly look: (call: Call, wanted: W) => Promise<R>;
  /** A look ends after this, in milliseconds. */
  readonly timeoutMs: number;
  /** What was found stands for this long, in milliseconds; Infinity = for ever. */
  readonly staleMs: number;
  /** A failure is tried again after this, in milliseconds. */
  readonly retryMs: number;
  /** The call of looks that nobody's request makes. */
  readonly call: Call;
}

/** Looks at the same time. */
const most = 8;

interface Entry<R> {
  readonly found: Read<R>;
  readonly at: number;
}

/**
 * What a source alone does not tell and has to be asked for, thing by thing: looked up once for everybody, when it is wanted
 * first and again when it is stale, while somebody listens or for who reads. A look that fails costs its own entry.
 */
export function lookups<T, W, R>(
  source: Source<T>,
  { wanted, look, timeoutMs, staleMs, retryMs, call: own }: LookupOptions<T, W, R>,
): Source<ReadonlyMap<string, Read<R>>> {
  const listeners = createListeners(begin, end);
  const entries = new Map<string, Entry<R>>();
  const looking = new Map<string, Promise<void>>();
  const queue: (() => void)[] = [];
  let busy = 0;
  let current: Observation<ReadonlyMap<string, Read<R>>> | undefined;
  /** The revision that listeners know of. */
  let told: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let stop: (() => void) | undefined;

  /** What is wanted now; forgets the rest. */
  function wantedNow(): ReadonlyMap<string, W> {
    const value = source.current?.value;
    if (value === undefined) return new Map();
    const now = wanted(value);
    let forgot = false;
    for (const key of entries.keys()) if (!now.has(key)) forgot = entries.delete(key) || forgot;
    if (forgot || !current) show();
    return now;
  }

  function show(): void {
    const value = new Map([...entries].map(([key, { found }]) => [key, found] as const));
    const observedAt = new Date();
    current = {
      revision: nextRevision(current?.revision ?? 0, observedAt.getTime()),
      observedAt,
      value,
      error: undefined,
    };
  }

  const dueAt = ({ found, at }: Entry<R>) => at + ('value' in found ? staleMs : retryMs);

  /** Looks for what is wanted and not known, or not any more; resolves when all of that is there. */
  async function lookAround(): Promise<void> {
    const now = Date.now();
    const due = [...wantedNow()].filter(([key]) => {
      const entry = entries.get(key);
      return !entry || dueAt(entry) <= now;
    });
    await Promise.all(due.map(([key, what]) => looking.get(key) ?? begun(key, what)));
  }

  function begun(key: string, what: W): Promise<void> {
    const work = (async () => {
      if (busy >= most) await new Promise<void>(resolve => queue.push(resolve));
      busy++;
      let found: Read<R>;
      try {
        found = { value: await look(atMost(own, timeoutMs), what) };
      } catch (error) {
        found = { problem: messageOf(error) };
      }
      busy--;
      queue.shift()?.();
      looking.delete(key);
      if (!wantedNow().has(key)) return wait();
      const before = entries.get(key)?.found;
      entries.set(key, { found, at: Date.now() });
      wait();
      if (isSame(before, found)) return;
      show();
      tell();
    })();
    looking.set(key, work);
    return work;
  }

  function onChange(): void {
    void lookAround();
    wait();
    tell();
  }

  function tell(): void {
    if (current?.revision === told) return;
    told = current?.revision;
    listeners.notify();
  }

  /** For what gets stale while somebody listens; one that takes its time keeps no other from being looked at. */
  function wait(): void {
    clearTimeout(timer);
    if (!stop) return;
    const known = [...entries].flatMap(([key, entry]) => (looking.has(key) ? [] : dueAt(entry)));
    const next = Math.min(...known, Number.POSITIVE_INFINITY);
    if (next < Number.POSITIVE_INFINITY) timer = setTimeout(onChange, Math.max(0, next - Date.now())).unref();
  }

  function begin(): void {
    stop = source.subscribe(onChange);
    onChange();
  }

  function end(): void {
    stop?.();
    stop = undefined;
    clearTimeout(timer);
  }

  return {
    get current() {
      if (source.current) wantedNow();
      return current;
    },
    async read(call) {
      await source.read(call);
      await unlessAborted(lookAround(), call.signal);
      if (!current) show();
      return current as Observation<ReadonlyMap<string, Read<R>>>;
    },
    subscribe: listeners.add,
  };
}

const isSame = <R>(a: Read<R> | undefined, b: Read<R>) =>
  a !== undefined && ('value' in a ? 'value' in b && a.value === b.value : 'problem' in b && a.problem === b.problem);
