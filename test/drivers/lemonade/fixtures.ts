import { readFileSync } from 'node:fs';

const folder = new URL('../../fixtures/lemonade/', import.meta.url);

export const fixture = (name: string): Buffer => readFileSync(new URL(name, folder));
export const fixtureJson = (name: string) => JSON.parse(fixture(name).toString());

/** Without the fields that are unknown, so that a table shows what is known. */
export const known = (row: object) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
