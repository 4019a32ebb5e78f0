/** The command line as a process of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

/** A folder that is gone when the test is over, and how to put a file there. */
export function folder(t: TestContext) {
  const path = mkdtempSync(join(tmpdir(), 'model-manager-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    put(name: string, text: string) {
      writeFileSync(join(path, name), text);
      return join(path, name);
    },
  };
}

/** Starts a command. What it writes is waited for; when the test is over, it is gone. */
export function start(
  t: TestContext,
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
) {
  const child = spawn(process.execPath, [main, ...argv], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  t.after(() => child.kill('SIGKILL'));
  let out = '';
  let err = '';
  let news = Promise.withResolvers<void>();
  const wake = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    wake();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
    wake();
  });
  const ended = new Promise<number | null>(resolve => child.on('close', resolve));
  void ended.then(wake);
  return {
    get out() {
      return out;
    },
    get err() {
      return err;
    },
    ended,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    /** Resolves when it wrote that. */
    async wrote(text: string): Promise<void> {
      const end = AbortSignal.timeout(20_000);
      const late = new Promise<void>(resolve => end.addEventListener('abort', () => resolve(), { once: true }));
      while (!out.includes(text)) {
        assert.ok(
          !end.aborted && child.exitCode === null,
          `did not write ${JSON.stringify(text)} but:\n${out}\n${err}`,
        );
        await Promise.race([news.promise, late]);
      }
    },
  };
}

/** Starts the gateway on a free port, with these flags beside; resolves when it serves. */
export async function startGateway(
  t: TestContext,
  flags: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv } = {},
) {
  const gateway = start(t, ['serve', '--listen', '127.0.0.1:0', '--log-format', 'json', ...flags], options);
  await gateway.wrote('model-manager serves');
  const [, url = ''] = /"url":"([^"]+)"/.exec(gateway.out) ?? [];
  // It says so a moment before its start is over; who is answered comes after that.
  await fetch(`${url}/healthz`);
  return { gateway, url };
}
