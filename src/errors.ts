/**
 * Every failure a client can meet, as one type with one table.
 *
 * The code is the word clients switch on, in every face: the REST body's `error.code`, the first word of a tool's
 * refusal, GraphQL's `extensions.code`. The status is REST's, and GraphQL's `extensions.http.status`.
 */

import { redacted } from './secrets.ts';

/** Code → HTTP status. Total: a new code without a status does not compile. */
const statuses = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  no_backend: 412,
  does_not_fit: 412,
  rate_limited: 429,
  internal_error: 500,
  unsupported: 501,
  backend_error: 502,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof statuses;
export const errorCodes = Object.keys(statuses) as ErrorCode[];

/** A failure meant for the client: its message is a sentence a person can act on, without what looks like a secret. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  /** Further facts beside the message, such as the fit of a refusal. */
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(redacted(message), 'cause' in options ? { cause: options.cause } : {});
    this.name = 'GatewayError';
    this.code = code;
    this.details = options.details;
  }

  get status(): number {
    return statuses[this.code];
  }
}

type Options = ConstructorParameters<typeof GatewayError>[2];

// Clients match on how these messages begin.
export const invalidRequest = (what: string, options?: Options) =>
  new GatewayError('invalid_request', `invalid request: ${what}`, options);
export const modelNotFound = (what: string, options?: Options) =>
  new GatewayError('not_found', `model not found: ${what}`, options);
export const jobNotFound = (id: string) => new GatewayError('not_found', `job not found: ${id}`);
export const unsupported = (what: string, options?: Options) =>
  new GatewayError('unsupported', `operation not supported: ${what}`, options);
export const conflict = (what: string, options?: Options) => new GatewayError('conflict', `conflict: ${what}`, options);
export const doesNotFit = (what: string, options?: Options) =>
  new GatewayError('does_not_fit', `model does not fit: ${what}`, options);
export const unavailable = (what: string, options?: Options) =>
  new GatewayError('unavailable', `backend unavailable: ${what}`, options);
export const unauthenticated = (what: string) => new GatewayError('unauthenticated', what);
export const backendError = (what: string, options?: Options) => new GatewayError('backend_error', what, options);
export const noBackend = () =>
  new GatewayError(
    'no_backend',
    'no backend registered: register one with add_backend (kind ollama|lmstudio|lemonade|kserve) or configure --backends',
  );

/** What a client may know of any failure. An unexpected one is masked; find it in the log by its request id. */
export function asGatewayError(error: unknown, requestId: string): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return timedOut('the backend did not answer in time; ask again, or look at its health', { cause: error });
  }
  if (error instanceof DOMException && error.name === 'AbortError') {
    return backendError('given up: the client has left', { cause: error });
  }
  return new GatewayError('internal_error', `unexpected error; the log has it under request ${requestId}`, {
    cause: error,
  });
}

/** A backend that did not answer in time. */
export const timedOut = (what: string, options?: Options) =>
  backendError(what, { ...options, details: { timedOut: true } });
export const isTimeout = (error: unknown): boolean => error instanceof GatewayError && error.details?.timedOut === true;

/** What was asked for; undefined when it is `not_found`. */
export async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** The system's code of a failure, such as `ECONNREFUSED`, however deep it is in there; '' when there is none. */
export function systemCodeOf(error: unknown): string {
  const seen = error as { code?: unknown; errors?: unknown[]; cause?: unknown } | undefined;
  if (typeof seen?.code === 'string') return seen.code;
  const inner = seen?.errors?.[0] ?? seen?.cause;
  return inner === undefined || inner === error ? '' : systemCodeOf(inner);
}

/** A caller's text, quoted and short enough for a message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/** The words of anything that can be thrown, without what looks like a secret. */
export function messageOf(error: unknown): string {
  return redacted(error instanceof Error ? error.message : String(error));
}
