/** The real `kubectl` against a cluster of a test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createInbox, within } from './server.ts';
import { findTool, skipWithout } from './tools.ts';

const kubectl = findTool('kubectl');

/** Why a test with kubectl cannot run here; false when it can. */
export const skip = skipWithout('kubectl', kubectl);

/** How a run of kubectl ended. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run of kubectl that goes on. */
export interface Running extends AsyncDisposable {
  readonly process: ChildProcess;
  /** The next line on its standard output. */
  line(): Promise<string>;
}

export interface Kubectl extends AsyncDisposable {
  /** Runs it to its end; `input` is what it reads as `-f -`. */
  run(args: readonly string[], input?: object | string): Promise<Ran>;
  /** Its standard output, when it succeeds. */
  ok(args: readonly string[], input?: object | string): Promise<string>;
  /** Its standard error, when it fails. */
  refused(args: readonly string[], input?: object | string): Promise<string>;
  /** What it prints as JSON. */
  json<T = Record<string, never>>(args: readonly string[]): Promise<T>;
  start(args: readonly string[]): Running;
}

/** Milliseconds that a run may take. */
const longestMs = 30_000;

/** A kubectl with a configuration of its own, a home and caches of its own, and nothing else of this machine. */
export async function kubectlWith(kubeconfig: string): Promise<Kubectl> {
  assert.ok(kubectl, 'a test with kubectl must be skipped where there is none');
  const home = await mkdtemp(join(tmpdir(), 'kubectl-'));
  const config = join(home, 'config');
  await writeFile(config, kubeconfig);

  const spawned = (args: readonly string[]) =>
    spawn(kubectl, args, { env: { HOME: home, KUBECONFIG: config, NO_PROXY: '*' }, cwd: home });

  async function run(args: readonly string[], input?: object | string): Promise<Ran> {
    const child = spawned(args);
    child.stdin.end(typeof input === 'object' ? JSON.stringify(input) : input);
    const { promise: ended, resolve, reject } = Promise.withResolvers<number | null>();
    child.once('error', reject).once('close', resolve);
    const whole = Promise.all([ended, text(child.stdout), text(child.stderr)]);
    try {
      const [code, stdout, stderr] = await within(whole, `kubectl ${args.join(' ')}`, longestMs);
      return { code, stdout, stderr };
    } finally {
      child.kill();
    }
  }

  async function ok(args: readonly string[], input?: object | string): Promise<string> {
    const { code, stdout, stderr } = await run(args, input);
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  return {
    run,
    ok,
    async refused(args, input) {
      const { code, stdout, stderr } = await run(args, input);
      assert.notEqual(code, 0, `kubectl ${args.join(' ')} succeeded: ${stdout}`);
      return stderr.trim();
    },
    json: async args => JSON.parse(await ok([...args, '-o', 'json'])),
    start(args) {
      const child = spawned(args);
      const lines = linesOf(child);
      return {
        process: child,
        async line() {
          return lines.next(`a line of kubectl ${args.join(' ')}`, longestMs);
        },
        async [Symbol.asyncDispose]() {
          const closed = new Promise(resolve => child.once('close', resolve));
          const isOver = child.exitCode !== null || child.signalCode !== null;
          child.kill();
          if (!isOver) await within(closed, 'the end of kubectl');
        },
      };
    },
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  };
}

/** Read from the beginning on: what a process that has ended wrote is not lost. */
function linesOf({ stdout }: ChildProcess) {
  const lines = createInbox<string>();
  let rest = '';
  stdout?.setEncoding('utf8').on('data', (piece: string) => {
    const parts = (rest + piece).split('\n');
    rest = parts.pop() as string;
    for (const part of parts) lines.push(part);
  });
  return lines;
}
