import { STATUS_CODES } from 'node:http';
import type { Call } from '../call.ts';
import { backendError, type ErrorCode, GatewayError, messageOf, systemCodeOf, timedOut } from '../errors.ts';
import { permissionFor } from './permissions.ts';
import { type Resource, resourceName } from './resource.ts';

/** What is tried at the API server; every message begins with it. */
export interface Attempt {
  /** The server's word for it: `list`, `update`. */
  readonly verb: string;
  readonly resource: Pick<Resource, 'group' | 'plural' | 'namespaced'>;
  /** Of the objects: `log`. */
  readonly part?: string | undefined;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  /** What is sent and must not be repeated: the values of a Secret. */
  readonly secrets?: readonly string[] | undefined;
}

/** As whom it was tried. */
export interface Sender {
  readonly server: string;
  /** With the caller's own token; else with the gateway's identity. */
  readonly asCaller: boolean;
  /** The credentials that were sent. */
  readonly secrets: readonly string[];
}

/** An answer that is not what was asked for. */
export interface Refusal {
  readonly status: number;
  /** Lower case, without parameters; '' when there was none. */
  readonly contentType: string;
  readonly retryAfterMs?: number | undefined;
  /** Where a redirect points, without its query. */
  readonly location?: string | undefined;
  /** The beginning of the body. */
  readonly text: string;
}

/** `cannot list modelconfigs.kagent.dev in namespace kagent` */
export function attemptWords({ verb, resource, part, name, namespace }: Attempt): string {
  const all = resource.namespaced && name === undefined ? ' in all namespaces' : '';
  const where = namespace === undefined ? all : ` in namespace ${namespace}`;
  const what = `${resourceName(resource)}${part === undefined ? '' : `/${part}`}`;
  return `cannot ${verb} ${what}${name === undefined ? '' : ` ${name}`}${where}`;
}

/** What a refusal means. */
export function refusalError(attempt: Attempt, sender: Sender, refusal: Refusal): GatewayError {
  const { status, retryAfterMs, location } = refusal;
  if (status >= 300 && status < 400) {
    const target = location === undefined ? '' : ` to ${oneLine(location, 200)}`;
    return strange(attempt, sender, `a redirect${target}; redirects are not followed`);
  }
  const words = wordsOf(refusal);
  if (!words) return notKubernetes(attempt, sender, refusal);
  return statusError(attempt, sender, { ...words, code: status }, retryAfterMs);
}

/** What the API server says about a failure, as far as it does. */
export interface StatusWords {
  readonly code?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** The words in a `Status` object. */
export function statusWords(status: unknown): StatusWords {
  const { code, reason, message, details } = (status ?? {}) as Record<string, unknown>;
  const seconds = (details as Record<string, unknown> | undefined)?.retryAfterSeconds;
  return {
    code: typeof code === 'number' ? code : undefined,
    reason: typeof reason === 'string' && reason !== '' ? reason : undefined,
    message: typeof message === 'string' && message !== '' ? message : undefined,
    retryAfterMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined,
  };
}

const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  422: 'invalid_request',
  429: 'rate_limited',
  503: 'unavailable',
};

/** A server that asks for patience without saying how much, in milliseconds. */
const usualPatienceMs = 1_000;

/** A failure in the words of the API server. */
export function statusError(
  attempt: Attempt,
  sender: Sender,
  { code: status = 500, reason, message, retryAfterMs }: StatusWords,
  headerMs?: number,
): GatewayError {
  // Who asks the gateway for something is not the one who has to sign in again.
  const code = (status === 401 && !sender.asCaller ? undefined : codes[status]) ?? 'backend_error';
  const patience = Math.max(headerMs ?? 0, retryAfterMs ?? 0) || (code === 'rate_limited' ? usualPatienceMs : 0);
  const details = { ...(reason && { reason }), ...(patience > 0 && { retryAfterMs: patience }) };
  const said = safeLine(attempt, sender, message ?? `${status} ${STATUS_CODES[status] ?? 'without a word'}`);
  const text = `${attemptWords(attempt)}: ${said}${advice(attempt, sender, status, reason)}`;
  return new GatewayError(code, text, Object.keys(details).length > 0 ? { details } : {});
}

function advice(attempt: Attempt, { server, asCaller }: Sender, status: number, reason: string | undefined): string {
  if (status === 401) {
    return asCaller
      ? `; the API server at ${server} does not accept the caller's token: sign in again in case it has expired, else the ` +
          'server has to trust its issuer and audience'
      : `; the API server at ${server} does not accept the gateway's own credentials: look at its service account or kubeconfig`;
  }
  if (status === 403) {
    const { verb, resource, part, name } = attempt;
    const wanted = part === undefined ? resource.plural : `${resource.plural}/${part}`;
    const row = permissionFor({ verb, group: resource.group, resource: wanted, name, only: 'job-store=kubernetes' });
    return row ? `; this is needed to ${row.why}` : '';
  }
  // Where objects of a kind can be, the server says of each that it is not found; where they cannot, nothing of them.
  if (status === 404 && reason === undefined) return '; does the API server serve this resource?';
  return '';
}

