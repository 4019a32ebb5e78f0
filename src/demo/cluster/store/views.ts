import { apiVersionOf, type Kind } from './kinds.ts';
import { type KubernetesObject, recordOf, withFields } from './object.ts';

/** An object of the store as a version of its kind shows it. */
export function shown(kind: Kind, version: string, object: KubernetesObject): KubernetesObject {
  const apiVersion = apiVersionOf(kind.group, version);
  if (kind.keptAs === 'events') return { ...renamed(object, eventFields), apiVersion };
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

/** An object in any version of its kind as the store keeps it. */
export function kept(kind: Kind, object: KubernetesObject): KubernetesObject {
  if (kind.keptAs === 'events') {
    const back = Object.fromEntries(Object.entries(eventFields).map(([core, newer]) => [newer, core]));
    return { ...renamed(object, back), apiVersion: 'v1' };
  }
  const apiVersion = apiVersionOf(kind.group, kind.storage);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}

/** Fields of a core event, and what events.k8s.io calls them. */
const eventFields: Readonly<Record<string, string>> = {
  count: 'deprecatedCount',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  source: 'deprecatedSource',
  involvedObject: 'regarding',
  message: 'note',
  reportingComponent: 'reportingController',
};

function renamed(object: KubernetesObject, names: Readonly<Record<string, string>>): KubernetesObject {
  const moved = Object.entries(names).flatMap(([from, to]) => (object[from] === undefined ? [] : [[to, object[from]]]));
  const gone = Object.fromEntries(Object.keys(names).map(from => [from, undefined]));
  return withFields(object, { ...gone, ...recordOf(Object.fromEntries(moved)) });
}
