import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startCacheAgent } from '../../../src/commands/cacheAgent.ts';
import { parseCacheAgent } from '../../../src/config/parse.ts';
import type { ConfigError } from '../../../src/config/settings.ts';
import { countFolder } from '../../../src/drivers/kserve/cacheAgent/walk.ts';
import { readInventory } from '../../../src/drivers/kserve/inventory/agent.ts';
import { longestTurn } from '../../support/eventLoop.ts';
import { silent } from '../../support/gateway.ts';
import { send } from '../../support/server.ts';
import { runShell } from './shell.ts';

async function folder(t: TestContext): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'agent-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  return root;
}

async function put(root: string, path: string, content: string | number = '') {
  const file = join(root, path);
  await mkdir(join(file, '..'), { recursive: true });
  await writeFile(file, typeof content === 'string' ? content : '');
  if (typeof content === 'number') await truncate(file, content);
}

async function agentOn(t: TestContext, root: string) {
  const argv = ['--root', root, '--listen', '127.0.0.1:0', '--node', 'spark-01'];
  const { port, stop } = await startCacheAgent(parseCacheAgent(argv, {}), silent);
  t.after(stop);
  return `http://127.0.0.1:${port}`;
}

test('the agent answers what is in the cache, in the words of the fixture', async t => {
  const root = await folder(t);
  await put(root, 'nova-4b/model.safetensors', 5_000_000_000);
  await put(root, 'nova-4b/config.json', '{}');
  await put(root, '.model-manager/nova-4b.json', '{"model":"o/Nova","completedAt":"2026-09-30T10:00:00Z"}');
  await put(root, 'hf-home/x', 'abc');
  for (const dir of ['nova-4b', 'hf-home']) await utimes(join(root, dir), 1_790_500_000.9, 1_790_500_000.9);
  const url = await agentOn(t, root);
  const { status, json, headers } = await send(`${url}/inventory`);
  assert.equal(status, 200);
  assert.match(headers.get('content-type') ?? '', /^application\/json/);
  const { scannedAt, ...rest } = json;
  assert.match(scannedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.deepEqual(rest, {
    node: 'spark-01',
    root,
    entries: [
      { dir: 'hf-home', bytes: 3, files: 1, hasModel: false, mtime: '2026-09-27T09:06:40Z' },
      {
        dir: 'nova-4b',
        bytes: 5_000_000_002,
        files: 2,
        hasModel: true,
        mtime: '2026-09-27T09:06:40Z',
        marker: { model: 'o/Nova', completedAt: '2026-09-30T10:00:00Z' },
      },
    ],
    warnings: [],
  });
  assert.equal(readInventory(json)?.entries.length, 2, 'the gateway reads it');
});

test('it answers nothing else, and is only read', async t => {
  const url = await agentOn(t, await folder(t));
  const ask = async (path: string, init?: RequestInit) => {
    const { status, text } = await send(url + path, undefined, init);
    return [status, text];
  };
  assert.deepEqual(await ask('/healthz'), [200, 'ok']);
  assert.deepEqual(await ask('/'), [404, 'there is /inventory and /healthz']);
  assert.deepEqual(await ask('/inventory/../../etc/passwd'), [404, 'there is /inventory and /healthz']);
  assert.deepEqual(await ask('/inventory', { method: 'DELETE' }), [405, 'it is only read here']);
  assert.deepEqual(await ask('/inventory', { method: 'HEAD' }), [200, '']);
  assert.equal((await ask('/inventory?x=y'))[0], 200);
});

test('a cache that cannot be counted is said to be so, and the agent is still there', async t => {
  const url = await agentOn(t, join(await folder(t), 'gone'));
  const { status, text } = await send(`${url}/inventory`);
  assert.equal(status, 500);
  assert.match(text, /^the cache cannot be counted: ENOENT/);
  assert.equal((await send(`${url}/healthz`)).status, 200);
});

test('20,000 files are counted without deafness, once for all who ask', async t => {
  const root = await folder(t);
  for (let dir = 0; dir < 20; dir++) {
    const path = join(root, `model-${String(dir).padStart(2, '0')}`, 'shards');
    await mkdir(path, { recursive: true });
    await Promise.all(Array.from({ length: 1000 }, (_, file) => writeFile(join(path, `shard-${file}`), 'x')));
  }
  const { answer, ms, turns } = await longestTurn(() => countFolder(root));
  assert.equal(answer.entries.length, 20);
  assert.ok(answer.entries.every(({ files, bytes }) => files === 1000 && bytes === 1000));
  t.diagnostic(`${turns} turns for others meanwhile, the longest wait ${ms.toFixed(1)} ms`);
  assert.ok(turns > 100, `others had ${turns} turns`);

  const url = await agentOn(t, root);
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(`${url}/inventory`)));
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1, 'one count for all of them');
});

