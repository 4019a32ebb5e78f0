/**
 * `npm run sbom`: writes what the image installs to standard output, as CycloneDX JSON.
 *
 * It is npm's own bill, of this package without what only development needs: `npm sbom --omit=dev` alone leaves out every
 * production dependency that a development dependency needs as well.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly devDependencies?: unknown;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devDependencies?: unknown }>>;
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const { devDependencies: _, ...manifest } = read('package.json') as Manifest;
const lock = read('package-lock.json') as Lock;
const { devDependencies: __, ...root } = lock.packages[''] ?? {};
const installed = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && !dev);
const packages = { '': root, ...Object.fromEntries(installed) };

const above = mkdtempSync(join(tmpdir(), 'sbom-'));
try {
  // The bill has the name of the folder.
  const folder = join(above, manifest.name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
  const flags = ['--sbom-format', 'cyclonedx', '--omit=dev', '--package-lock-only'];
  const { status, error } = spawnSync('npm', ['sbom', ...flags], { cwd: folder, stdio: 'inherit' });
  if (error) throw error;
  process.exitCode = status ?? 1;
} finally {
  rmSync(above, { recursive: true });
}
