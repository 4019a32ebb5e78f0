import { atMost, type Call } from '../call.ts';
import type { Driver } from '../drivers/driver.ts';
import { asGatewayError, GatewayError, timedOut, unavailable } from '../errors.ts';
import { createCell } from '../live/cell.ts';
import { combine } from '../live/derive.ts';
import type { Failure, Rows } from '../live/events.ts';
import { follow } from '../live/follow.ts';
import type { Source } from '../live/source.ts';
import { type Backend, readSource, usualLookMs } from './backend.ts';
import { answersInTime, patienceMs } from './patience.ts';
import { type AskedCapability, canAnswer, given, type Registry } from './registry.ts';

/** The lists that are asked of many backends at once. */
export type ListName = 'models' | 'loaded' | 'nodes' | 'presets';
export type RowsOf<L extends ListName> = Backend[L] extends Source<Rows<infer R>> ? R : never;

/**
 * A list of the named backend, or of all that can answer it, as one source: rows in backend order. It follows what is
 * registered: who comes is in the next state, who goes takes its rows along.
 */
export function listSource<L extends ListName>(
  registry: Registry,
  name: string | null | undefined,
  list: L,
  { capability, patience }: { readonly capability?: AskedCapability; readonly patience?: number } = {},
): Source<Rows<RowsOf<L>>> {
  const wanted = given(name);
  return follow(registry.registered, ({ backends }) => {
    const asked = wanted === undefined ? backends : backends.filter(backend => backend.name === wanted);
    if (wanted !== undefined && asked.length === 0) return gone(wanted);
    return listOf(
      asked.filter(backend => canAnswer(backend, capability)),
      list,
      patience,
    );
  });
}

/** No rows, and why: nobody has that name any more. */
function gone<R>(backend: string): Source<Rows<R>> {
  const error = unavailable(`${backend} is not registered any more; it is followed again when it is`);
  return createCell<Rows<R>>({ rows: [], errors: [{ backend, error }] });
}

function listOf<L extends ListName>(
  backends: readonly Backend[],
  list: L,
  patience = patienceMs,
): Source<Rows<RowsOf<L>>> {
  const sources = backends.map(backend => backend[list] as Source<Rows<RowsOf<L>>>);
  if (sources.length === 1) return sources[0] as Source<Rows<RowsOf<L>>>;
  // The same failure for as long as it lasts: rows that say the same are told once.
  const late = backends.map(backend => failedRows(backend, notInTime(backend)));
  return combine(sources, patience, (seen): Rows<RowsOf<L>> => {
    const answers = seen.map((observation, index) => observation?.value ?? late[index]);
    return {
      rows: answers.flatMap(answer => answer?.rows ?? []),
      errors: answers.flatMap(answer => answer?.errors ?? []),
    };
  });
}

/**
 * Asks all of `backends` at the same time. A backend that fails costs its own rows; when the only one fails, or all of
 * them, that is the failure.
 */
export async function askBackends<L extends ListName>(
  call: Call,
  backends: readonly Backend[],
  list: L,
): Promise<Rows<RowsOf<L>>> {
  const asked = backends.map(async (backend): Promise<Rows<RowsOf<L>>> => {
    const { value, error } = await readSource(backend[list] as Source<Rows<RowsOf<L>>>, call);
    if (error) return failedRows(backend, error);
    return value ?? { rows: [], errors: [] };
  });
  const answers = await answersInTime(asked, index => {
    const backend = backends[index] as Backend;
    return failedRows(backend, notInTime(backend));
  });
  return together(answers);
}

/** Asks the drivers of all `backends` something that is not watched, at the same time. The rest is as in `askBackends`. */
export async function askDrivers<R>(
  call: Call,
  backends: readonly Backend[],
  ask: (driver: Driver, call: Call) => Promise<readonly R[]>,
): Promise<Rows<R>> {
  const left = new AbortController();
  const { requestId, log } = call;
  const bounded = atMost({ ...call, signal: AbortSignal.any([call.signal, left.signal]) }, usualLookMs);
  const asked = backends.map(async (backend): Promise<Rows<R>> => {
    try {
      return { rows: await ask(backend.driver, bounded), errors: [] };
    } catch (thrown) {
      const error = asGatewayError(thrown, requestId);
      if (error.code === 'internal_error') log.error({ err: thrown, backend: backend.name }, 'unexpected error');
      return failedRows(backend, error);
    }
  });
  try {
    const answers = await answersInTime(asked, index => {
      const backend = backends[index] as Backend;
      return failedRows(backend, timedOut(lateWords(backend)));
    });
    return together(answers);
  } finally {
    // Nobody will hear what is still being asked.
    left.abort();
  }
}

/** The answers of several backends as one. Throws when all of them failed. */
function together<R>(answers: readonly Rows<R>[]): Rows<R> {
  const errors = answers.flatMap(answer => answer.errors);
  if (errors.length > 0 && errors.length === answers.length) throw allFailed(errors);
  return { rows: answers.flatMap(answer => answer.rows), errors };
}

const failedRows = (backend: Backend, error: GatewayError) => ({
  rows: [],
  errors: [{ backend: backend.name, error }],
});

const lateWords = ({ name }: Backend) => `${name} has not answered within ${patienceMs / 1000} s of the others`;

/** A backend that keeps the others waiting. */
export const notInTime = (backend: Backend) => timedOut(`${lateWords(backend)}; it is still being asked`);

function allFailed(failures: readonly Failure[]): GatewayError {
  const [first] = failures as [Failure, ...Failure[]];
  if (failures.length === 1) return first.error;
  const each = failures.map(({ backend, error }) => `${backend}: ${error.message}`).join('; ');
  return new GatewayError(first.error.code, `every backend failed: ${each}`, { cause: first.error });
}
