import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, configMaps, lab, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const inDefault = '/apis/x.dev/v1/namespaces/default/widgets';
const merge = { 'content-type': 'application/merge-patch+json' };

describe('creating', bounded, () => {
  test('gives an object what the server has to say of it', async t => {
    const { ask, cluster } = await lab(t, { objects: [widgets()] });
    const { status, body } = await ask('POST', inDefault, widget('a', { spec: { size: 1 } }));
    assert.equal(status, 201);
    const { uid, resourceVersion, creationTimestamp, generation } = body.metadata;
    assert.match(uid ?? '', /^[0-9a-f-]{36}$/);
    assert.ok(Number(resourceVersion) > 0);
    assert.equal(creationTimestamp, '2026-08-22T08:00:00Z');
    assert.equal(generation, 1);
    assert.deepEqual(cluster.get('widgets.x.dev', 'a', 'default'), body);
  });

  test('makes a name up', async t => {
    const { ask } = await lab(t);
    const names = new Set<string>();
    for (let count = 0; count < 5; count++) {
      const { body } = await ask('POST', configMaps, { metadata: { generateName: 'job-' } });
      assert.match(body.metadata.name, /^job-[a-z0-9]{5}$/);
      names.add(body.metadata.name);
    }
    assert.equal(names.size, 5);
  });

  test('takes YAML, and the kind from the path', async t => {
    const { ask } = await lab(t);
    const yaml = { 'content-type': 'application/yaml' };
    const { status, body } = await ask('POST', configMaps, 'metadata:\n  name: a\ndata:\n  x: "1"\n', yaml);
    assert.equal(status, 201);
    assert.deepEqual([body.kind, body.apiVersion, body.data], ['ConfigMap', 'v1', { x: '1' }]);
  });

  test('encodes what a Secret says in plain', async t => {
    const { ask } = await lab(t);
    const secret = { metadata: { name: 's' }, stringData: { key: 'none' }, data: { other: 'eA==' } };
    const { body } = await ask('POST', '/api/v1/namespaces/default/secrets', secret);
    assert.deepEqual(body.data, { other: 'eA==', key: 'bm9uZQ==' });
    assert.equal(body.stringData, undefined);
    assert.equal(body.type, 'Opaque');
  });

  test('in dry run checks everything and keeps nothing', async t => {
    const { ask, cluster } = await lab(t);
    assert.equal((await ask('POST', `${configMaps}?dryRun=All`, configMap('a'))).status, 201);
    assert.equal((await ask('POST', `${configMaps}?dryRun=All`, configMap('A'))).status, 422);
    assert.deepEqual(cluster.list('configmaps', 'default'), []);
  });
});

