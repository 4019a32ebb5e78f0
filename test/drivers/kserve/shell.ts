/** Real shells to run the scripts of pods. */
import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';
import { within } from '../../support/server.ts';
import { isExecutable } from '../../support/tools.ts';

/**
 * How to run `-c <script>`: with the shell of this machine and its tools; and with those of the small images that pods have,
 * where `BUSYBOX` names one or there is one.
 */
export const shells: readonly (readonly string[])[] = [['/bin/sh'], ...busybox()];

function busybox(): (readonly string[])[] {
  const { BUSYBOX, PATH = '' } = process.env;
  const found =
    BUSYBOX ??
    PATH.split(delimiter)
      .map(folder => `${folder}/busybox`)
      .find(isExecutable);
  return found ? [[found, 'sh']] : [];
}

export interface Ran {
  readonly code: number | null;
  /** Both streams, as the log of a container has them. */
  readonly output: string;
}

/** A script that runs. */
export interface Running {
  /** What it has written so far. */
  readonly output: string;
  readonly ended: Promise<Ran>;
  kill(signal: NodeJS.Signals): void;
}

export function startShell(shell: readonly string[], script: string, env: Record<string, string> = {}): Running {
  const [command = '', ...args] = shell;
  const child = spawn(command, [...args, '-c', script], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const take = (chunk: string) => {
    output += chunk;
  };
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  const { promise, resolve, reject } = Promise.withResolvers<Ran>();
  child.once('error', reject).once('close', code => resolve({ code, output }));
  return {
    get output() {
      return output;
    },
    ended: promise,
    kill: signal => void child.kill(signal),
  };
}

/** Runs it to its end. */
export const runShell = (shell: readonly string[], script: string, env?: Record<string, string>): Promise<Ran> =>
  within(startShell(shell, script, env).ended, 'the end of the script', 20_000);
