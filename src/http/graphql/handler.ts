import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ExecutionResult, GraphQLError, OperationTypeNode } from 'graphql';
import { createHandler, type OperationContext, parseRequestParams, type Request, type Response } from 'graphql-http';
import type { Call } from '../../call.ts';
import { GatewayError, messageOf } from '../../errors.ts';
import type { Operation } from '../../operations/load.ts';
import type { Context } from '../../resolvers/builder.ts';
import { retryAfter } from '../../rest-compat/respond.ts';
import {
  asGraphqlError,
  type Engine,
  formatErrors,
  type GraphqlParams,
  type Prepared,
  refusalsOf,
  refused,
} from './engine.ts';
import { type Page, pageSecurityPolicy, renderPage } from './graphiql.ts';
import type { Groups } from './groups.ts';
import { LimitError } from './limits.ts';
import type { Seats } from './seats.ts';
import type { Streams } from './sse.ts';

export interface GraphqlOptions {
  readonly engine: Engine;
  readonly groups: Groups;
  readonly streams: Streams;
  readonly seats: Seats;
  readonly operations: readonly Operation[];
  readonly graphiql: boolean;
  /** Throws when whoever asks has asked for too many mutations. */
  admit(call: Call, mutations: number): void;
  /** Whether people have to give the page a token. */
  readonly asksToken: boolean;
}

/** One request to `/graphql`: its body, and how to make the context its operation runs in. */
export interface GraphqlExchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: string;
  /** When a stream has to end, in milliseconds since the epoch; undefined when it need not. */
  readonly until?: number | undefined;
  contextFor(type: OperationTypeNode): Context;
}

type GraphqlRequest = Request<GraphqlExchange, undefined>;

/** GraphQL over HTTP: JSON by graphql-http's handler, Server-Sent Events, and GraphiQL for browsers. */
export function createGraphql(options: GraphqlOptions) {
  const { engine, groups, streams, seats, operations, graphiql, asksToken, admit } = options;
  const prepared = new WeakMap<object, Prepared>();
  let page: Promise<Page> | undefined;

  const handler = createHandler<GraphqlExchange, undefined, Context & OperationContext>({
    async onSubscribe(request, params) {
      try {
        const { contextFor } = request.raw;
        // By GET nothing is changed, whatever it says.
        const ready = await engine.prepare(params as GraphqlParams, request.method === 'POST' ? contextFor : undefined);
        if (ready.operation.operation === OperationTypeNode.SUBSCRIPTION) return [refused(needsStream)];
        const context = contextFor(ready.operation.operation);
        // What GET may not ask for is refused after this, and no mutation.
        if (request.method === 'POST') admit(context.call, ready.mutations);
        const args = {
          schema: engine.schema,
          document: ready.document,
          operationName: params.operationName,
          variableValues: params.variables,
          contextValue: context as Context & OperationContext,
        };
        prepared.set(args, ready);
        return args;
      } catch (error) {
        if (error instanceof GatewayError) return rateLimited(error);
        return error instanceof LimitError ? badRequest([error]) : refusalsOf(error);
      }
    },
    formatError: error => (error instanceof GraphQLError ? error : refused(new GraphQLError(error.message))),
    execute: args => engine.execute(prepared.get(args) as Prepared, args.contextValue as Context),
    onOperation: ({ raw }, _args, result) => answer(raw.req, result as ExecutionResult),
  });

  async function answerStream(request: GraphqlRequest, { res, until, contextFor }: GraphqlExchange) {
    let params: Awaited<ReturnType<typeof parseRequestParams>>;
    try {
      params = await parseRequestParams(request);
    } catch (error) {
      return send(res, badRequest([refused(new GraphQLError(messageOf(error)))]));
    }
    if (Array.isArray(params)) return send(res, params as Response);
    let ready: Prepared;
    try {
      ready = await engine.prepare(params as GraphqlParams, request.method === 'POST' ? contextFor : undefined);
    } catch (error) {
      return send(res, badRequest(refusalsOf(error)));
    }
    const type = ready.operation.operation;
    if (type === OperationTypeNode.MUTATION && request.method === 'GET') {
      return send(res, [null, { status: 405, statusText: 'Method Not Allowed', headers: { allow: 'POST' } }]);
    }
    const context = contextFor(type);
    try {
      admit(context.call, ready.mutations);
    } catch (error) {
      if (error instanceof GatewayError) return send(res, rateLimited(error));
      throw error;
    }
    if (type !== OperationTypeNode.SUBSCRIPTION) return streams.single(res, await engine.execute(ready, context));
    const release = seats.take(context.call.caller);
    if (!release) return send(res, rateLimited(tooManyStreams(seats.limit)));
    // Whoever left meanwhile is not told again.
    if (res.destroyed) return release();
    res.once('close', release);
    const joined = await groups.join(ready, context, 'sse');
    if ('next' in joined) streams.stream(res, joined, until);
    else streams.single(res, joined as ExecutionResult);
  }

  async function answerPage({ req, res }: GraphqlExchange) {
    page ??= renderPage(operations, (req.url ?? '/graphql').split('?')[0] as string, asksToken);
    const { html, gzipped } = await page;
    const zipped = /\bgzip\b/.test(String(req.headers['accept-encoding']));
    res.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': pageSecurityPolicy(req.headers.host),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'content-length': zipped ? gzipped.length : html.length,
      vary: 'accept-encoding, accept',
      ...(zipped && { 'content-encoding': 'gzip' }),
    });
    res.end(req.method === 'HEAD' ? undefined : zipped ? gzipped : html);
  }

  return async function handle(exchange: GraphqlExchange): Promise<void> {
    const { req, res, body } = exchange;
    const accept = String(req.headers.accept ?? '');
    if (graphiql && wantsPage(req)) return answerPage(exchange);
    const request: GraphqlRequest = {
      method: req.method ?? 'GET',
      url: req.url ?? '',
      headers: req.headers as Record<string, string>,
      body,
      raw: exchange,
      context: undefined,
    };
    if (accept.includes('text/event-stream')) return answerStream(request, exchange);
    send(res, await handler(request));
  };
}