describe('a refusal', bounded, () => {
  const long = 'a'.repeat(254);
  const cases: readonly (readonly [
    title: string,
    path: string,
    body: unknown,
    code: number,
    reason: string,
    words: RegExp,
  ])[] = [
    ['taken name', configMaps, configMap('taken'), 409, 'AlreadyExists', /^configmaps "taken" already exists$/],
    [
      'unknown namespace',
      '/api/v1/namespaces/nope/configmaps',
      { metadata: { name: 'a' } },
      404,
      'NotFound',
      /^namespaces "nope" not found$/,
    ],
    [
      'another namespace',
      configMaps,
      configMap('a', {}, { namespace: 'kube-system' }),
      400,
      'BadRequest',
      /namespace of the provided object does not match/,
    ],
    [
      'no name',
      configMaps,
      { metadata: {} },
      422,
      'Invalid',
      /^ConfigMap "" is invalid: metadata.name: Required value/,
    ],
    [
      'capitals',
      configMaps,
      configMap('Qwen3'),
      422,
      'Invalid',
      /^ConfigMap "Qwen3" is invalid: metadata.name: Invalid value: "Qwen3": a lowercase RFC 1123 subdomain/,
    ],
    [
      'colon',
      inDefault,
      widget('qwen3:8b'),
      422,
      'Invalid',
      /^Widget.x.dev "qwen3:8b" is invalid: metadata.name: Invalid value/,
    ],
    ['long name', configMaps, configMap(long), 422, 'Invalid', /must be no more than 253 characters/],
    [
      'label',
      configMaps,
      configMap('a', {}, { labels: { model: 'qwen/qwen3' } }),
      422,
      'Invalid',
      /metadata.labels: Invalid value: "qwen\/qwen3": a valid label must be/,
    ],
    [
      'key of data',
      configMaps,
      configMap('a', { 'a/b': '' }),
      422,
      'Invalid',
      /data\[a\/b\]: Invalid value: "a\/b": a valid config key/,
    ],
    [
      'number as data',
      configMaps,
      configMap('a', { a: 1 }),
      400,
      'BadRequest',
      /cannot unmarshal value into Go struct field ConfigMap.data/,
    ],
    ['labels as list', configMaps, configMap('a', {}, { labels: ['x'] }), 400, 'BadRequest', /metadata.labels/],
    ['no object', configMaps, [1], 400, 'BadRequest', /is no object/],
    ['no JSON', configMaps, '{', 400, 'BadRequest', /unrecognized/],
    [
      'another kind',
      configMaps,
      { ...configMap('a'), kind: 'Secret' },
      400,
      'BadRequest',
      /does not match the expected kind/,
    ],
    [
      'another version',
      inDefault,
      { ...widget('a'), apiVersion: 'x.dev/v1beta1' },
      400,
      'BadRequest',
      /does not match the expected API version/,
    ],
    [
      'a version',
      configMaps,
      configMap('a', {}, { resourceVersion: '1' }),
      400,
      'BadRequest',
      /resourceVersion should not be set/,
    ],
    ['all namespaces', '/api/v1/configmaps', configMap('a'), 405, 'MethodNotAllowed', /does not allow this method/],
    [
      'no such resource',
      '/api/v1/namespaces/default/sandwiches',
      {},
      404,
      'NotFound',
      /could not find the requested resource/,
    ],
    [
      'what a test says',
      configMaps,
      configMap('bad'),
      422,
      'Invalid',
      /^ConfigMap "bad" is invalid: data.x: Required value$/,
    ],
  ];
  for (const [title, path, body, code, reason, words] of cases) {
    test(`in the server's own words: ${title}`, async t => {
      const validate = ({ metadata }: { metadata: { name: string } }) =>
        metadata.name === 'bad' ? ['data.x: Required value'] : [];
      const { ask } = await lab(t, { objects: [widgets(), configMap('taken')], validate });
      const { status, body: said } = await ask('POST', path, body);
      assert.equal(status, code);
      assert.match(said.message, words);
      assert.deepEqual([said.kind, said.status, said.reason, said.code], ['Status', 'Failure', reason, code]);
    });
  }

  test('of an invalid object names each field', async t => {
    const { ask } = await lab(t);
    const { body } = await ask('POST', configMaps, configMap('A', {}, { labels: { x: '?' } }));
    assert.deepEqual(
      body.details?.causes?.map(({ reason, field }) => `${reason} ${field}`),
      ['FieldValueInvalid metadata.name', 'FieldValueInvalid metadata.labels'],
    );
    assert.equal(body.details?.kind, 'ConfigMap');
    assert.match(body.message, /is invalid: \[metadata.name: .*, metadata.labels: .*\]$/);
  });

  test('of a body in a format it does not read', async t => {
    const { ask } = await lab(t);
    const { status, body } = await ask('POST', configMaps, 'x', { 'content-type': 'application/cbor' });
    assert.deepEqual([status, body.reason], [415, 'UnsupportedMediaType']);
  });
});

