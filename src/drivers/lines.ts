import { backendError } from '../errors.ts';

/** A line of a stream, without its end. */
export interface Line {
  readonly text: string;
  /** False for what was left when the stream ended. */
  readonly complete: boolean;
}

/** Characters; a line or an event longer than this is no backend's. */
export const streamedLimit = 4 * 1024 * 1024;

/**
 * Cuts bytes, which arrive cut anywhere, into lines; line ends are `\n` or `\r\n`. `what` begins the message of the
 * `backend_error` that an endless line is.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  what: string,
  limit = streamedLimit,
): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n');
    pieces[0] = rest + pieces[0];
    rest = pieces.pop() ?? '';
    for (const piece of pieces) yield { text: withoutReturn(piece), complete: true };
    if (rest.length > limit) throw backendError(`${what}: a line of more than ${limit} characters`);
  }
  rest = withoutReturn(rest + decoder.decode());
  if (rest !== '') yield { text: rest, complete: false };
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line);
