import type { Dispatcher } from 'undici';
import type { Refusal } from '../errors.ts';
import { retryAfterOf } from './retry.ts';

type Body = AsyncIterable<Uint8Array>;
type Headers = Dispatcher.ResponseData['headers'];

/** What of a refusal is read; more than this are no words. */
const refusalLimit = 64 * 1024;

/** The whole body, undefined when it has more than `limit` bytes. Leaving it early ends its connection. */
export async function wholeText(body: Body, limit: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The last lines of a body, at most `limit` bytes, however long it is. */
export async function lastLines(body: Body, limit: number): Promise<string> {
  let kept: Uint8Array[] = [];
  let size = 0;
  let cut = false;
  for await (const chunk of body) {
    kept.push(chunk);
    size += chunk.length;
    // Joined now and then only, so that a long body is not copied for each of its chunks.
    if (size <= 2 * limit) continue;
    kept = [Buffer.concat(kept).subarray(-limit)];
    size = limit;
    cut = true;
  }
  const all = Buffer.concat(kept);
  if (!cut && size <= limit) return all.toString();
  const end = all.subarray(-limit);
  return end.subarray(end.indexOf(newline) + 1).toString();
}

export const newline = 0x0a;

/** What an answer that is not what was asked for says. */
export async function readRefusal({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<Refusal> {
  const chunks: Uint8Array[] = [];
  let left = refusalLimit;
  for await (const chunk of body as Body) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) break;
  }
  return {
    status: statusCode,
    contentType: contentTypeOf(headers),
    retryAfterMs: retryAfterOf(first(headers['retry-after']), Date.now()),
    // The query of a login redirect is full of one-time secrets.
    location: first(headers.location)?.replace(/[?#].*$/s, ''),
    text: Buffer.concat(chunks).toString(),
  };
}

/** Lower case, without parameters; '' when there is none. */
export function contentTypeOf(headers: Headers): string {
  const [contentType = ''] = (first(headers['content-type']) ?? '').toLowerCase().split(';', 1);
  return contentType.trim();
}

const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
