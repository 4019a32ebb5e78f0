import type { ArgBuilder } from '@pothos/core';
import { optionalReferenceArg } from '../arguments.ts';
import type { SchemaShape } from '../builder.ts';

/** What a question about a fit is about. */
export const fitArgs = (t: ArgBuilder<PothosSchemaTypes.ExtendDefaultTypes<SchemaShape>>) => ({
  model: optionalReferenceArg(t, 'model', 'Repository of the model, `owner/name`.'),
  preset: optionalReferenceArg(t, 'preset', 'Name of a preset, in place of the model or beside it.'),
  node: optionalReferenceArg(t, 'node', 'Name of the only node to look at; all of them when absent.'),
  backend: t.string({ description: 'Name of the backend. Only needed where several check fits.' }),
});
