import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, chmodSync, constants, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** The user of the image. */
const uid = 65532;

/** What the image holds, as the Dockerfile puts it together: the build, the schema, production dependencies. Nobody may write it. */
function installed(t: TestContext): string {
  const app = mkdtempSync(join(tmpdir(), 'image-'));
  t.after(() => rmSync(app, { recursive: true, force: true }));
  const built = spawnSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', join(app, 'dist')], {
    cwd: root,
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
    encoding: 'utf8',
  });
  assert.equal(built.status, 0, built.stdout + built.stderr);
  for (const path of ['package.json', 'LICENSE', 'schema'])
    cpSync(join(root, path), join(app, path), { recursive: true });
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  for (const [path, { dev }] of Object.entries(packages)) {
    if (path === '' || dev) continue;
    mkdirSync(join(app, dirname(path)), { recursive: true });
    // What is nested in it has lines of its own.
    const nested = join(root, path, 'node_modules');
    cpSync(join(root, path), join(app, path), { recursive: true, filter: from => !from.startsWith(nested) });
  }
  const readOnly = spawnSync('chmod', ['-R', 'a-w,a+rX', app], { encoding: 'utf8' });
  assert.equal(readOnly.status, 0, readOnly.stderr);
  return app;
}

/** Node, where that user may run it: a home of root's is closed to others. */
function nodeFor(t: TestContext): string {
  const probe = spawnSync(process.execPath, ['--version'], { uid, gid: uid });
  if (probe.status === 0) return process.execPath;
  const folder = mkdtempSync(join(tmpdir(), 'image-node-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const copy = join(folder, 'node');
  cpSync(process.execPath, copy);
  return copy;
}

test('check 53: what the image holds serves as its user, from files nobody may write, with an empty environment', {
  skip: process.getuid?.() !== 0 && 'only root can run something as another user',
}, async t => {
  const app = installed(t);
  const node = nodeFor(t);
  const asUser = { cwd: '/', env: {}, uid, gid: uid } as const;
  const writing = spawnSync(node, ['-e', `fs.writeFileSync(${JSON.stringify(join(app, 'dist/new'))}, '')`], asUser);
  assert.match(String(writing.stderr), /EACCES/);
  accessSync(join(app, 'dist/main.js'), constants.R_OK);

  const argv = ['--enable-source-maps', join(app, 'dist/main.js'), 'serve', '--listen', '127.0.0.1:0'];
  const child = spawn(node, argv, { ...asUser, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  t.after(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', chunk => {
    errors += chunk;
  });

  let url = '';
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    ({ url = '' } = JSON.parse(line) as { url?: string });
    if (url) break;
  }
  child.stdout.resume();
  assert.match(url, /^http:/, errors);

  assert.equal(await (await fetch(new URL('/healthz', url))).text(), 'ok');
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  assert.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
  const answer = await fetch(new URL('/graphql', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ info { version } backends { items { name } } }' }),
  });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  assert.deepEqual(await answer.json(), { data: { info: { version }, backends: { items: [] } } });

  child.kill('SIGINT');
  assert.equal(await ended, 0, errors);
  assert.equal(errors, '');
});
