import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type BackendDocument,
  parseDocument,
  type Read,
  readDocument,
  renderDocument,
} from '../../../src/backends/documents/document.ts';

const head = { apiVersion: 'agent-platform.giantswarm.io/v1alpha1', kind: 'ModelBackend' };
const kinds = '(kserve|lemonade|lmstudio|ollama)';
const spec = (spec: object) => ({ ...head, spec });
const host = (more: object = {}) => spec({ kind: 'ollama', endpoint: 'http://h:11434', ...more });
const local = { servingNamespace: 'models' };
const remote = { ...local, cluster: 'east', apiServer: 'https://east:6443', caBundle: 'PEM' };
const kserve = (more: object = {}, outer: object = {}) =>
  spec({ kind: 'kserve', kserve: { target: local, ...more }, ...outer });
const instance = {
  instanceType: 'g6.2xlarge',
  vcpu: 8,
  memoryGiB: 32,
  gpus: 1,
  gpuMemoryGiB: 24,
  usableVcpu: 7.5,
  usableMemoryGiB: 28.5,
};
const withInstances = (...instances: object[]) => kserve({ gpuPool: { instances } });

const problemOf = (read: Read) => ('problem' in read ? read.problem : '');
function documentIn(read: Read): BackendDocument {
  if ('problem' in read) assert.fail(read.problem);
  return read.document;
}

