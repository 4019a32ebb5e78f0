import type { Call } from '../call.ts';
import { GatewayError } from '../errors.ts';
import { derive } from '../live/derive.ts';
import type { Failure, Rows } from '../live/events.ts';
import type { Source } from '../live/source.ts';
import { type Backend, readSource } from './backend.ts';

/** The lists that are asked of many backends at once. */
export type ListName = 'models' | 'loaded' | 'nodes';
type RowsOf<L extends ListName> = Backend[L] extends Source<Rows<infer R>> ? R : never;

/** A list over several backends as one source, rows in backend order. */
export function listSource<L extends ListName>(backends: readonly Backend[], list: L): Source<Rows<RowsOf<L>>> {
  const sources = backends.map(backend => backend[list] as Source<Rows<RowsOf<L>>>);
  if (sources.length === 1) return sources[0] as Source<Rows<RowsOf<L>>>;
  return derive<Rows<RowsOf<L>>[], Rows<RowsOf<L>>>(sources, seen => ({
    rows: seen.flatMap(observation => observation.value?.rows ?? []),
    errors: seen.flatMap(observation => observation.value?.errors ?? []),
  }));
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
  const answers = await Promise.all(
    backends.map(async backend => {
      const { value, error } = await readSource(backend[list] as Source<Rows<RowsOf<L>>>, call);
      if (error) return { rows: [], errors: [{ backend: backend.name, error }] };
      return value ?? { rows: [], errors: [] };
    }),
  );
  const errors = answers.flatMap(answer => answer.errors);
  if (errors.length > 0 && errors.length === backends.length) throw allFailed(errors);
  return { rows: answers.flatMap(answer => answer.rows), errors };
}

function allFailed(failures: readonly Failure[]): GatewayError {
  const [first] = failures as [Failure, ...Failure[]];
  if (failures.length === 1) return first.error;
  const each = failures.map(({ backend, error }) => `${backend}: ${error.message}`).join('; ');
  return new GatewayError(first.error.code, `every backend failed: ${each}`, { cause: first.error });
}
