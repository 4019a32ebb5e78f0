import type { Logger } from 'pino';
import { ConfigError } from '../config/settings.ts';
import { messageOf } from '../errors.ts';

/** Something that runs until it is told to stop. */
interface Stoppable {
  stop(): Promise<void>;
}

/** Stops on SIGTERM or SIGINT, on the second one at once. What nobody caught is logged and ends the process. */
export async function runUntilStopped(running: Stoppable, log: Logger): Promise<void> {
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'unexpected error, the process ends');
    process.exit(1);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);

  let stopping = false;
  const signal = await new Promise<string>(resolve => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.on(name, () => {
        if (stopping) process.exit(1);
        stopping = true;
        resolve(name);
      });
    }
  });
  log.info({ signal }, 'stopping');
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
