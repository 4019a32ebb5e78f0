/** What is told of a runtime that died. */
import type { Read } from '../../../config/values.ts';
import type { Container } from './pod.ts';
import { clipped } from './words.ts';

const longestLine = 240;
const lines = 200;

/** `runtime crashed 2× (exit 137, OOMKilled): torch.OutOfMemoryError: …; back-off 20s restarting …` */
export function crashWords(runtime: Container, log: Read<string> | undefined, kubelet?: string): string {
  const { restarts, running, terminated, lastTerminated } = runtime;
  const { exitCode, reason } = terminated ?? lastTerminated ?? {};
  const exit = exitCode === undefined ? 'exit code unknown' : `exit ${exitCode}`;
  const why = reason === undefined || reason === 'Error' ? exit : `${exit}, ${reason}`;
  const crashes = restarts + (running ? 0 : 1);
  return `runtime crashed ${crashes}× (${why})${logWords(log)}${kubelet ? `; ${kubelet}` : ''}`;
}

function logWords(log: Read<string> | undefined): string {
  if (!log) return '';
  if ('problem' in log) return `; the crashed container's log could not be read (${log.problem})`;
  const line = errorLine(log.value);
  return line ? `: ${line}` : `; no error line in the last ${lines} lines of the crashed container's log`;
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
