import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A port of loopback that is free, for a server whose address has to be known before it is there. It is below those that
 * systems hand out by themselves: tests that run meanwhile in other processes would be given one of those again at once.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
  );
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  return promise;
}
