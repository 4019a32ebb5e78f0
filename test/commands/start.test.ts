import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { startCluster } from '../../src/demo/cluster.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

/** A port that somebody listens on. */
async function takenPort(t: TestContext): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function run(...argv: string[]) {
  const child = spawn(process.execPath, [main, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>(resolve => child.on('close', resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { out, err, code };
}

test('a start that cannot be is a sentence without a stack, and the process ends', async t => {
  const port = await takenPort(t);
  const address = `127.0.0.1:${port}`;
  const cluster = await startCluster();
  const kubeconfig = join(mkdtempSync(join(tmpdir(), 'start-')), 'kubeconfig');
  writeFileSync(kubeconfig, cluster.kubeconfig());
  t.after(async () => {
    rmSync(dirname(kubeconfig), { recursive: true });
    await cluster.close();
  });
  const table: [string[], RegExp][] = [
    [
      ['serve', '--listen', '127.0.0.1:0', '--backends', 'kserve', '--kubeconfig', '/nowhere/config'],
      /^the backend kserve needs a cluster: kubeconfig: \/nowhere\/config is not there\n$/,
    ],
    [['serve', '--listen', address], /another process does; stop it, or choose another address with --listen\n$/],
    [['demo', '--listen', address], /choose another address with --listen\n$/],
    [
      ['serve', '--listen', '127.0.0.1:0', '--metrics-listen', address],
      /choose another address with --metrics-listen\n$/,
    ],
    [
      ['serve', '--listen', address, '--kubeconfig', kubeconfig, '--namespace', 'x'],
      /choose another address with --listen\n$/,
    ],
    [
      ['serve', '--listen', ':0', '--metrics-listen', address, '--kubeconfig', kubeconfig, '--namespace', 'x'],
      /choose another address with --metrics-listen\n$/,
    ],
    [['demo', '--nope'], /^--nope is not a setting/],
  ];
  for (const [argv, words] of table) {
    const { err, code } = await run(...argv);
    assert.match(err, words, argv.join(' '));
    assert.doesNotMatch(err, /\n\s+at /);
    assert.equal(code, 2);
  }
});

test('every command explains itself', async () => {
  for (const command of [[], ['serve'], ['demo'], ['record'], ['replay'], ['schema']]) {
    const argv = [...command, '--help'];
    const { out, code } = await run(...argv);
    assert.match(out, /Usage: model-manager/, argv.join(' '));
    assert.equal(code, 0);
  }
});
