/** From changes to what there was at an instant, and back. */
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { type ContainerLog, type Denied, type Instant, keyOf, type Recording } from '../recording.ts';

/** Everything there was at an instant. */
export interface State {
  /** By namespace and name, as an API server lists them. */
  readonly objects: readonly KubernetesObject[];
  readonly denied: readonly Denied[];
  readonly log: ContainerLog | undefined;
}

const nothing: State = { objects: [], denied: [], log: undefined };

/** @param index of the instant */
export const stateAt = ({ instants }: Pick<Recording, 'instants'>, index: number): State =>
  instants.slice(0, index + 1).reduce(stateAfter, nothing);

function stateAfter(before: State, { objects, gone, denied, log }: Instant): State {
  const all = new Map(before.objects.map(each => [keyOf(each), each]));
  for (const key of gone) all.delete(key);
  for (const each of objects) all.set(keyOf(each), each);
  return {
    objects: [...all.values()].toSorted(byPlace),
    denied: denied ?? before.denied,
    log: log === undefined ? before.log : (log ?? undefined),
  };
}

function byPlace({ metadata: a }: KubernetesObject, { metadata: b }: KubernetesObject): number {
  const [left, right] = [a, b].map(({ namespace = '', name }) => `${namespace}/${name}`) as [string, string];
  return left < right ? -1 : left > right ? 1 : 0;
}

type Changes = Pick<Instant, 'objects' | 'gone' | 'denied' | 'log'>;

/** What an instant has to say that follows on another; undefined when there is nothing. */
export function changesBetween(before: State | undefined, next: State): Changes | undefined {
  const old = new Map(before?.objects.map(each => [keyOf(each), each]));
  const objects = next.objects.filter(each => !isDeepStrictEqual(old.get(keyOf(each)), each));
  const kept = new Set(next.objects.map(keyOf));
  const gone = [...old.keys()].filter(key => !kept.has(key));
  const isDenied = !isDeepStrictEqual(before?.denied ?? [], next.denied);
  const isLogged = !isDeepStrictEqual(before?.log, next.log);
  if (objects.length + gone.length === 0 && !isDenied && !isLogged) return undefined;
  return { objects, gone, ...(isDenied && { denied: next.denied }), ...(isLogged && { log: next.log ?? null }) };
}
