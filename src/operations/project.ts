import type { Shape, ShapeField } from './shape.ts';

type Row = Record<string, unknown>;

/**
 * Makes a fresh GraphQL result what the old faces write, in place: null becomes what the field's mark says, or
 * `undefined`, which JSON leaves out. Returns what stands in place of the value.
 */
export type Project = (value: unknown) => unknown;

const asItIs: Project = value => value;

/** The projection of a shape. It visits only what may have to change. */
export function projectionOf(shape: Shape): Project {
  switch (shape.kind) {
    case 'leaf':
      return asItIs;
    case 'list':
      return listProjection(projectionOf(shape.item));
    case 'keyed':
      return value =>
        Object.fromEntries((value as Row[]).map(entry => [entry[shape.key] as string, entry[shape.value]]));
    case 'object':
      return objectProjection(shape.fields);
  }
}

function listProjection(item: Project): Project {
  if (item === asItIs) return asItIs;
  return value => {
    const list = value as unknown[];
    for (let index = 0; index < list.length; index++) list[index] = item(list[index]);
    return list;
  };
}

function objectProjection(fields: readonly ShapeField[]): Project {
  const steps = fields.flatMap(field => stepOf(field) ?? []);
  if (steps.length === 0) return asItIs;
  return value => {
    const row = value as Row;
    for (const step of steps) step(row);
    return row;
  };
}

/** What is done to a row for one field; nothing for a field that is always as it should be. */
function stepOf({ key, shape, nullable, marks }: ShapeField): ((row: Row) => void) | undefined {
  const project = projectionOf(shape);
  const { whenNull, omitZero, omitFalse } = marks;
  if (!nullable && project === asItIs && !omitZero && !omitFalse) return undefined;
  return row => {
    const value = row[key];
    if (value === null || value === undefined) row[key] = whenNull;
    else if ((omitZero && value === 0) || (omitFalse && value === false)) row[key] = undefined;
    else if (project !== asItIs) row[key] = project(value);
  };
}
