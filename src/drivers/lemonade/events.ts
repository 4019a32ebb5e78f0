import { backendError } from '../../errors.ts';
import { type Line, streamedLimit } from '../lines.ts';

/** One server-sent event. */
export interface ServerEvent {
  /** '' when it has none. */
  readonly name: string;
  /** Its data lines, joined. */
  readonly data: string;
  /** False for one that the end of the stream cut off: its data may not be all of it. */
  readonly complete: boolean;
}

/** Groups lines into events: a blank line ends one, a colon begins a comment, and an event without data is none. */
export async function* eventsOf(
  lines: AsyncIterable<Line>,
  what: string,
  limit = streamedLimit,
): AsyncGenerator<ServerEvent> {
  let name = '';
  let data: string[] = [];
  let size = 0;
  for await (const line of lines) {
    if (line.text === '') {
      if (data.length > 0) yield { name, data: data.join('\n'), complete: true };
      name = '';
      data = [];
      size = 0;
      continue;
    }
    const { field, value } = fieldIn(line.text);
    if (field === 'event') name = value;
    if (field !== 'data') continue;
    data.push(value);
    size += value.length + 1;
    if (size > limit) throw backendError(`${what}: an event of more than ${limit} characters`);
  }
  if (data.length > 0) yield { name, data: data.join('\n'), complete: false };
}

function fieldIn(line: string): { field: string; value: string } {
  const colon = line.indexOf(':');
  if (colon < 0) return { field: line, value: '' };
  const value = line.slice(colon + 1);
  return { field: line.slice(0, colon), value: value.startsWith(' ') ? value.slice(1) : value };
}
