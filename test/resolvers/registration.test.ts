import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentOf } from '../../src/backends/documents/arguments.ts';
import { type Faces, startFaces } from '../support/faces.ts';
import { fakeDriver } from '../support/gateway.ts';

const invalid = (what: string) => `invalid_request: invalid request: ${what}`;
const needsKubernetes =
  'unsupported: operation not supported: backend registration needs Kubernetes access and a namespace: that is where documents are kept';
const commit =
  'unsupported: operation not supported: mode commit (a pull request instead of a write) is not available yet; use mode apply';
const isStatic = (kind: string) =>
  `conflict: conflict: backend ${kind} is configured statically by the chart values (--backends)`;
const kinds = '(kserve|lemonade|lmstudio|ollama)';
const lemonade = { kind: 'lemonade', endpoint: 'http://h:13305' };

/** Refuses in order; each line is wrong in what the lines below are wrong in, too. */
async function refusesInOrder(
  faces: Faces,
  name: string,
  table: readonly (readonly [asks: object, refusal: string])[],
) {
  for (const [asks, refusal] of table)
    assert.equal(await faces.refusal(name, asks as Record<string, unknown>), refusal);
}

test('adding is checked in order: mode, document, static kind, Kubernetes', async () => {
  await using faces = await startFaces({ drivers: [fakeDriver({ kind: 'ollama' })] });
  await refusesInOrder(faces, 'addBackend', [
    [{ mode: 'commit' }, commit],
    [{ mode: 'Apply' }, invalid('mode must be apply or left out, got "Apply"')],
    [{}, invalid(`spec.kind: required ${kinds}`)],
    [{ mode: ' apply ', kind: ' ' }, invalid(`spec.kind: required ${kinds}`)],
    [{ kind: 'vllm', source: 'x', gpuPoolTaint: '=' }, invalid(`spec.kind: unknown "vllm" ${kinds}`)],
    [
      { kind: 'ollama', source: 'x' },
      invalid('spec.source: must be person or cluster-manager (static backends come from --backends)'),
    ],
    [{ kind: 'ollama' }, invalid('spec.endpoint: required for ollama')],
    [{ kind: 'ollama', endpoint: 'h' }, invalid('spec.endpoint: must be an http(s) URL, got "h"')],
    [
      { ...lemonade, credentialsSecret: 's' },
      invalid('spec.credentials: not supported by lemonade yet (only kserve takes them)'),
    ],
    [
      { kind: 'kserve', endpoint: 'http://h', servingNamespace: 'm' },
      invalid('spec.endpoint: not accepted for kserve (its cluster is spec.kserve.target)'),
    ],
    [{ kind: 'kserve' }, invalid('spec.kserve.target.servingNamespace: required')],
    [{ kind: 'ollama', endpoint: 'http://h' }, `${isStatic('ollama')}; a document cannot replace it`],
    [{ ...lemonade, dryRun: true }, needsKubernetes],
    [lemonade, needsKubernetes],
    [{ kind: 'kserve', servingNamespace: 'm' }, needsKubernetes],
  ]);
});

test('removing is checked in order: mode, kind, static kind, Kubernetes', async () => {
  await using faces = await startFaces({ drivers: [fakeDriver({ kind: 'ollama' })] });
  await refusesInOrder(faces, 'removeBackend', [
    [{ mode: 'commit' }, commit],
    [{ mode: 'delete' }, invalid('mode must be apply or left out, got "delete"')],
    [{}, invalid('kind is required')],
    [{ kind: ' ' }, invalid('kind is required')],
    [{ kind: ' ollama ' }, `${isStatic('ollama')}; it cannot be removed here`],
    [{ kind: 'lemonade', dryRun: true }, needsKubernetes],
    // Whether there is a document of a kind is for the documents to say.
    [{ kind: 'vllm' }, needsKubernetes],
  ]);
});

test('a registered backend is not a static one, and none has to be there', async () => {
  for (const setup of [{ origin: 'person', drivers: [fakeDriver()] } as const, { drivers: [] }]) {
    await using faces = await startFaces(setup);
    assert.equal(await faces.refusal('addBackend', { kind: 'ollama', endpoint: 'http://h' }), needsKubernetes);
    assert.equal(await faces.refusal('removeBackend', { kind: 'ollama' }), needsKubernetes);
  }
});

