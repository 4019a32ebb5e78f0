import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');

/** The instructions of a Dockerfile, one line each, by stage. */
function stagesOf(text: string): string[][] {
  const lines = text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line.trim() !== '');
  const stages: string[][] = [];
  for (const line of lines) {
    if (line.startsWith('FROM ')) stages.push([]);
    stages.at(-1)?.push(line);
  }
  return stages;
}

const stages = stagesOf(read('Dockerfile'));
const [build = [], run = []] = stages;
const only = (stage: string[], word: string) => stage.filter(line => line.startsWith(`${word} `));
const copiedFromHere = stages.flat().filter(line => /^COPY (?!--from)/.test(line));

test('check 53: the image runs as a user that is not root, without a shell, npm or anything to write', () => {
  assert.equal(stages.length, 2);
  assert.match(run[0] ?? '', /^FROM gcr\.io\/distroless\/nodejs24-debian12:nonroot$/);
  assert.deepEqual(only(run, 'USER'), ['USER 65532:65532']);
  assert.deepEqual(only(run, 'RUN'), [], 'there is no shell to run anything');
  assert.deepEqual(only(run, 'VOLUME'), []);
  assert.deepEqual(only(stages.flat(), 'ADD'), [], 'nothing is fetched, nothing is unpacked');
  assert.doesNotMatch(stages.flat().join('\n'), /--chown|--chmod/, 'what is copied stays of root');
  const [entry = ''] = only(run, 'ENTRYPOINT').map(line => line.slice('ENTRYPOINT '.length));
  assert.deepEqual(JSON.parse(entry), ['/nodejs/bin/node', '--enable-source-maps', '/app/dist/main.js']);
  assert.deepEqual(only(run, 'CMD'), ['CMD ["serve"]']);
});

test('check 53: no secret is given to a build, and none can be in its context', () => {
  const given = [...only(build, 'ARG'), ...only(run, 'ARG')].map(line => line.slice('ARG '.length));
  assert.deepEqual(given, ['VERSION=unknown', 'COMMIT=unknown', 'BUILT=unknown']);
  const [everything, ...allowed] = read('.dockerignore')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'));
  assert.equal(everything, '*', 'what is not named stays out');
  const copied = copiedFromHere.flatMap(line =>
    line
      .split(' ')
      .slice(1, -1)
      .map(path => path.replace('./', '')),
  );
  assert.deepEqual(allowed.map(line => line.replace('!', '')).sort(), [...new Set(copied)].sort());
  for (const path of copied) assert.equal(globSync(path, { cwd: root }).length, 1, path);
});

test('the image installs by the lockfile, and in the end without development and without scripts', () => {
  assert.match(build[0] ?? '', /^FROM --platform=\$BUILDPLATFORM node:24-bookworm-slim AS build$/);
  const commands = only(build, 'RUN').map(line => line.slice('RUN '.length));
  assert.match(commands[0] ?? '', /^npm ci /);
  assert.equal(commands[1], 'npm run build');
  assert.match(commands[2] ?? '', /^npm ci --omit=dev --ignore-scripts /);
  assert.equal(commands.length, 3);
});

test('one build serves every architecture: nothing that is installed is made for one', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: boolean; cpu?: string[]; hasInstallScript?: boolean }>;
  };
  const native = Object.entries(packages).filter(
    ([, { dev, cpu, hasInstallScript }]) => !dev && (cpu || hasInstallScript),
  );
  assert.deepEqual(native, []);
});

test('the image says what it is', () => {
  const labels = only(run, 'LABEL').join(' ');
  const { description, license } = JSON.parse(read('package.json')) as { description: string; license: string };
  const said = Object.fromEntries(
    [...labels.matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]),
  );
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: Docker fills them in
  assert.deepEqual(said, {
    title: 'model-manager',
    description,
    licenses: license,
    version: '${VERSION}',
    revision: '${COMMIT}',
    created: '${BUILT}',
  });
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: Docker fills them in
  assert.match(only(run, 'ENV').join(' '), /MODEL_MANAGER_COMMIT="\$\{COMMIT\}" MODEL_MANAGER_BUILT="\$\{BUILT\}"/);
});
