import { readFileSync } from 'node:fs';

const folder = new URL('../../fixtures/lmstudio/', import.meta.url);

const fixture = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
export const fixtureJson = (name: string) => JSON.parse(fixture(name));
/** The documents of a file that has one per line. */
export const fixtureLines = (name: string): unknown[] =>
  fixture(name)
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
