import { lexicographicSortSchema, printSchema } from 'graphql';
import './backend.ts';
import './model.ts';
import './loadedModel.ts';
import './node.ts';
import './job.ts';
import './info.ts';
import './wiring.ts';
import './registration.ts';
import './serving/preset.ts';
import './serving/search.ts';
import './serving/fit.ts';
import { builder } from './builder.ts';

/** The graph. */
export const schema = builder.toSchema({});

/** The graph as SDL, as committed in `schema/schema.graphql`. */
export const printedSchema = () => `${printSchema(lexicographicSortSchema(schema))}\n`;
