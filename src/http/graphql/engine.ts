import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLErrorOptions,
  type GraphQLFormattedError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  OperationTypeNode,
  print,
  specifiedRules,
  validate,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type Span, within } from '../../call.ts';
import { defaultLimits, type Limits } from '../../config/limits.ts';
import { asGatewayError, GatewayError, messageOf } from '../../errors.ts';
import type { Operation } from '../../operations/load.ts';
import { compile, type Executable, onceEach } from '../../operations/run.ts';
import { hasEnum } from '../../operations/shape.ts';
import type { Context } from '../../resolvers/builder.ts';
import type { OnRefused, RefusalReason } from '../refusals.ts';
import { createDocuments } from './documents.ts';
import { checkLimits, LimitError, rootFieldsOf, tokenRefusal, tooManyRows } from './limits.ts';
import { leaveUnasked } from './unasked.ts';

/** What a client asks, as it comes in the body, the query or a WebSocket message. */
export interface GraphqlParams {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
}

/** A question that may be executed: parsed, within the limits, valid. */
export interface Prepared {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** How many mutations it asks for. */
  readonly mutations: number;
  readonly params: GraphqlParams;
}

export interface EngineOptions {
  readonly limits?: Limits;
  readonly introspection?: boolean | undefined;
  readonly onRefused?: OnRefused | undefined;
  /** Told of every query and mutation that was executed; `failed` when its answer has an error. */
  readonly onOperation?: OnOperation | undefined;
  /** Told of every document that was not executed, or not answered: the limit that it passed, else `invalid`. */
  readonly onRejected?: ((reason: RejectionReason) => void) | undefined;
}

/** `name` is that of a stored operation, else `other`. */
export type OnOperation = (
  type: OperationTypeNode,
  name: string,
  outcome: 'ok' | 'failed',
  seconds: number | undefined,
) => void;

export type RejectionReason = RefusalReason | 'invalid';

/** The engine under all GraphQL transports. */
export interface Engine {
  readonly schema: GraphQLSchema;
  /**
   * Rejects with a `GraphQLError`, or an array of them: the refusal of what does not parse, fit or validate. A mutation that
   * does not fit the graph is in the audit trail, where `contextFor` says whose it was.
   */
  prepare(params: GraphqlParams, contextFor?: (type: OperationTypeNode) => Context): Promise<Prepared>;
  /** Runs a query or a mutation. */
  execute(prepared: Prepared, context: Context): Promise<ExecutionResult>;
  /** Begins a subscription: its events before they are executed, or the refusal. */
  subscribe(prepared: Prepared, context: Context): Promise<AsyncIterable<unknown> | ExecutionResult>;
  /** A subscription was asked for, by one of those who ask the same: it counts as an operation without a duration. */
  subscribed(prepared: Prepared, context: Context, outcome: 'ok' | 'failed'): void;
  /** Runs a subscription's selection over one event. */
  executeEvent(prepared: Prepared, context: Context, event: unknown): Promise<ExecutionResult>;
}

/**
 * Executes free text with graphql-js, and the text of our own operations compiled. Documents that may be executed are kept,
 * so that they are parsed and validated once.
 */
