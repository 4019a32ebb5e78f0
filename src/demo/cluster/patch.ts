import { parse } from 'yaml';
import { serverSideApply } from './patch/apply.ts';
import { badRequest, PatchError } from './patch/error.ts';
import type { Json, JsonObject } from './patch/json.ts';
import { jsonPatch } from './patch/jsonPatch.ts';
import * as managers from './patch/managers.ts';
import { mergePatch } from './patch/mergePatch.ts';
import { strategicMergePatch } from './patch/strategic.ts';
import { builtInStructure, customStructure, type Structure } from './patch/structure.ts';

export { PatchError } from './patch/error.ts';
export type { JsonObject } from './patch/json.ts';

/** The types of patches, by what `Content-Type` says. */
export const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** Who writes an object. */
export interface Writer {
  /** Name of the writer: `kubectl`. Needed for server-side apply. */
  readonly fieldManager?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Through which subresource it is written, such as `status`. */
  readonly subresource?: string | undefined;
  /** OpenAPI schema of a custom kind, which says how its lists are merged. */
  readonly schema?: object | undefined;
}

export interface PatchOptions extends Writer {
  /** Server-side apply takes over what others own. */
  readonly force?: boolean | undefined;
}

/**
 * The object after a patch; neither the object nor the patch is changed. Server-side apply creates where `current` is
 * undefined, and says in `metadata.managedFields` who owns what; after the other types `trackUpdate` says it. The same
 * content comes back from a patch that changes nothing.
 *
 * `patch` is what `parsePatch` gives. Throws a `PatchError`: 400 for what is no such patch, 409 `Conflict` with each field
 * that another manager owns, 415 for a type that the kind does not take, 422 `Invalid` for what cannot be done.
 */
export function applyPatch(
  contentType: string,
  current: object | undefined,
  patch: unknown,
  options: PatchOptions,
): JsonObject {
  const object = current as JsonObject | undefined;
  const type = contentType.split(';')[0]?.trim();
  if (type === patchTypes.apply) {
    if (!options.fieldManager) throw invalidOptions('fieldManager: Required value: is required for apply patch');
    const { fieldManager, now, subresource } = options;
    const structure = structureOf((object ?? patch) as JsonObject, options.schema);
    return serverSideApply(
      object,
      patch as Json,
      { fieldManager, now, subresource, structure },
      options.force === true,
    );
  }
  const apply = plainPatches[type ?? ''];
  if (!apply || (type === patchTypes.strategic && isCustom(object ?? {}))) throw unknownType(isCustom(object ?? {}));
  if (options.force !== undefined) {
    throw invalidOptions('force: Forbidden: may not be specified for non-apply patch');
  }
  return apply(object ?? {}, patch as Json);
}

const plainPatches: Readonly<Record<string, (current: JsonObject, patch: Json) => JsonObject>> = {
  [patchTypes.json]: jsonPatch,
  [patchTypes.merge]: mergePatch,
  [patchTypes.strategic]: strategicMergePatch,
};

/** The document in the body of a patch. Throws a `PatchError` with status 400. */
export function parsePatch(contentType: string, body: string): unknown {
  try {
    return contentType.startsWith(patchTypes.apply) ? parse(body) : JSON.parse(body);
  } catch (error) {
    throw badRequest(`error decoding patch: ${(error as Error).message}`);
  }
}

/**
 * What is to be stored after a create (`before` is undefined), an update or a patch that is no server-side apply: the
 * object, with `metadata.managedFields` saying that the writer owns what it changed.
 */
export function trackUpdate(before: object | undefined, after: object, writer: Writer): JsonObject {
  const object = after as JsonObject;
  const { now, subresource, fieldManager = 'unknown' } = writer;
  const structure = structureOf(object, writer.schema);
  return managers.trackUpdate(before as JsonObject | undefined, object, { fieldManager, now, subresource, structure });
}

function structureOf(object: JsonObject, schema: object | undefined): Structure {
  return isCustom(object) ? customStructure(schema as JsonObject | undefined) : builtInStructure;
}

/** Groups without a dot and these are Kubernetes' own. */
const ownGroups =
  /^[a-z]+$|^(?:admissionregistration|apiextensions|apiregistration|authentication|authorization|certificates|coordination|discovery|events|networking|node|rbac\.authorization|scheduling|storage)\.k8s\.io$/;

function isCustom({ apiVersion }: JsonObject): boolean {
  const [group = '', version] = String(apiVersion ?? 'v1').split('/');
  return version !== undefined && !ownGroups.test(group);
}

const invalidOptions = (what: string) =>
  new PatchError(422, 'Invalid', `PatchOptions.meta.k8s.io "" is invalid: ${what}`);

function unknownType(isCustomKind: boolean): PatchError {
  const { json, merge, strategic, apply } = patchTypes;
  const accepted = isCustomKind ? [json, merge, apply] : [json, merge, strategic, apply];
  const words = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
  return new PatchError(415, 'UnsupportedMediaType', words);
}
