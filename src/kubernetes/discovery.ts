import type { Call } from '../call.ts';
import { unlessMissing } from '../errors.ts';
import type { GroupVersions } from './client.ts';
import type { Attempt } from './errors.ts';
import { groupPath, versionPath } from './transport/objects.ts';
import type { Transport } from './transport.ts';

/** What the API server serves of a group: its versions, the preferred one first. Undefined when it serves none. */
export async function readVersions(
  transport: Transport,
  call: Call,
  group: string,
): Promise<GroupVersions | undefined> {
  const attempt = { verb: 'discover', resource: { group, plural: 'versions', namespaced: false } };
  const document = await found(transport, call, attempt, groupPath(group));
  if (!document) return undefined;
  // The core group is older than groups: its versions are plain words and none is preferred.
  const versions = listOf(document.versions).flatMap(each =>
    typeof each === 'string' ? [each] : textsOf(recordOf(each).version),
  );
  const [preferred] = textsOf(recordOf(document.preferredVersion).version);
  return { group, versions: [...new Set([...(preferred ? [preferred] : []), ...versions])] };
}

/** Plural names of the resources of a version; none when the API server does not serve it. */
export async function readResources(
  transport: Transport,
  call: Call,
  group: string,
  version: string,
): Promise<readonly string[]> {
  const attempt = { verb: 'discover', resource: { group, plural: `resources of ${version}`, namespaced: false } };
  const document = await found(transport, call, attempt, versionPath({ group, version }));
  const names = listOf(document?.resources).flatMap(each => textsOf(recordOf(each).name));
  // `pods/log` is a part of an object.
  return names.filter(name => !name.includes('/'));
}

async function found(transport: Transport, call: Call, attempt: Attempt, path: string) {
  return unlessMissing(transport.document(call, { attempt, method: 'GET', path }).then(recordOf));
}

const recordOf = (value: unknown) =>
  (value !== null && typeof value === 'object' ? value : {}) as Readonly<Record<string, unknown>>;
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textsOf = (value: unknown) => (typeof value === 'string' ? [value] : []);
