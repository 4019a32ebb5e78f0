/** What a handler answers with; nothing is sent yet. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** One document, or a stream of pieces that are sent as they come. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

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

export const json = (value: unknown, status = 200, contentType = 'application/json; charset=utf-8'): Reply => ({
  status,
  headers: { 'content-type': contentType },
  body: encode(value),
});

export const text = (body: string, status = 200, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { 'content-type': 'text/plain', ...headers },
  body,
});

export const empty = (status = 200, headers: Record<string, string> = {}): Reply => ({ status, headers, body: '' });

export function refusal({ status, message, details }: ApiError, headers: Record<string, string>): Reply {
  const reply = json({ error: message, ...details }, status);
  return { ...reply, headers: { ...reply.headers, ...headers } };
}

export const ndjson = (lines: AsyncIterable<unknown>): Reply => ({
  status: 200,
  headers: { 'content-type': 'application/x-ndjson' },
  body: encodeLines(lines),
});

async function* encodeLines(lines: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const line of lines) yield `${encode(line)}\n`;
}
