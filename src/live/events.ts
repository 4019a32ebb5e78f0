import type { GatewayError } from '../errors.ts';
import type { Source } from './source.ts';
import { type Watch, watch } from './watch.ts';

/** A list of things and what could not be asked for them. */
export interface Rows<R> {
  readonly rows: readonly R[];
  readonly errors: readonly Failure[];
}

/** One backend that could not answer. */
export interface Failure {
  readonly backend: string;
  readonly error: GatewayError;
}

/** What a subscriber is sent: the whole list, or what differs from the event before. */
export interface RowsPayload<R> extends Rows<R> {
  readonly revision: number;
  readonly observedAt: Date;
  /** True: `rows` is the whole list. False: `rows` are those that changed, `removed` the keys of those that went. */
  readonly snapshot: boolean;
  readonly removed: readonly string[];
}

/**
 * One change on its way to many subscribers. Who has the event before takes `changes`, anybody else `snapshot`, so that a
 * subscriber who missed some is whole again with one message.
 */
export interface LiveEvent<P = unknown> {
  readonly snapshot: P;
  readonly changes: P;
}

/** The events of a list, one for each difference. Rows are compared by reference: see `keepRows`. */
export function rowsEvents<R>(source: Source<Rows<R>>, key: (row: R) => string): Watch<LiveEvent<RowsPayload<R>>> {
  const states = watch(source);
  let before = new Map<string, R>();
  let failures: readonly Failure[] | undefined;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      for (;;) {
        const state = await states.next();
        if (state.done) return state;
        const { revision, observedAt } = state.value;
        const { rows, errors } = state.value.value ?? { rows: [], errors: [] };
        const after = new Map(rows.map(row => [key(row), row]));
        const changed = rows.filter(row => before.get(key(row)) !== row);
        const removed = [...before.keys()].filter(name => !after.has(name));
        const isNews = changed.length > 0 || removed.length > 0 || !isSame(errors, failures);
        before = after;
        failures = errors;
        if (!isNews) continue;
        const base = { revision, observedAt, errors };
        return {
          done: false,
          value: {
            snapshot: { ...base, snapshot: true, rows, removed: [] },
            changes: { ...base, snapshot: false, rows: changed, removed },
          },
        };
      }
    },
    return: states.return,
  };
}

const isSame = (failures: readonly Failure[], before: readonly Failure[] | undefined) =>
  failures.length === before?.length &&
  failures.every(({ backend, error }, at) => backend === before[at]?.backend && error === before[at]?.error);

/** What a subscriber of one thing is sent: the thing as it is, or that it is gone. */
export interface ValuePayload<V> {
  readonly revision: number;
  readonly observedAt: Date;
  readonly value: V | undefined;
  readonly removed: boolean;
}

/**
 * The events of one thing in a list. It ends after a state that is final, and after the thing is gone.
 */
export function valueEvents<R, V extends R>(
  source: Source<Rows<R>>,
  find: (rows: readonly R[]) => V | undefined,
  final: (value: V) => boolean,
): Watch<LiveEvent<ValuePayload<V>>> {
  const states = watch(source);
  let last: V | undefined;
  let begun = false;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      for (;;) {
        const state = await states.next();
        if (state.done) return state;
        const { revision, observedAt } = state.value;
        const value = find(state.value.value?.rows ?? []);
        if (begun && value === last) continue;
        if (value === undefined || final(value)) await states.return();
        const payload = { revision, observedAt, value: value ?? last, removed: value === undefined };
        begun = true;
        last = value;
        return { done: false, value: { snapshot: payload, changes: payload } };
      }
    },
    return: states.return,
  };
}
