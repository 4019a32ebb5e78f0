import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** How many checks of security there are: each has a number, and tests whose titles begin with it. */
const count = 56;
const folder = new URL('../', import.meta.url).pathname;
/** A title, of a test or a group, or in the table that tests are made from. */
const title = /(?:\(\s*|^\s*)(?:'|`)(check (\d+): .+?)(?:'|`),/gm;
const titles = globSync('**/*.test.ts', { cwd: folder }).flatMap(file =>
  [...readFileSync(`${folder}${file}`, 'utf8').matchAll(title)].map(([, words = '', number]) => ({
    words,
    number: Number(number),
  })),
);
const covered = new Set(titles.map(({ number }) => number));
const all = Array.from({ length: count }, (_, index) => index + 1);

test('every check of security has a test by its number', () => {
  assert.deepEqual(
    all.filter(number => !covered.has(number)),
    [],
  );
});

test('no title names a check that there is not, and no two say the same', () => {
  assert.deepEqual(
    [...covered].filter(number => !all.includes(number)),
    [],
  );
  const words = titles.map(each => each.words);
  assert.deepEqual(
    words.filter((each, index) => words.indexOf(each) !== index),
    [],
  );
});
