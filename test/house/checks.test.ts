import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** How many checks of security there are: each has a number, and tests whose titles begin with it. */
const count = 56;
/** Those whose tests come with what they are about: work at Kubernetes as the caller, the image, the chart. */
const pending: readonly number[] = [21, 22, 23, 24, 26, 27, 53, 54, 55];

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
    all.filter(number => !covered.has(number) && !pending.includes(number)),
    [],
  );
  assert.deepEqual(
    pending.filter(number => covered.has(number)),
    [],
    'what has its test is pending no more',
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
