import { type GraphQLSchema, getNamedType, getNullableType, isCompositeType, isListType, isObjectType } from 'graphql';
import type { Context } from './builder.ts';

/**
 * How many rows an answer may still hold. Lists lead to lists in a graph, so a short question can ask for millions: once
 * the budget is spent, what lists are left come out empty, and whoever gave the budget refuses the answer as a whole.
 */
export interface RowBudget {
  left: number;
}

/** Makes every list of things count against the budget of its answer, where it has one. */
export function withRowBudget(graph: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(graph.getTypeMap()).filter(isObjectType)) {
    for (const field of Object.values(type.getFields())) {
      const { resolve } = field;
      if (!resolve || !isListType(getNullableType(field.type)) || !isCompositeType(getNamedType(field.type))) continue;
      field.resolve = (parent, args, context: Context, info) => {
        if (!context.rows) return resolve(parent, args, context, info);
        if (context.rows.left < 0) return [];
        const list = resolve(parent, args, context, info);
        return list instanceof Promise ? list.then(rows => counted(rows, context)) : counted(list, context);
      };
    }
  }
  return graph;
}

function counted(list: unknown, { rows }: Context): unknown {
  if (!rows || !Array.isArray(list)) return list;
  rows.left -= list.length;
  return rows.left < 0 ? [] : list;
}
