import { badRequest, PatchError } from './error.ts';
import {
  below,
  byPlace,
  type Field,
  type FieldSet,
  fieldAt,
  isItem,
  itemStep,
  leavesOf,
  minus,
  pathOf,
  union,
} from './fields.ts';
import { isList, isObject, type Json, type JsonObject, same } from './json.ts';
import { isSameManager, type Manager, managersOf, timestamp, type Writing, withManagers } from './managers.ts';
import type { Structure } from './structure.ts';

/** Server-side apply: an object that says what its manager wants of it and nothing else. */
export function serverSideApply(
  current: JsonObject | undefined,
  wanted: Json,
  writing: Writing,
  force: boolean,
): JsonObject {
  if (!isObject(wanted)) throw badRequest('error decoding YAML: cannot unmarshal value into an object');
  if (typeof wanted.apiVersion !== 'string' || typeof wanted.kind !== 'string') {
    throw badRequest("Object 'Kind' or 'apiVersion' is missing in the patch");
  }
  const metadata = isObject(wanted.metadata) ? wanted.metadata : {};
  if (metadata.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');

  const { structure } = writing;
  const leaves = leavesOf(wanted, structure);
  const fields: FieldSet = new Set(leaves.keys());
  const self = {
    manager: writing.fieldManager,
    operation: 'Apply' as const,
    apiVersion: wanted.apiVersion,
    subresource: writing.subresource,
  };
  const known = knownManagers(current, writing);
  const own = known.find(entry => isSameManager(entry, self));
  const others = known.filter(entry => entry !== own);

  const standing = current ? leavesOf(current, structure) : new Map<Field, Json>();
  const changed = new Set([...fields].filter(field => !isMet(field, leaves.get(field), standing)));
  const taken = others.map(entry => ({ entry, lost: lostTo(changed, leaves, entry.fields) }));
  const conflicts = taken.flatMap(({ entry, lost }) => [...lost].sort(byPlace).map(field => ({ entry, field })));
  const handedOver = writing.fieldManager === 'kubectl' ? lastApplied(current, standing, structure) : new Set<Field>();
  const refused = conflicts.filter(({ field }) => !handedOver.has(field));
  if (refused.length > 0 && !force) throw conflictError(refused);

  const left = taken.map(({ entry, lost }) => ({ ...entry, fields: minus(entry.fields, lost) }));
  const owned = left.reduce((all, entry) => union(all, entry.fields), fields);
  const dropped = droppedFrom(minus(own?.fields ?? [], fields), owned);
  const merged = merge(current ?? {}, wanted, [], structure) as JsonObject;
  const result = without(merged, dropped, structure);
  const after = leavesOf(result, structure);
  const gone = new Set([...standing.keys()].filter(field => !isOwned(field, after.keys())));

  const isUnchanged =
    own && own.apiVersion === self.apiVersion && sameFields(own.fields, fields) && sameContent(result, current);
  const time = isUnchanged ? own.time : timestamp(writing.now);
  const rest = left.map(entry => ({ ...entry, fields: minus(entry.fields, gone) }));
  return withManagers(result, [...rest, { ...self, time, fields }]);
}

/** Whether a field is as it is wanted. A map of which nothing is wanted but that it is there may have members. */
const isMet = (field: Field, value: Json | undefined, standing: ReadonlyMap<Field, Json>) =>
  same(standing.get(field), value) ||
  (isObject(value) && Object.keys(value).length === 0 && !standing.has(field) && isOwned(field, standing.keys()));

/** What was there before its managers were written down belongs to one that nobody is. */
function knownManagers(current: JsonObject | undefined, { structure, now }: Writing): readonly Manager[] {
  const known = managersOf(current);
  if (!current || known.length > 0) return known;
  const first: Manager = {
    manager: 'before-first-apply',
    operation: 'Update',
    apiVersion: String(current.apiVersion ?? ''),
    subresource: undefined,
    time: timestamp(now),
    fields: new Set(leavesOf(current, structure).keys()),
  };
  return [first];
}

/**
 * What `kubectl` has set by itself before it left that to the server, and nobody has changed since: it is no conflict when
 * it sets that anew.
 */
function lastApplied(
  current: JsonObject | undefined,
  standing: ReadonlyMap<Field, Json>,
  structure: Structure,
): FieldSet {
  const { annotations } = isObject(current?.metadata) ? current.metadata : {};
  const text = isObject(annotations) ? annotations['kubectl.kubernetes.io/last-applied-configuration'] : undefined;
  const said = typeof text === 'string' ? parsed(text) : undefined;
  const leaves = isObject(said) ? leavesOf(said, structure) : new Map<Field, Json>();
  return new Set([...leaves].filter(([field, value]) => same(standing.get(field), value)).map(([field]) => field));
}

/** Undefined for what is no JSON: anybody can write an annotation. */
function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Of another manager's fields those that a change takes: the very field, or what a value in its place leaves no room for. */
function lostTo(changed: FieldSet, leaves: ReadonlyMap<Field, Json>, fields: FieldSet): FieldSet {
  const lost = new Set<Field>();
  for (const field of changed) {
    if (fields.has(field)) lost.add(field);
    const value = leaves.get(field);
    if (isObject(value) || isList(value) || value === true) continue;
    for (const other of fields) if (other.startsWith(below(field))) lost.add(other);
  }
  return lost;
}

/** Whether a field, or one below it, is among these. */
const isOwned = (field: Field, owned: Iterable<Field>) =>
  [...owned].some(other => other === field || other.startsWith(below(field)));

/** What its manager no longer wants and nobody else does. An item of a list goes with all in it that others have set. */
const droppedFrom = (fields: FieldSet, owned: FieldSet): FieldSet =>
  new Set([...fields].filter(field => (isItem(field) ? !owned.has(field) : !isOwned(field, owned))));

const sameFields = (a: FieldSet, b: FieldSet) => a.size === b.size && [...a].every(field => b.has(field));

/** Whether two objects say the same, whoever said it. */
function sameContent(a: JsonObject, b: JsonObject | undefined): boolean {
  if (!b || !isObject(a.metadata) || !isObject(b.metadata)) return false;
  const bare = (object: JsonObject, metadata: JsonObject) => ({
    ...object,
    metadata: { ...metadata, managedFields: null },
  });
  return same(bare(a, a.metadata), bare(b, b.metadata));
}

function conflictError(conflicts: readonly { readonly entry: Manager; readonly field: Field }[]): PatchError {
  const causes = conflicts.map(({ entry, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${spelled(entry)}`,
    field: pathOf(field),
  }));
  const [only] = conflicts;
  if (conflicts.length === 1 && only) {
    const words = `Apply failed with 1 conflict: conflict with ${spelled(only.entry)}: ${pathOf(only.field)}`;
    return new PatchError(409, 'Conflict', words, causes);
  }
  const byManager = Map.groupBy(conflicts, ({ entry }) => spelled(entry));
  const blocks = [...byManager]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, of]) => {
      return [`conflicts with ${manager}:`, ...of.map(({ field }) => `- ${pathOf(field)}`)].join('\n');
    });
  const words = `Apply failed with ${conflicts.length} conflicts: ${blocks.join('\n')}`;
  return new PatchError(409, 'Conflict', words, causes);
}

function spelled({ manager, operation, apiVersion, subresource }: Manager): string {
  const name = JSON.stringify(manager) + (subresource === undefined ? '' : ` with subresource "${subresource}"`);
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

function merge(current: Json | undefined, wanted: Json, names: readonly string[], structure: Structure): Json {
  if (isObject(wanted) && isObject(current) && structure(names, wanted).kind === 'members') {
    const result: Record<string, Json> = { ...current };
    for (const [name, value] of Object.entries(wanted)) {
      if (value === null) delete result[name];
      else result[name] = merge(result[name], value, [...names, name], structure);
    }
    return result;
  }
  if (!isList(wanted) || !isList(current)) return wanted;
  const merging = structure(names, wanted);
  if (merging.kind === 'atomic') return wanted;
  const known = new Map(current.map(item => [itemStep(item, merging), item]));
  const named = new Map(wanted.map(item => [itemStep(item, merging), item]));
  const result = new Map<string, Json>();
  const left = [...known];
  // In the wanted order; what nobody wants stays in front of what it was in front of.
  for (const [step, item] of named) {
    for (let [at, other] = left[0] ?? []; at !== undefined && (result.has(at) || !named.has(at)); ) {
      if (!result.has(at)) result.set(at, other as Json);
      left.shift();
      [at, other] = left[0] ?? [];
    }
    result.set(step, mergeItem(known.get(step), item, names, structure));
  }
  for (const [step, item] of left) if (!result.has(step)) result.set(step, item);
  return [...result.values()];
}

/** An item of a list is a map that is merged member by member. */
function mergeItem(current: Json | undefined, item: Json, names: readonly string[], structure: Structure): Json {
  if (!isObject(current) || !isObject(item) || structure(names, item).kind === 'atomic') return item;
  const merged = Object.entries(item).map(([name, value]) => [
    name,
    merge(current[name], value, [...names, name], structure),
  ]);
  return { ...current, ...Object.fromEntries(merged) };
}

/** The object without some of its fields, and without the maps and lists that this leaves empty. */
function without(object: JsonObject, dropped: FieldSet, structure: Structure): JsonObject {
  function kept(value: Json, steps: readonly string[], names: readonly string[]): Json | undefined {
    if (steps.length > 0 && dropped.has(fieldAt(steps))) return undefined;
    if (isObject(value)) return structure(names, value).kind === 'atomic' ? value : keptMembers(value, steps, names);
    if (!isList(value)) return value;
    const merging = structure(names, value);
    if (merging.kind === 'atomic') return value;
    const items = value.flatMap(item => {
      const at = [...steps, itemStep(item, merging)];
      if (dropped.has(fieldAt(at))) return [];
      const isWhole = !isObject(item) || structure(names, item).kind === 'atomic';
      return isWhole ? [item] : (keptMembers(item, at, names) ?? []);
    });
    return items.length === 0 && value.length > 0 ? undefined : items;
  }

  function keptMembers(value: JsonObject, steps: readonly string[], names: readonly string[]): JsonObject | undefined {
    const entries = Object.entries(value).flatMap(([name, member]) => {
      const left = kept(member, [...steps, `f:${name}`], [...names, name]);
      return left === undefined ? [] : [[name, left] as const];
    });
    return entries.length === 0 && Object.keys(value).length > 0 ? undefined : Object.fromEntries(entries);
  }

  return dropped.size === 0 ? object : (keptMembers(object, [], []) ?? {});
}
