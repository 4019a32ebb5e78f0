import { createHash } from 'node:crypto';
import { answersInTime } from '../backends/patience.ts';
import type { Call } from '../call.ts';
import { asGatewayError, type GatewayError } from '../errors.ts';
import type { Observation, Source } from '../live/source.ts';
import { meansDryRun } from '../operations/dryRun.ts';
import type { Operation } from '../operations/load.ts';
import type { Run } from '../operations/run.ts';
import { leaveRefused } from '../resolvers/audit.ts';
import type { Context } from '../resolvers/builder.ts';
import { type Asked, askedByBody, askedByQuery, bodyFieldsOf, namedBy } from './input.ts';
import { type Hit, type Match, matchRoute, type Route, routesOf } from './routes.ts';

/** A request as far as a route needs it. */
interface RestRequest {
  readonly query: URLSearchParams;
  readonly body: string;
  readonly ifNoneMatch: string | undefined;
}

export interface RestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

export interface RestOptions {
  readonly operations: readonly Operation[];
  readonly run: Run;
  contextFor(call: Call, reads: Map<Source<unknown>, number>): Context;
  /** Throws when whoever asks has asked for too many mutations. */
  admit?(call: Call): void;
}

export interface Rest {
  /** Which operation a request is for; undefined when the path is none of ours. */
  match(method: string, path: string): Match;
  respond(match: Match, request: RestRequest, call: Call): Promise<RestResponse>;
}

/** Bytes of a body that are read; the rest is cut off, so a larger document fails as broken JSON. */
export const bodyLimit = 1024 * 1024;
/** Answers kept until what they show changes. */
const maxKept = 64;

/** A body that stays true while the sources it was read from keep their revision. */
interface Kept {
  readonly reads: ReadonlyArray<readonly [Source<unknown>, number]>;
  readonly body: Buffer;
  readonly etag: string;
}

/** The old REST routes: every one of them is a stored operation. */
export function createRest({ operations, run, contextFor, admit }: RestOptions): Rest {
  const routes = routesOf(operations);
  const fields = bodyFieldsOf(routes);
  const kept = new Map<string, Kept>();

  async function answer(route: Route, variables: Record<string, unknown>, request: RestRequest, call: Call) {
    const { operation, rest } = route;
    const key = rest.method === 'GET' ? JSON.stringify([operation.name, variables, call.caller.scope]) : undefined;
    const known = key === undefined ? undefined : kept.get(key);
    if (known && (await isTrue(known, call))) return send(known, request);

    const reads = new Map<Source<unknown>, number>();
    const result = await run(operation, variables, contextFor(call, reads));
    const body = toJson(result);
    if (key === undefined || reads.size === 0) return jsonResponse(rest.status, body);

    const entry: Kept = {
      reads: [...reads],
      body,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
    };
    kept.delete(key);
    kept.set(key, entry);
    if (kept.size > maxKept) kept.delete(kept.keys().next().value as string);
    return send(entry, request);
  }

  /** What a request asks; a change that makes no sense leaves its entry in the audit trail. */
  function read({ route, captured }: Hit, { query, body }: RestRequest, call: Call): Asked {
    try {
      return route.rest.method === 'POST'
        ? askedByBody(route, fields, body, query)
        : askedByQuery(route, captured, query, body);
    } catch (error) {
      const named = namedBy(route, captured, query, body);
      if (route.operation.type !== 'query' && !meansDryRun(named)) {
        leaveRefused(
          contextFor(call, new Map()),
          route.operation.rootKey,
          named,
          asGatewayError(error, call.requestId),
        );
      }
      throw error;
    }
  }

  return {
    match: (method, path) => matchRoute(routes, method, path),
    async respond(match, request, call) {
      if (!match) return textResponse(404, '404 page not found');
      if ('redirect' in match) return redirectTo(match.redirect, request.query);
      if ('allow' in match) return textResponse(405, 'Method Not Allowed', { allow: match.allow.join(', ') });
      try {
        const { route } = match;
        const { variables, dryRun } = read(match, request, call);
        const isMutation = route.operation.type !== 'query';
        if (!dryRun || !route.rest.dryRun) {
          if (isMutation) admit?.(call);
          return await answer(route, variables, request, call);
        }
        const plan = await run(route.rest.dryRun, variables, contextFor(call, new Map()));
        return jsonResponse(200, toJson(plan));
      } catch (error) {
        return errorResponse(asGatewayError(error, call.requestId), call);
      }
    },
  };
}

/**
 * Whether a kept answer still is the answer: looks again where the last look is too old, and compares revisions. A backend
 * that keeps the others waiting has changed.
 */
async function isTrue({ reads }: Kept, call: Call): Promise<boolean> {
  const seen = await answersInTime<Observation<unknown> | undefined>(
    reads.map(([source]) => source.read(call)),
    () => undefined,
  );
  return seen.every((observation, index) => observation?.revision === reads[index]?.[1]);
}

function send({ body, etag }: Kept, { ifNoneMatch }: RestRequest): RestResponse {
  // A proxy that changes the encoding of a body weakens its tag; for a read that is the same.
  const tags = ifNoneMatch?.split(',').map(tag => tag.trim().replace(/^W\//, ''));
  if (tags?.some(tag => tag === etag || tag === '*')) {
    return { status: 304, headers: { etag }, body: '' };
  }
  return { status: 200, headers: { 'content-type': 'application/json', etag }, body };
}

const newline = Buffer.from('\n');
/** The newline comes to the bytes: to the string it would cost a copy of it that takes as long as making it. */
const toJson = (value: unknown) => Buffer.concat([Buffer.from(JSON.stringify(value, null, 2)), newline]);

function jsonResponse(status: number, body: Buffer, headers: Readonly<Record<string, string>> = {}): RestResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}

/** What is not an answer of the API: clients tell an unknown route from an unknown model by it. */
export function textResponse(status: number, text: string, headers: Record<string, string> = {}): RestResponse {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers }, body: text };
}

/** Only paths that are routes get here, so this leads to no other server. */
function redirectTo(path: string, query: URLSearchParams): RestResponse {
  const location = query.size > 0 ? `${path}?${query}` : path;
  return textResponse(301, 'Moved Permanently', { location });
}

function errorResponse(error: GatewayError, call: Call): RestResponse {
  const { code, message, status } = error;
  // Nobody reads it any more, and it says nothing about a backend.
  if (call.signal.aborted && call.signal.reason?.name === 'AbortError') call.log.debug('the client has left');
  // A fault of ours is an error; what a backend does or cannot do is worth a look.
  else if (code === 'internal_error') call.log.error({ status, code, err: error }, 'request failed');
  else if (status >= 500) call.log.warn({ status, code, error: message }, 'request failed');
  return jsonResponse(status, toJson({ error: { code, message } }), retryAfter(error));
}

/** When to ask again, as HTTP says it. */
export function retryAfter({ details }: GatewayError): Readonly<Record<string, string>> {
  const ms = details?.retryAfterMs;
  return typeof ms === 'number' ? { 'retry-after': String(Math.ceil(ms / 1000)) } : {};
}
