import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { cleaned } from '../../../src/drivers/kserve/recording/clean.ts';
import { masked } from '../../../src/drivers/kserve/recording/mask.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { workedMs } from '../../support/eventLoop.ts';
import { recordingNames, recordingOf } from './recordings.ts';

const secretTexts = [
  'HF_TOKEN=p1anted',
  'token: p1anted',
  '"token": "p1anted"',
  String.raw`{\"api_key\": \"p1anted\"}`,
  "{'api_key': ['p1anted', 'p1anted2'], 'model': 'x'}",
  'PASSWORD="p1anted with spaces"',
  'Authorization: Bearer p1anted',
  'authorization: Basic p1anted',
  'curl -H "Authorization: Bearer p1anted" http://x',
  'vllm serve --api-key p1anted --port 8000',
  '--api-key=p1anted',
  '--hf-token "p1anted"',
  'GET https://user:p1anted@example.com/x',
  'https://p1anted@example.com/x',
  'https://example.com/x?token=p1anted&y=1',
  'https://bucket.s3.amazonaws.com/x?X-Amz-Signature=p1anted&X-Amz-Credential=p1anted',
  'https://x.blob.core.windows.net/m?sv=2026-01-01&sp=r&sig=p1anted%3D',
  'SSH_PASSPHRASE=p1anted',
  'Cookie: session=p1anted',
  'DB_PASS=p1anted',
  'sent Basic dXNlcjpwp1anted==',
  'bearer p1anted',
  'nvapi-p1anted_0000000000',
  'AIzap1anted0000000000',
  'got hf_p1anted from the environment',
  'key sk-p1anted-abc refused',
  'ghp_p1anted0000000000',
  'AWS_SECRET_ACCESS_KEY=p1anted',
  'clientSecret = p1anted',
  'eyJhbGciOi.p1anted.sig',
  '-----BEGIN RSA PRIVATE KEY-----\np1anted\n-----END RSA PRIVATE KEY-----',
  "['--api-key', 'p1anted', '--port', '8000']",
  ...['apiKey', 'api_key', 'access-key', 'private_key', 'secretKey', 'OPENAI_KEY'].map(name => `${name}: p1anted`),
  'User "p1anted@example.com" cannot list resource "nodes"',
];

test('secrets in text are masked, and masked twice is masked once', () => {
  for (const text of secretTexts) {
    const safe = masked(text);
    assert.doesNotMatch(safe, /p1anted/, text);
    assert.equal(masked(safe), safe, text);
  }
});

test('words without end are no reason to stop: a chat template in an argument, a tensor in a log', () => {
  const began = workedMs();
  for (const word of ['x', 'a.', 'a-', 'a+', 'token', 'eyJ-aaaaaaa', 'token=[', '://', 'a@']) {
    masked(word.repeat(200_000 / word.length));
  }
  // Tried anew at every letter, each of them would take a minute.
  assert.ok(workedMs() - began < 5_000);
});

test('what is around a secret stays', () => {
  assert.equal(masked('vllm serve --api-key p1anted --port 8000'), 'vllm serve --api-key *** --port 8000');
  assert.equal(masked('https://x.example/a?token=p1anted&y=1'), 'https://x.example/a?token=***&y=1');
  assert.equal(masked("{'api_key': ['p1anted'], 'model': 'x'}"), "{'api_key': '***', 'model': 'x'}");
});

test('what is no secret is left alone', () => {
  const texts = [
    '--max-num-batched-tokens=8192 --tokenizer-mode=auto --tool-call-parser=hermes',
    "KeyError: 'layers.0.weight'",
    'node(s) had untolerated taint {nvidia.com/gpu: }',
    'docker://ghcr.io/llm-d/llm-d-cuda@sha256:0123',
    'Pod should schedule on: nodeclaim/gpu-l4-k7x2m, node/ip-10-0-12-34',
    'effect=NoSchedule key: nvidia.com/gpu, key=nvidia.com/gpu, tokenSecret.key: name, topologyKey: zone',
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB',
  ];
  for (const text of texts) assert.equal(masked(text), text);
});

const p1 = 'p1anted';

test('an object goes on record without the secrets in it, wherever they are', () => {
  const template = {
    imagePullSecrets: [{ name: `${p1}-pull` }],
    containers: [
      {
        name: 'main',
        command: ['sh', '-c', `export HF_TOKEN=${p1}; exec vllm serve`],
        args: ['--model=x', '--api-key', p1, `--hf-token=${p1}`, `https://u:${p1}@mirror.example`],
        env: [
          { name: 'HF_TOKEN', value: p1 },
          { name: 'PLAIN', value: p1 },
          { name: 'REF', valueFrom: { secretKeyRef: { name: p1, key: 'k' } } },
        ],
        envFrom: [{ secretRef: { name: p1 } }],
        livenessProbe: { httpGet: { path: '/', httpHeaders: [{ name: 'Authorization', value: p1 }] } },
      },
    ],
    initContainers: [{ name: 'init', env: [{ name: 'TOKEN', value: p1 }] }],
  };
  const preset = { spec: { model: { id: 'a/b' }, env: [{ name: 'HF_TOKEN', value: p1 }], args: ['--api-key', p1] } };
  const objects = [
    {
      apiVersion: 'serving.kserve.io/v1alpha2',
      kind: 'LLMInferenceService',
      metadata: {
        name: 'a',
        namespace: 'm',
        resourceVersion: '17',
        managedFields: [{ manager: p1 }],
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': p1,
          'example.com/anything': p1,
          'model-manager.giantswarm.io/model': 'a/b',
          'model-manager.giantswarm.io/hf-token': p1,
        },
      },
      spec: { model: { uri: `https://user:${p1}@store.example/w?sig=1` }, template, apiKey: p1 },
      status: { conditions: [{ type: 'Ready', message: `401 with token=${p1}` }] },
    },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a-x', namespace: 'm' }, spec: template },
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e', namespace: 'm' },
      message: `Failed to pull: Authorization: Bearer ${p1}`,
    },
    {
      apiVersion: 'karpenter.k8s.aws/v1',
      kind: 'EC2NodeClass',
      metadata: { name: 'c' },
      spec: { userData: `#!/bin/sh\nPASS ${p1}` },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'preset', namespace: 'm' },
      data: { 'preset.yaml': JSON.stringify(preset), 'other.txt': p1, 'config.yaml': `: ${p1}: [` },
    },
  ];
  const written = JSON.stringify(objects.map(each => cleaned(each as KubernetesObject)));
  assert.doesNotMatch(written, /p1anted/);
  for (const kept of ['HF_TOKEN', 'PLAIN', '--model=x', 'a/b', 'store.example', 'exec vllm serve', 'preset.yaml']) {
    assert.ok(written.includes(kept), `${kept} is gone`);
  }
});

