import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExecutionArgs, ExecutionResult, OperationTypeNode } from 'graphql';
import { CloseCode, handleProtocols, makeServer } from 'graphql-ws';
import type { Logger } from 'pino';
import { WebSocket, WebSocketServer } from 'ws';
import type { Call, Caller, Span } from '../../call.ts';
import type { Limits } from '../../config/limits.ts';
import { GatewayError } from '../../errors.ts';
import { at } from '../../identity/expiry.ts';
import type { Verdict } from '../../identity/identity.ts';
import type { TokenProblem } from '../../identity/token.ts';
import type { Context } from '../../resolvers/builder.ts';
import { networkOf } from '../guard.ts';
import type { OnRefused } from '../refusals.ts';
import { asGraphqlError, type Engine, type GraphqlParams, type Prepared, refusalsOf } from './engine.ts';
import type { Groups, Member } from './groups.ts';
import { tooManyOperations } from './limits.ts';
import type { Seats } from './seats.ts';

export interface WebSocketOptions {
  readonly engine: Engine;
  readonly groups: Groups;
  /** The context of one operation of a socket; `signal` aborts when the socket closes. */
  contextFor(type: OperationTypeNode, signal: AbortSignal, peer: Peer): Context;
  /** Whose socket it is, by the payload of `connection_init` and where it comes from; undefined where nobody has to sign in. */
  readonly signIn?: ((payload: unknown, source: string | undefined) => Promise<Verdict>) | undefined;
  /** Where the traces of a socket begin, by the request that opened it; undefined where nothing is traced. */
  readonly rootOf?: ((req: IncomingMessage) => Span) | undefined;
  /** Throws when whoever asks has asked for too many mutations. */
  admit(call: Call, mutations: number): void;
  readonly limits: Limits;
  readonly seats: Seats;
  readonly onRefused?: OnRefused | undefined;
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

/** A client that has this many bytes of answers to read first is not read itself. */
const maxUnread = 1024 * 1024;
/** A peer that does not answer a ping until the next one is gone, so a vanished client is noticed within twice this, in ms. */
const pingMs = 12_000;
/** Close codes of RFC 6455. */
const goingAway = 1001;
const tryAgainLater = 1013;

/** 4401 is for good: clients do not come again. Who may have a better token soon, or may find us better, is told otherwise. */
const closeCodes: Readonly<Record<TokenProblem, number>> = {
  missing: CloseCode.Unauthorized,
  malformed: CloseCode.Unauthorized,
  issuer: CloseCode.Unauthorized,
  audience: CloseCode.Unauthorized,
  claims: CloseCode.Unauthorized,
  signature: CloseCode.Forbidden,
  expired: CloseCode.Forbidden,
  early: CloseCode.Forbidden,
  unavailable: tryAgainLater,
};

/** A reason may have 123 bytes. */
const closeReason = (message: string) =>
  Buffer.from(message)
    .subarray(0, 120)
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, '?');

/** Who is at the other end. */
interface Peer {
  /** The network that limits count them by while nobody has signed in. */
  readonly address: string;
  /** Each operation has a span of its own here. */
  readonly span?: Span | undefined;
  /** Known once they have. */
  caller?: Caller;
}

interface Extra extends Record<PropertyKey, unknown> {
  /** Aborts what the socket asked for when it closes. */
  readonly closed: AbortController;
  /** The address of the peer, in full. */
  readonly source: string | undefined;
  readonly peer: Peer;
  /** Closes the socket when the token it was opened with expires. */
  expireAt(time: number): void;
  close(code: number, reason: string): void;
  send(message: string): Promise<void>;
}

/** One operation of a socket, as its client asked for it. */
interface Asked {
  readonly ready: Prepared;
  readonly id: string;
  send(message: string): Promise<void>;
}