describe('updating', bounded, () => {
  test('wants the newest version, where one is given', async t => {
    const { ask } = await lab(t, { objects: [configMap('a')] });
    const { body } = await ask('GET', `${configMaps}/a`);
    assert.equal((await ask('PUT', `${configMaps}/a`, { ...body, data: { x: '1' } })).status, 200);
    const late = await ask('PUT', `${configMaps}/a`, { ...body, data: { x: '2' } });
    assert.deepEqual([late.status, late.body.reason], [409, 'Conflict']);
    assert.equal(
      late.body.message,
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    );
    assert.equal((await ask('PUT', `${configMaps}/a`, configMap('a', { x: '3' }))).status, 200);
  });

  test('of a custom object must give one', async t => {
    const { ask } = await lab(t, { objects: [widgets(), widget('a')] });
    const { status, body } = await ask('PUT', `${inDefault}/a`, widget('a', { spec: {} }));
    assert.equal(status, 422);
    assert.match(body.message, /metadata.resourceVersion: Invalid value: 0x0: must be specified for an update/);
  });

  test('is of the very object', async t => {
    const { ask } = await lab(t, { objects: [configMap('a')] });
    const { status, body } = await ask('PUT', `${configMaps}/a`, configMap('a', {}, { uid: 'another' }));
    assert.deepEqual([status, body.reason], [409, 'Conflict']);
    assert.match(body.message, /Precondition failed: UID in precondition: another, UID in object meta: /);
  });

  test('that changes nothing makes no version', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a', { x: '1' })] });
    const before = cluster.get('configmaps', 'a', 'default');
    const { body } = await ask('PUT', `${configMaps}/a`, configMap('a', { x: '1' }));
    assert.equal(body.metadata.resourceVersion, before?.metadata.resourceVersion);
  });

  test('counts generations of the specification only, and leaves the status alone', async t => {
    const { ask, cluster } = await lab(t, { objects: [widgets()] });
    await ask('POST', inDefault, widget('a', { spec: { size: 1 }, status: { phase: 'mine' } }));
    assert.equal(cluster.get('widgets.x.dev', 'a', 'default')?.status, undefined);
    const steps = [
      ['', { spec: { size: 2 }, status: { phase: 'mine' } }, 2],
      ['', { metadata: { labels: { x: 'y' } } }, 2],
      ['/status', { spec: { size: 3 }, status: { phase: 'Ready' } }, 2],
      ['', { status: null }, 2],
      ['', { spec: { size: 4 } }, 3],
    ] as const;
    for (const [subresource, patch, generation] of steps) {
      const { status, body } = await ask('PATCH', `${inDefault}/a${subresource}`, patch, merge);
      assert.deepEqual([status, body.metadata.generation], [200, generation], JSON.stringify(patch));
    }
    const { spec, status } = cluster.get('widgets.x.dev', 'a', 'default') ?? {};
    assert.deepEqual([spec, status], [{ size: 4 }, { phase: 'Ready' }]);
  });

  test('includes the status of a kind that has no subresource for it', async t => {
    const { ask } = await lab(t, { objects: [widgets({})] });
    const { body } = await ask('POST', inDefault, widget('a', { status: { phase: 'mine' } }));
    assert.deepEqual(body.status, { phase: 'mine' });
    assert.equal((await ask('GET', `${inDefault}/a/status`)).status, 404);
  });

  test("cannot change what is the server's", async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a')] });
    const before = cluster.get('configmaps', 'a', 'default')?.metadata;
    const metadata = {
      creationTimestamp: '2020-01-01T00:00:00Z',
      generation: 7,
      deletionTimestamp: '2020-01-01T00:00:00Z',
    };
    const { body } = await ask('PUT', `${configMaps}/a`, configMap('a', { x: '1' }, metadata));
    assert.equal(body.metadata.creationTimestamp, before?.creationTimestamp);
    assert.equal(body.metadata.generation, undefined);
    assert.equal(body.metadata.deletionTimestamp, undefined);
  });

  test('by server-side apply creates what is not there, and says who owns what', async t => {
    const { ask } = await lab(t, { objects: [widgets()] });
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const path = `${inDefault}/a?fieldManager=me`;
    assert.equal((await ask('PATCH', path, widget('a', { spec: { size: 1 } }), apply)).status, 201);
    assert.equal((await ask('PATCH', path, widget('a', { spec: { size: 2 } }), apply)).status, 200);
    const other = await ask('PATCH', `${inDefault}/a?fieldManager=other`, widget('a', { spec: { size: 3 } }), apply);
    assert.deepEqual([other.status, other.body.reason], [409, 'Conflict']);
    assert.match(other.body.message, /conflict with "me".*\.spec\.size/);
    assert.deepEqual(other.body.details?.causes?.[0]?.field, '.spec.size');
  });

  test('of what is not there is refused', async t => {
    const { ask } = await lab(t);
    assert.equal((await ask('PUT', `${configMaps}/a`, configMap('a'))).status, 404);
    const { status, body } = await ask('PATCH', `${configMaps}/a`, {}, merge);
    assert.deepEqual([status, body.message], [404, 'configmaps "a" not found']);
  });
});
