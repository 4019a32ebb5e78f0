import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Span } from '../call.ts';
import type { OnRequest } from '../drivers/http.ts';

/** Where spans go. */
export interface Traces {
  /** Where a request begins: in the trace that its `traceparent` names, or in one of its own when that is none. */
  root(traceparent: unknown): Span;
  /** Sends what has ended and is not sent yet, within four seconds, and stops. */
  stop(): Promise<void>;
}

interface TracedRequest {
  /** As it is documented; `other` for a path that is not. */
  readonly route: string;
  readonly req: Pick<IncomingMessage, 'method' | 'headers'>;
  readonly res: Pick<ServerResponse, 'once' | 'statusCode' | 'headersSent'>;
}

export const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']);

/** The span of a request, from its head to the end of its answer; a stream's until it closes. */
export function spanOf(traces: Traces, { route, req, res }: TracedRequest): Span {
  const { method = '', headers } = req;
  const isKnown = knownMethods.has(method);
  const verb = isKnown ? method : 'HTTP';
  const isRoute = route !== 'other';
  const span = traces.root(headers.traceparent).begin({
    name: isRoute ? `${verb} ${route}` : verb,
    kind: 'server',
    facts: { 'http.request.method': isKnown ? method : '_OTHER', ...(isRoute && { 'http.route': route }) },
  });
  res.once('close', () => {
    // Whoever left before there was an answer got no status.
    if (!res.headersSent) return span.end({}, 'cancelled');
    const { statusCode: status } = res;
    span.end({ 'http.response.status_code': status }, status >= 500 ? String(status) : undefined);
  });
  return span;
}

/**
 * The hook that makes a request to a backend, or to the API server, a part of the trace of whom it is made for; what is made
 * for nobody is not traced. Nothing of a trace goes with the request: a host is told nothing of who asks.
 */
export const tracedRequestsTo =
  (backend: string): OnRequest =>
  (op, outcome, seconds, { span }) => {
    const startedAt = Date.now() - seconds * 1000;
    span
      ?.begin({ name: op, kind: 'client', startedAt, facts: { 'model_manager.backend': backend } })
      .end({}, outcome === 'ok' ? undefined : outcome);
  };