/** `graphql-transport-ws` as graphql-ws speaks it; subscriptions are served from groups. */
export function createWebSockets(options: WebSocketOptions): WebSockets {
  const { engine, groups, contextFor, rootOf, signIn, admit, limits, seats, onRefused, log } = options;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: limits.message,
    perMessageDeflate: false,
    handleProtocols,
  });
  /** What `onSubscribe` prepared, for the functions that execute it. */
  const asked = new WeakMap<object, Asked>();

  const protocol = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initTimeout,
    async onConnect({ extra, connectionParams }) {
      if (!signIn) return true;
      const verdict = await signIn(connectionParams, extra.source);
      if ('refusal' in verdict) {
        const { reason, message } = verdict.refusal;
        extra.close(closeCodes[reason], closeReason(message));
        return false;
      }
      const { caller, expiresAt } = verdict.person;
      // Whoever left meanwhile takes no seat: nothing would give it back.
      if (extra.closed.signal.aborted) return false;
      const release = seats.take(caller);
      if (!release) {
        extra.close(tryAgainLater, `you have ${seats.limit} sockets and streams`);
        return false;
      }
      extra.closed.signal.addEventListener('abort', release, { once: true });
      extra.peer.caller = caller;
      extra.expireAt(expiresAt);
      return true;
    },
    onClose: ctx => ctx.extra.closed.abort(),
    onSubscribe: async (ctx, id, payload) => {
      // The new one is among them.
      if (Object.keys(ctx.subscriptions).length > limits.operationsPerSocket) {
        onRefused?.('operations');
        return [tooManyOperations(limits.operationsPerSocket)];
      }
      try {
        const forType = (type: OperationTypeNode) => contextFor(type, ctx.extra.closed.signal, ctx.extra.peer);
        const ready = await engine.prepare(payload as GraphqlParams, forType);
        const context = forType(ready.operation.operation);
        admit(context.call, ready.mutations);
        const args: ExecutionArgs = {
          schema: engine.schema,
          document: ready.document,
          operationName: payload.operationName,
          variableValues: payload.variables,
          contextValue: context,
        };
        asked.set(args, { ready, id, send: ctx.extra.send });
        return args;
      } catch (error) {
        return error instanceof GatewayError ? [asGraphqlError(error)] : refusalsOf(error);
      }
    },
    execute: args => engine.execute((asked.get(args) as Asked).ready, args.contextValue as Context),
    subscribe: async args => {
      const { ready, id, send } = asked.get(args) as Asked;
      const joined = await groups.join(ready, args.contextValue as Context, 'websocket');
      return 'next' in joined ? relay(joined, id, send) : (joined as ExecutionResult);
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

  function serve(socket: WebSocket, req: IncomingMessage): void {
    const source = req.socket.remoteAddress;
    const close = (code: number, reason: string) => socket.close(code, reason);
    const expireAt = (time: number) => {
      socket.once(
        'close',
        at(time, () => close(CloseCode.Forbidden, 'token expired')),
      );
    };
    const fail = (error: unknown) => {
      log.error({ err: error }, 'a WebSocket was closed because of an unexpected error');
      socket.close(CloseCode.InternalServerError, 'unexpected error');
    };
    // Resolves when the message is on its way, so that a member is not asked for more than its socket takes.
    const send = (message: string) =>
      new Promise<void>(resolve => {
        if (socket.readyState !== WebSocket.OPEN) return resolve();
        socket.send(message, () => {
          if (socket.isPaused && socket.bufferedAmount <= maxUnread) socket.resume();
          // A broken socket closes by itself.
          resolve();
        });
      });
    const peer = { address: networkOf(source), span: rootOf?.(req) };
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send,
        close,
        onMessage: handle =>
          socket.on('message', (data, isBinary) => {
            if (isBinary) return socket.close(CloseCode.BadRequest, 'messages are text');
            if (socket.bufferedAmount > maxUnread) socket.pause();
            handle(String(data)).catch(fail);
          }),
      },
      { closed: new AbortController(), source, peer, expireAt, close, send },
    );
    socket.on('pong', () => silent.delete(socket));
    socket.once('close', (code, reason) => {
      silent.delete(socket);
      if (code === CloseCode.ConnectionInitialisationTimeout) onRefused?.('init_timeout');
      closed(code, String(reason)).catch(fail);
    });
  }

  return {
    upgrade(req, socket, head) {
      server.handleUpgrade(req, socket, head, client => {
        // Messages that break the protocol end here; ws closes the socket with the code they deserve.
        client.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') onRefused?.('message');
          log.debug({ err: error }, 'a WebSocket broke');
        });
        if (server.clients.size <= limits.sockets) return serve(client, req);
        onRefused?.('sockets');
        client.close(tryAgainLater, 'too many sockets');
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

/**
 * Sends what a member gets. An event is serialised once for all its members and graphql-ws would do it for each of them, so
 * it is only told when there are no more.
 */
function relay(member: Member, id: string, send: Asked['send']): AsyncIterableIterator<never, undefined> {
  const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      for (;;) {
        const event = await member.next();
        if (event.done) return event;
        await send(`${head}${event.value.text}}`);
      }
    },
    return: member.return,
    throw: member.return,
  };
}
