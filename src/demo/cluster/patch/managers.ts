import { type FieldSet, fieldsOf, fieldsV1, leavesOf, minus, union } from './fields.ts';
import { isList, isObject, type Json, type JsonObject, same } from './json.ts';
import type { Structure } from './structure.ts';

/** Who set which fields of an object, and how. */
export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string | undefined;
  /** RFC 3339 */
  readonly time: string;
  readonly fields: FieldSet;
}

/** Who writes, and when. */
export interface Writing {
  readonly fieldManager: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly subresource?: string | undefined;
  readonly structure: Structure;
}

export const timestamp = (now: number) => new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');

export function managersOf(object: JsonObject | undefined): readonly Manager[] {
  const written = isObject(object?.metadata) ? object.metadata.managedFields : undefined;
  if (!isList(written)) return [];
  return written.filter(isObject).map(entry => ({
    manager: String(entry.manager ?? ''),
    operation: entry.operation === 'Apply' ? 'Apply' : 'Update',
    apiVersion: String(entry.apiVersion ?? ''),
    subresource: typeof entry.subresource === 'string' && entry.subresource !== '' ? entry.subresource : undefined,
    time: String(entry.time ?? ''),
    fields: fieldsOf(entry.fieldsV1),
  }));
}

/** The object with its managers, those without a field left out. */
export function withManagers(object: JsonObject, managers: readonly Manager[]): JsonObject {
  const written = managers
    .filter(({ fields }) => fields.size > 0)
    .sort((a, b) => compare(a.operation, b.operation) || compare(a.time, b.time) || compare(a.manager, b.manager))
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      manager,
      operation,
      apiVersion,
      time,
      fieldsType: 'FieldsV1',
      fieldsV1: fieldsV1(fields),
      ...(subresource === undefined ? {} : { subresource }),
    }));
  return withManagedFields(object, written);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function withManagedFields(object: JsonObject, managedFields: readonly Json[] | undefined): JsonObject {
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  const isSaid = managedFields !== undefined && managedFields.length > 0;
  return { ...object, metadata: { ...metadata, ...(isSaid ? { managedFields } : {}) } };
}

/** Whether two entries are of one manager. An applier stays the same over the versions of a kind. */
export const isSameManager = (a: Omit<Manager, 'fields' | 'time'>, b: Omit<Manager, 'fields' | 'time'>) =>
  a.manager === b.manager &&
  a.operation === b.operation &&
  a.subresource === b.subresource &&
  (a.operation === 'Apply' || a.apiVersion === b.apiVersion);

/**
 * The object after a create, update or patch, with the writer owning what it changed and nobody what is gone. `before` is
 * undefined for a create. What never had a manager gets none; an empty list of managers clears them all.
 */
export function trackUpdate(before: JsonObject | undefined, after: JsonObject, writing: Writing): JsonObject {
  const said = isObject(after.metadata) ? after.metadata.managedFields : undefined;
  const isReset = isList(said) && (said.length === 0 || (said.length === 1 && same(said[0], {})));
  if (before && isReset) return withManagedFields(after, undefined);
  const known = managersOf(said === undefined ? before : after);
  if (before && known.length === 0) return withManagedFields(after, undefined);

  const old = before ? leavesOf(before, writing.structure) : new Map<string, Json>();
  const now = leavesOf(after, writing.structure);
  const changed = new Set([...now.keys()].filter(field => !old.has(field) || !same(old.get(field), now.get(field))));
  const gone = minus(old.keys(), now);
  const touched = union(changed, gone);
  if (touched.size === 0) return withManagers(after, known);

  const self = {
    manager: writing.fieldManager,
    operation: 'Update' as const,
    apiVersion: String(after.apiVersion ?? ''),
    subresource: writing.subresource,
  };
  const own = known.find(entry => isSameManager(entry, self));
  const others = known
    .filter(entry => entry !== own)
    .map(entry => ({ ...entry, fields: minus(entry.fields, touched) }));
  const fields = union(minus(own?.fields ?? [], gone), changed);
  return withManagers(after, [...others, { ...self, time: timestamp(writing.now), fields }]);
}
