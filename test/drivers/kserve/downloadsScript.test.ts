/** The script of a download, run by a real shell in a real folder, against the emulated Hub. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { startHub } from '../../../src/demo/hub.ts';
import { downloadScript, prepareScript } from '../../../src/drivers/kserve/downloads/scripts.ts';
import { readMarker } from '../../../src/drivers/kserve/inventory/entry.ts';
import { eventually, within } from '../../support/server.ts';
import { runShell, shells, startShell } from './shell.ts';

const initializer = new URL('initializer.ts', import.meta.url).pathname;
const weights = 3_000_000;
const model = {
  id: 'acme-labs/Nova-4B',
  files: [
    { path: 'config.json', text: '{"model_type":"nova"}' },
    { path: 'model.safetensors', bytes: weights },
    { path: 'original/consolidated.pth', bytes: 500_000 },
  ],
  revisions: { v1: [{ path: 'config.json', text: '{"v":1}' }] },
};

/** A cache, and a program that downloads: the one of the tests, or what a script says. */
async function setUp(t: TestContext, shell: readonly string[], program?: string) {
  const folder = await mkdtemp(join(tmpdir(), 'download-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, 'cache');
  await mkdir(root);
  const run = join(folder, "the initializer's entry");
  await writeFile(run, `#!/bin/sh\n${program ?? `exec "${process.execPath}" "${initializer}" "$@"`}\n`);
  await chmod(run, 0o755);
  const dir = 'nova-4b';
  const env = (more: Record<string, string> = {}) => ({
    MM_SRC: `hf://${model.id}`,
    MM_DST: `${root}/${dir}`,
    MM_DIRNAME: dir,
    MM_MARKER: `${root}/.model-manager/${dir}.json`,
    MM_MODEL: model.id,
    MM_REVISION: '',
    MM_BYTES: '3500021',
    MM_JOB: 'mm-pull-nova-4b',
    // Longer than any program here takes to begin, however busy the machine is.
    MM_STALL_SECONDS: '600',
    HF_HUB_DISABLE_XET: '1',
    HF_HUB_ENABLE_HF_TRANSFER: '1',
    ...more,
  });
  const prepared = await runShell(shell, prepareScript(dir, root));
  assert.deepEqual(prepared, { code: 0, output: '' });
  const script = downloadScript(run);
  return {
    root,
    path: (...parts: string[]) => join(root, dir, ...parts),
    marker: async () => readMarker(JSON.parse(await readFile(join(root, '.model-manager', `${dir}.json`), 'utf8'))),
    markers: () => readdir(join(root, '.model-manager')),
    run: (more?: Record<string, string>) => runShell(shell, script, env(more)),
    start: (more?: Record<string, string>) => startShell(shell, script, env(more)),
  };
}

const progressIn = (output: string) => [...output.matchAll(/^PROGRESS (\d+)$/gm)].map(([, bytes]) => Number(bytes));

for (const shell of shells)
  describe(shell.join(' '), { concurrency: 4 }, () => {
    test(`everything is downloaded, and the marker says so`, async t => {
      await using hub = await startHub({ models: [model] });
      const cache = await setUp(t, shell);
      const { code, output } = await cache.run({ HF_ENDPOINT: hub.url });
      assert.equal(code, 0, output);
      assert.equal((await stat(cache.path('model.safetensors'))).size, weights);
      assert.equal(await readFile(cache.path('config.json'), 'utf8'), '{"model_type":"nova"}');
      assert.equal(progressIn(output)[0], 0);
      assert.equal(progressIn(output).at(-1), weights + 500_000 + 21);
      assert.match(output, /\nDONE\n$/);
      const { completedAt, ...marker } = (await cache.marker()) ?? {};
      assert.ok(completedAt && Math.abs(completedAt.getTime() - Date.now()) < 60_000);
      assert.deepEqual(marker, {
        model: model.id,
        revision: undefined,
        dir: 'nova-4b',
        bytesExpected: 3_500_021,
        job: 'mm-pull-nova-4b',
      });
      assert.deepEqual(await cache.markers(), ['nova-4b.json']);
    });

    test(`F2: a download for which nothing is written ends, and the next one goes on where it stood`, async t => {
      await using hub = await startHub({ models: [model] });
      hub.line({ stopsAfterBytes: 1_000_000 });
      const cache = await setUp(t, shell);
      const stalled = await cache.run({ HF_ENDPOINT: hub.url, MM_STALL_SECONDS: '4' });
      assert.equal(stalled.code, 3, stalled.output);
      const [, seconds, bytes] =
        /^DOWNLOAD STALLED: no bytes written to \S+\/nova-4b for (\d+)s \((\d+) bytes on disk, HF_HUB_DISABLE_XET=1 HF_HUB_ENABLE_HF_TRANSFER=1\); partial files stay for a retry$/m.exec(
          stalled.output,
        ) ?? assert.fail(stalled.output);
      assert.ok(Number(seconds) >= 4 && Number(seconds) <= 8, `${seconds} s`);
      assert.ok(Number(bytes) >= 1_000_000 - 100_000 && Number(bytes) <= 1_000_100, `${bytes} bytes`);
      assert.doesNotMatch(stalled.output, /DONE|FAILED/);
      assert.deepEqual(await cache.markers(), [], 'what is not complete has no marker');

      hub.line({});
      const resumed = await cache.run({ HF_ENDPOINT: hub.url });
      assert.equal(resumed.code, 0, resumed.output);
      const [, from] = /INFO model\.safetensors from byte (\d+)/.exec(resumed.output) ?? [];
      assert.ok(Number(from) > 900_000, `resumed from ${from}`);
      assert.ok((progressIn(resumed.output)[0] ?? 0) > 900_000);
      assert.equal((await stat(cache.path('model.safetensors'))).size, weights);
      assert.equal((await cache.marker())?.model, model.id);
    });

    test(`a file that has its length from the first byte is no progress`, async t => {
      const cache = await setUp(t, shell, 'truncate -s 1000000000 "$2/model.safetensors"; exec sleep 60');
      const { code, output } = await cache.run({ MM_STALL_SECONDS: '2' });
      assert.equal(code, 3, output);
      assert.equal(progressIn(output).at(-1), 1_000_000_000);
      const [, bytes] = /\((\d+) bytes on disk/.exec(output) ?? [];
      assert.ok(Number(bytes) < 100_000, `${bytes} bytes are really there`);
    });

    test(`as long as something is written it goes on`, async t => {
      const writes = 'for n in 1 2 3 4 5; do head -c 8192 /dev/zero >> "$2/file"; sleep 1; done';
      const cache = await setUp(t, shell, writes);
      const { code, output } = await cache.run({ MM_STALL_SECONDS: '3' });
      assert.equal(code, 0, output);
      assert.deepEqual(
        progressIn(output),
        progressIn(output).toSorted((a, b) => a - b),
      );
      assert.equal(progressIn(output).at(-1), 5 * 8192);
    });

    test(`a failure says with which code, and leaves no marker of before`, async t => {
      await using hub = await startHub({ models: [model] });
      const cache = await setUp(t, shell);
      assert.equal((await cache.run({ HF_ENDPOINT: hub.url })).code, 0);
      const { code, output } = await cache.run({ HF_ENDPOINT: hub.url, MM_SRC: 'hf://no/where' });
      assert.equal(code, 1, output);
      // The Hub does not tell what is not there from what may not be seen.
      assert.match(output, /401 for \/api\/models\/no\/where/);
      assert.match(output, /\nDOWNLOAD FAILED rc=1\n$/);
      assert.deepEqual(await cache.markers(), []);
      // A code that would tell the Job not to try again is not passed on.
      const three = await setUp(t, shell, 'exit 3');
      assert.deepEqual(await three.run(), { code: 1, output: 'PROGRESS 0\nDOWNLOAD FAILED rc=3\n' });
    });

    test(`patterns and revisions reach the program`, async t => {
      await using hub = await startHub({ models: [model] });
      const cache = await setUp(t, shell);
      const { code, output } = await cache.run({
        HF_ENDPOINT: hub.url,
        STORAGE_IGNORE_PATTERNS: '["original/*","*.safetensors"]',
      });
      assert.equal(code, 0, output);
      assert.deepEqual(await readdir(cache.path()), ['config.json']);
      const other = await setUp(t, shell);
      const env = { HF_ENDPOINT: hub.url, MM_SRC: `hf://${model.id}:v1`, MM_REVISION: 'v1', MM_BYTES: '' };
      assert.equal((await other.run(env)).code, 0);
      assert.equal(await readFile(other.path('config.json'), 'utf8'), '{"v":1}');
      const { revision, bytesExpected } = (await other.marker()) ?? {};
      assert.deepEqual([revision, bytesExpected], ['v1', 0]);
    });

    test(`a marker that cannot be written is a failure`, async t => {
      const cache = await setUp(t, shell, 'echo x > "$2/config.json"');
      const { code, output } = await cache.run({ MM_MARKER: `${cache.root}/gone/nova-4b.json` });
      assert.equal(code, 1);
      assert.match(output, /the marker \S+ cannot be written\nDOWNLOAD FAILED rc=1\n/);
    });

    test(`who ends it ends its program, too`, async t => {
      const cache = await setUp(t, shell, 'echo $$ > "$2/pid"; exec sleep 60');
      const running = cache.start({ MM_STALL_SECONDS: '600' });
      const pidFile = cache.path('pid');
      let pid = 0;
      await eventually(() => {
        pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0;
        return pid > 0 && running.output !== '';
      }, 'the program runs');
      running.kill('SIGTERM');
      const { code } = await within(running.ended, 'the end of the script');
      assert.equal(code, 143);
      await eventually(() => !isAlive(pid), 'the program has ended');
    });
  });

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('directories that are there keep their mode; one that cannot be written to says what to do', async t => {
  const shell = shells[0] ?? assert.fail('there is no shell');
  const folder = await mkdtemp(join(tmpdir(), 'prepare-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'nova-4b'), { mode: 0o750 });
  assert.deepEqual(await runShell(shell, prepareScript('nova-4b', folder)), { code: 0, output: '' });
  const modeOf = async (name: string) => (await stat(join(folder, name))).mode & 0o777;
  assert.deepEqual([await modeOf('nova-4b'), await modeOf('.model-manager')], [0o750, 0o777]);
  assert.deepEqual(await readdir(join(folder, 'nova-4b')), [], 'the probe is gone');

  await writeFile(join(folder, 'taken'), '');
  const { code, output } = await runShell(shell, prepareScript('taken', folder));
  assert.equal(code, 1);
  assert.match(
    output,
    /cannot write to \S+\/taken as user \d+ of groups [\d ]+: the volume must honour .*fsGroup 1000/,
  );
});
