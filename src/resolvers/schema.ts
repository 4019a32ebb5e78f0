import { encodeGlobalID } from '@pothos/plugin-relay';
import { type GraphQLSchema, isObjectType, lexicographicSortSchema, printSchema } from 'graphql';
import './backend.ts';
import './model.ts';
import './plan.ts';
import './loadedModel.ts';
import './node.ts';
import './job.ts';
import './info.ts';
import './wiring.ts';
import './registration.ts';
import './actions.ts';
import './serving/preset.ts';
import './serving/search.ts';
import './serving/fit.ts';
import './serving/serve.ts';
import './serving/explanation.ts';
import './serving/reason.ts';
import { withAudit } from './audit.ts';
import { builder } from './builder.ts';
import { withRowBudget } from './rowBudget.ts';

/** The graph. */
export const schema = withAudit(withRowBudget(withIdsAtOnce(builder.toSchema({}))));

/** The relay plugin promises ids. Ours are known at once, and promises are half the cost of a list of thousands. */
function withIdsAtOnce(graph: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(graph.getTypeMap()).filter(isObjectType)) {
    const { id } = (type.extensions.pothosOptions ?? {}) as { id?: { resolve(thing: unknown): string } };
    const field = type.getFields().id;
    if (id && field) field.resolve = thing => encodeGlobalID(type.name, id.resolve(thing));
  }
  return graph;
}

/** The graph as SDL, as committed in `schema/schema.graphql`. */
export const printedSchema = () => `${printSchema(lexicographicSortSchema(schema))}\n`;
