/** What a handler answers with; nothing is sent yet. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** One document, or a stream of pieces that are sent as they come. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

/** How a server writes a value as JSON. */
export type Encode = (value: unknown) => string;

export const document = (
  value: unknown,
  status: number,
  contentType: string,
  encode: Encode = JSON.stringify,
): Reply => ({
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

/** A document for each line. */
export const ndjson = (lines: AsyncIterable<unknown>, encode: Encode = JSON.stringify): Reply => ({
  status: 200,
  headers: { 'content-type': 'application/x-ndjson' },
  body: mapped(lines, line => `${encode(line)}\n`),
});

export interface ServerEvent {
  readonly event?: string;
  readonly data: string;
}

/** Server-Sent Events. */
export const sse = (events: AsyncIterable<ServerEvent>, headers: Record<string, string> = {}): Reply => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...headers },
  body: mapped(events, ({ event, data }) => `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`),
});

async function* mapped<T>(items: AsyncIterable<T>, write: (item: T) => string): AsyncGenerator<string> {
  for await (const item of items) yield write(item);
}

/** A refusal, thrown where it turns out that there must be one. */
export class Refusal extends Error {
  readonly status: number;
  /** The whole document. */
  readonly body: object;

  constructor(status: number, body: object) {
    super(JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}
