import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ExecutionArgs, type ExecutionResult, GraphQLError, type OperationTypeNode } from 'graphql';
import { CloseCode, handleProtocols, makeServer } from 'graphql-ws';
import type { Logger } from 'pino';
import { WebSocket, WebSocketServer } from 'ws';
import type { Context } from '../../resolvers/builder.ts';
import { type Engine, type GraphqlParams, type Prepared, refusalsOf } from './engine.ts';
import type { Groups, Rendered } from './groups.ts';

export interface WebSocketOptions {
  readonly engine: Engine;
  readonly groups: Groups;
  /** The context of one operation; `signal` aborts when its socket closes. */
  contextFor(type: OperationTypeNode, signal: AbortSignal): Context;
  readonly log: Logger;
}

export interface WebSockets {
  /** Takes over a connection that asked to become a WebSocket. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes every socket with 1001: clients connect again elsewhere. Resolves when the last of them is gone. */
  close(): Promise<void>;
  /** Breaks what is still open. */
  terminate(): void;
}

/** Sockets of this process, and operations under way on one of them, at most. */
const maxSockets = 1_024;
const maxOperations = 64;
/** Bytes of a message from a client at most. */
const maxPayload = 256 * 1024;
/** A client that has this many bytes of answers to read first is not read itself. */
const maxUnread = 1024 * 1024;
/** A peer that does not answer a ping until the next one is gone, so a vanished client is noticed within twice this, in ms. */
const pingMs = 12_000;
/** Close codes of RFC 6455. */
const goingAway = 1001;
const tryAgainLater = 1013;

interface Extra extends Record<PropertyKey, unknown> {
  /** Aborts what the socket asked for when it closes. */
  readonly closed: AbortController;
}

/** `graphql-transport-ws` as graphql-ws speaks it; subscriptions are served from groups. */
export function createWebSockets({ engine, groups, contextFor, log }: WebSocketOptions): WebSockets {
  const server = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false, handleProtocols });
  /** What `onSubscribe` prepared, for the functions that execute it. */
  const prepared = new WeakMap<object, Prepared>();

  const protocol = makeServer<Record<string, unknown>, Extra>({
    onClose: ctx => ctx.extra.closed.abort(),
    onSubscribe: async (ctx, _id, payload) => {
      // The new one is among them.
      if (Object.keys(ctx.subscriptions).length > maxOperations) return [tooMany];
      try {
        const ready = await engine.prepare(payload as GraphqlParams);
        const args: ExecutionArgs = {
          schema: engine.schema,
          document: ready.document,
          operationName: payload.operationName,
          variableValues: payload.variables,
          contextValue: contextFor(ready.operation.operation, ctx.extra.closed.signal),
        };
        prepared.set(args, ready);
        return args;
      } catch (error) {
        return refusalsOf(error);
      }
    },
    execute: args => engine.execute(prepared.get(args) as Prepared, args.contextValue as Context),
    subscribe: async args => {
      const joined = await groups.join(prepared.get(args) as Prepared, args.contextValue as Context);
      return joined as AsyncIterableIterator<ExecutionResult> | ExecutionResult;
    },
    onNext: (_ctx, _id, _payload, _args, result) => {
      const { text } = result as Partial<Rendered>;
      return text === undefined ? undefined : finished(text);
    },
  });

  /** Who has not answered the last ping. */
  const silent = new Set<WebSocket>();
  const timer = setInterval(() => {
    for (const socket of server.clients) {
      if (silent.has(socket)) socket.terminate();
      else if (socket.readyState === WebSocket.OPEN) {
        silent.add(socket);
        socket.ping();
      }
    }
  }, pingMs).unref();

  function serve(socket: WebSocket): void {
    const fail = (error: unknown) => {
      log.error({ err: error }, 'a WebSocket was closed because of an unexpected error');
      socket.close(CloseCode.InternalServerError, 'unexpected error');
    };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        // Resolves when the message is on its way, so that a member is not asked for more than its socket takes.
        send(message) {
          const whole = withFinished(message);
          return new Promise(resolve => {
            if (socket.readyState !== WebSocket.OPEN) return resolve();
            socket.send(whole, () => {
              if (socket.isPaused && socket.bufferedAmount <= maxUnread) socket.resume();
              // A broken socket closes by itself.
              resolve();
            });
          });
        },
        close: (code, reason) => socket.close(code, reason),
        onMessage: handle =>
          socket.on('message', (data, isBinary) => {
            if (isBinary) return socket.close(CloseCode.BadRequest, 'messages are text');
            if (socket.bufferedAmount > maxUnread) socket.pause();
            handle(String(data)).catch(fail);
          }),
      },
      { closed: new AbortController() },
    );
    socket.on('pong', () => silent.delete(socket));
    socket.once('close', (code, reason) => {
      silent.delete(socket);
      closed(code, String(reason)).catch(fail);
    });
  }

  return {
    upgrade(req, socket, head) {
      server.handleUpgrade(req, socket, head, client => {
        // Messages that break the protocol end here; ws closes the socket with the code they deserve.
        client.on('error', error => log.debug({ err: error }, 'a WebSocket broke'));
        if (server.clients.size > maxSockets) client.close(tryAgainLater, 'too many sockets');
        else serve(client);
      });
    },
    close() {
      clearInterval(timer);
      for (const client of server.clients) client.close(goingAway, 'the server is going away');
      return new Promise(resolve => server.close(() => resolve()));
    },
    terminate() {
      for (const client of server.clients) client.terminate();
    },
  };
}

const tooMany = new GraphQLError(
  `invalid request: this socket has ${maxOperations} operations under way; end some, or open another`,
  { extensions: { code: 'OPERATION_LIMIT', http: { status: 400 } } },
);

// An event is serialised once for all its subscribers, but graphql-ws takes values only, and JSON.stringify has no way to be
// told that something is JSON already. So the payload is a stand-in that notes its text when it is serialised, and the text
// takes its place in the message, which graphql-ws sends right then: the payload is the last part of it.
let noted: string | undefined;

function finished(text: string): ExecutionResult {
  const toJSON = () => {
    noted = text;
    return 0;
  };
  return { toJSON } as ExecutionResult;
}

function withFinished(message: string): string {
  if (noted === undefined) return message;
  const whole = `${message.slice(0, -'0}'.length)}${noted}}`;
  noted = undefined;
  return whole;
}
