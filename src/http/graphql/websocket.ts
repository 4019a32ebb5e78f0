import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer } from 'ws';
import type { Context } from '../../resolvers/builder.ts';
import type { Engine, GraphqlParams, Prepared } from './engine.ts';
import type { Groups, Rendered } from './groups.ts';

export interface WebSocketOptions {
  readonly engine: Engine;
  readonly groups: Groups;
  /** The context of one operation; `signal` aborts when its socket closes. */
  contextFor(signal: AbortSignal): Context;
}

export interface WebSockets {
  /** Takes over a connection that asked to become a WebSocket. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes every socket with 1001: clients connect again elsewhere. */
  close(): Promise<void>;
}

/** Bytes of a message from a client at most. */
const maxPayload = 256 * 1024;
/** A peer that does not answer a ping until the next one is gone, so a vanished client is noticed within twice this, in ms. */
const pingMs = 12_000;
/** Close code of RFC 6455: the endpoint is going away. */
const goingAway = 1001;

interface Extra extends Record<PropertyKey, unknown> {
  /** Aborts what the socket asked for when it closes. */
  closed?: AbortController;
}

/** `graphql-transport-ws` by the graphql-ws package; subscriptions are served from groups. */
export function createWebSockets({ engine, groups, contextFor }: WebSocketOptions): WebSockets {
  const server = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  /** What `onSubscribe` prepared, for the functions that execute it. */
  const prepared = new WeakMap<object, Prepared>();

  const disposable = useServer<Record<string, unknown>, Extra>(
    {
      onConnect: ctx => {
        ctx.extra.closed = new AbortController();
        return true;
      },
      onClose: ctx => ctx.extra.closed?.abort(),
      onSubscribe: (ctx, _id, payload) => {
        try {
          const ready = engine.prepare(payload as GraphqlParams);
          const context = contextFor((ctx.extra.closed as AbortController).signal);
          const args: ExecutionArgs = {
            schema: engine.schema,
            document: ready.document,
            operationName: payload.operationName,
            variableValues: payload.variables,
            contextValue: context,
          };
          prepared.set(args, ready);
          return args;
        } catch (error) {
          return (Array.isArray(error) ? error : [error]) as GraphQLError[];
        }
      },
      execute: args => engine.execute(prepared.get(args) as Prepared, args.contextValue as Context),
      subscribe: async args => {
        const joined = await groups.join(prepared.get(args) as Prepared, args.contextValue as Context);
        return joined as AsyncIterableIterator<ExecutionResult> | ExecutionResult;
      },
      // An event is serialised once for all its subscribers: what the library is given is the finished text.
      onNext: (_ctx, _id, _payload, _args, result) => {
        const { text } = result as Partial<Rendered>;
        return text === undefined ? undefined : (rawJson(text) as ExecutionResult);
      },
    },
    server,
    pingMs,
  );

  return {
    upgrade(req, socket, head) {
      server.handleUpgrade(req, socket, head, client => server.emit('connection', client, req));
    },
    async close() {
      for (const client of server.clients) client.close(goingAway, 'the server is going away');
      await disposable.dispose();
    },
  };
}

/** Text that is JSON already; `JSON.stringify` writes it as it is. */
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