/** What is wrong with a document, in the order in which it is looked for. */
const table: readonly [data: unknown, problem: string][] = [
  ['text', 'document: the whole must be a mapping, got "text"'],
  [[], 'document: the whole must be a mapping, got a list'],
  [{ ...host(), colour: 'red' }, 'document: unknown field "colour"'],
  [host({ endpont: 'x' }), 'document: unknown field "spec.endpont"'],
  [{ ...host(), metadata: { labels: {} } }, 'document: unknown field "metadata.labels"'],
  [kserve({ target: { ...local, context: 'x' } }), 'document: unknown field "spec.kserve.target.context"'],
  [
    withInstances(instance, { ...instance, price: 1 }),
    'document: unknown field "spec.kserve.gpuPool.instances[1].price"',
  ],
  [host({ endpoint: 5 }), 'document: spec.endpoint must be a string, got 5'],
  [spec([]), 'document: spec must be a mapping, got a list'],
  [
    kserve({ gpuPool: { nodeSelector: { gpu: true } } }),
    'document: spec.kserve.gpuPool.nodeSelector.gpu must be a string, got true',
  ],
  [kserve({ gpuPool: { instances: {} } }), 'document: spec.kserve.gpuPool.instances must be a list, got a mapping'],
  [kserve({ router: { scheduler: 'yes' } }), 'document: spec.kserve.router.scheduler must be true or false, got "yes"'],
  [
    withInstances({ ...instance, vcpu: 1.5 }),
    'document: spec.kserve.gpuPool.instances[0].vcpu must be an integer, got 1.5',
  ],
  [
    withInstances({ ...instance, usableVcpu: '7' }),
    'document: spec.kserve.gpuPool.instances[0].usableVcpu must be a number, got "7"',
  ],

  [null, 'apiVersion: must be agent-platform.giantswarm.io/v1alpha1'],
  [{}, 'apiVersion: must be agent-platform.giantswarm.io/v1alpha1'],
  [{ ...host(), apiVersion: 'v1', kind: 'ConfigMap' }, 'apiVersion: must be agent-platform.giantswarm.io/v1alpha1'],
  [{ ...head, kind: 'Backend' }, 'kind: must be ModelBackend'],
  [{ apiVersion: head.apiVersion, spec: {} }, 'kind: must be ModelBackend'],
  [head, `spec.kind: required ${kinds}`],
  [spec({ kind: ' ', source: 'x' }), `spec.kind: required ${kinds}`],
  [spec({ kind: 'vllm' }), `spec.kind: unknown "vllm" ${kinds}`],
  [spec({ kind: 'toString' }), `spec.kind: unknown "toString" ${kinds}`],
  [{ ...host({ source: 'x' }), metadata: { name: 'lemonade' } }, 'metadata.name: must equal spec.kind (ollama)'],
  [
    host({ source: 'static', credentials: {} }),
    'spec.source: must be person or cluster-manager (static backends come from --backends)',
  ],
  [host({ credentials: {}, kserve: {} }), 'spec.credentials.secretRef.name: required when credentials are set'],
  [
    host({ credentials: { secretRef: { name: ' ', key: 'k' } } }),
    'spec.credentials.secretRef.name: required when credentials are set',
  ],

  [host({ kserve: {}, credentials: { secretRef: { name: 's' } } }), 'spec.kserve: not accepted for ollama'],
  [
    host({ credentials: { secretRef: { name: 's' } }, endpoint: '' }),
    'spec.credentials: not supported by ollama yet (only kserve takes them)',
  ],
  [spec({ kind: 'ollama', agentEndpoint: 'ftp://h' }), 'spec.endpoint: required for ollama'],
  [spec({ kind: 'lemonade' }), 'spec.endpoint: required for lemonade'],
  [host({ endpoint: 'h:1', agentEndpoint: 'ftp://h' }), 'spec.endpoint: must be an http(s) URL, got "h:1"'],
  [host({ agentEndpoint: 'ftp://h' }), 'spec.agentEndpoint: must be an http(s) URL, got "ftp://h"'],
  [
    host({ endpoint: 'http://169.254.169.254' }),
    'spec.endpoint: must not be a link-local or metadata address, got "http://169.254.169.254"',
  ],

  [
    spec({ kind: 'kserve', endpoint: 'http://h' }),
    'spec.endpoint: not accepted for kserve (its cluster is spec.kserve.target)',
  ],
  [
    spec({ kind: 'kserve', agentEndpoint: 'h' }),
    'spec.endpoint: not accepted for kserve (its cluster is spec.kserve.target)',
  ],
  [spec({ kind: 'kserve' }), 'spec.kserve: required for kserve'],
  [kserve({ target: null, gpuPool: { taint: {} } }), 'spec.kserve.target.servingNamespace: required'],
  [kserve({ target: { cluster: 'east' } }), 'spec.kserve.target.servingNamespace: required'],
  [kserve({ gpuPool: { taint: { effect: 'x' } } }), 'spec.kserve.gpuPool.taint.key: required'],
  [
    kserve({ gpuPool: { taint: { key: 'gpu', effect: 'noschedule' }, instances: [{}] } }),
    'spec.kserve.gpuPool.taint.effect: must be NoSchedule, PreferNoSchedule or NoExecute, got "noschedule"',
  ],
  [withInstances({}), 'spec.kserve.gpuPool.instances[0].instanceType: required'],
  [
    withInstances(instance, { ...instance, vcpu: 0, gpus: 0 }),
    'spec.kserve.gpuPool.instances[1].vcpu: must be positive, got 0',
  ],
  ...['vcpu', 'memoryGiB', 'gpus', 'gpuMemoryGiB', 'usableVcpu', 'usableMemoryGiB'].flatMap(
    (field): [unknown, string][] => [
      [
        withInstances({ ...instance, [field]: -1 }),
        `spec.kserve.gpuPool.instances[0].${field}: must be positive, got -1`,
      ],
      [
        withInstances({ ...instance, [field]: undefined }),
        `spec.kserve.gpuPool.instances[0].${field}: must be positive, got 0`,
      ],
    ],
  ),
  [
    kserve({ target: { ...local, apiServer: 'https://h' } }),
    'spec.kserve.target.apiServer: not accepted for the local cluster',
  ],
  [
    kserve({ target: { ...local, cluster: 'local', caBundle: 'PEM' } }),
    'spec.kserve.target.apiServer: not accepted for the local cluster',
  ],
  [
    kserve({ target: { ...local, cluster: 'east' } }),
    'spec.kserve.target.apiServer: required for cluster "east" (only local needs none)',
  ],
  [kserve({ target: { ...remote, caBundle: undefined } }), 'spec.kserve.target.caBundle: required for cluster "east"'],
];

