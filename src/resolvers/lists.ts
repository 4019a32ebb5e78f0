import type { ObjectRef } from '@pothos/core';
import { encodeGlobalID } from '@pothos/plugin-relay';
import { askBackends, type ListName, listSource, type RowsOf } from '../backends/ask.ts';
import type { Backend } from '../backends/backend.ts';
import { type AskedCapability, backendNamed, capableBackends, type Registry } from '../backends/registry.ts';
import { invalidRequest, isTimeout, quoted } from '../errors.ts';
import type { Failure, LiveEvent, Rows, RowsPayload } from '../live/events.ts';
import type { Source } from '../live/source.ts';
import { steady } from '../live/steady.ts';
import type { Watch } from '../live/watch.ts';
import { builder, type Context, faces, type SchemaShape } from './builder.ts';
import { parsePlacedId } from './refs.ts';

export const FailureRef = builder.objectRef<Failure>('BackendError').implement({
  description: 'A backend that could not answer; the others did.',
  fields: t => ({
    backend: t.exposeString('backend', { description: 'Name of the backend.' }),
    code: t.string({ description: 'The same word as in `extensions.code`.', resolve: failure => failure.error.code }),
    message: t.string({ resolve: failure => failure.error.message }),
  }),
});

interface PageInfo {
  readonly hasNextPage: boolean;
  readonly endCursor: string | undefined;
}

const PageInfoRef = builder.objectRef<PageInfo>('PageInfo').implement({
  description: 'Where a page ends.',
  fields: t => ({
    hasNextPage: t.exposeBoolean('hasNextPage'),
    endCursor: t.exposeID('endCursor', { nullable: true, description: 'What to give as `after` for the next page.' }),
  }),
});

export interface Page<R> extends Rows<R> {
  readonly totalCount: number;
  readonly pageInfo: PageInfo;
}

interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** One page of a list. `idOf` gives the global id, which is the cursor as well. */
export function pageOf<R>(rows: Rows<R>, { first, after }: PageArgs, idOf: (row: R) => string): Page<R> {
  const all = rows.rows;
  const begin = after == null ? 0 : all.findIndex(row => idOf(row) === after) + 1;
  if (after != null && begin === 0) {
    throw invalidRequest(`"after" is ${quoted(after)}, which is not in the list (any more); start again without it`);
  }
  const page = first == null && begin === 0 ? all : all.slice(begin, first == null ? undefined : begin + first);
  const last = page.at(-1);
  return {
    rows: page,
    errors: rows.errors,
    totalCount: all.length,
    pageInfo: { hasNextPage: begin + page.length < all.length, endCursor: last && idOf(last) },
  };
}

type Row<R> = ObjectRef<PothosSchemaTypes.ExtendDefaultTypes<SchemaShape>, R>;

export const keyedErrors = faces({ keyed: { key: 'backend', value: 'message' } });

/** Reads a list of several backends, and notes what it was read from. */
export async function readList<L extends ListName>(
  { gateway, call, reads }: Context,
  backends: readonly Backend[],
  list: L,
) {
  const { registered } = gateway.registry;
  reads?.set(registered, registered.current?.revision ?? 0);
  for (const backend of backends) reads?.set(backend[list], backend[list].current?.revision ?? 0);
  const rows = await askBackends(call, backends, list);
  // Who was late this time does not follow from what was observed.
  if (rows.errors.some(({ error }) => isTimeout(error))) reads?.clear();
  return rows;
}

/** A subscriber is told the first change at once and the next ones no more often than this, in milliseconds. */
const newsMs = 250;

/**
 * The list that a subscription follows. Who names a backend wants one that is there and can answer; who names none wants
 * whatever there is, and be it none yet.
 */
export function followList<L extends ListName>(
  registry: Registry,
  backend: string | null | undefined,
  list: L,
  capability?: AskedCapability,
): Source<Rows<RowsOf<L>>> {
  if (backend?.trim()) capableBackends(registry, backend, capability);
  return steady(listSource(registry, backend, list, capability ? { capability } : {}), newsMs);
}

/** The row that an id means, as `keyOf` names rows; nothing when it, or its backend, is gone. */
export async function findRow<L extends ListName>(
  { gateway, call }: Context,
  id: string,
  list: L,
  keyOf: (row: RowsOf<L>) => string,
): Promise<RowsOf<L> | undefined> {
  const { backend: name, name: key } = parsePlacedId(id);
  const backend = backendNamed(gateway.registry, name);
  if (!backend) return undefined;
  const { rows } = await askBackends(call, [backend], list);
  return rows.find(row => keyOf(row) === key);
}

/** The type of a list: its items, and the backends that could not answer. */
export function listType<R>(name: string, row: Row<R>, what: string) {
  return builder.objectRef<Page<R>>(name).implement({
    description: `${what}, and the backends that could not be asked for theirs.`,
    fields: t => ({
      items: t.field({ type: [row], resolve: list => list.rows }),
      errors: t.field({
        type: [FailureRef],
        nullable: true,
        description: 'The backends that could not answer, if there are any.',
        extensions: keyedErrors,
        resolve: list => (list.errors.length > 0 ? list.errors : null),
      }),
      totalCount: t.exposeInt('totalCount', { description: 'How many there are in all pages.' }),
      pageInfo: t.expose('pageInfo', { type: PageInfoRef }),
    }),
  });
}

/**
 * The type of a list's events. The rows' keys (see `rowsEvents`) are their ids within their type, so that `removed`
 * carries global ids.
 */
export function listEventType<R>(name: string, row: Row<R>, what: string) {
  return builder.objectRef<RowsPayload<R>>(name).implement({
    description: `${what} as they change: the first event is all of them, later ones are what changed.`,
    fields: t => ({
      revision: t.expose('revision', { type: 'Revision', description: 'Grows with every event.' }),
      observedAt: t.expose('observedAt', {
        type: 'DateTime',
        description: "When this was seen, by the server's clock.",
      }),
      snapshot: t.exposeBoolean('snapshot', {
        description: [
          'True: `items` are all there are, forget what you had. False: `items` are those that changed since the event',
          'before, each of them whole.',
        ].join('\n'),
      }),
      items: t.field({ type: [row], resolve: event => event.rows }),
      removed: t.idList({
        description: 'Ids of those that are gone.',
        resolve: event => event.removed.map(key => encodeGlobalID(row.name, key)),
      }),
      errors: t.field({
        type: [FailureRef],
        description: 'Backends that cannot answer at the moment; their items are missing until they can.',
        resolve: event => event.errors,
      }),
    }),
  });
}

/**
 * A subscription yields events of two forms (see `LiveEvent`); whoever serves it picks the form that the subscriber needs
 * and resolves that one, so to its field the events are payloads.
 */
export function served<P>(events: Watch<LiveEvent<P>>): AsyncIterable<P> {
  return events as unknown as AsyncIterable<P>;
}
