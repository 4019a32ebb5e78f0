import { badRequest, PatchError } from './error.ts';
import { isList, isObject, type Json, type JsonObject, same, without } from './json.ts';
import { builtInStructure } from './structure.ts';

const deleteFrom = '$deleteFromPrimitiveList/';
const setOrder = '$setElementOrder/';

/** A strategic merge patch, for Kubernetes' own kinds: known lists are merged by their keys, and directives are obeyed. */
export function strategicMergePatch(current: JsonObject, patch: Json): JsonObject {
  if (!isObject(patch)) throw badRequest('error decoding patch: json: cannot unmarshal value into an object');
  return mergeMap(current, patch, []);
}

function mergeMap(current: JsonObject, patch: JsonObject, path: readonly string[]): JsonObject {
  const directive = patch.$patch;
  if (directive === 'delete') return {};
  if (directive === 'replace') return mergeMap({}, without(patch, '$patch'), path);
  if (directive !== undefined && directive !== 'merge') throw badRequest(`unknown patch type found: ${directive}`);

  const result: Record<string, Json> = { ...retained(current, patch.$retainKeys) };
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith('$')) continue;
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value, [...path, name]);
  }
  for (const [name, value] of Object.entries(patch)) {
    const field = name.slice(setOrder.length);
    const before = current[field];
    const list = result[field];
    if (name.startsWith(setOrder) && isList(list)) {
      result[field] = ordered(list, listOf(value, name), isList(before) ? before : [], [...path, field]);
    }
  }
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith(deleteFrom)) {
      const field = name.slice(deleteFrom.length);
      result[field] = listOf(result[field], name).filter(item => !listOf(value, name).some(gone => same(gone, item)));
    }
  }
  return result;
}

function retained(current: JsonObject, keys: Json | undefined): JsonObject {
  if (keys === undefined) return current;
  const kept = listOf(keys, '$retainKeys');
  return Object.fromEntries(Object.entries(current).filter(([name]) => kept.includes(name)));
}

function listOf(value: Json | undefined, name: string): readonly Json[] {
  if (value === undefined) return [];
  if (isList(value)) return value;
  throw badRequest(`invalid patch format of ${name}: a list is expected`);
}

function merged(current: Json | undefined, patch: Json, path: readonly string[]): Json {
  if (isObject(patch)) return mergeMap(isObject(current) ? current : {}, patch, path);
  return isList(patch) ? mergeList(isList(current) ? current : [], patch, path) : patch;
}

/** The key that tells the items of a list apart; undefined for lists that are no maps. */
function mergeKey(path: readonly string[]): string | undefined {
  const merging = builtInStructure(path, []);
  return merging.kind === 'keyed' ? merging.keys[0] : undefined;
}

function mergeList(current: readonly Json[], patch: readonly Json[], path: readonly string[]): readonly Json[] {
  const key = mergeKey(path);
  if (key === undefined) {
    if (builtInStructure(path, []).kind === 'atomic') return patch.map(item => merged(undefined, item, path));
    const added = patch.filter(item => !current.some(known => same(known, item)));
    return ordered([...current, ...added], patch, current, path);
  }
  const isReplaced = patch.some(item => isObject(item) && item.$patch === 'replace');
  const wanted = patch.filter(item => !isObject(item) || item.$patch !== 'replace');
  const kept = isReplaced ? [] : current;
  const list = wanted.reduce<readonly Json[]>((found, item) => mergeItem(found, item, key, path), kept);
  return ordered(list, wanted, kept, path);
}

function mergeItem(list: readonly Json[], item: Json, key: string, path: readonly string[]): readonly Json[] {
  if (!isObject(item) || item[key] === undefined) {
    const words = `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`;
    throw new PatchError(422, 'Invalid', words);
  }
  const isSame = (known: Json) => isObject(known) && same(known[key], item[key]);
  if (item.$patch === 'delete') return list.filter(known => !isSame(known));
  const place = list.findIndex(isSame);
  const next = merged(place < 0 ? undefined : list[place], item, path);
  return place < 0 ? [...list, next] : list.with(place, next);
}

/** The items that an order names in that order; each other one where it was `before`, as far as that order lets it. */
function ordered(
  list: readonly Json[],
  order: readonly Json[],
  before: readonly Json[],
  path: readonly string[],
): readonly Json[] {
  const key = mergeKey(path);
  const keyed = (item: Json | undefined) => (key !== undefined && isObject(item) ? item[key] : item);
  const rankIn = (items: readonly Json[], item: Json) => items.findIndex(each => same(keyed(each), keyed(item)));
  const named = list.filter(item => rankIn(order, item) >= 0);
  named.sort((a, b) => rankIn(order, a) - rankIn(order, b));
  const result: Json[] = [];
  for (const item of list.filter(each => rankIn(order, each) < 0)) {
    const place = rankIn(before, item);
    while (named[0] !== undefined && rankIn(before, named[0]) <= place) result.push(named.shift() as Json);
    result.push(item);
  }
  return [...result, ...named];
}
