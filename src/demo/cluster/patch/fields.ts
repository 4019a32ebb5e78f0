import { isList, isObject, type Json, type JsonObject } from './json.ts';
import { keyOf, type Merging, type Structure } from './structure.ts';

/**
 * Fields of an object as server-side apply names them: the steps of FieldsV1 (`f:` a field, `k:` an item by its keys, `v:`
 * an item by its value) in one text.
 */
export type Field = string;
export type FieldSet = ReadonlySet<Field>;

const separator = '\0';
export const fieldAt = (steps: readonly string[]): Field => steps.join(separator);
const stepsOf = (field: Field) => field.split(separator);
export const below = (field: Field) => field + separator;

/** Whether it is an item of a list that is told by keys. */
export const isItem = (field: Field) => stepsOf(field).at(-1)?.startsWith('k:') === true;

/** What stands at a field; true for an item of a list that is told by keys: it is there. */
type Leaves = ReadonlyMap<Field, Json>;

/** Set by the server or by the address, and so nobody's. */
const nobodys = ['apiVersion', 'kind'];
const nobodysMetadata = [
  'creationTimestamp',
  'generation',
  'managedFields',
  'name',
  'namespace',
  'resourceVersion',
  'selfLink',
  'uid',
];
const stripped: FieldSet = new Set([
  ...nobodys.map(name => fieldAt([`f:${name}`])),
  'f:metadata',
  ...nobodysMetadata.map(name => fieldAt(['f:metadata', `f:${name}`])),
]);

export const itemStep = (item: Json, merging: Merging): string =>
  merging.kind === 'keyed' ? `k:${JSON.stringify(sorted(keyOf(item, merging) ?? {}))}` : `v:${JSON.stringify(item)}`;

const sorted = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The fields of an object that somebody can own, with what stands there. */
export function leavesOf(object: JsonObject, structure: Structure): Leaves {
  const leaves = new Map<Field, Json>();

  function visit(value: Json, steps: readonly string[], names: readonly string[]) {
    const merging = isObject(value) || isList(value) ? structure(names, value) : undefined;
    if (!merging || merging.kind === 'atomic' || (isObject(value) && Object.keys(value).length === 0)) {
      leaves.set(fieldAt(steps), value);
    } else if (isObject(value)) {
      for (const [name, member] of Object.entries(value)) visit(member, [...steps, `f:${name}`], [...names, name]);
    } else if (isList(value)) {
      // One without items is nobody's.
      for (const item of value) visitItem(item, [...steps, itemStep(item, merging)], names, merging);
    }
  }

  function visitItem(item: Json, steps: readonly string[], names: readonly string[], merging: Merging) {
    const isWhole = merging.kind !== 'keyed' || !isObject(item) || structure(names, item).kind === 'atomic';
    leaves.set(fieldAt(steps), isWhole ? item : true);
    if (isWhole) return;
    for (const [name, member] of Object.entries(item)) visit(member, [...steps, `f:${name}`], [...names, name]);
  }

  visit(object, [], []);
  for (const field of stripped) leaves.delete(field);
  return leaves;
}

/** As managedFields writes it. */
export function fieldsV1(fields: FieldSet): JsonObject {
  interface Tree extends Record<string, Tree> {}
  const root: Tree = {};
  for (const field of [...fields].sort()) {
    let node = root;
    for (const step of stepsOf(field)) node = node[step] ??= {};
    node['.'] = {};
  }
  // A field without fields of its own needs no mark.
  const written = (node: Tree): JsonObject => {
    const names = Object.keys(node);
    if (names.length === 1 && names[0] === '.') return {};
    return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, written(child)]));
  };
  return written(root);
}

/** Back from what managedFields says. */
export function fieldsOf(written: Json | undefined): FieldSet {
  const fields = new Set<Field>();
  function visit(node: Json, steps: readonly string[]) {
    if (!isObject(node)) return;
    const names = Object.keys(node);
    if (steps.length > 0 && (names.length === 0 || '.' in node)) fields.add(fieldAt(steps));
    for (const name of names) if (name !== '.') visit(node[name] as Json, [...steps, name]);
  }
  visit(written ?? null, []);
  return fields;
}

/** As a conflict names it: `.spec.containers[name="a"].image`. */
export const pathOf = (field: Field): string =>
  stepsOf(field)
    .map(step => {
      const value = step.slice(2);
      if (step.startsWith('f:')) return `.${value}`;
      if (step.startsWith('v:')) return `[=${value}]`;
      const keys = Object.entries(JSON.parse(value) as JsonObject);
      return `[${keys.map(([key, said]) => `${key}=${JSON.stringify(said)}`).join(',')}]`;
    })
    .join('');

/** In the order in which conflicts are told: what ends at a step comes before what goes on below. */
export function byPlace(a: Field, b: Field): number {
  const [left, right] = [stepsOf(a), stepsOf(b)];
  const at = left.findIndex((step, index) => step !== right[index]);
  if (at < 0) return left.length - right.length;
  const ends = (steps: readonly string[]) => (steps.length === at + 1 ? 0 : 1);
  return ends(left) - ends(right) || ((left[at] ?? '') < (right[at] ?? '') ? -1 : 1);
}

export const union = (a: Iterable<Field>, b: Iterable<Field>): FieldSet => new Set([...a, ...b]);

export const minus = (a: Iterable<Field>, b: { has(field: Field): boolean }): FieldSet =>
  new Set([...a].filter(field => !b.has(field)));