export function createEngine(
  schema: GraphQLSchema,
  operations: readonly Operation[],
  { limits = defaultLimits, introspection = true, onRefused, onOperation, onRejected }: EngineOptions = {},
): Engine {
  const documents = createDocuments();
  const names = new Set(operations.map(({ name }) => name));
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  let yoga: ReturnType<typeof createPipeline> | undefined;

  /** REST and MCP never need it, and it costs 20 MB and some tenths of a second: it is imported on first use. */
  function pipeline() {
    yoga ??= createPipeline(schema, [withLimits(limits), withCompiled(schema, operations)]);
    return yoga;
  }

  /** Parses and checks a text, and keeps it when it may be executed. */
  async function admit(text: string, onInvalid: OnInvalid): Promise<DocumentNode> {
    const { parse } = (await pipeline()).getEnveloped({});
    let document: DocumentNode;
    try {
      document = parse(text, { maxTokens: limits.tokens });
    } catch (error) {
      throw error instanceof LimitError || !(error instanceof GraphQLError)
        ? error
        : (tokenRefusal(error) ?? refused(error));
    }
    // Not that of the pipeline, which adds the rules of the specification once more: each problem would be told twice.
    const problems = validate(schema, document, rules, validation);
    if (problems.length > 0) {
      onInvalid(document, problems);
      throw problems.map(refused);
    }
    documents.set(text, document);
    return document;
  }

  return {
    schema,
    async prepare(params, contextFor) {
      const onInvalid: OnInvalid = (document, problems) => {
        if (contextFor)
          leaveUnasked(schema, { document, params }, problems, () => contextFor(OperationTypeNode.MUTATION));
      };
      const document = documents.get(params.query) ?? (await admit(params.query, onInvalid).catch(counted));
      const operation = getOperationAST(document, params.operationName);
      if (!operation) {
        onRejected?.('invalid');
        throw refused(new GraphQLError(missingOperation(params.operationName)));
      }
      const isMutation = operation.operation === OperationTypeNode.MUTATION;
      return { document, operation, mutations: isMutation ? rootFieldsOf(operation, document) : 0, params };
    },
    async execute(prepared, context) {
      const span = begun(prepared, context);
      if (!span) return run(prepared, context);
      try {
        const answer = await run(prepared, { ...context, call: within(context.call, span) });
        span.end({}, failureIn(answer));
        return answer;
      } catch (error) {
        span.end({}, 'internal_error');
        throw error;
      }
    },
    async subscribe(prepared, context) {
      const events = await createSourceEventStream(argsOf(prepared, context));
      return Symbol.asyncIterator in events ? events : rendered(events, context);
    },
    subscribed(prepared, context, outcome) {
      told(prepared, outcome);
      begun(prepared, context)?.end({}, outcome === 'ok' ? undefined : outcome);
    },
    async executeEvent(prepared, context, event) {
      const bounded = boundedOf(context);
      return rendered(await execute({ ...argsOf(prepared, bounded), rootValue: event }), bounded);
    },
  };

  async function run(prepared: Prepared, context: Context): Promise<ExecutionResult> {
    const bounded = boundedOf(context);
    const began = onOperation && performance.now();
    const { execute } = (await pipeline()).getEnveloped(bounded);
    const result = (await execute(argsOf(prepared, bounded))) as ExecutionResult;
    if (prepared.mutations > 0) leaveUnasked(schema, prepared, result.errors ?? [], () => context);
    const answer = rendered(result, bounded);
    if (began !== undefined) told(prepared, answer.errors ? 'failed' : 'ok', (performance.now() - began) / 1000);
    return answer;
  }

  function told({ operation }: Prepared, outcome: 'ok' | 'failed', seconds?: number) {
    onOperation?.(operation.operation, knownName(operation), outcome, seconds);
  }

  function knownName({ name }: OperationDefinitionNode): string {
    return name && names.has(name.value) ? name.value : 'other';
  }

  function begun({ operation }: Prepared, { call: { span } }: Context): Span | undefined {
    if (!span) return undefined;
    const [type, name] = [operation.operation, knownName(operation)];
    const facts = { 'graphql.operation.type': type, 'graphql.operation.name': name };
    return span.begin({ name: `${type} ${name}`, kind: 'server', facts });
  }

  function argsOf({ document, params }: Prepared, context: Context): ExecutionArgs {
    const { variables: variableValues, operationName } = params;
    return { schema, document, contextValue: context, variableValues, operationName, hideSuggestions: true };
  }

  /** The same context for one answer, which may hold so many rows. */
  function boundedOf(context: Context): Context {
    return { ...context, rows: { left: limits.rows } };
  }

  function counted(error: unknown): never {
    if (error instanceof LimitError) onRefused?.(error.reason);
    onRejected?.(error instanceof LimitError ? error.reason : 'invalid');
    throw error;
  }

  function rendered(result: ExecutionResult, context: Context): ExecutionResult {
    if (context.rows && context.rows.left < 0) {
      onRefused?.('rows');
      onRejected?.('rows');
      return { errors: [tooManyRows(limits.rows)] };
    }
    return result.errors ? { ...result, errors: result.errors.map(error => renderError(error, context)) } : result;
  }
}