/** What a refusal says for itself; undefined when no API server says such a thing. */
function wordsOf({ contentType, text }: Refusal): StatusWords | undefined {
  const body = text.trim();
  if (contentType.endsWith('json')) {
    const parsed = parsedOrUndefined(body);
    return parsed === null || typeof parsed !== 'object' ? undefined : statusWords(parsed);
  }
  if (contentType === 'text/html' || body.startsWith('<')) return undefined;
  if (contentType === 'text/plain' || contentType === '') return body === '' ? {} : { message: oneLine(body, 200) };
  return undefined;
}

/** An answer that no API server gives. Its body stays out of the message: nobody knows what is in it. */
export function notKubernetes(
  attempt: Attempt,
  sender: Sender,
  { status, contentType }: Pick<Refusal, 'status' | 'contentType'>,
): GatewayError {
  const what = `${status} with ${contentType === '' ? 'no content type' : oneLine(contentType, 80)}`;
  const words = `${what}, which is no answer of a Kubernetes API server; does a proxy or a login page stand there?`;
  return strange(attempt, sender, words, codes[status] === 'unavailable' ? 'unavailable' : 'backend_error');
}

/** An answer of success without what was asked for in it. */
export const noObject = (attempt: Attempt, server: string, what: 'object' | 'list') =>
  backendError(`${attemptWords(attempt)}: ${server} answered a document that is no ${what} of Kubernetes`);

function strange(attempt: Attempt, sender: Sender, what: string, code: ErrorCode = 'backend_error'): GatewayError {
  return new GatewayError(
    code,
    `${attemptWords(attempt)}: ${sender.server} answered ${safeLine(attempt, sender, what)}`,
  );
}

// --- no answer -------------------------------------------------------------------------------------------------------

const unreachableCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|UND_ERR_CONNECT_TIMEOUT)$/;
const lostCodes = /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_(SOCKET|ABORTED|RES_CONTENT_LENGTH_MISMATCH))$/;

/** Whether nothing can have been sent: there was no connection. */
export const wasRefused = (error: unknown): boolean => systemCodeOf(error) === 'ECONNREFUSED';

/** Whether a connection there was is gone; what was sent over it may have been done. */
export const wasLost = (error: unknown): boolean => lostCodes.test(systemCodeOf(error));

/** Why there is no answer. */
export function transportError(attempt: Attempt, sender: Sender, call: Call, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const what = attemptWords(attempt);
  const options = { cause: error };
  const at = `the API server at ${sender.server}`;
  if (call.signal.aborted) {
    return call.signal.reason?.name === 'TimeoutError'
      ? timedOut(`${what}: no answer from ${at} before the request's deadline`, options)
      : backendError(`${what}: cancelled by the caller`, options);
  }
  const code = systemCodeOf(error);
  const unavailable = (words: string) => new GatewayError('unavailable', `${what}: ${words}`, options);
  const [, proxied] = /^Proxy response \((\d+)\)/.exec(messageOf(error)) ?? [];
  if (proxied) return unavailable(`the proxy before ${at} answered ${proxied}`);
  if (unreachableCodes.test(code)) return unavailable(`${at} cannot be reached (${code})`);
  if (lostCodes.test(code)) return unavailable(`the connection to ${at} was lost (${code})`);
  return backendError(
    `${what}: ${mismatchWords(code, at, error) ?? safeLine(attempt, sender, messageOf(error))}`,
    options,
  );
}

/** What answers is not what the address says. */
function mismatchWords(code: string, at: string, error: unknown): string | undefined {
  if ((error as Error | undefined)?.name === 'HTTPParserError')
    return `${at} does not speak HTTP; check scheme and port`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `${at} does not speak TLS (${code}); should it be http://?`;
  if (/^ERR_SSL_.*ALERT/.test(code)) return `${at} broke off the TLS handshake (${code}); check the client certificate`;
  if (/CERT|SIGNATURE|TLS|SSL/.test(code))
    return `the certificate of ${at} is not accepted (${code}); check the certificate authority and the server's name`;
  return undefined;
}

// --- words -----------------------------------------------------------------------------------------------------------

/** Shorter ones are no secret, and could be part of any word. */
const shortestSecret = 8;

/** Foreign words as one line that repeats nothing of what is to stay secret. */
function safeLine(attempt: Attempt, sender: Sender, text: string): string {
  const secrets = [...sender.secrets, ...(attempt.secrets ?? [])].filter(({ length }) => length >= shortestSecret);
  // Longest first: one may be part of another.
  secrets.sort((a, b) => b.length - a.length);
  return oneLine(
    secrets.reduce((safe, secret) => safe.replaceAll(secret, '…'), text),
    600,
  );
}

/** Foreign text as one line without control characters, at most `limit` long. */
export function oneLine(text: string, limit: number): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > limit ? `${line.slice(0, limit)}…` : line;
}

/** The JSON in a text; undefined when there is none. */
export function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
