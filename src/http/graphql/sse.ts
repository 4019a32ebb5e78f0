import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import { at } from '../../identity/expiry.ts';
import { type Member, sseFrame } from './groups.ts';

/** Quiet streams say something this often, in milliseconds: clients and gateways drop a silent one after 15 to 300 s. */
const commentMs = 15_000;
const comment = Buffer.from(':\n\n');

/** The last event of a stream whose token has expired. */
const expired = JSON.stringify({
  errors: [
    { message: 'the token has expired; sign in again', extensions: { code: 'unauthenticated', http: { status: 401 } } },
  ],
});
/** How long that may take to be read, in milliseconds. */
const lingerMs = 2_000;

export interface Streams {
  /** Sends what a member gets until it ends or the client leaves. Nothing waits for that: a stream keeps only what it needs. */
  /** Past `until`, in milliseconds since the epoch, it says that the token has expired, and ends. */
  stream(res: ServerResponse, member: Member, until?: number): void;
  /** Sends one result and completes. */
  single(res: ServerResponse, result: ExecutionResult): void;
  /** From now on a stream that ends was cut off by us: it does not say that it is complete, so clients come again. */
  close(): void;
}

/** Server-Sent Events in the distinct connections mode of graphql-sse. One timer keeps all quiet streams open. */
export function createStreams(): Streams {
  const open = new Set<ServerResponse>();
  let closing = false;
  const timer = setInterval(() => {
    // A stream that is behind is not quiet: what it needs is on its way.
    for (const res of open) if (!res.writableNeedDrain) res.write(comment);
  }, commentMs).unref();

  function begin(res: ServerResponse) {
    // The end of a stream is the end of its connection, so an event is one plain write; chunks would be three.
    res.useChunkedEncodingByDefault = false;
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
  }

  async function pump(res: ServerResponse, member: Member): Promise<void> {
    for (;;) {
      const next = await member.next();
      if (next.done) break;
      if (!res.write(next.value.frame)) await drained(res);
    }
    open.delete(res);
    if (res.writableEnded) return;
    if (closing) res.end(comment, () => res.socket?.destroySoon());
    else res.end(sseFrame('complete'));
  }

  /** Without `complete`: clients come again, with a new token. */
  function expire(res: ServerResponse, member: Member): void {
    res.end(sseFrame('next', expired));
    void member.return();
    // Who does not read is not waited for.
    setTimeout(() => res.destroy(), lingerMs).unref();
  }

  return {
    stream(res, member, until) {
      // Whoever left while we joined is not told again.
      if (res.destroyed) return void member.return();
      const cancel = until === undefined ? undefined : at(until, () => expire(res, member));
      res.once('close', () => {
        cancel?.();
        open.delete(res);
        void member.return();
      });
      begin(res);
      res.write(comment);
      open.add(res);
      // Its source broke, which is logged where it did. A stream that ends without `complete` is asked for again.
      pump(res, member).catch(() => res.destroy());
    },
    single(res, result) {
      begin(res);
      res.write(sseFrame('next', JSON.stringify(result)));
      res.end(sseFrame('complete'));
    },
    close() {
      closing = true;
      clearInterval(timer);
    },
  };
}

/** Resolves when the socket takes more, or is gone. */
function drained(res: ServerResponse): Promise<void> {
  if (res.destroyed) return Promise.resolve();
  return new Promise(resolve => {
    const settle = () => {
      res.off('drain', settle);
      res.off('close', settle);
      resolve();
    };
    res.on('drain', settle);
    res.on('close', settle);
  });
}