/** The first code of the contract in an answer, which says more than that it failed. */
const failureIn = ({ errors }: ExecutionResult) => errors && String(errors[0]?.extensions.code ?? 'failed');

type OnInvalid = (document: DocumentNode, problems: readonly GraphQLError[]) => void;

/** Names that are nearly right are not told: who may not read the graph could read it from them, one guess at a time. */
const validation = { hideSuggestions: true };

async function createPipeline(schema: GraphQLSchema, plugins: Plugin[]) {
  const { createYoga } = await import('graphql-yoga');
  return createYoga({
    schema,
    logging: false,
    maskedErrors: false,
    // Its caches count documents, whatever their size, and keep the broken ones.
    parserAndValidationCache: false,
    plugins,
  });
}

const missingOperation = (name: string | null | undefined) =>
  name ? `the document has no operation named "${name}"` : 'the document has several operations: name the one to run';

/** Refuses a document that asks too much, before it costs anything. */
const withLimits = (limits: Limits): Plugin => ({
  onParse:
    () =>
    ({ result }) => {
      if (!(result instanceof Error)) checkLimits(result as DocumentNode, limits);
    },
});

/** Recognises the text of a stored operation and executes it compiled. */
function withCompiled(schema: GraphQLSchema, operations: readonly Operation[]): Plugin {
  const byText = new Map(operations.map(operation => [operation.text, operation]));
  // Looking at every leaf again is a third of the price of a long list, and only enums become something else by it.
  const compiled = onceEach(operation =>
    compile(schema, operation, { disableLeafSerialization: !hasEnum(operation.answer) }),
  );
  const known = new WeakMap<DocumentNode, Executable>();

  return {
    onParse:
      () =>
      ({ result }) => {
        if (result instanceof Error) return;
        const document = result as DocumentNode;
        const operation = byText.get(print(document));
        if (operation) known.set(document, compiled(operation));
      },
    onExecute({ args, setExecuteFn }) {
      const query = known.get(args.document);
      if (query)
        setExecuteFn(({ rootValue, contextValue, variableValues }) => query(rootValue, contextValue, variableValues));
    },
  };
}

/** An error as a client may see it: with the contract's code, or masked. */
function renderError(error: GraphQLError, { call }: Context): GraphQLError {
  if (error instanceof LimitError) return error;
  const { originalError: cause } = error;
  // Without a cause the client's question is at fault: graphql-js says how.
  const failure =
    cause && !(cause instanceof GraphQLError) ? asGatewayError(cause, call.requestId) : requestError(error.message);
  if (failure.code === 'internal_error') call.log.error({ err: cause }, 'unexpected error');
  return asGraphqlError(failure, error);
}

/** A failure as GraphQL tells it; `at` is where in the document. */
export const asGraphqlError = (failure: GatewayError, at: GraphQLErrorOptions = {}): GraphQLError =>
  new GraphQLError(failure.message, {
    nodes: at.nodes,
    source: at.source,
    positions: at.positions,
    path: at.path,
    originalError: failure,
    extensions: { code: failure.code, http: { status: failure.status }, ...failure.details },
  });

/** What a client may see of a failure outside of any field. */
export const failureOf = (error: unknown, context: Context): GraphQLError =>
  renderError(new GraphQLError(messageOf(error), { originalError: error as Error }), context);

const requestError = (message: string) => new GatewayError('invalid_request', message);

/** A fault of the client's question, with the contract's code: what graphql-js says of it has none. */
export function refused({ message, nodes, source, positions }: GraphQLError): GraphQLError {
  const { code, status } = requestError(message);
  return new GraphQLError(message, { nodes, source, positions, extensions: { code, http: { status } } });
}

/** The refusal that `prepare` has thrown. Anything else that was thrown nobody expected: it is thrown on. */
export function refusalsOf(error: unknown): readonly GraphQLError[] {
  const errors: readonly unknown[] = Array.isArray(error) ? error : [error];
  if (errors.every(each => each instanceof GraphQLError)) return errors;
  throw error;
}

export const formatErrors = (errors: readonly GraphQLError[]): readonly GraphQLFormattedError[] =>
  errors.map(error => error.toJSON());
