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
    if (name.startsWith(deleteFrom)) {
      const field = name.slice(deleteFrom.length);
      result[field] = listOf(result[field], name).filter(item => !listOf(value, name).some(gone => same(gone, item)));
    }
  }
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith('$')) continue;
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value, [...path, name]);
  }
  for (const [name, order] of Object.entries(patch)) {
    const field = name.slice(setOrder.length);
    const list = result[field];
    if (name.startsWith(setOrder) && isList(list)) result[field] = ordered(list, listOf(order, name), [...path, field]);
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
    return [...current, ...patch.filter(item => !current.some(known => same(known, item)))];
  }
  const isReplaced = patch.some(item => isObject(item) && item.$patch === 'replace');
  const wanted = patch.filter(item => !isObject(item) || item.$patch !== 'replace');
  return wanted.reduce<readonly Json[]>((list, item) => mergeItem(list, item, key, path), isReplaced ? [] : current);
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

/** The items that an order names in that order; each other one stays behind the item it was behind. */
function ordered(list: readonly Json[], order: readonly Json[], path: readonly string[]): readonly Json[] {
  const key = mergeKey(path);
  const keyed = (item: Json | undefined) => (key !== undefined && isObject(item) ? item[key] : item);
  const rank = (item: Json) => order.findIndex(named => same(keyed(named), keyed(item)));
  const result = list.filter(item => rank(item) >= 0).sort((a, b) => rank(a) - rank(b));
  for (const [index, item] of list.entries()) {
    if (rank(item) >= 0) continue;
    const before = list[index - 1];
    result.splice(before === undefined ? 0 : result.indexOf(before) + 1, 0, item);
  }
  return result;
}
