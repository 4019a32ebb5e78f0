import type { IncomingMessage } from 'node:http';

export interface Body {
  readonly text: string;
  /** There was more than the limit; `text` is what came before. */
  readonly over: boolean;
}

export const noBody: Body = { text: '', over: false };

/** The body of a POST, which is not read at all when it says itself that it is too large; other methods have none. */
export async function bodyOf(req: IncomingMessage, limit: number): Promise<Body> {
  if (req.method !== 'POST') return noBody;
  if (Number(req.headers['content-length'] ?? 0) > limit) return { text: '', over: true };
  return readBody(req, limit);
}

const ignore = () => {};

/** Reads a body up to a limit in bytes. What is beyond it is not kept. Rejects when the client breaks off. */
export function readBody(req: IncomingMessage, limit: number): Promise<Body> {
  const { promise, resolve, reject } = Promise.withResolvers<Body>();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    const room = limit - size;
    size += chunk.length;
    if (room > 0) chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    if (size > limit) finish(true);
  };
  const onEnd = () => finish(false);
  const onClose = () => reject(new Error('the client broke off its request'));
  // A request may live as long as its stream of answers: it does not keep its body.
  function finish(over: boolean) {
    req.off('data', onData).off('end', onEnd).off('error', reject).off('close', onClose).on('error', ignore);
    resolve({ text: Buffer.concat(chunks).toString('utf8'), over });
  }
  req.on('data', onData).on('end', onEnd).on('error', reject).on('close', onClose);
  return promise;
}
