import { setTimeout as after } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ConfigError } from '../config/settings.ts';
import { messageOf } from '../errors.ts';

/** Something that runs until it is told to stop. */
interface Stoppable {
  /** Says that it will be told to stop soon, to whoever sends it requests, and goes on; absent where nobody asks. */
  drain?(): void;
  stop(): Promise<void>;
}

/** How long a cluster may go on to send requests to a pod that it ends, in milliseconds. */
const drainMs = 5_000;

/**
 * Starts something, and stops it on SIGTERM or SIGINT, on the second one at once; while it starts there is nothing to stop, and
 * it only ends. SIGTERM is how clusters end a pod: what serves is not ready any more, and serves for five seconds until
 * everybody knows. A person at a terminal sends SIGINT, and does not wait. What nobody caught is logged and ends the process.
 */
export async function runUntilStopped(start: () => Promise<Stoppable>, log: Logger): Promise<void> {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'unexpected error, the process ends');
    process.exit(1);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);

  const asked = Promise.withResolvers<string>();
  let running: Stoppable | undefined;
  let stopping = false;
  // Before it starts: the first process of a container is not ended by a signal that it does not listen to.
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stopping) process.exit(1);
      stopping = true;
      log.info({ signal: name }, 'stopping');
      if (!running) process.exit(0);
      asked.resolve(name);
    });
  }
  running = await start();
  const signal = await asked.promise;
  if (signal === 'SIGTERM' && running.drain) {
    running.drain();
    log.info(`not ready any more, and serving for ${drainMs / 1000} s until nobody is sent here`);
    await after(drainMs);
  }
  await running.stop();
  process.exit(0);
}

/** What a person can do about a start that failed, or undefined for what nobody expected. */
export function startErrorOf(error: unknown): string | undefined {
  if (error instanceof ConfigError) return error.message;
  const { code, address, port, flag } = error as { code?: string; address?: string; port?: number; flag?: string };
  const where = `${address?.includes(':') ? `[${address}]` : (address ?? '')}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `cannot listen on ${where}: another process does; stop it, or choose another address with ${flag}`;
    case 'EACCES':
      return `cannot listen on ${where}: this user may not; choose a port above 1023 with ${flag}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `cannot listen: ${messageOf(error)}; give ${flag} an address of this machine`;
    default:
      return undefined;
  }
}
