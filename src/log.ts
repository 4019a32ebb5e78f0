/**
 * The logger: JSON lines for machines, one readable line each for people, and no secret in either.
 *
 * Redaction has two stages. Objects are walked before they are written: what hangs on a key such as `token` goes,
 * however deep. The finished line is then searched for what secrets look like: this covers messages, error texts,
 * bindings of child loggers, and headers or JSON inside a string.
 */
import { createRequire } from 'node:module';
import type { Writable } from 'node:stream';
import { type Logger, pino, stdTimeFunctions } from 'pino';
import { isAuditEntry } from './audit/entry.ts';
import type { AuditFile } from './audit/file.ts';
import type { LogFormat } from './config/settings.ts';
import { GatewayError } from './errors.ts';
import { gone, redactJson, secretKey } from './secrets.ts';

export interface LogOptions {
  readonly format: LogFormat;
  /** Debug lines too. */
  readonly verbose?: boolean;
  /** Where to write instead of standard output. */
  readonly stream?: LogStream;
  /** Where audit entries go beside the log, as JSON whatever its format; `stdout` has them instead of the log. */
  readonly audit?: AuditFile | 'stdout' | undefined;
}

export interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean;
  hasColors?(): boolean;
}

export function createLogger({ format, verbose = false, stream, audit }: LogOptions): Logger {
  const out: LogStream = stream ?? process.stdout;
  const isText = format === 'text' || (format === 'auto' && out.isTTY === true);
  const sink =
    stream ?? patient(process.stdout, lost => log.warn({ lost }, 'log lines were lost: standard output was stuck'));
  const log = pino(
    {
      level: verbose ? 'debug' : 'info',
      base: null, // whoever collects the lines knows the process and its host
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      // Ours are plain data when pino sees them; only the bindings of a child logger can hold a real one.
      serializers: { err: value => (value instanceof Error ? describe(value, false, 0) : value) },
      hooks: {
        logMethod(args, method, level) {
          const [first, ...rest] = args as unknown as [unknown, ...unknown[]];
          if (isAuditEntry(first)) {
            const entry = clean(first, false) as object;
            const line = redactJson(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
            if (audit === 'stdout') return void sink.write(line);
            // An entry is complete: what else its logger says in every line would be said twice.
            method.apply(log, [entry, ...rest] as typeof args);
            const problem = audit?.write(line);
            if (problem)
              log.error({ err: problem }, 'an audit entry is in the log only: it cannot be written to --audit-log');
            return;
          }
          const prepared = typeof first === 'object' && first !== null ? [loggable(first, level), ...rest] : args;
          method.apply(this, prepared as typeof args);
        },
        streamWrite: redactJson,
      },
    },
    isText ? readable(sink, out.isTTY === true && out.hasColors?.() === true) : sink,
  );
  return log;
}

/** Anything that is logged, as plain data without secret keys. Errors become what `describe` says of them. */
function clean(value: unknown, withStack: boolean, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return depth < maxDepth ? describe(value, withStack, depth) : value.message;
  // Dates, URLs and their like write themselves.
  if ('toJSON' in value) return value;
  if (depth >= maxDepth) return '[deeper]';
  if (Array.isArray(value)) return value.map(item => clean(item, withStack, depth + 1));
  const cleaned: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    cleaned[key] = secretKey.test(key) && inner !== undefined ? gone : clean(inner, withStack, depth + 1);
  }
  return cleaned;
}

// Also what ends a circle.
const maxDepth = 8;

const errorLevel = pino.levels.values.error as number;

/** The object of a log call: an error alone goes under `err`, as pino has it. */
function loggable(value: object, level: number): object {
  return clean(value instanceof Error ? { err: value } : value, level >= errorLevel) as object;
}

