import type { Clock } from '../host/clock.ts';
import type { Reply } from '../host/reply.ts';
import type { Incoming } from '../host/server.ts';
import type { StoredFile } from './content.ts';

/** How fast content comes, and where it stops. */
export interface Line {
  /** On each connection; as fast as it goes when absent. */
  readonly bytesPerSecond?: number | undefined;
  /** Bytes of all connections together after which nothing comes any more, and no connection ends. */
  readonly stopsAfterBytes?: number | undefined;
}

/** The line as it is used. */
export interface UsedLine extends Line {
  sentBytes: number;
}

/** A piece every so many milliseconds on a slow line; on a fast one as many bytes at once. */
const tickMs = 100;
const pieceBytes = 256 * 1024;

/** A file, or the range of it that was asked for. */
export function contentReply(
  file: StoredFile,
  { headers }: Incoming,
  line: UsedLine,
  clock: Clock,
  gone: AbortSignal,
): Reply {
  const all = { 'accept-ranges': 'bytes', etag: `"${file.sha256 ?? file.oid}"`, 'content-type': typeOf(file.path) };
  const range = rangeOf(headers.range, file.bytes);
  if (range === 'unsatisfiable')
    return { status: 416, headers: { ...all, 'content-range': `bytes */${file.bytes}` }, body: '' };
  const { start, end } = range ?? { start: 0, end: file.bytes };
  return {
    status: range ? 206 : 200,
    headers: {
      ...all,
      'content-length': String(end - start),
      ...(range && { 'content-range': `bytes ${start}-${end - 1}/${file.bytes}` }),
    },
    body: pieces(file, start, end, line, clock, gone),
  };
}

async function* pieces(
  file: StoredFile,
  start: number,
  end: number,
  line: UsedLine,
  clock: Clock,
  gone: AbortSignal,
): AsyncGenerator<Buffer> {
  const { bytesPerSecond, stopsAfterBytes = Number.POSITIVE_INFINITY } = line;
  const size = bytesPerSecond === undefined ? pieceBytes : Math.max(1, Math.round((bytesPerSecond * tickMs) / 1000));
  for (let at = start; at < end; ) {
    if (line.sentBytes >= stopsAfterBytes) await forever(gone);
    if (bytesPerSecond !== undefined) await clock.sleep(tickMs, gone);
    const until = Math.min(end, at + Math.min(size, stopsAfterBytes - line.sentBytes));
    line.sentBytes += until - at;
    yield file.read(at, until);
    at = until;
  }
}

/** Rejects when the client is gone. */
export function forever(gone: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  if (gone.aborted) reject(gone.reason);
  gone.addEventListener('abort', () => reject(gone.reason), { once: true });
  return promise;
}

/** One range of bytes, its end not included. Undefined when none is asked for, or several, or something else. */
function rangeOf(header: string | undefined, bytes: number) {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  return start < end ? { start, end } : ('unsatisfiable' as const);
}

const typeOf = (path: string) =>
  path.endsWith('.json') || /\.(?:md|txt)$|\.gitattributes$/.test(path)
    ? 'text/plain; charset=utf-8'
    : 'application/octet-stream';
