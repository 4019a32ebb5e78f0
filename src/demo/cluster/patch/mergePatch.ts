import { badRequest } from './error.ts';
import { isObject, type Json, type JsonObject } from './json.ts';

/** RFC 7386: members are merged, null removes, everything else replaces. */
export function mergePatch(current: JsonObject, patch: Json): JsonObject {
  if (!isObject(patch)) throw badRequest('error decoding patch: json: cannot unmarshal value into an object');
  return merged(current, patch) as JsonObject;
}

function merged(current: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json> = isObject(current) ? { ...current } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}
