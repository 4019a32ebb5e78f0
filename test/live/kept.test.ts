import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKept } from '../../src/live/kept.ts';

interface Thing {
  readonly name: string;
  readonly parts: readonly unknown[];
}

function counting() {
  const made: string[] = [];
  const kept = createKept<Thing, object>({
    key: ({ name }) => name,
    from: ({ parts }) => parts,
    make: ({ name }) => {
      made.push(name);
      return { name };
    },
  });
  return { kept, made };
}

test('only what changed is computed again', () => {
  const { kept, made } = counting();
  const part = {};
  const before = kept([
    { name: 'a', parts: [part] },
    { name: 'b', parts: [1, Number.NaN] },
  ]);
  const after = kept([
    { name: 'b', parts: [1, Number.NaN] },
    { name: 'a', parts: [{}] },
  ]);
  assert.deepEqual(made, ['a', 'b', 'a']);
  assert.equal(after[0], before[1]);
  assert.notEqual(after[1], before[0]);
});

test('one part more or less is a change', () => {
  const { kept, made } = counting();
  kept([{ name: 'a', parts: [1] }]);
  kept([{ name: 'a', parts: [1, undefined] }]);
  kept([{ name: 'a', parts: [1] }]);
  assert.equal(made.length, 3);
});

test('what is not asked for any more is forgotten', () => {
  const { kept, made } = counting();
  kept([{ name: 'a', parts: [1] }]);
  assert.deepEqual(kept([]), []);
  kept([{ name: 'a', parts: [1] }]);
  assert.deepEqual(made, ['a', 'a']);
});
