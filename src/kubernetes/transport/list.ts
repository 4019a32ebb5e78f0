import type { Call } from '../../call.ts';
import { GatewayError } from '../../errors.ts';
import type { ObjectList, Selection } from '../client.ts';
import { noObject } from '../errors.ts';
import type { KubernetesObject, Resource } from '../resource.ts';
import type { Transport } from '../transport.ts';
import { collectionPath, isObject } from './objects.ts';

/** Objects in a page. */
const pageSize = 500;

/** All selected objects. A list that takes so long that its pages are not kept any more begins again, once. */
export async function listObjects<T extends KubernetesObject>(
  transport: Transport,
  call: Call,
  resource: Resource<T>,
  selection: Selection,
): Promise<ObjectList<T>> {
  const first = await pages(transport, call, resource, selection, true);
  return first ?? ((await pages(transport, call, resource, selection, false)) as ObjectList<T>);
}

/** Undefined when the pages ended early and that `mayExpire`. */
async function pages<T extends KubernetesObject>(
  transport: Transport,
  call: Call,
  resource: Resource<T>,
  { namespace, labelSelector, fieldSelector }: Selection,
  mayExpire: boolean,
): Promise<ObjectList<T> | undefined> {
  const attempt = { verb: 'list', resource, namespace };
  const items: T[] = [];
  for (let next: string | undefined; ; ) {
    const path = collectionPath(resource, namespace, { labelSelector, fieldSelector, limit: pageSize, continue: next });
    let answer: unknown;
    try {
      answer = await transport.document(call, { attempt, method: 'GET', path });
    } catch (error) {
      if (mayExpire && next !== undefined && isExpired(error)) return undefined;
      throw error;
    }
    const page = answer as { items?: unknown; metadata?: { continue?: unknown; resourceVersion?: unknown } };
    const { continue: more, resourceVersion } = page.metadata ?? {};
    // Some servers write an empty list as null.
    const found = page.items === null ? [] : page.items;
    if (!Array.isArray(found) || typeof resourceVersion !== 'string') throw noObject(attempt, transport.server, 'list');
    const named = found.filter(each => isObject<T>(each));
    if (named.length < found.length)
      call.log.warn({ path, left: found.length - named.length }, 'API server listed objects without a name');
    items.push(...named);
    if (typeof more !== 'string' || more === '') return { items, resourceVersion };
    next = more;
  }
}

const isExpired = (error: unknown) =>
  error instanceof GatewayError && (error.details?.reason === 'Expired' || error.details?.reason === 'Gone');
