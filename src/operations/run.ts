import type { ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { asGatewayError } from '../errors.ts';
import type { Context } from '../resolvers/builder.ts';
import type { Operation } from './load.ts';
import { projectionOf } from './project.ts';

/** Runs a stored operation for an old face. Resolves to the answer as that face writes it; throws a `GatewayError`. */
export type Run = (operation: Operation, variables: Record<string, unknown>, context: Context) => Promise<unknown>;

/** Runs operations as the old faces have them. */
export function createRun(schema: GraphQLSchema): Run {
  const made = onceEach(operation => ({
    query: compile(schema, operation, { disableLeafSerialization: true }),
    project: projectionOf(operation.answer),
  }));
  return async (operation, variables, context) => {
    const { query, project } = made(operation);
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
 * What is made of an operation, once, when it is first asked for: the start does not wait for those that nobody asks for,
 * and to compile one generates code.
 */
export function onceEach<T>(make: (operation: Operation) => T): (operation: Operation) => T {
  const made = new Map<Operation, T>();
  return operation => {
    const known = made.get(operation);
    if (known !== undefined) return known;
    const first = make(operation);
    made.set(operation, first);
    return first;
  };
}

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
