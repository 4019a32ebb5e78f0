import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { lab, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const path = '/apis/x.dev/v1/namespaces/default/widgets';

const spec = {
  type: 'object',
  required: ['model'],
  properties: {
    model: { type: 'string', minLength: 2, maxLength: 8, pattern: '^[a-z0-9:]*$' },
    provider: { type: 'string', enum: ['Ollama', 'OpenAI'], default: 'Ollama' },
    size: { type: 'integer', minimum: 1, maximum: 9 },
    port: { 'x-kubernetes-int-or-string': true },
    note: { type: 'string', nullable: true },
    params: { type: 'object', additionalProperties: { type: 'string' } },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { on: { type: 'boolean' } } },
    parts: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
  },
};

async function started(t: TestContext) {
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  return lab(t, { objects: [widgets({ schema: { openAPIV3Schema } })] });
}

describe('a schema', bounded, () => {
  test('fills in defaults, and leaves out what it does not know', async t => {
    const { ask } = await started(t);
    const given = {
      model: 'qwen3',
      passthrough: true,
      params: { a: 'b' },
      free: { on: true, other: 1 },
      parts: [{ name: 'a', more: 1 }],
      note: null,
      port: 'http',
    };
    const { status, body } = await ask('POST', path, widget('a', { spec: given, extra: 1 }, { labels: { x: 'y' } }));
    assert.equal(status, 201);
    const { passthrough, ...known } = given;
    assert.deepEqual(body.spec, { ...known, parts: [{ name: 'a' }], provider: 'Ollama' });
    assert.equal(body.extra, undefined);
    assert.deepEqual(body.metadata.labels, { x: 'y' });
  });

  test('refuses unknown fields where a client is strict', async t => {
    const { ask } = await started(t);
    const object = widget('a', { spec: { model: 'qwen3', passthrough: true, parts: [{ more: 1 }] } });
    const { status, body } = await ask('POST', `${path}?fieldValidation=Strict`, object);
    assert.equal(status, 400);
    assert.equal(
      body.message,
      'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.passthrough", unknown field "spec.parts[0].more"',
    );
  });

  const wrong: readonly (readonly [spec: object, field: string, words: RegExp])[] = [
    [{}, 'spec.model', /^Required value$/],
    [{ model: 5 }, 'spec.model', /^Invalid value: "number": spec.model in body must be of type string: "number"$/],
    [{ model: null }, 'spec.model', /must be of type string: "null"/],
    [{ model: 'a' }, 'spec.model', /should be at least 2 chars long/],
    [{ model: 'qwen3:8blong' }, 'spec.model', /^Too long: may not be more than 8 bytes$/],
    [{ model: 'Qwen' }, 'spec.model', /spec.model in body should match '\^\[a-z0-9:\]\*\$'/],
    [
      { model: 'ab', provider: 'Other' },
      'spec.provider',
      /^Unsupported value: "Other": supported values: "Ollama", "OpenAI"$/,
    ],
    [{ model: 'ab', size: 0 }, 'spec.size', /should be greater than or equal to 1/],
    [{ model: 'ab', size: 10 }, 'spec.size', /should be less than or equal to 9/],
    [{ model: 'ab', size: 1.5 }, 'spec.size', /must be of type integer/],
    [{ model: 'ab', port: true }, 'spec.port', /^Invalid value: "boolean"/],
    [{ model: 'ab', params: { a: 1 } }, 'spec.params.a', /must be of type string/],
    [{ model: 'ab', parts: {} }, 'spec.parts', /must be of type array/],
    [{ model: 'ab', parts: [{ name: 1 }] }, 'spec.parts[0].name', /must be of type string/],
  ];
  for (const [given, field, words] of wrong) {
    test(`refuses ${JSON.stringify(given)}`, async t => {
      const { ask } = await started(t);
      const { status, body } = await ask('POST', path, widget('a', { spec: given }));
      assert.deepEqual([status, body.reason, body.details?.kind], [422, 'Invalid', 'Widget']);
      assert.deepEqual(
        body.details?.causes?.map(cause => cause.field),
        [field],
      );
      assert.match(body.details?.causes?.[0]?.message ?? '', words);
    });
  }

  test('does not hide from a further check what it leaves out', async t => {
    const seen: unknown[] = [];
    const validate = ({ spec }: { spec?: unknown }) => {
      seen.push(spec);
      return [];
    };
    const openAPIV3Schema = { type: 'object', properties: { spec } };
    const { ask } = await lab(t, { objects: [widgets({ schema: { openAPIV3Schema } })], validate });
    await ask('POST', path, widget('a', { spec: { model: 'qwen3', passthrough: true } }));
    assert.deepEqual(seen.at(-1), { model: 'qwen3', passthrough: true });
  });

  test('is heeded by patches, too, and not by the cluster itself', async t => {
    const { ask, cluster } = await started(t);
    cluster.put(widget('a', { spec: { model: 1, more: true } }));
    assert.deepEqual(cluster.get('Widget', 'a', 'default')?.spec, { model: 1, more: true });
    const merge = { 'content-type': 'application/merge-patch+json' };
    assert.equal((await ask('PATCH', `${path}/a`, { spec: { size: 1 } }, merge)).status, 422);
    const { body } = await ask('PATCH', `${path}/a`, { spec: { model: 'ab' } }, merge);
    assert.deepEqual(body.spec, { model: 'ab', provider: 'Ollama' });
  });
});
