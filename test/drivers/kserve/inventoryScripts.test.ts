/** The scripts of the inventory, run by a real shell in a real folder. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { countFolder } from '../../../src/drivers/kserve/cacheAgent/walk.ts';
import { parseScan } from '../../../src/drivers/kserve/inventory/scanOutput.ts';
import { removeScript, scanScript } from '../../../src/drivers/kserve/inventory/scripts.ts';
import { runShell, shells } from './shell.ts';

async function emptyCache(t: TestContext, name = 'cache'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cache-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, name);
  await mkdir(root);
  return root;
}

async function put(root: string, path: string, size: number | string) {
  const file = join(root, path);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, typeof size === 'string' ? size : '');
  if (typeof size === 'number') await truncate(file, size);
}

async function scan(shell: readonly string[], root: string) {
  const { code, output } = await runShell(shell, scanScript(root));
  assert.equal(code, 0, output);
  const read = parseScan(output);
  return 'value' in read ? read.value : assert.fail(read.problem);
}

const gib = 2 ** 30;

for (const shell of shells) {
  test(`${shell}: directories are counted, whatever their names and sizes`, async t => {
    const root = await emptyCache(t, "it's a cache");
    await put(root, 'big/model-1.safetensors', 3 * gib + 1);
    await put(root, 'big/model-2.safetensors', 9 * gib);
    await put(root, 'big/deep/er/config.json', 7);
    await put(root, 'big/.cache/partial', 5);
    await put(root, 'hf-home/hub/blob', 120);
    await put(root, 'hf-home/deep/config.json', 3);
    await put(root, 'with blanks/x.gguf', 1);
    await put(root, 'ünï 模型/pytorch_model.bin', 2);
    await put(root, "quo'te$(touch x)`/a.pt", 4);
    await put(root, 'line\nbreak\tDIR\tevil/config.json', 6);
    await put(root, '-n/x.onnx', 8);
    await put(root, 'names/a\nDIR\tevil\t1\t1\t1\t1\n', 10);
    await put(root, 'hidden/.x.bin', 11);
    await mkdir(join(root, 'empty'));
    await put(root, '.model-manager/big.json', '{"model":"o/Big",\n"revision":"v1"}\n');
    await put(root, '.model-manager/hf-home.json', 'not JSON');
    await put(root, '.hidden/config.json', 100);
    await put(root, 'plain-file', 100);
    await utimes(join(root, 'big'), 1_790_500_000, 1_790_500_000);

    const { entries, warnings } = await scan(shell, root);
    assert.deepEqual(
      entries.map(({ dir, bytes, files, hasModel }) => [dir, bytes, files, hasModel]),
      [
        ['-n', 8, 1, true],
        ['big', 12 * gib + 1 + 7 + 5, 4, true],
        ['empty', 0, 0, false],
        ['hf-home', 123, 2, false],
        ['hidden', 11, 1, false],
        ['line?break?DIR?evil', 6, 1, true],
        ['names', 10, 1, false],
        ["quo'te$(touch x)`", 4, 1, true],
        ['with blanks', 1, 1, true],
        ['ünï 模型', 2, 1, true],
      ],
    );
    const big = entries.find(({ dir }) => dir === 'big');
    assert.equal(big?.mtime?.getTime(), 1_790_500_000_000);
    assert.deepEqual([big?.marker?.model, big?.marker?.revision], ['o/Big', 'v1']);
    assert.deepEqual(warnings, ['1 lines about the cache could not be read']);
    const byAgent = await countFolder(root);
    assert.deepEqual(byAgent.entries, entries, 'the agent counts the same');
  });

  test(`${shell}: links are not followed, nor do they name a model`, async t => {
    const root = await emptyCache(t);
    await put(root, '../outside/config.json', 1000);
    await put(root, 'model/blobs/weights', 50);
    await symlink('../outside', join(root, 'away'));
    await symlink('../../outside', join(root, 'model/away'));
    await symlink('/etc/hostname', join(root, '.model-manager'));
    await put(root, 'marked/x', 1);
    const { entries } = await scan(shell, root);
    assert.deepEqual(
      entries.map(({ dir, bytes, files }) => [dir, bytes, files]),
      [
        ['marked', 1, 1],
        ['model', 50, 1],
      ],
    );
    assert.deepEqual((await countFolder(root)).entries, entries);
  });

  test(`${shell}: a link in a directory counts for what it leads to`, async t => {
    const root = await emptyCache(t);
    await put(root, 'linked/blobs/abc', 50);
    await symlink('blobs/abc', join(root, 'linked/model.safetensors'));
    await put(root, 'broken/blobs/abc', 50);
    await symlink('blobs/gone', join(root, 'broken/model.safetensors'));
    const seen = (await scan(shell, root)).entries;
    assert.deepEqual(
      seen.map(({ dir, bytes, hasModel }) => [dir, bytes, hasModel]),
      [
        ['broken', 50, false],
        ['linked', 50, true],
      ],
    );
    assert.deepEqual((await countFolder(root)).entries, seen);
  });

  test(`${shell}: an empty cache is one without directories, and one that is not there is a failure`, async t => {
    const root = await emptyCache(t);
    assert.deepEqual((await scan(shell, root)).entries, []);
    const { code, output } = await runShell(shell, scanScript(`${root}/gone`));
    assert.deepEqual([code, output], [1, `cannot read ${root}/gone\n`]);
  });

  test(`${shell}: a removal takes the directory and its marker, and nothing else`, async t => {
    const root = await emptyCache(t);
    await put(root, 'nova-4b/deep/er/x', 10);
    await put(root, 'nova-4b-x4/x', 10);
    await put(root, '../outside/x', 10);
    await put(root, '.model-manager/nova-4b.json', '{}');
    await put(root, '.model-manager/other.json', '{}');
    await symlink('../../outside', join(root, 'nova-4b/away'));
    await symlink('../outside', join(root, 'away'));
    const remove = (dir: string) => runShell(shell, removeScript(root), { MM_DIRNAME: dir });
    assert.deepEqual(await remove('nova-4b'), { code: 0, output: 'REMOVED\n' });
    assert.deepEqual((await readdir(root)).sort(), ['.model-manager', 'away', 'nova-4b-x4']);
    assert.deepEqual(await readdir(join(root, '.model-manager')), ['other.json']);
    assert.deepEqual(await readdir(join(root, '../outside')), ['x']);

    const refused = [];
    for (const dir of ['nova-4b', 'away', '', '.', '..', '.model-manager', 'a/b', '*', '-rf']) {
      const { code, output } = await remove(dir);
      assert.equal(code, 1, dir);
      refused.push(output.trim());
    }
    assert.deepEqual(refused, [
      'there is no directory nova-4b in the cache',
      'there is no directory away in the cache',
      'refusing to remove cache directory ""',
      'refusing to remove cache directory "."',
      'refusing to remove cache directory ".."',
      'refusing to remove cache directory ".model-manager"',
      'refusing to remove cache directory "a/b"',
      'there is no directory * in the cache',
      'there is no directory -rf in the cache',
    ]);
    assert.deepEqual((await readdir(root)).sort(), ['.model-manager', 'away', 'nova-4b-x4']);
  });
}
