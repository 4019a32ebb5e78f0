import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { fitReasons } from '../../src/domain/reasons/fit.ts';
import { inventoryReasons } from '../../src/domain/reasons/inventory.ts';
import { stepReasons } from '../../src/domain/reasons/steps.ts';
import { catalogue, reasonOf } from '../../src/domain.ts';

const root = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
const sources = globSync('src/**/*.ts', { cwd: root })
  .filter(path => !path.startsWith('src/domain/reasons'))
  .map(read);

test('every reason of ours, and each of its texts, is given by something', () => {
  const dead: string[] = [];
  for (const [code, { texts }] of Object.entries({ ...stepReasons, ...inventoryReasons, ...fitReasons })) {
    const givers = sources.filter(text => text.includes(`'${code}'`));
    if (givers.length === 0) dead.push(code);
    for (const key of Object.keys(texts)) {
      if (!givers.some(text => text.includes(`'${key}'`))) dead.push(`${code} ${key}`);
    }
  }
  assert.deepEqual(dead, []);
});

test('no step is given a reason past the catalogue', () => {
  const given = globSync(['src/drivers/kserve/timeline.ts', 'src/drivers/kserve/timeline/*.ts'], { cwd: root })
    .map(read)
    .flatMap(text => [...text.matchAll(/reason(?::| =| \?\?) \(?'(\w+)'/g)].map(([, word]) => word as string));
  assert.ok(given.length > 0);
  assert.deepEqual(
    given.filter(word => !reasonOf(word)),
    [],
  );
});

interface Expected {
  readonly reason?: string;
  readonly steps: readonly { readonly name: string; readonly reason?: string }[];
}

/** What is expected of every moment of every recorded serve. */
const expected = globSync('test/fixtures/kserve/scenarios/**/*.{json,yaml}', { cwd: root })
  .map(read)
  .filter(text => /^ *"?instants"?:/m.test(text))
  .flatMap(text => parseAllDocuments(text))
  .flatMap(document => (document.toJS() as { instants: { expect: Expected }[] }).instants.map(({ expect }) => expect));

test('what recorded serves show is in the catalogue, at the step where it shows', () => {
  assert.ok(expected.length >= 79);
  const missing = new Set<string>();
  const wants = (word: string | undefined, place: string) => {
    const where: readonly string[] = reasonOf(word)?.where ?? [];
    if (word !== undefined && !where.includes(place)) missing.add(`${word} at ${place}`);
  };
  for (const { reason, steps } of expected) {
    wants(reason, 'status');
    for (const step of steps) wants(step.reason, step.name);
  }
  assert.deepEqual([...missing].sort(), []);
});

test('the page of reasons has each of them once, and the README leads to it', () => {
  const page = read('docs/reasons.md');
  const headings = [...page.matchAll(/^### (.+)$/gm)].map(([, code]) => code as string);
  assert.deepEqual(headings.toSorted(), catalogue.map(({ code }) => code).toSorted());
  const anchors = new Set(headings.map(code => code.toLowerCase().replaceAll(' ', '-')));
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor as string);
  assert.deepEqual(new Set(links), anchors);
  assert.match(read('README.md'), /\]\(docs\/reasons\.md\)/);
});
