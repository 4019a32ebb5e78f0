import { getNamedType, isEnumType } from 'graphql';
import { z } from 'zod';
import type { Variable } from './load.ts';
import { type JsonSchema, leafSchema } from './shape.ts';

/** What a variable's JSON must look like: the type of the graph, and what the argument's own check says of it. */
export function inputSchemaOf({ type, argument, defaultValue }: Variable): JsonSchema {
  const { schemas = [] } = (argument.extensions['@pothos/plugin-validation'] ?? {}) as { schemas?: z.ZodType[] };
  const checks = schemas.map(schema => plain(z.toJSONSchema(schema, { io: 'input' })));
  const named = getNamedType(type);
  return {
    ...leafSchema(named as Parameters<typeof leafSchema>[0]),
    ...Object.assign({}, ...checks),
    ...(argument.description && { description: argument.description }),
    ...(defaultValue !== undefined && { default: defaultValue }),
  };
}

/** The bounds of a check without what the type says already. */
function plain({ $schema, type, anyOf, ...bounds }: Record<string, unknown>): JsonSchema {
  return bounds;
}

/** The largest integer GraphQL's `Int` holds; no argument needs more. */
export const maxInt = 2 ** 31 - 1;

/** The kind of JSON value a variable takes, for those who read it from text or check it by hand. */
export function jsonTypeOf({ type }: Variable): 'string' | 'boolean' | 'integer' | 'number' {
  const named = getNamedType(type);
  if (isEnumType(named)) return 'string';
  return leafSchema(named as Parameters<typeof leafSchema>[0]).type as ReturnType<typeof jsonTypeOf>;
}

/** Values that have a face's names, by the names of their variables; others are left out. */
export function byVariable(
  variables: readonly Variable[],
  nameOf: (variable: Variable) => string,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const there = variables.filter(variable => Object.hasOwn(values, nameOf(variable)));
  return Object.fromEntries(there.map(variable => [variable.name, values[nameOf(variable)]]));
}
