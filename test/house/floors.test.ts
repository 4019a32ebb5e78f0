import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/** From the top of the house to its ground. A file imports from its own folder and from floors below. */
const floors = [
  ['main'],
  ['commands'],
  ['http'],
  ['rest-compat', 'mcp'],
  ['operations'],
  ['resolvers'],
  ['backends'],
  ['jobs', 'wiring'],
  ['drivers'],
  ['kubernetes', 'identity'],
  ['live'],
  ['log'],
  ['audit'],
  ['config'],
  ['call', 'errors', 'domain', 'egress'],
  ['endpoint', 'secrets'],
];
/** Beside the house: it knows the domain only, and only the commands and the tests know it. */
const annex = 'demo';

const src = new URL('../../src/', import.meta.url).pathname;
const roomOf = (file: string) => file.split('/')[0]?.replace(/\.ts$/, '') as string;
const floorOf = (room: string) => floors.findIndex(rooms => rooms.includes(room));

/** What a file imports of `src`, as paths below it. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8');
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g);
  return [...found].map(([, path]) => normalize(join(dirname(file), path as string)));
}

const files = globSync('**/*.ts', { cwd: src });

test('every room of src has its floor', () => {
  const rooms = new Set(files.map(roomOf).filter(room => room !== annex));
  assert.deepEqual(
    [...rooms].filter(room => floorOf(room) < 0),
    [],
  );
  assert.deepEqual(
    floors.flat().filter(room => !rooms.has(room)),
    [],
    'floors name rooms there are',
  );
});

test('imports go down or stay in their room', () => {
  const upward = files
    .filter(file => roomOf(file) !== annex)
    .flatMap(file => importsOf(file).map(target => ({ file, target })))
    .filter(({ file, target }) => {
      const [from, to] = [roomOf(file), roomOf(target)];
      if (to === annex) return from !== 'commands';
      return from !== to && floorOf(to) <= floorOf(from);
    })
    .map(({ file, target }) => `${file} imports ${target}`);
  assert.deepEqual(upward, []);
});

test('the demo imports nothing of the house but its domain', () => {
  const foreign = files
    .filter(file => roomOf(file) === annex)
    .flatMap(file => importsOf(file).filter(target => ![annex, 'domain'].includes(roomOf(target))));
  assert.deepEqual(foreign, []);
});

test('no file is longer than one can keep in mind', () => {
  const long = files.filter(file => readFileSync(join(src, file), 'utf8').split('\n').length > 400);
  assert.deepEqual(long, [], 'a noun is missing');
});
