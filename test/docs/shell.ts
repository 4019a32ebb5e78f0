/** Runs what the page has people run, with the programs that it names and nothing else of this machine. */
import { spawn } from 'node:child_process';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../support/server.ts';
import { findTool, skipWithout } from '../support/tools.ts';

const root = new URL('../../', import.meta.url).pathname;
const ours = 'model-manager';
const tools = ['kubectl', 'helm', 'curl', 'diff'];

/** Why a script cannot run here; false when it can. */
export function whyNot(script: string): string | false {
  const missing = tools.find(tool => new RegExp(`(^|[ (|])${tool} `, 'm').test(script) && !findTool(tool));
  return missing !== undefined && skipWithout(missing, undefined);
}

/** Puts the programs into a folder, which a script then finds them in. */
export function install(folder: string): void {
  const wrapper = join(folder, ours);
  writeFileSync(wrapper, `#!/bin/sh\nexec ${process.execPath} ${root}src/main.ts "$@"\n`);
  chmodSync(wrapper, 0o755);
  for (const tool of tools) {
    const found = findTool(tool);
    if (found) symlinkSync(found, join(folder, tool));
  }
}

export interface Setting {
  /** With the programs; the home of those who leave something there. */
  readonly folder: string;
  /** Of the environment. */
  readonly variables: Readonly<Record<string, string>>;
  /** What stands in for addresses of the page. */
  readonly addresses: Readonly<Record<string, string>>;
}

export interface Ran {
  readonly code: number | null;
  /** What it printed, errors among it. */
  readonly output: string;
}

const longestMs = 40_000;

export async function runScript(script: string, { folder, variables, addresses }: Setting): Promise<Ran> {
  const here = Object.entries(addresses).reduce((rest, [there, address]) => rest.replaceAll(there, address), script);
  const child = spawn('bash', ['-euo', 'pipefail', '-c', `exec 2>&1\n${here}`], {
    cwd: root,
    env: { HOME: folder, PATH: `${folder}:/usr/bin:/bin`, NO_PROXY: '*', ...variables },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const code = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  try {
    const [ended, printed] = await within(Promise.all([code, text(child.stdout)]), here, longestMs);
    const output = Object.entries(addresses).reduce(
      (rest, [there, address]) => rest.replaceAll(address, there),
      printed,
    );
    return { code: ended, output: output.replaceAll('\r', '') };
  } finally {
    child.kill();
  }
}

/** What of the expected lines did not come, in their order; `…` stands for anything in a line, and for lines where it is one. */
export function missingIn(output: string, expected: string): string | undefined {
  const lines = output.split('\n').map(line => line.trim());
  let from = 0;
  for (const wanted of expected.trim().split('\n')) {
    const parts = wanted
      .trim()
      .split('…')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const pattern = new RegExp(`^${parts.join('.*').replace(/ +/g, '\\s+')}$`);
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line));
    if (at < 0) return wanted;
    from = at + 1;
  }
  return undefined;
}

/** How often, and how long in between, in milliseconds, what is on its way is looked at again. */
const [tries, pauseMs] = [40, 250];

/** Runs it until it prints what it is to print, where all it does is ask: the answer may be on its way. */
export async function runUntil(script: string, expected: string, setting: Setting): Promise<Ran> {
  for (let tried = 1; ; tried++) {
    const ran = await runScript(script, setting);
    if (missingIn(ran.output, expected) === undefined || tried === tries || !script.startsWith('curl ')) return ran;
    await sleep(pauseMs);
  }
}
