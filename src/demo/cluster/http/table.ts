import type { Kind } from '../store/kinds.ts';
import type { KubernetesObject } from '../store/object.ts';
import { columnsOf } from './columns.ts';

/** How a client wants to see objects: as they are, or as rows of a table, which is what `kubectl get` prints. */
export interface Showing {
  list(list: ObjectList): object;
  /** The first one of a watch tells the columns, too. */
  object(object: KubernetesObject, isFirst?: boolean): object;
}

export interface ObjectList {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: object;
  readonly items: readonly KubernetesObject[];
}

const asTheyAre: Showing = { list: list => list, object: object => object };

/** `now` in milliseconds. */
export function showing(
  accept: string,
  query: URLSearchParams,
  kind: Kind,
  version: string,
  now: () => number,
): Showing {
  if (!/as=Table;v=v1(?![\w])/.test(accept.split(',')[0] ?? '')) return asTheyAre;
  const columns = columnsOf(kind, version);
  const includes = query.get('includeObject') ?? 'Metadata';
  const columnDefinitions = columns.map(({ name, type, format = '', priority = 0 }) => ({
    name,
    type,
    format,
    description: '',
    priority,
  }));
  const rowOf = (object: KubernetesObject) => ({
    cells: columns.map(column => column.cell(object, now())),
    ...(includes !== 'None' && { object: includes === 'Object' ? object : metadataOf(object) }),
  });
  const table = (metadata: object, rows: readonly object[], hasColumns: boolean) => ({
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: hasColumns ? columnDefinitions : null,
    rows,
  });
  return {
    list: ({ metadata, items }) => table(metadata, items.map(rowOf), true),
    object: (object, isFirst = true) =>
      table({ resourceVersion: object.metadata.resourceVersion }, [rowOf(object)], isFirst),
  };
}

const metadataOf = ({ metadata }: KubernetesObject) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata,
});
