import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { examples, type Manifest, render, skip, type Values } from './helm.ts';

/**
 * What people have installed: the values of the last release, and what of its objects cannot be changed while they exist.
 * A release replaces these files; nothing else does.
 */
const released = (name: string) =>
  parse(readFileSync(new URL(`../fixtures/released/chart/${name}`, import.meta.url), 'utf8'));

const immutable: Readonly<Record<string, (manifest: Fields) => unknown>> = {
  Deployment: ({ spec }) => spec?.selector,
  DaemonSet: ({ spec }) => spec?.selector,
  RoleBinding: ({ roleRef }) => roleRef,
  ClusterRoleBinding: ({ roleRef }) => roleRef,
};

interface Fields {
  readonly spec?: { readonly selector?: unknown };
  readonly roleRef?: unknown;
}

/** The objects by what an upgrade finds them by, each with what it cannot change of them. */
const fixedParts = (manifests: readonly Manifest[]) =>
  Object.fromEntries(
    manifests.map(manifest => {
      const { apiVersion, kind, metadata } = manifest;
      const id = `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
      return [id, immutable[kind]?.(manifest as unknown as Fields) ?? null];
    }),
  );

test('the values of the last release are taken', { skip }, () => {
  assert.ok(render(released('values.yaml')).length > 0);
});

for (const [name, before] of Object.entries(released('objects.yaml') as Readonly<Record<string, Values>>)) {
  test(`an upgrade of ${name} changes nothing that cannot be changed, and no name`, { skip }, () => {
    const now = fixedParts(render(examples[name]));
    const same = Object.fromEntries(Object.keys(before).map(id => [id, id in now ? now[id] : 'is gone']));
    assert.deepEqual(same, before);
  });
}

for (const [change, from, to] of [
  ['jobs go from memory to the cluster', {}, { jobStore: 'kubernetes' }],
  ['one pod becomes two', { jobStore: 'kubernetes' }, { jobStore: 'kubernetes', replicaCount: 2 }],
  ['both happen at once', {}, { jobStore: 'kubernetes', replicaCount: 2 }],
] as const) {
  test(`where ${change}, nothing changes that cannot be changed, there and back`, { skip }, () => {
    const [before, after] = [fixedParts(render(from)), fixedParts(render(to))];
    assert.deepEqual(Object.fromEntries(Object.keys(before).map(id => [id, after[id]])), before);
  });
}

test('every example of the last release is there', () => {
  const gone = Object.keys(released('objects.yaml')).filter(name => name !== 'defaults' && !(name in examples));
  assert.deepEqual(gone, []);
});
