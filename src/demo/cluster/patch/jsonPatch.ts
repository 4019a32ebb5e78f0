import { badRequest, PatchError } from './error.ts';
import { isList, isObject, type Json, type JsonObject, same } from './json.ts';

interface Operation {
  readonly op: string;
  readonly path: readonly string[];
  readonly from: readonly string[];
  readonly value: Json | undefined;
}

/** RFC 6902: all operations or none. */
export function jsonPatch(current: JsonObject, patch: Json): JsonObject {
  if (!isList(patch)) throw badRequest('error decoding patch: json: cannot unmarshal object into a list of operations');
  const result = patch.map(operationOf).reduce<Json>(applied, current);
  if (!isObject(result)) throw rejected();
  return result;
}

/** The API server does not say which operation it was. */
const rejected = () => new PatchError(422, 'Invalid', 'the server rejected our request due to an error in our request');

function operationOf(operation: Json): Operation {
  if (!isObject(operation)) throw badRequest('error decoding patch: an operation is no object');
  const { op, path, from, value } = operation;
  if (typeof op !== 'string' || typeof path !== 'string') throw rejected();
  return { op, path: stepsOf(path), from: typeof from === 'string' ? stepsOf(from) : [], value };
}

/** The steps of a JSON pointer. */
function stepsOf(pointer: string): readonly string[] {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) throw rejected();
  const steps = pointer.slice(1).split('/');
  return steps.map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function applied(document: Json, { op, path, from, value }: Operation): Json {
  switch (op) {
    case 'test':
      if (!same(read(document, path), value ?? null)) throw rejected();
      return document;
    case 'add':
      return add(document, path, given(value));
    case 'remove':
      return remove(document, path);
    case 'replace':
      return replace(document, path, given(value));
    case 'copy':
      return add(document, path, read(document, from));
    case 'move':
      return add(remove(document, from), path, read(document, from));
    default:
      throw rejected();
  }
}

function given(value: Json | undefined): Json {
  if (value === undefined) throw rejected();
  return value;
}

/** What stands at a path; null for a member that an object has not, as in API servers. */
function read(document: Json, path: readonly string[]): Json {
  let value = document;
  for (const [index, step] of path.entries()) {
    const isLast = index === path.length - 1;
    if (isList(value)) value = value[indexOf(step, value.length - 1)] as Json;
    else if (isObject(value) && Object.hasOwn(value, step)) value = value[step] as Json;
    else if (isObject(value) && isLast) value = null;
    else throw rejected();
  }
  return value;
}

/** Also a member that is not there, as in API servers. */
function replace(document: Json, path: readonly string[], value: Json): Json {
  const isMember = path.length > 0 && isObject(read(document, path.slice(0, -1)));
  return add(isMember ? document : remove(document, path), path, value);
}

function indexOf(step: string, last: number): number {
  const index = /^(?:0|[1-9]\d*)$/.test(step) ? Number(step) : Number.NaN;
  if (!(index <= last)) throw rejected();
  return index;
}

const add = (document: Json, path: readonly string[], value: Json): Json =>
  changed(document, path, (parent, step) => {
    if (isObject(parent)) return { ...parent, [step]: value };
    return parent.toSpliced(step === '-' ? parent.length : indexOf(step, parent.length), 0, value);
  }) ?? value;

function remove(document: Json, path: readonly string[]): Json {
  const left = changed(document, path, (parent, step) => {
    if (isList(parent)) return parent.toSpliced(indexOf(step, parent.length - 1), 1);
    if (!Object.hasOwn(parent, step)) throw rejected();
    const { [step]: _, ...rest } = parent;
    return rest;
  });
  // Only for a moment: what takes the place of the whole document comes next, or the patch is rejected.
  return left ?? null;
}

/** The document with its innermost object or list of a path changed; undefined when the path is the whole document. */
function changed(
  document: Json,
  [step, ...rest]: readonly string[],
  change: (parent: JsonObject | readonly Json[], step: string) => Json,
): Json | undefined {
  if (step === undefined) return undefined;
  if (!isObject(document) && !isList(document)) throw rejected();
  if (rest.length === 0) return change(document, step);
  if (isList(document)) {
    const index = indexOf(step, document.length - 1);
    return document.with(index, changed(document[index] as Json, rest, change) as Json);
  }
  if (!Object.hasOwn(document, step)) throw rejected();
  return { ...document, [step]: changed(document[step] as Json, rest, change) as Json };
}
