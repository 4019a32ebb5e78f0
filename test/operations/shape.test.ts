import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JsonSchema, jsonSchemaOf, type ObjectShape } from '../../src/operations/shape.ts';
import { schemaCheck } from '../mcp/schemaCheck.ts';
import { shapeOfThing } from '../support/shapes.ts';

/** The schema written out, nothing referred to. */
const schemaOf = (selection: string, fragments?: string) =>
  jsonSchemaOf(shapeOfThing(selection, fragments), () => undefined);

test('scalars, enums and lists become what JSON has for them', () => {
  const { properties } = schemaOf('{ id note count share done vram at phase phases tags }') as {
    properties: Record<string, JsonSchema>;
  };
  assert.deepEqual(properties, {
    id: { type: 'string' },
    note: { type: 'string' },
    count: { type: 'integer' },
    share: { type: 'number' },
    done: { type: 'boolean' },
    vram: { type: 'integer', format: 'int64' },
    at: { type: 'string', format: 'date-time' },
    // Enums are their contract words.
    phase: { type: 'string', enum: ['running', 'cluster-manager'] },
    phases: { type: 'array', items: { type: 'string', enum: ['running', 'cluster-manager'] } },
    tags: { type: 'array', items: { type: 'string' } },
  });
});

test('required is what is always written: what cannot be null, and what has something in its place', () => {
  const { required } = schemaOf(
    '{ id name note count size shared vram used at phase tags parts { id } parent { id } }',
  );
  assert.deepEqual(required, ['id', 'name', 'size', 'shared', 'phase', 'tags', 'parts']);
  assert.equal('required' in schemaOf('{ note }'), false);
});

test('aliases name properties; fragments and inline fragments are part of the selection', () => {
  const schema = schemaOf(
    '{ title: name ... on Thing { total: count } ...Rest }',
    'fragment Rest on Thing { note ...More } fragment More on Thing { done }',
  );
  assert.deepEqual(Object.keys(schema.properties as object), ['title', 'total', 'note', 'done']);
  assert.deepEqual(schema.required, ['title']);
});

test('descriptions come along', () => {
  assert.deepEqual(schemaOf('{ name }'), {
    type: 'object',
    description: 'Something.',
    required: ['name'],
    properties: { name: { type: 'string', description: 'Its name.' } },
  });
});

test('a list that is keyed is an object of its values', () => {
  const { properties, required } = schemaOf('{ errors { backend message } }') as {
    properties: Record<string, JsonSchema>;
    required?: string[];
  };
  assert.deepEqual(properties.errors, { type: 'object', additionalProperties: { type: 'string' } });
  assert.equal(required, undefined);
  assert.throws(() => schemaOf('{ errors { message } }'), /a list keyed by backend must select backend and message/);
  assert.throws(() => schemaOf('{ errors { backend } }'), /a list keyed by backend must select backend and message/);
});

test('an object that is one fragment has its name, and can be referred to by it', () => {
  const shape = shapeOfThing(
    '{ parent { ...Short } parts { ...Short } errors { backend message } }',
    'fragment Short on Thing { name }',
  );
  const named: ObjectShape[] = [];
  const refer = (object: ObjectShape) => {
    if (!object.name) return undefined;
    named.push(object);
    return { $ref: `#/${object.name}` };
  };
  const { properties } = jsonSchemaOf(shape, refer) as { properties: Record<string, JsonSchema> };
  assert.deepEqual(properties.parent, { $ref: '#/Short' });
  assert.deepEqual(properties.parts, { type: 'array', items: { $ref: '#/Short' } });
  assert.deepEqual(
    named.map(({ name, fields }) => [name, fields.length]),
    [
      ['Short', 1],
      ['Short', 1],
    ],
  );
  // With anything beside the fragment it is another shape.
  assert.equal(shapeOfThing('{ ...Short id }', 'fragment Short on Thing { name }').name, undefined);
});

test('what cannot be written is refused', () => {
  assert.throws(() => schemaOf('{ odd }'), /the scalar Odd has no JSON schema/);
  assert.throws(() => schemaOf('{ note @skip(if: false) }'), /selects the same fields every time/);
});

test('a schema takes what is written and nothing that lacks a part of it', () => {
  const check = schemaCheck(schemaOf('{ id name size phase tags parts { id } }'));
  const good = { id: '1', name: 'a', size: 0, phase: 'running', tags: [], parts: [{ id: '2' }] };
  assert.equal(check(good), '');
  for (const bad of [
    { ...good, size: undefined },
    { ...good, phase: 'RUNNING' },
    { ...good, tags: null },
    { ...good, parts: [{}] },
  ]) {
    assert.notEqual(check(JSON.parse(JSON.stringify(bad))), '', JSON.stringify(bad));
  }
});
