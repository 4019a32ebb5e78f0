/**
 * The logger: JSON lines for machines, one readable line each for people, and no secret in either.
 *
 * Redaction has two stages. Objects are walked before they are written: whatever hangs on a key such as `token` goes,
 * however deep. The finished line is then searched for what a secret looks like: this covers messages, error texts,
 * bindings of child loggers, and JSON or headers inside a string.
 */
import { createRequire } from 'node:module';
import { type DestinationStream, destination, type Logger, levels, pino, stdTimeFunctions } from 'pino';
import type { LogFormat } from './config.ts';
import { GatewayError } from './errors.ts';

export interface LogOptions {
  readonly format: LogFormat;
  /** Debug lines too. */
  readonly verbose?: boolean;
  /** Instead of standard output. */
  readonly stream?: LogStream;
}

/** A stream to log to, as far as we use it. */
export interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean | undefined;
  hasColors?(): boolean;
}

export function createLogger({ format, verbose = false, stream }: LogOptions): Logger {
  const terminal = stream ?? process.stdout;
  const isText = format === 'text' || (format === 'auto' && terminal.isTTY === true);
  const sink = stream ?? standardOutput({ sync: isText });
  const colors = terminal.isTTY === true && terminal.hasColors?.() === true;

  const log = pino(
    {
      level: verbose ? 'debug' : 'info',
      base: null, // no process id and host name: whoever collects the lines knows them
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      hooks: {
        logMethod(args, method, level) {
          const [first, ...rest] = args as [unknown, ...unknown[]];
          const prepared = typeof first === 'object' ? [loggable(first, level), ...rest] : args;
          method.apply(this, prepared as typeof args);
        },
        streamWrite: redactLine,
      },
    },
    isText ? readable(sink, colors) : sink,
  );
  if (sink instanceof Outlet) sink.onRecovery(lost => log.warn({ lost }, 'log lines were dropped: nobody read them'));
  return log;
}
