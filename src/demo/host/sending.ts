import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from './clock.ts';
import type { Reply } from './reply.ts';

/** How an answer leaves, when not as it is. */
export interface Shape {
  readonly pieceBytes?: number | undefined;
  readonly everyMs?: number | undefined;
  /** Bytes of the body after which the connection is dropped. */
  readonly afterBytes?: number | undefined;
}

export async function send(
  response: ServerResponse,
  reply: Reply,
  shape: Shape,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { body } = reply;
  const document = typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : undefined;
  response.writeHead(reply.status, {
    date: new Date(clock.now()).toUTCString(),
    ...reply.headers,
    // Pieces of one document would run together again under a length; as chunks they stay apart.
    ...(document && shape.pieceBytes === undefined ? { 'content-length': String(document.byteLength) } : {}),
  });
  response.flushHeaders();
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }

  let left = shape.afterBytes ?? Number.POSITIVE_INFINITY;
  for await (const whole of document ? [document] : (body as AsyncIterable<string | Uint8Array>)) {
    for (const piece of cut(Buffer.from(whole), shape.pieceBytes)) {
      if (left <= piece.byteLength) {
        await write(response, piece.subarray(0, left), signal);
        response.destroy();
        return;
      }
      left -= piece.byteLength;
      await write(response, piece, signal);
      signal.throwIfAborted();
      if (shape.everyMs) await clock.sleep(shape.everyMs, signal);
      // A reader in the same process gets each piece by itself only when it has a turn in between.
      else if (shape.pieceBytes !== undefined) await turn();
    }
  }
  if (shape.afterBytes === undefined) response.end();
  else response.destroy();
}

/** Resolves when the piece has left: a slow reader holds the writer back, and a drop afterwards does not take it along. */
function write(response: ServerResponse, piece: Buffer, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // Node forgets what is written between the end of a socket and the news of it, callback and all.
  const forget = () => resolve();
  signal.addEventListener('abort', forget);
  if (signal.aborted) forget();
  response.write(piece, forget);
  return promise.finally(() => signal.removeEventListener('abort', forget));
}

function cut(bytes: Buffer, size = Math.max(1, bytes.byteLength)): Buffer[] {
  const pieces = [];
  for (let start = 0; start < bytes.byteLength; start += size) pieces.push(bytes.subarray(start, start + size));
  return pieces;
}
