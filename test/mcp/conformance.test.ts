/** The protocol's own conformance runner, against our tools and against the tools it brings its questions for. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fixtureProtocol } from './fixtureTools.ts';
import { serveProtocol, serveTools } from './serving.ts';

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json');
const runner = join(dirname(manifest), 'dist/index.js');

/** Scenarios that need no tool of a special name. */
const anyServer = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list'],
  '2026-07-28': ['tools-list', 'http-header-validation'],
};
/** Scenarios that call tools which do nothing but answer; the others are about what we do not offer. */
const answeringTools = {
  '2025-11-25': [
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'json-schema-2020-12',
  ],
  '2026-07-28': [
    'server-stateless',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'json-schema-2020-12',
    'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params',
    'input-required-result-validate-input',
  ],
};

for (const revision of ['2025-11-25', '2026-07-28'] as const) {
  test(`conformance with ${revision}: our tools`, { timeout: 60_000 }, async t => {
    // The runner leaves long answers unread, and falls over when their connection is closed.
    const { url } = await serveTools(t, { keepAlive: true });
    const passed = await run(url, revision);
    if (!passed) return t.skip('the installed runner does not know this revision');
    assert.deepEqual(missing(anyServer[revision], passed), []);
  });

  test(`conformance with ${revision}: the runner's tools`, { timeout: 60_000 }, async t => {
    const { url } = await serveProtocol(t, fixtureProtocol());
    const passed = await run(url, revision);
    if (!passed) return t.skip('the installed runner does not know this revision');
    assert.deepEqual(missing([...anyServer[revision], ...answeringTools[revision]], passed), []);
  });
}

const missing = (wanted: readonly string[], passed: ReadonlySet<string>) => wanted.filter(name => !passed.has(name));

/** The scenarios that passed, and had something to check; undefined when the runner does not know the revision. */
async function run(url: string, revision: string): Promise<ReadonlySet<string> | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-'));
  const args = [runner, 'server', '--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', folder];
  try {
    // It ends with 1 whenever one scenario fails, and there are some for things we do not offer.
    const output = await new Promise<string>(resolve => {
      execFile(process.execPath, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    if (/Unknown spec version/.test(output)) return undefined;
    const passed = output.matchAll(/^✓ (\S+): [1-9]\d* passed, 0 failed/gm);
    return new Set([...passed].map(([, name]) => name as string));
  } finally {
    await rm(folder, { recursive: true });
  }
}
