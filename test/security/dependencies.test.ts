import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly link?: boolean;
}

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const installed = Object.entries(lock.packages).filter(([path]) => path !== '');
const namesOf = (entries: typeof installed) => entries.map(([path]) => path);

test('check 52: what is installed comes from the npm registry, and is what it was', () => {
  assert.ok(installed.length > 100);
  const foreign = installed.filter(([, { resolved, link, version = '' }]) => {
    const from = resolved ?? (/^\d+\.\d+\.\d+/.test(version) ? 'https://registry.npmjs.org/' : version);
    return link === true || !from.startsWith('https://registry.npmjs.org/');
  });
  assert.deepEqual(namesOf(foreign), []);
  const unchecked = installed.filter(([, { integrity = '' }]) => !integrity.startsWith('sha512-'));
  assert.deepEqual(namesOf(unchecked), []);
});

test('check 52: nothing that is installed in production runs a script', () => {
  assert.deepEqual(namesOf(installed.filter(([, { hasInstallScript, dev }]) => hasInstallScript && !dev)), []);
});