test('what is wrong with a document is told, the first thing only', () => {
  for (const [data, problem] of table) assert.equal(problemOf(readDocument(data)), problem, JSON.stringify(data));
});

test('a text that is no YAML is no document', () => {
  const texts: [yaml: string, problem: RegExp][] = [
    ['a: [', /^document: /],
    ['a: 1\na: 2', /^document: Map keys must be unique/],
    ['---\na: 1\n---\nb: 2', /^document: holds several documents at line 3/],
    ['', /^apiVersion: must be /],
    ['{"apiVersion": 1}', /^document: apiVersion must be a string, got 1$/],
  ];
  for (const [yaml, problem] of texts) {
    assert.match(problemOf(parseDocument(yaml)), problem, yaml);
    assert.doesNotMatch(problemOf(parseDocument(yaml)), /\n/);
  }
});

test('a text of many aliases is refused before it is spelled out', () => {
  const levels = Array.from(
    { length: 12 },
    (_, level) => `l${level}: &l${level} [${Array(9).fill(level === 0 ? 'x' : `*l${level - 1}`)}]`,
  );
  assert.match(problemOf(parseDocument(levels.join('\n'))), /^document: /);
});

test('the defaults of a host are filled in', () => {
  const read = parseDocument(
    'apiVersion: agent-platform.giantswarm.io/v1alpha1\nkind: ModelBackend\nspec:\n  kind: ollama\n  endpoint: " http://h:11434/ "\n',
  );
  assert.deepEqual(JSON.parse(JSON.stringify(documentIn(read))), {
    ...head,
    metadata: { name: 'ollama' },
    spec: { kind: 'ollama', source: 'person', endpoint: 'http://h:11434', agentEndpoint: 'http://h:11434' },
  });
  assert.equal(
    renderDocument(documentIn(read)),
    `apiVersion: agent-platform.giantswarm.io/v1alpha1
kind: ModelBackend
metadata:
  name: ollama
spec:
  kind: ollama
  source: person
  endpoint: http://h:11434
  agentEndpoint: http://h:11434
`,
  );
});

test('the defaults of a cluster are filled in', () => {
  const document = documentIn(
    readDocument(
      kserve(
        {
          gpuPool: {
            taint: { key: 'gpu' },
            nodeSelector: { pool: '' },
            instances: [instance, { ...instance, instanceType: 'a100', size: 'big' }],
          },
          router: { scheduler: true },
        },
        { source: 'cluster-manager', credentials: { secretRef: { name: 'east' } } },
      ),
    ),
  );
  assert.deepEqual(JSON.parse(JSON.stringify(document.spec)), {
    kind: 'kserve',
    source: 'cluster-manager',
    credentials: { secretRef: { name: 'east', key: 'token' } },
    kserve: {
      target: { cluster: 'local', servingNamespace: 'models' },
      discovery: { namespace: 'models', name: 'agent-platform-model-serving' },
      gpuPool: {
        taint: { key: 'gpu' },
        nodeSelector: { pool: '' },
        instances: [
          { ...instance, size: '2xlarge' },
          { ...instance, instanceType: 'a100', size: 'big' },
        ],
      },
      router: { scheduler: true },
    },
  });
});

test('what is written is read as the same again', () => {
  const caBundle = '-----BEGIN CERTIFICATE-----\nMIIB: #x\n-----END CERTIFICATE-----';
  const documents = [
    host({ agentEndpoint: 'https://h/ollama' }),
    kserve({
      target: { ...remote, caBundle, organization: 'yes' },
      gpuPool: {
        taint: { key: 'a', value: '1e3', effect: 'NoExecute' },
        nodeSelector: { on: 'true', n: '5' },
        instances: [instance],
      },
    }),
    kserve({ router: {} }),
  ];
  for (const data of documents) {
    const document = documentIn(readDocument(data));
    const yaml = renderDocument(document);
    assert.deepEqual(
      JSON.parse(JSON.stringify(documentIn(parseDocument(yaml)))),
      JSON.parse(JSON.stringify(document)),
      yaml,
    );
    assert.doesNotMatch(yaml, /null|undefined/);
  }
});
