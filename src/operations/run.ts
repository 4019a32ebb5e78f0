import type { ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { asGatewayError } from '../errors.ts';
import type { Context } from '../resolvers/builder.ts';
import type { Operation } from './load.ts';
import { type Project, projectionOf } from './project.ts';

/** Runs a stored operation for an old face. Resolves to the answer as that face writes it; throws a `GatewayError`. */
export type Run = (operation: Operation, variables: Record<string, unknown>, context: Context) => Promise<unknown>;

interface Compiled {
  readonly query: Executable;
  readonly project: Project;
}

/** Compiles each operation when it is asked for first: the start does not wait for those that nobody asks for. */
export function createRun(schema: GraphQLSchema): Run {
  const compiled = new Map<Operation, Compiled>();

  function compiledOnce(operation: Operation): Compiled {
    const known = compiled.get(operation);
    if (known) return known;
    const query = compile(schema, operation, { disableLeafSerialization: true });
    const made = { query, project: projectionOf(operation.answer) };
    compiled.set(operation, made);
    return made;
  }

  return async (operation, variables, context) => {
    const { query, project } = compiledOnce(operation);
    const result = await query(undefined, context, variables);
    const [error] = result.errors ?? [];
    if (error) throw failureOf(error, context);
    return project(result.data?.[operation.rootKey]);
  };
}

export type Executable = (
  root: unknown,
  context: Context,
  variables: Record<string, unknown> | null | undefined,
) => Promise<ExecutionResult<Record<string, unknown>>> | ExecutionResult<Record<string, unknown>>;

/**
 * A stored operation as a function. Only stored operations are compiled, never the text of a client: compiling generates
 * code. Without leaf serialization enums stay their contract words, which is what the old faces write.
 */
export function compile(
  schema: GraphQLSchema,
  { name, document }: Operation,
  options: { disableLeafSerialization: boolean },
): Executable {
  const query = compileQuery(schema, document, name, options);
  if (!isCompiledQuery(query)) throw new Error(`cannot compile ${name}: ${query.errors?.[0]?.message}`);
  return query.query as Executable;
}

function failureOf(error: GraphQLError, { call }: Context) {
  const cause = error.originalError ?? error;
  const failure = asGatewayError(cause, call.requestId);
  if (failure.code === 'internal_error') call.log.error({ err: cause }, 'unexpected error');
  return failure;
}
