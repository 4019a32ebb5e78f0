import { type Kind, qualifiedKind, resourceOf } from './store/kinds.ts';

/** What an API server answers when it does not do what it was asked. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: object;
  readonly status: 'Failure';
  readonly message: string;
  readonly reason: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

interface Cause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** A refusal, thrown where it turns out that there must be one. */
export class StatusError extends Error {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.status = failure(code, reason, message, details);
  }
}

export const failure = (code: number, reason: string, message: string, details?: StatusDetails): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  ...(details && { details }),
  code,
});

/** The words an API server has for a status that came without any. */
export const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

const detailsOf = (kind: Kind, name?: string): StatusDetails => ({
  ...(name && { name }),
  ...(kind.group && { group: kind.group }),
  kind: kind.plural,
});

export const badRequest = (message: string) => new StatusError(400, 'BadRequest', message);

export const unauthorized = () => new StatusError(401, 'Unauthorized', 'Unauthorized');

export const notFound = (kind: Kind, name: string) =>
  new StatusError(404, 'NotFound', `${resourceOf(kind)} "${name}" not found`, detailsOf(kind, name));

/** For what is no resource at all. */
export const noSuchResource = () =>
  new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});

export const methodNotAllowed = () =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export const alreadyExists = (kind: Kind, name: string) =>
  new StatusError(409, 'AlreadyExists', `${resourceOf(kind)} "${name}" already exists`, detailsOf(kind, name));

export const conflict = (kind: Kind, name: string, why: string) =>
  new StatusError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${resourceOf(kind)} "${name}": ${why}`,
    detailsOf(kind, name),
  );

export const modified = (kind: Kind, name: string) =>
  conflict(kind, name, 'the object has been modified; please apply your changes to the latest version and try again');

export const expired = (message: string) => new StatusError(410, 'Expired', message);

export function forbidden(resource: string, group: string, name: string | undefined, why: string): StatusError {
  const of = group === '' ? resource : `${resource}.${group}`;
  const message = `${of}${name ? ` "${name}"` : ''} is forbidden: ${why}`;
  return new StatusError(403, 'Forbidden', message, {
    ...(name && { name }),
    ...(group && { group }),
    kind: resource,
  });
}

/** A problem of one field: `['metadata.name', 'Required value']`. */
export type Problem = readonly [field: string, message: string];

export function invalid(kind: Kind, name: string, problems: readonly Problem[]): StatusError {
  const texts = problems.map(([field, message]) => (field ? `${field}: ${message}` : message));
  const listed = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return new StatusError(422, 'Invalid', `${qualifiedKind(kind)} "${name}" is invalid: ${listed}`, {
    ...(name && { name }),
    ...(kind.group && { group: kind.group }),
    kind: kind.kind,
    causes: problems.map(([field, message]) => ({ reason: causeOf(message), message, ...(field && { field }) })),
  });
}

function causeOf(message: string): string {
  if (message.startsWith('Required value')) return 'FieldValueRequired';
  if (message.startsWith('Forbidden')) return 'FieldValueForbidden';
  if (message.startsWith('Unsupported value')) return 'FieldValueNotSupported';
  if (message.startsWith('Duplicate value')) return 'FieldValueDuplicate';
  return 'FieldValueInvalid';
}
