import { readFileSync } from 'node:fs';

const folder = new URL('../../fixtures/ollama/', import.meta.url);

export const fixture = (name: string): Buffer => readFileSync(new URL(name, folder));
export const fixtureJson = (name: string) => JSON.parse(fixture(name).toString());
