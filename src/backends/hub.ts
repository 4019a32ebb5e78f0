import type { Call } from '../call.ts';
import type { FitExplanation, FitResult, SearchResult } from '../domain.ts';
import type { Driver, FitRequest } from '../drivers/driver.ts';
import { conflict, invalidRequest } from '../errors.ts';
import type { Rows } from '../live/events.ts';
import type { Actions } from './actions.ts';
import { askDrivers } from './ask.ts';
import { capableBackends, given } from './registry.ts';

/** What callers can ask of the hub that a backend gets its models from: what there is, and whether it would fit. */

export interface SearchInput {
  readonly query: string;
  readonly limit?: number | null | undefined;
  readonly backend?: string | null | undefined;
}

/** Results of one search: as many as this unless the caller says otherwise, and never more than `most`. */
export const searchLimit = { usual: 20, most: 50 } as const;

/** Repositories that match, most downloads first. A limit that is none gives the usual number. */
export async function searchModels({ registry }: Actions, call: Call, input: SearchInput): Promise<Rows<SearchResult>> {
  const backends = capableBackends(registry, input.backend, 'search');
  const query = input.query.trim();
  if (query === '') throw invalidRequest('query is required');
  const wanted = input.limit ?? 0;
  const limit = wanted >= 1 && wanted <= searchLimit.most ? wanted : searchLimit.usual;
  const { rows, errors } = await askDrivers(
    call,
    backends,
    async (driver, bounded) => (await driver.search?.(bounded, { query, limit })) ?? [],
  );
  const byDownloads = rows.toSorted((a, b) => (b.downloads ?? 0) - (a.downloads ?? 0));
  return { rows: byDownloads.slice(0, limit), errors };
}

export interface FitInput {
  readonly model?: string | null | undefined;
  readonly preset?: string | null | undefined;
  readonly node?: string | null | undefined;
  readonly backend?: string | null | undefined;
}

/** A question about the fit of a model, and the driver that it is for. */
interface FitQuestion {
  /** Its capabilities promise the methods. */
  readonly driver: Driver & Required<Pick<Driver, 'checkFit' | 'explain'>>;
  readonly request: FitRequest;
}

function fitQuestion({ registry }: Actions, input: FitInput): FitQuestion {
  const capable = capableBackends(registry, input.backend, 'fitCheck');
  if (capable.length > 1) {
    const names = capable.map(({ name }) => name).join(', ');
    throw conflict(`several backends offer fit checks (${names}); name the backend`);
  }
  const request = { model: given(input.model), preset: given(input.preset), node: given(input.node) };
  if (!request.model && !request.preset) throw invalidRequest('model or preset is required');
  return { driver: capable[0]?.driver as FitQuestion['driver'], request };
}

/** Whether and where a model or a preset can be served. That it cannot is an answer. */
export async function checkFit(actions: Actions, call: Call, input: FitInput): Promise<FitResult> {
  const { driver, request } = fitQuestion(actions, input);
  return driver.checkFit(call, request);
}

/** What stands in the way of a model or a preset, and what would change it. */
export async function explainFit(actions: Actions, call: Call, input: FitInput): Promise<FitExplanation> {
  const { driver, request } = fitQuestion(actions, input);
  return driver.explain(call, request);
}