/** An error as data: its words, its code and what caused it; where it happened only if nobody expected it. */
function describe(error: Error, withStack: boolean, depth: number): object {
  // A GatewayError is an answer; only behind the one that masks a surprise is there something to find.
  const stack = withStack && !(error instanceof GatewayError && error.code !== 'internal_error');
  const { code, details, cause, errors } = error as Error & Record<'code' | 'details' | 'errors', unknown>;
  const inner = (value: unknown) => clean(value, stack, depth + 1);
  return {
    type: error.name,
    message: error.message,
    code,
    details: inner(details),
    // A connection that failed on every address of a host says so only here.
    errors: Array.isArray(errors) ? inner(errors.slice(0, 5)) : undefined,
    stack: stack && !(error instanceof GatewayError) ? error.stack : undefined,
    cause: inner(cause),
  };
}

const maxWaiting = 8 * 1024 * 1024;
const ignore = () => {};

/**
 * Standard output that never stops the process: not by being full, closed or slow.
 *
 * Node writes to files, terminals and pipes with room at once, so the last line before an exit gets out. What a full
 * pipe cannot take waits in memory up to a bound; beyond it lines are dropped and counted.
 */
function patient(out: Writable, onRecovery: (lost: number) => void): LogStream {
  let lost = 0;
  if (out.listenerCount('error', ignore) === 0) out.on('error', ignore);
  const written = (error?: Error | null) => {
    if (error) lost++;
    else if (lost > 0 && out.writableLength === 0) {
      const count = lost;
      lost = 0;
      onRecovery(count);
    }
  };
  return {
    write(line) {
      if (out.writableLength > maxWaiting) lost++;
      else out.write(line, written);
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** For people: `12:03:41  INFO: model loaded backend=ollama model=qwen3:8b`, and the stack of a surprise below it. */
function readable(sink: LogStream, colorize: boolean): LogStream {
  // Loaded here because most processes never write for people.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  const pretty = prettyFactory({
    colorize,
    // The message carries the fields and brings its own colours.
    customColors: 'fatal:bgRed,error:red,warn:yellow,info:green,debug:blue,trace:gray,message:reset',
    hideObject: true,
    translateTime: 'SYS:HH:MM:ss',
    customPrettifiers: {
      time: time => String(time),
      level: (level, _key, _line, { labelColorized }) => ' '.repeat(5 - String(level).length) + labelColorized,
    },
    messageFormat: (line, _messageKey, _levelLabel, { colors }) => {
      const { level: _level, time: _time, msg = '', ...fields } = line as Fields;
      const words = Object.entries(fields).map(([key, value]) => `${colors.gray(`${key}=`)}${fieldWords(value)}`);
      const stacks = Object.values(fields).flatMap(stackLines);
      return [[visible(msg), ...words].join(' '), ...stacks.map(frame => colors.gray(`    ${frame}`))].join('\n');
    },
  });
  return { write: line => sink.write(pretty(line)) };
}

const isDescribed = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && 'type' in value && 'message' in value;

function fieldWords(value: unknown): string {
  const text = isDescribed(value) ? errorWords(value) : value;
  if (typeof text === 'string' && /^[\w.:/@%+-]+$/.test(text)) return text;
  return visible(JSON.stringify(text));
}

/** `fetch failed, because connect ECONNREFUSED 127.0.0.1:11434 (ECONNREFUSED)` */
function errorWords(value: unknown): string {
  if (!isDescribed(value)) return visible(typeof value === 'string' ? value : JSON.stringify(value));
  const { message, code, errors, cause } = value;
  const own = String(message === '' ? (code ?? '') : code === undefined ? message : `${message} (${code})`);
  const all = Array.isArray(errors) ? [own, ...errors.map(errorWords)].filter(part => part !== '').join('; ') : own;
  return visible(cause === undefined ? all : `${all}, because ${errorWords(cause)}`);
}

function stackLines(value: unknown): string[] {
  if (!isDescribed(value)) return [];
  const own = typeof value.stack === 'string' ? value.stack.split('\n').map(visible) : [];
  return [...own, ...stackLines(value.cause)];
}

/** On one line, and without characters that move the cursor or colour the terminal: log text may come from anyone. */
export const visible = (text: unknown) => String(text).replace(/\p{Cc}+/gu, ' ');
