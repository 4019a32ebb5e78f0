import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { type Call, type Caller, createCall, type Span } from '../call.ts';
import type { Person } from '../identity/identity.ts';
import { networkOf } from './guard.ts';

/** One request on the wire. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly query: string;
  /** Whose it is; undefined where nobody has to sign in. */
  readonly person: Person | undefined;
  call(timeoutMs?: number): Call;
  as(person: Person): Exchange;
}

const requestIdPattern = /^[\w.:-]{1,128}$/;

/** `begin` makes the span of a request for a path, where requests are traced. */
export function createExchange(
  req: IncomingMessage,
  res: ServerResponse,
  log: Logger,
  begin?: (path: string) => Span | undefined,
): Exchange {
  const given = req.headers['x-request-id'];
  const requestId = typeof given === 'string' && requestIdPattern.test(given) ? given : randomUUID();
  const gone = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) gone.abort(new DOMException('the client has left', 'AbortError'));
  });
  res.setHeader('x-request-id', requestId);
  const address = networkOf(req.socket.remoteAddress);
  const url = req.url ?? '/';
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const span = begin?.(path);
  const callAs = (caller?: Caller) => (timeoutMs?: number) =>
    createCall({ ...(caller && { caller }), address, requestId, log, span, signal: gone.signal, timeoutMs });
  return {
    req,
    res,
    path,
    query: mark < 0 ? '' : url.slice(mark + 1),
    person: undefined,
    call: callAs(),
    as(person) {
      return { ...this, person, call: callAs(person.caller) };
    },
  };
}
