import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url);
const hasNpm = spawnSync('npm', ['--version']).status === 0;

test('the bill of materials lists every production dependency, and nothing else', {
  skip: !hasNpm && 'there is no npm here',
}, () => {
  const { stdout, stderr } = spawnSync('npm', ['run', '--silent', 'sbom'], {
    cwd: root,
    encoding: 'utf8',
    // A newer npm is no fault of the bill.
    env: { ...process.env, npm_config_update_notifier: 'false' },
  });
  assert.equal(stderr, '');
  const bill = JSON.parse(stdout) as {
    bomFormat: string;
    metadata: { component: { name: string } };
    components: { purl: string }[];
  };
  assert.equal(bill.bomFormat, 'CycloneDX');
  assert.equal(bill.metadata.component.name, 'model-manager');
  const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8')) as {
    packages: Record<string, { dev?: boolean; version: string }>;
  };
  const installed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
  const urls = installed.map(([path, { version }]) => {
    const name = path.replace(/^.*node_modules\//, '').replace('@', '%40');
    return `pkg:npm/${name}@${version}`;
  });
  assert.ok(urls.some(url => url.startsWith('pkg:npm/graphql@')));
  assert.deepEqual(bill.components.map(({ purl }) => purl.replace(/\?.*$/, '')).sort(), [...new Set(urls)].sort());
});
