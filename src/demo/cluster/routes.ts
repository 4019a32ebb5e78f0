import type { IncomingHttpHeaders } from 'node:http';
import type { Reply } from '../host/reply.ts';
import type { Target } from './http/paths.ts';
import type { Registry } from './store/writes.ts';

/** A request whose user is known and may do it. */
export interface ApiRequest extends Target {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly raw: Buffer;
  readonly user: string;
  /** Aborts when the client is gone, and when the server stops. */
  readonly gone: AbortSignal;
}

/**
 * Answers the requests to one subresource. A stream is an async iterable that ends when `gone` aborts. Throws a
 * `StatusError`.
 */
export type Route = (request: ApiRequest, registry: Registry) => Reply | Promise<Reply>;

/** By resource and subresource: `pods/log`, `services/proxy`. */
export type Routes = Readonly<Record<string, Route>>;
