import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import type { Reply } from '../reply.ts';

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
      await clock.sleep(shape.everyMs ?? 0, signal);
    }
  }
  if (shape.afterBytes === undefined) response.end();
  else response.destroy();
}

async function write(response: ServerResponse, piece: Buffer, signal: AbortSignal): Promise<void> {
  if (piece.byteLength > 0 && !response.write(piece)) await once(response, 'drain', { signal });
}

function cut(bytes: Buffer, size = Math.max(1, bytes.byteLength)): Buffer[] {
  const pieces = [];
  for (let start = 0; start < bytes.byteLength; start += size) pieces.push(bytes.subarray(start, start + size));
  return pieces;
}
