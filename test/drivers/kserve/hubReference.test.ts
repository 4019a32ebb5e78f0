import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  directoryOf,
  isCommit,
  isRepository,
  isRevision,
  parseReference,
} from '../../../src/drivers/kserve/hub/reference.ts';

test('a reference is taken apart after its last slash', () => {
  const table: [text: string, repository: string, revision?: string][] = [
    ['acme/nova', 'acme/nova'],
    ['hf://acme/nova', 'acme/nova'],
    ['hf://acme/nova:fp8', 'acme/nova', 'fp8'],
    ['acme/nova@v1.0', 'acme/nova', 'v1.0'],
    [' hf://acme/nova:fp8 \n', 'acme/nova', 'fp8'],
    ['acme/nova:a@b', 'acme/nova:a', 'b'],
    ['acme/nova:', 'acme/nova'],
    ['acme:8080/nova', 'acme:8080/nova'],
    ['acme/nova:refs/pr/1', 'acme/nova:refs/pr/1'],
    ['nova-4b', 'nova-4b'],
    ['nova:4b', 'nova', '4b'],
    ['s3://bucket/nova', 's3://bucket/nova'],
    ['', ''],
  ];
  for (const [text, repository, revision] of table)
    assert.deepEqual(parseReference(text), { repository, ...(revision !== undefined && { revision }) }, text);
});

test('what can be a repository, and what must not become a path', () => {
  for (const good of ['acme/nova', 'Qwen/Qwen3-0.6B', '01-ai/Yi_34B.v2', 'a/b']) assert.ok(isRepository(good), good);
  const bad = [
    'nova',
    'a/b/c',
    '/b',
    'a/',
    'a /b',
    'a\t/b',
    'a/b:c',
    '../b',
    'a/..',
    './b',
    'a/%2e%2e',
    'a/b?x',
    'a/b#x',
  ];
  for (const text of [...bad, 'a/b\n', 'a\\b/c', 'ä/b', '', `a/${'b'.repeat(97)}`, 'hf://a/b', 'a/b\0'])
    assert.ok(!isRepository(text), text);
});

test('what can be a revision', () => {
  for (const good of ['main', 'v1.0', 'refs/pr/3', 'fp8', 'a+b_c-d', 'a'.repeat(40)]) assert.ok(isRevision(good), good);
  for (const bad of ['', '..', 'a/../b', '/main', '-x', 'a b', 'a?b', 'a#b', 'a%2fb', 'a//b', 'a\n', 'b'.repeat(256)])
    assert.ok(!isRevision(bad), bad);
});

test('only a whole hash names something that never changes', () => {
  assert.ok(isCommit('0123456789abcdef0123456789abcdef01234567'));
  for (const other of ['main', '0123456', '0123456789ABCDEF0123456789ABCDEF01234567', 'g'.repeat(40)])
    assert.ok(!isCommit(other), other);
});

test('the directory in the cache is the name of the preset, or made from the repository', () => {
  assert.equal(directoryOf('acme/Nova-4B', 'nova-4b'), 'nova-4b');
  assert.equal(directoryOf('acme-labs/Nova-4B_Instruct.v2'), 'acme-labs-nova-4b-instruct-v2');
  assert.equal(directoryOf('01-ai/Yi'), 'm-01-ai-yi');
});