test('a kind that is missing or no text is a bad request, not a missing argument', async () => {
  await using faces = await startFaces({ drivers: [] });
  for (const kind of [undefined, 5, null, ['ollama']]) {
    assert.equal(await faces.toolRefusal('add_backend', { kind }), invalid(`spec.kind: required ${kinds}`));
    assert.equal(await faces.toolRefusal('remove_backend', { kind }), invalid('kind is required'));
  }
});

const specOf = (args: Parameters<typeof documentOf>[0]) => JSON.parse(JSON.stringify(documentOf(args))).spec;

test('arguments become a document, trimmed and with its defaults', () => {
  assert.deepEqual(specOf({ kind: ' lemonade ', endpoint: ' http://h:13305/ ', source: ' cluster-manager ' }), {
    kind: 'lemonade',
    source: 'cluster-manager',
    endpoint: 'http://h:13305',
    agentEndpoint: 'http://h:13305',
  });
  const east = {
    kind: 'kserve',
    cluster: 'east',
    organization: 'acme',
    apiServer: 'https://east:6443',
    caBundle: '\nPEM\n',
    servingNamespace: 'models',
    discoveryNamespace: 'platform',
    discoveryName: 'serving',
    credentialsSecret: 'east',
    credentialsKey: 'kubeconfig',
    gpuPoolTaint: 'nvidia.com/gpu=present:NoSchedule',
    gpuPoolNodeSelector: 'pool=gpu, zone=',
  };
  assert.deepEqual(specOf(east), {
    kind: 'kserve',
    source: 'person',
    credentials: { secretRef: { name: 'east', key: 'kubeconfig' } },
    kserve: {
      target: {
        cluster: 'east',
        organization: 'acme',
        apiServer: 'https://east:6443',
        caBundle: 'PEM',
        servingNamespace: 'models',
      },
      discovery: { namespace: 'platform', name: 'serving' },
      gpuPool: {
        taint: { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' },
        nodeSelector: { pool: 'gpu', zone: '' },
      },
    },
  });
});

test('what a host has no use for is dropped', () => {
  const args = {
    kind: 'lmstudio',
    endpoint: 'http://h',
    cluster: 'x',
    servingNamespace: 'm',
    gpuPoolTaint: '=',
    gpuPoolNodeSelector: '=',
    credentialsKey: 'k',
  };
  assert.deepEqual(specOf(args), {
    kind: 'lmstudio',
    source: 'person',
    endpoint: 'http://h',
    agentEndpoint: 'http://h',
  });
});

test('a taint is key[=value][:effect]', () => {
  const taintOf = (gpuPoolTaint: string) =>
    specOf({ kind: 'kserve', servingNamespace: 'm', gpuPoolTaint }).kserve.gpuPool.taint;
  assert.deepEqual(taintOf('gpu'), { key: 'gpu' });
  assert.deepEqual(taintOf('gpu='), { key: 'gpu' });
  assert.deepEqual(taintOf('gpu=yes'), { key: 'gpu', value: 'yes' });
  assert.deepEqual(taintOf('gpu:NoExecute'), { key: 'gpu', effect: 'NoExecute' });
  assert.deepEqual(taintOf('gpu=:PreferNoSchedule'), { key: 'gpu', effect: 'PreferNoSchedule' });
  for (const text of ['=x', ':NoSchedule', '=', 'a:b:c', 'a=b=c']) {
    assert.throws(() => taintOf(text), {
      message: `invalid request: gpuPoolTaint: must be key[=value][:effect], got "${text}"`,
    });
  }
  assert.throws(() => taintOf('gpu:Never'), {
    message:
      'invalid request: spec.kserve.gpuPool.taint.effect: must be NoSchedule, PreferNoSchedule or NoExecute, got "Never"',
  });
});

test('a node selector is key=value[,key=value]', () => {
  const selectorOf = (gpuPoolNodeSelector: string) =>
    specOf({ kind: 'kserve', servingNamespace: 'm', gpuPoolNodeSelector }).kserve.gpuPool.nodeSelector;
  assert.deepEqual(selectorOf('a=b'), { a: 'b' });
  assert.deepEqual(selectorOf('a=b,c='), { a: 'b', c: '' });
  for (const text of ['a', '=b', 'a=b,', 'a=b,c', 'a=b=c', ',']) {
    assert.throws(() => selectorOf(text), {
      message: `invalid request: gpuPoolNodeSelector: must be key=value[,key=value], got "${text}"`,
    });
  }
});