const json = { 'content-type': 'application/json; charset=utf-8' };

/** As graphql-http answers; it serialises through a function that looks at every value, which costs several times as much. */
const answer = ({ headers }: IncomingMessage, result: ExecutionResult): Response => [
  JSON.stringify(result),
  { status: 200, statusText: 'OK', headers: { 'content-type': `${acceptedType(headers.accept)}; charset=utf-8` } },
];

/** The type of an answer: of the two that clients know, the one they name first. */
function acceptedType(accept = '*/*'): string {
  const [type] = /application\/graphql-response\+json|application\/json|application\/\*|\*\/\*/i.exec(accept) ?? [];
  return type?.toLowerCase() === graphqlType ? graphqlType : 'application/json';
}

const graphqlType = 'application/graphql-response+json';

const needsStream = new GraphQLError(
  'a subscription is a stream: accept text/event-stream, or ask over a WebSocket (graphql-transport-ws)',
);

/** A document over a limit is refused with 400 whatever the client accepts. */
const badRequest = (errors: readonly GraphQLError[]): Response => [
  JSON.stringify({ errors: formatErrors(errors) }),
  { status: 400, statusText: 'Bad Request', headers: json },
];

/** Nothing was executed, so this is an answer of HTTP whatever the client accepts. */
const rateLimited = (error: GatewayError): Response => [
  JSON.stringify({ errors: formatErrors([asGraphqlError(error)]) }),
  { status: error.status, statusText: 'Too Many Requests', headers: { ...json, ...retryAfter(error) } },
];

/** Which of them ends first is not known; their clients come again by themselves. */
const tooManyStreams = (limit: number) =>
  new GatewayError(
    'rate_limited',
    `too many streams: you have ${limit} sockets and streams; close one, and ask again`,
    {
      details: { retryAfterMs: 5_000 },
    },
  );

/** Whether a browser asks for the page itself: nothing is executed for it. */
export function wantsPage({ method, url = '', headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  return String(headers.accept).includes('text/html') && !new URLSearchParams(url.split('?')[1]).has('query');
}

/** What the specification has no body for, people need a sentence for. */
const sentences: Readonly<Record<number, string>> = {
  405: 'ask by POST, or queries by GET',
  406: 'accept application/graphql-response+json, application/json or text/event-stream',
  415: 'send application/json: {"query": "…"}',
};

function send(res: ServerResponse, [body, { status, headers }]: Response): void {
  const sentence = body === null ? sentences[status] : undefined;
  const text =
    sentence === undefined ? body : JSON.stringify({ errors: [{ message: `invalid request: ${sentence}` }] });
  if (sentence !== undefined) res.setHeader('content-type', 'application/json; charset=utf-8');
  res.writeHead(status, { ...headers, ...(text !== null && { 'content-length': Buffer.byteLength(text) }) });
  res.end(text ?? undefined);
}
