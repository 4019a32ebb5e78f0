import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectionOf } from '../../src/operations/project.ts';
import { shapeOfThing } from '../support/shapes.ts';

/** What the old faces write of a result under a selection, as a client reads it. */
function written(selection: string, result: unknown): unknown {
  return JSON.parse(JSON.stringify(projectionOf(shapeOfThing(selection))(result)));
}

test('null is left out, unless something is written in its place', () => {
  const result = { note: null, count: null, done: null, at: null, size: null, shared: null, vram: null, parent: null };
  assert.deepEqual(written('{ note count done at size shared vram parent { id } }', result), {
    size: 0,
    shared: false,
  });
});

test('zero, false, empty text and empty lists are facts and stay', () => {
  const result = { note: '', count: 0, done: false, share: 0, tags: [], parts: [] };
  assert.deepEqual(written('{ note count done share tags parts { id } }', result), result);
});

test('where the contract leaves out zero, only zero is left out', () => {
  assert.deepEqual(written('{ vram used }', { vram: 0, used: 0 }), {});
  assert.deepEqual(written('{ vram used }', { vram: 1, used: 2 }), { vram: 1, used: 2 });
  assert.deepEqual(written('{ size }', { size: 0 }), { size: 0 });
});

test('a keyed list becomes an object in its order, an absent one is absent', () => {
  const errors = [
    { backend: 'ollama', message: 'down' },
    { backend: 'lemonade', message: 'late' },
  ];
  assert.deepEqual(written('{ errors { backend message } }', { errors }), {
    errors: { ollama: 'down', lemonade: 'late' },
  });
  assert.deepEqual(written('{ errors { backend message } }', { errors: null }), {});
  assert.deepEqual(written('{ errors { backend message } }', { errors: [] }), { errors: {} });
});

test('it reaches into objects and lists, however deep', () => {
  const selection = '{ parent { size parts { size note errors { backend message } } } }';
  const part = { size: null, note: null, errors: [{ backend: 'x', message: 'y' }] };
  assert.deepEqual(written(selection, { parent: { size: 1, parts: [part, { ...part, note: 'n', errors: null }] } }), {
    parent: {
      size: 1,
      parts: [
        { size: 0, errors: { x: 'y' } },
        { size: 0, note: 'n' },
      ],
    },
  });
});

test('aliases are the keys, and enums are their contract words already', () => {
  assert.deepEqual(
    written('{ bytes: size state: phase phases }', { bytes: null, state: 'cluster-manager', phases: ['running'] }),
    {
      bytes: 0,
      state: 'cluster-manager',
      phases: ['running'],
    },
  );
});

test('a time is written in RFC 3339, in UTC', () => {
  assert.deepEqual(written('{ at }', { at: new Date('2026-08-22T10:00:00+02:00') }), {
    at: '2026-08-22T08:00:00.000Z',
  });
});

test('the result is changed in place, and what nothing is to be done to is not touched', () => {
  const tags = Object.freeze(['a', 'b']);
  const result = { tags, note: null, parent: null };
  const project = projectionOf(shapeOfThing('{ tags note parent { id } }'));
  assert.equal(project(result), result);
  assert.equal(result.tags, tags);
  const frozen = Object.freeze({ id: '1', tags, phase: 'running' });
  assert.equal(projectionOf(shapeOfThing('{ id tags phase }'))(frozen), frozen);
});
