import { document, ndjson as lines, type Reply } from '../host/reply.ts';

/** A refusal as the API words it: `{"error": …}` with a status. */
export class ApiError extends Error {
  readonly status: number;
  /** Fields beside `error`. */
  readonly details: Readonly<Record<string, string>>;

  constructor(status: number, message: string, details: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/** JSON as Go writes it: the characters that mean something to HTML are escaped. */
function encode(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export const json = (value: unknown, status = 200, contentType = 'application/json; charset=utf-8'): Reply =>
  document(value, status, contentType, encode);

export const ndjson = (values: AsyncIterable<unknown>): Reply => lines(values, encode);

export function refusal({ status, message, details }: ApiError, headers: Record<string, string>): Reply {
  const reply = json({ error: message, ...details }, status);
  return { ...reply, headers: { ...reply.headers, ...headers } };
}
