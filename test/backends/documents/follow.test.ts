import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BackendOrigin, createBackend } from '../../../src/backends/backend.ts';
import { followDocuments } from '../../../src/backends/documents/follow.ts';
import { createRegistry } from '../../../src/backends/registry.ts';
import type { ConfigMap } from '../../../src/kubernetes/resource.ts';
import { createCell } from '../../../src/live/cell.ts';
import { documentMap, documentText } from '../../support/cluster.ts';
import { fakeDriver, silent } from '../../support/gateway.ts';

/** A registry that follows ConfigMaps; what it was told to have, step by step. */
function following(statics: readonly string[] = []) {
  const backendOf = (kind: string, origin: BackendOrigin) =>
    createBackend(fakeDriver({ kind: kind as 'ollama', name: kind }), origin, silent);
  const registry = createRegistry(statics.map(kind => backendOf(kind, 'static')));
  const configMaps = createCell<readonly ConfigMap[]>([]);
  const steps: unknown[] = [];
  const now = () => {
    const { backends = [], documents = [] } = registry.registered.current?.value ?? {};
    const invalid = documents.flatMap(({ configMap, error }) => (error === undefined ? [] : `${configMap}: ${error}`));
    return [...backends.map(({ name }) => name), ...invalid];
  };
  registry.registered.subscribe(() => steps.push(now()));
  const stop = followDocuments({
    registry,
    configMaps,
    build({ spec }) {
      if (spec.endpoint === 'http://unbuildable') throw new Error('no such machine');
      return backendOf(spec.kind, spec.source);
    },
    log: silent,
  });
  return { registry, configMaps, steps, now, stop };
}

test('documents come, change and go; order is by name after the static ones', () => {
  const { registry, configMaps, now } = following(['lemonade']);
  configMaps.set([documentMap('ollama', documentText('ollama')), documentMap('lmstudio', documentText('lmstudio'))]);
  assert.deepEqual(now(), ['lemonade', 'lmstudio', 'ollama']);
  const [, before, untouched] = registry.backends;
  configMaps.set([
    documentMap('ollama', documentText('ollama')),
    documentMap('lmstudio', documentText('lmstudio', 'http://other:1')),
  ]);
  const [, after, same] = registry.backends;
  assert.notEqual(after, before);
  assert.equal(same, untouched, 'a document that did not change keeps its backend');
  configMaps.set([documentMap('lmstudio', documentText('lmstudio', 'http://other:1'))]);
  assert.deepEqual(now(), ['lemonade', 'lmstudio']);
});

test('a document edited into an invalid one drops its backend and is reported in one step, and the other way round', () => {
  const { configMaps, steps } = following();
  const good = documentMap('ollama', documentText('ollama'));
  const bad = documentMap('ollama', documentText('ollama', 'ftp://x'));
  const report = 'model-backend-ollama: spec.endpoint: must be an http(s) URL, got "ftp://x"';
  configMaps.set([good]);
  configMaps.set([bad]);
  configMaps.set([good]);
  configMaps.set([bad]);
  configMaps.set([]);
  assert.deepEqual(steps, [[], ['ollama'], [report], ['ollama'], [report], []]);
});

const kserve = (block: string) =>
  documentText('kserve').replace(/spec: .*/, `spec: {kind: kserve, kserve: {${block}}}`);

const refused: ReadonlyArray<readonly [what: string, ConfigMap, error: string | RegExp]> = [
  [
    'the name of another kind',
    documentMap('ollama', documentText('ollama'), 'model-backend-mine'),
    'metadata.name: the ConfigMap of the ollama document is named model-backend-ollama',
  ],
  ['no document in it', { ...documentMap('ollama', ''), data: { other: 'x' } }, 'no backend.yaml key'],
  ['no data at all', { ...documentMap('ollama', ''), data: undefined }, 'no backend.yaml key'],
  ['an empty document', documentMap('ollama', ''), 'apiVersion: must be agent-platform.giantswarm.io/v1alpha1'],
  [
    'a static kind',
    documentMap('lemonade', documentText('lemonade')),
    'conflict: backend lemonade is configured statically by the chart values (--backends)',
  ],
  [
    'what cannot be built',
    documentMap('ollama', documentText('ollama', 'http://unbuildable')),
    'build ollama backend: no such machine',
  ],
  ['a tab', documentMap('ollama', documentText('ollama').replace('spec: ', 'spec:\n\t')), /^document: .*tab/i],
  [
    'an unknown field',
    documentMap('ollama', `${documentText('ollama').trimEnd()}\nport: 1\n`),
    'document: unknown field "port"',
  ],
  [
    'more than there can be',
    documentMap('ollama', `${documentText('ollama')}# ${'x'.repeat(900_000)}\n`),
    /^document: must not be longer than 64 KiB, got 900\d{3} characters$/,
  ],
  [
    'aliases that explode',
    documentMap(
      'ollama',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghij'.replace(/./g, l => `${l}: &${l} [${`*${String.fromCharCode(l.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    ),
    /^document: /,
  ],
  [
    'a tag, whose text is nobody’s to read',
    documentMap('ollama', documentText('ollama').replace('ModelBackend', '!sec hunter2secret')),
    'document: has a tag that means nothing here at line 2, column 7',
  ],
  [
    'two documents',
    documentMap('ollama', `${documentText('ollama')}---\na: 1\n`),
    /^document: holds several documents at line 4/,
  ],
  ['lists without end', documentMap('ollama', '['.repeat(5_000)), /^document: /],
  [
    'a namespace that is none',
    documentMap('kserve', kserve('target: {servingNamespace: "../../etc"}')),
    'spec.kserve.target.servingNamespace: must be the name of a namespace, got "../../etc"',
  ],
  [
    'an API server without encryption',
    documentMap(
      'kserve',
      kserve('target: {cluster: far, apiServer: "http://far:6443", caBundle: PEM, servingNamespace: m}'),
    ),
    'spec.kserve.target.apiServer: must be an https URL, got "http://far:6443"',
  ],
  [
    'a Secret that is none',
    documentMap(
      'kserve',
      kserve('target: {servingNamespace: m}').replace(
        'kserve: {',
        'credentials: {secretRef: {name: "a b"}}, kserve: {',
      ),
    ),
    'spec.credentials.secretRef.name: must be the name of a Secret, got "a b"',
  ],
  ['the prototype', documentMap('ollama', '__proto__: {kind: x}\n'), /^(document|apiVersion): /],
];

for (const [what, configMap, expected] of refused) {
  test(`a document with ${what} is reported, and nothing else suffers`, () => {
    const { registry, configMaps } = following(['lemonade']);
    configMaps.set([configMap, documentMap('lmstudio', documentText('lmstudio'))]);
    const { documents = [] } = registry.registered.current?.value ?? {};
    const { error = '' } = documents.find(each => each.configMap === configMap.metadata.name) ?? {};
    if (typeof expected === 'string') assert.equal(error, expected);
    else assert.match(error, expected);
    assert.deepEqual(
      registry.backends.map(({ name }) => name),
      ['lemonade', 'lmstudio'],
    );
    assert.equal(({} as { kind?: string }).kind, undefined);
  });
}

test('what is followed no longer changes nothing', () => {
  const { configMaps, now, stop } = following();
  stop();
  configMaps.set([documentMap('ollama', documentText('ollama'))]);
  assert.deepEqual(now(), []);
});