test('nothing that a timeline goes by is taken from an object', () => {
  for (const name of recordingNames) {
    for (const { objects } of recordingOf(name).instants) {
      for (const object of objects.filter(({ kind }) => kind !== 'ConfigMap')) {
        const plain = JSON.stringify(object, (key, value) => (key === 'env' ? undefined : value));
        const clean = JSON.stringify(cleaned(object), (key, value) => (key === 'env' ? undefined : value));
        assert.equal(clean, plain, `${name}: ${object.kind} ${object.metadata.name}`);
      }
    }
  }
});

/** What a ConfigMap of the fixtures has, by kind of document. */
const documentsOf = (folder: string) =>
  readdirSync(new URL(folder, fixtures)).flatMap(file => {
    if (!/^(?:discovery|preset)/.test(file)) return [];
    const objects = parseAllDocuments(readFileSync(new URL(`${folder}/${file}`, fixtures), 'utf8'));
    return objects.flatMap(each => (each.toJS() as KubernetesObject | null) ?? []);
  });
const fixtures = new URL('../../fixtures/kserve/', import.meta.url);

const published = [
  ...documentsOf('cluster'),
  ...recordingNames.flatMap(name => recordingOf(name).instants.flatMap(({ objects }) => objects)),
].filter(({ kind }) => kind === 'ConfigMap') as (KubernetesObject & { data?: Record<string, string> })[];

test('what the platform publishes is on record as it is: nothing in it is a secret', () => {
  assert.ok(published.length > 20);
  let read = 0;
  for (const object of published) {
    for (const [name, text] of Object.entries((cleaned(object) as typeof object).data ?? {})) {
      const withoutEnv = (data: unknown) => JSON.stringify(data, (key, value) => (key === 'env' ? undefined : value));
      assert.equal(withoutEnv(parse(text)), withoutEnv(parse(object.data?.[name] ?? '')), object.metadata.name);
      read += 1;
    }
  }
  assert.ok(read > 20);
});

const secretData = {
  taint: { key: 'nvidia.com/gpu' },
  tokenSecret: { name: 'hf-token', key: 'token' },
  apiKey: p1,
  password: 1234567,
  api_key: [p1, p1],
  'access-key': `${p1} with words`,
  nested: [{ secretKey: p1 }, { headers: { Authorization: `Bearer ${p1}` } }],
  args: ['--api-key', p1, `--token=${p1}`, `{"private_key": "${p1}", "n": 1}`],
  url: `https://u:${p1}@h.example/x?sig=${p1}`,
  script: `export HF_TOKEN=${p1}\nexec vllm serve --hf-token "${p1}"\n`,
  multiline: `api_key: ${p1}\nother: 1\n`,
  plain: 'stays',
};

test('a document that could be read can be read when it is masked', () => {
  const documents: [string, (text: string) => unknown][] = [
    [JSON.stringify(secretData), JSON.parse],
    [JSON.stringify(secretData, undefined, 2), JSON.parse],
    [stringify(secretData), parse],
    [stringify(secretData, { defaultStringType: 'QUOTE_SINGLE' }), parse],
    [stringify(secretData, { blockQuote: 'folded', lineWidth: 20 }), parse],
    [stringify(secretData, { collectionStyle: 'flow' }), parse],
    [`password: |\n  ${p1}\ntaint: { key: nvidia.com/gpu }\n`, parse],
    [`tokenSecret:\n  name: hf\n  key: token\nsig: ${p1}\n`, parse],
    ['{"max_token": 5, "token": null, "tokenSecret": {"name": "hf", "key": "token"}}', JSON.parse],
    [`data: ghp_${p1}0000000000\n`, parse],
  ];
  for (const [text, read] of documents) {
    // As a document of a ConfigMap, and as a text in whatever object.
    for (const kind of ['ConfigMap', 'LLMInferenceService']) {
      const object = { apiVersion: 'v1', kind, metadata: { name: 'x' }, data: { 'config.yaml': text } };
      const clean = (cleaned(object) as typeof object).data['config.yaml'];
      assert.doesNotMatch(clean, /p1anted|1234567/, text);
      const data = (kind === 'ConfigMap' ? parse(clean) : read(clean)) as typeof secretData;
      assert.ok(typeof data === 'object' && data !== null, clean);
      if (!text.includes('stays')) continue;
      assert.deepEqual(Object.keys(data), Object.keys(secretData), clean);
      assert.deepEqual([data.taint, data.tokenSecret, data.plain], [secretData.taint, secretData.tokenSecret, 'stays']);
      assert.equal(JSON.parse(data.args[3] ?? '').n, 1, 'JSON in an argument');
      assert.equal(parse(data.multiline).other, 1, 'YAML in a text');
    }
  }
});