test('links and pipes lead nowhere', async t => {
  const root = await folder(t);
  const outside = await folder(t);
  await put(outside, 'secret.json', '{"model":"not/Ours"}');
  await put(outside, 'huge/model.safetensors', 10 ** 12);
  await put(root, 'a/x', 'abc');
  await symlink(join(outside, 'huge'), join(root, 'linked'));
  await symlink(join(outside, 'huge'), join(root, 'a/linked'));
  await symlink(join(outside, 'huge/model.safetensors'), join(root, 'a/model.safetensors'));
  await symlink('.', join(root, 'a/loop'));
  await symlink(root, join(root, 'a/up'));
  await put(root, 'b/x', 'abc');
  await mkdir(join(root, '.model-manager'));
  await symlink(join(outside, 'secret.json'), join(root, '.model-manager/a.json'));
  const pipes = ['.model-manager/b.json', 'b/pipe', 'b/config.json'].map(path => `'${join(root, path)}'`);
  assert.equal((await runShell(['/bin/sh'], `mkfifo ${pipes.join(' ')}`)).code, 0);
  const { entries, warnings } = await countFolder(root);
  assert.deepEqual(
    entries.map(({ dir, bytes, files, hasModel, marker }) => [dir, bytes, files, hasModel, marker]),
    [
      ['a', 3, 1, false, undefined],
      ['b', 3, 1, false, undefined],
    ],
  );
  assert.deepEqual(warnings, ['cannot read .model-manager/a.json: ELOOP']);

  const linked = await folder(t);
  await put(linked, 'm/blobs/abc', 'abc');
  await symlink(join(outside), join(linked, '.model-manager'));
  assert.equal((await countFolder(linked)).entries[0]?.marker, undefined, 'nor is the folder of markers a link');
});

test('what cannot be read is a warning, and there are not too many of them', async t => {
  const root = await folder(t);
  await put(root, 'a/x', 'abc');
  for (let n = 0; n < 120; n++) {
    await mkdir(join(root, `dir-${n}`));
    await put(root, `.model-manager/dir-${n}.json`, n % 2 === 0 ? '{"model":5}' : 'x'.repeat(100_000));
  }
  const { entries, warnings } = await countFolder(root);
  assert.equal(entries.length, 121);
  assert.equal(warnings.length, 101);
  assert.match(warnings[0] ?? '', /^\.model-manager\/dir-\d+\.json names no model$/);
  assert.equal(warnings.at(-1), 'and 20 more');
});

test('a name that is no text is counted as a warning, and one of many folders is no burden', async t => {
  const root = await folder(t);
  const bytes = Buffer.concat([Buffer.from(`${root}/a/`), Buffer.from([0xff, 0xfe]), Buffer.from('.bin')]);
  await mkdir(join(root, 'a'));
  await writeFile(bytes, 'abc');
  let deep = join(root, 'deep');
  for (let level = 0; level < 200; level++) deep = join(deep, 'd');
  await mkdir(deep, { recursive: true });
  await writeFile(join(deep, 'x'), 'abcd');
  const { entries, warnings } = await countFolder(root);
  assert.deepEqual(
    entries.map(({ dir, bytes }) => [dir, bytes]),
    [
      ['a', 0],
      ['deep', 4],
    ],
  );
  assert.deepEqual(warnings, ['cannot read a/\ufffd\ufffd.bin: ENOENT']);
});

test('its settings are checked, all at once', () => {
  assert.deepEqual(parseCacheAgent([], { NODE_NAME: 'n1' }), {
    root: '/mnt/models',
    listen: { host: undefined, port: 8081 },
    node: 'n1',
  });
  assert.throws(
    () => parseCacheAgent(['--listen', '8081', '--roots', '/x'], {}),
    (error: ConfigError) => {
      assert.match(error.message, /"8081" is a port without a colon/);
      assert.match(error.message, /--roots is not a setting; did you mean --root\?/);
      assert.match(error.message, /--node is missing; it names the node that this runs on/);
      return true;
    },
  );
});
