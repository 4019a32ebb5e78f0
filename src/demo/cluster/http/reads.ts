import { fieldSelector, labelSelector, SelectorError } from '../selectors.ts';
import { badRequest, expired, StatusError } from '../status.ts';
import { apiVersionOf, type Kind, tableOf } from '../store/kinds.ts';
import type { KubernetesObject } from '../store/object.ts';
import type { Store } from '../store/store.ts';
import { shown } from '../store/views.ts';
import type { ObjectList } from './table.ts';

/** Whether an object, as a version shows it, is asked for. */
export type Test = (object: KubernetesObject) => boolean;

/** Fields that can be selected by, besides the name and namespace of everything. */
const selectable: Readonly<Record<string, readonly string[]>> = {
  pods: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
  ],
  events: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  secrets: ['type'],
  namespaces: ['status.phase'],
  nodes: ['spec.unschedulable'],
  jobs: ['status.successful'],
};

/** What the query selects, in a namespace or in all. Throws `BadRequest`. */
export function selection(kind: Kind, namespace: string, query: URLSearchParams): Test {
  const fields = [...(selectable[kind.plural] ?? []), 'metadata.name', 'metadata.namespace'];
  try {
    const labels = labelSelector(query.get('labelSelector') ?? '');
    const field = fieldSelector(query.get('fieldSelector') ?? '', path => fields.includes(path));
    return object =>
      (namespace === '' || object.metadata.namespace === namespace) &&
      labels(object.metadata.labels ?? {}) &&
      field(object);
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message);
    throw error;
  }
}

/** Undefined when absent. Throws `BadRequest`. */
export function versionIn(query: URLSearchParams): number | undefined {
  const text = query.get('resourceVersion') ?? '';
  if (text === '') return undefined;
  if (!/^\d+$/.test(text)) {
    throw badRequest(`resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`);
  }
  return Number(text);
}

/** Where a list in pages goes on: after a key, as things were at a version. */
interface Continue {
  readonly at: number;
  readonly after: string;
}

/** A list, whole or the next page of it. Throws a `StatusError`. */
export function listed(
  store: Store,
  kind: Kind,
  version: string,
  namespace: string,
  query: URLSearchParams,
): ObjectList {
  const test = selection(kind, namespace, query);
  const asked = versionIn(query);
  if (asked !== undefined && asked > store.version) throw tooNew(asked, store.version);
  const token = continueIn(query.get('continue') ?? '');
  const exact = query.get('resourceVersionMatch') === 'Exact' ? asked : undefined;
  const at = token?.at ?? exact ?? store.version;
  const all = objectsAt(store, kind, at, token !== undefined)
    .map(object => shown(kind, version, object))
    .filter(test);

  const start = token ? all.findIndex(object => keyOf(object) > token.after) : 0;
  const rest = start < 0 ? [] : all.slice(start);
  const limit = Number(query.get('limit') ?? 0) || rest.length;
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  const left = rest.length - items.length;
  const isWhole = !query.get('labelSelector') && !query.get('fieldSelector');
  return {
    apiVersion: apiVersionOf(kind.group, version),
    kind: kind.listKind,
    metadata: {
      resourceVersion: String(at),
      ...(left > 0 && last && { continue: tokenOf({ at, after: keyOf(last) }) }),
      ...(left > 0 && isWhole && { remainingItemCount: left }),
    },
    items,
  };
}

function objectsAt(store: Store, kind: Kind, at: number, isContinued: boolean): readonly KubernetesObject[] {
  try {
    return store.list(tableOf(kind), at);
  } catch (error) {
    if (!isContinued || !(error instanceof StatusError)) throw error;
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
    );
  }
}

const keyOf = ({ metadata }: KubernetesObject) => `${metadata.namespace ?? ''}/${metadata.name}`;

const tokenOf = (next: Continue) => Buffer.from(JSON.stringify(next)).toString('base64url');

function continueIn(token: string): Continue | undefined {
  if (token === '') return undefined;
  try {
    const { at, after } = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (typeof at === 'number' && typeof after === 'string') return { at, after };
  } catch {
    // Told below, like a document that is none of ours.
  }
  throw badRequest(`continue key is not valid: ${token}`);
}

function tooNew(asked: number, current: number): StatusError {
  return new StatusError(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    retryAfterSeconds: 1,
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
  });
}
