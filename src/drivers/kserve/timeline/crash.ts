/** What is told of a runtime that died. */
import type { Read } from '../../../config/values.ts';
import { phrase, type ReasonCode } from '../../../domain.ts';
import type { Container } from './pod.ts';
import { clipped } from './words.ts';

const longestLine = 240;
const lines = 200;

/** `runtime crashed 2× (exit 137, OOMKilled): torch.OutOfMemoryError: …; back-off 20s restarting …` */
export function crashWords(runtime: Container, log: Read<string> | undefined, kubelet?: string): string {
  const { restarts, running, terminated, lastTerminated } = runtime;
  const { exitCode, reason } = terminated ?? lastTerminated ?? {};
  const crashed = phrase('CrashLoop', 'crashed', {
    count: restarts + (running ? 0 : 1),
    exit: exitWords(exitCode, reason),
  });
  return crashed + logWords(log) + (kubelet ? phrase('CrashLoop', 'kubelet', { message: kubelet }) : '');
}

function exitWords(code: number | undefined, reason: string | undefined): string {
  const exit = code === undefined ? phrase('CrashLoop', 'exitUnknown') : phrase('CrashLoop', 'exit', { code });
  const isTold = reason === undefined || reason === ('Error' satisfies ReasonCode);
  return isTold ? exit : phrase('CrashLoop', 'exitReason', { exit, reason });
}

function logWords(log: Read<string> | undefined): string {
  if (!log) return '';
  if ('problem' in log) return phrase('CrashLoop', 'logUnread', { problem: log.problem });
  const line = errorLine(log.value);
  return line ? phrase('CrashLoop', 'line', { line }) : phrase('CrashLoop', 'noLine', { lines });
}

/** The last line that tells of an error, from the name of the exception on where it has one. */
function errorLine(log: string): string | undefined {
  const line = log
    .trimEnd()
    .split('\n')
    .slice(-lines)
    .findLast(each => /Error|Traceback|Exception|denied/.test(each))
    ?.trim();
  if (!line) return undefined;
  const exception = /\b[A-Z]\w*(?:Error|Exception)\b: /.exec(line);
  return clipped(exception ? line.slice(exception.index) : line, longestLine);
}
