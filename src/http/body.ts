import type { IncomingMessage } from 'node:http';

export interface Body {
  readonly text: string;
  /** There was more than the limit; `text` is what came before. */
  readonly over: boolean;
}

/** Reads a body up to a limit in bytes. What is beyond it is not kept. Rejects when the client breaks off. */
export function readBody(req: IncomingMessage, limit: number): Promise<Body> {
  const { promise, resolve, reject } = Promise.withResolvers<Body>();
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = (over: boolean) => resolve({ text: Buffer.concat(chunks).toString('utf8'), over });
  req.on('data', (chunk: Buffer) => {
    const room = limit - size;
    size += chunk.length;
    if (room > 0) chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    if (size > limit) finish(true);
  });
  req.on('end', () => finish(false));
  req.on('error', reject);
  req.on('close', () => {
    if (!req.complete) reject(new Error('the client broke off its request'));
  });
  return promise;
}
