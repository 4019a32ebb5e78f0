import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyPatch, type JsonObject, PatchError, parsePatch, patchTypes } from '../../../src/demo/cluster/patch.ts';

const now = Date.parse('2026-08-22T08:00:00Z');
const patched = (type: keyof typeof patchTypes, current: object, patch: unknown) =>
  applyPatch(patchTypes[type], current, patch, { now });

const refusedWith = (status: number, reason: string, words?: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof PatchError, String(error));
  assert.deepEqual([error.status, error.reason], [status, reason]);
  if (words instanceof RegExp) assert.match(error.message, words);
  else if (words !== undefined) assert.equal(error.message, words);
  return true;
};

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

describe('merge patch', () => {
  const cases: readonly (readonly [current: JsonObject, patch: JsonObject, result: JsonObject])[] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{ a: 'foo' }, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{}, { a: [{ b: null }] }, { a: [{ b: null }] }],
  ];
  for (const [current, patch, result] of cases) {
    test(`${JSON.stringify(current)} + ${JSON.stringify(patch)}`, () => {
      assert.deepEqual(patched('merge', deepFreeze(current), deepFreeze(patch)), result);
    });
  }

  test('a patch must be an object', () => {
    assert.throws(() => patched('merge', {}, []), refusedWith(400, 'BadRequest'));
  });
});

describe('JSON patch', () => {
  const cases: readonly (readonly [current: JsonObject, operation: JsonObject, result: JsonObject])[] = [
    [{ a: 1 }, { op: 'add', path: '/b', value: { c: 1 } }, { a: 1, b: { c: 1 } }],
    [{ a: [1, 3] }, { op: 'add', path: '/a/1', value: 2 }, { a: [1, 2, 3] }],
    [{ a: [1] }, { op: 'add', path: '/a/-', value: [2] }, { a: [1, [2]] }],
    [{ a: [1, 2, 3] }, { op: 'remove', path: '/a/1' }, { a: [1, 3] }],
    [{ a: { 'x/y~z': 1 } }, { op: 'replace', path: '/a/x~1y~0z', value: 2 }, { a: { 'x/y~z': 2 } }],
    [{ a: [{ b: 1 }] }, { op: 'replace', path: '/a/0/b', value: null }, { a: [{ b: null }] }],
    [
      { a: { b: 1 }, c: {} },
      { op: 'move', from: '/a/b', path: '/c/d' },
      { a: {}, c: { d: 1 } },
    ],
    [{ a: [1, 2, 3] }, { op: 'move', from: '/a/0', path: '/a/2' }, { a: [2, 3, 1] }],
    [{ a: { b: 1 } }, { op: 'copy', from: '/a', path: '/c' }, { a: { b: 1 }, c: { b: 1 } }],
    [{ a: 1 }, { op: 'replace', path: '', value: { b: 2 } }, { b: 2 }],
    // Not by the standard, but as it is done.
    [{ a: 1 }, { op: 'replace', path: '/b', value: 2 }, { a: 1, b: 2 }],
    [{ a: 1 }, { op: 'copy', from: '/b', path: '/c' }, { a: 1, c: null }],
    [{ a: { b: [1, { c: 2 }] } }, { op: 'test', path: '/a', value: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 2 }] } }],
    [{ a: {} }, { op: 'test', path: '/a/b', value: null }, { a: {} }],
  ];
  for (const [current, operation, result] of cases) {
    test(JSON.stringify(operation), () => {
      assert.deepEqual(patched('json', deepFreeze(current), deepFreeze([operation])), result);
    });
  }

  const impossible: readonly JsonObject[] = [
    { op: 'test', path: '/a', value: 2 },
    { op: 'test', path: '/list/1', value: 2 },
    { op: 'test', path: '/b/c', value: null },
    { op: 'add', path: '/x/y', value: 1 },
    { op: 'add', path: '/list/2', value: 1 },
    { op: 'add', path: '/list/01', value: 1 },
    { op: 'add', path: '/b' },
    { op: 'add', path: 'b', value: 1 },
    { op: 'remove', path: '/b' },
    { op: 'remove', path: '' },
    { op: 'replace', path: '/b/c', value: 1 },
    { op: 'replace', path: '/list/1', value: 1 },
    { op: 'replace', path: '', value: 1 },
    { op: 'move', from: '/b', path: '/c' },
    { op: 'copy', from: '/b/c', path: '/c' },
    { op: 'copy', from: '/list/1', path: '/c' },
    { op: 'wish', path: '/a' },
  ];
  for (const operation of impossible) {
    test(`${JSON.stringify(operation)} cannot be done`, () => {
      assert.throws(
        () => patched('json', { a: 1, list: [1] }, [{ op: 'add', path: '/z', value: 1 }, operation]),
        refusedWith(422, 'Invalid', 'the server rejected our request due to an error in our request'),
      );
    });
  }

  test('what is no list of operations is no patch', () => {
    assert.throws(() => patched('json', {}, {}), refusedWith(400, 'BadRequest'));
    assert.throws(() => patched('json', {}, ['add']), refusedWith(400, 'BadRequest'));
  });
});

describe('strategic merge patch', () => {
  const container = (name: string, more: JsonObject = {}) => ({ name, image: `${name}:1`, ...more });
  const cases: Readonly<Record<string, readonly [current: JsonObject, patch: JsonObject, result: JsonObject]>> = {
    'items are merged by name': [
      { spec: { containers: [container('a'), container('b')] } },
      { spec: { containers: [{ name: 'b', image: 'b:2' }, container('c')] } },
      { spec: { containers: [container('a'), container('b', { image: 'b:2' }), container('c')] } },
    ],
    'and so deep down': [
      { spec: { containers: [container('a', { env: [{ name: 'X', value: '1' }], ports: [{ containerPort: 80 }] })] } },
      {
        spec: {
          containers: [{ name: 'a', env: [{ name: 'Y', value: '2' }], ports: [{ containerPort: 80, name: 'http' }] }],
        },
      },
      {
        spec: {
          containers: [
            container('a', {
              env: [
                { name: 'Y', value: '2' },
                { name: 'X', value: '1' },
              ],
              ports: [{ containerPort: 80, name: 'http' }],
            }),
          ],
        },
      },
    ],
    'new items come before those they do not name': [
      { metadata: { finalizers: ['a'] }, spec: { volumes: [{ name: 'a' }, { name: 'b' }] } },
      { metadata: { finalizers: ['b', 'c'] }, spec: { volumes: [{ name: 'c' }, { name: 'b' }] } },
      { metadata: { finalizers: ['b', 'c', 'a'] }, spec: { volumes: [{ name: 'c' }, { name: 'a' }, { name: 'b' }] } },
    ],
    'an item is deleted': [
      { spec: { volumes: [{ name: 'a' }, { name: 'b' }] } },
      { spec: { volumes: [{ name: 'a', $patch: 'delete' }] } },
      { spec: { volumes: [{ name: 'b' }] } },
    ],
    'a list is replaced': [
      { spec: { containers: [container('a'), container('b')] } },
      { spec: { containers: [container('c'), { $patch: 'replace' }] } },
      { spec: { containers: [container('c')] } },
    ],
    'other lists are replaced as they are': [
      { spec: { tolerations: [{ key: 'a' }], args: ['x'] } },
      { spec: { tolerations: [{ key: 'b' }], args: ['y', 'z'] } },
      { spec: { tolerations: [{ key: 'b' }], args: ['y', 'z'] } },
    ],
    'a map is replaced or deleted': [
      { a: { x: 1, y: 2 }, b: { x: 1 } },
      { a: { $patch: 'replace', z: 3 }, b: { $patch: 'delete' } },
      { a: { z: 3 }, b: {} },
    ],
    'finalizers are a set': [
      { metadata: { finalizers: ['a', 'b'] } },
      { metadata: { finalizers: ['b', 'c'], '$deleteFromPrimitiveList/finalizers': ['a'] } },
      { metadata: { finalizers: ['b', 'c'] } },
    ],
    'keys that are not retained go': [
      { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } },
      { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
      { spec: { strategy: { type: 'Recreate' } } },
    ],
    'conditions are told by type, owners by uid': [
      {
        metadata: { ownerReferences: [{ uid: '1', name: 'a' }] },
        status: { conditions: [{ type: 'Ready', status: 'False' }] },
      },
      {
        metadata: { ownerReferences: [{ uid: '2', name: 'b' }] },
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type: 'Seen', status: 'True' },
          ],
        },
      },
      {
        metadata: {
          ownerReferences: [
            { uid: '2', name: 'b' },
            { uid: '1', name: 'a' },
          ],
        },
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type: 'Seen', status: 'True' },
          ],
        },
      },
    ],
    'ports of a service are told by port': [
      { spec: { ports: [{ port: 80, name: 'a' }] } },
      { spec: { ports: [{ port: 80, name: 'b' }, { port: 81 }] } },
      { spec: { ports: [{ port: 80, name: 'b' }, { port: 81 }] } },
    ],
    'an order is obeyed; who is not named stays where it was as far as that goes': [
      { spec: { containers: [container('a'), container('sidecar'), container('b')] } },
      {
        spec: {
          '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
          containers: [{ name: 'b', image: 'b:2' }],
        },
      },
      { spec: { containers: [container('sidecar'), container('b', { image: 'b:2' }), container('a')] } },
    ],
    'null deletes, also in what is new': [
      { metadata: { labels: { a: '1' } } },
      { metadata: { labels: { a: null }, annotations: { b: null, c: '1' } } },
      { metadata: { labels: {}, annotations: { c: '1' } } },
    ],
  };
  for (const [name, [current, patch, result]] of Object.entries(cases)) {
    test(name, () => assert.deepEqual(patched('strategic', deepFreeze(current), deepFreeze(patch)), result));
  }

  test('an item without its key, and a directive that is none, are refused', () => {
    assert.throws(
      () => patched('strategic', {}, { spec: { containers: [{ image: 'x' }] } }),
      refusedWith(422, 'Invalid', /does not contain declared merge key: name/),
    );
    assert.throws(() => patched('strategic', {}, { $patch: 'burn' }), refusedWith(400, 'BadRequest', /burn/));
    assert.throws(() => patched('strategic', {}, { $retainKeys: 'a' }), refusedWith(400, 'BadRequest', /\$retainKeys/));
  });

  test('is for the kinds of Kubernetes itself', () => {
    const custom = { apiVersion: 'kagent.dev/v1alpha2', kind: 'ModelConfig' };
    assert.throws(
      () => patched('strategic', custom, {}),
      refusedWith(
        415,
        'UnsupportedMediaType',
        'the body of the request was in an unknown format - accepted media types include: ' +
          'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
      ),
    );
    assert.deepEqual(patched('strategic', { apiVersion: 'rbac.authorization.k8s.io/v1' }, {}), {
      apiVersion: 'rbac.authorization.k8s.io/v1',
    });
  });
});

test('other types are refused, and so are options of another type', () => {
  assert.throws(
    () => applyPatch('application/json', {}, {}, { now }),
    refusedWith(415, 'UnsupportedMediaType', /strategic-merge-patch/),
  );
  assert.throws(
    () => applyPatch(patchTypes.merge, {}, {}, { now, force: true }),
    refusedWith(422, 'Invalid', /force: Forbidden: may not be specified for non-apply patch/),
  );
  assert.throws(
    () => applyPatch(patchTypes.apply, {}, {}, { now }),
    refusedWith(422, 'Invalid', /fieldManager: Required/),
  );
});

test('a type may come with parameters; bodies are JSON, or YAML for server-side apply', () => {
  assert.deepEqual(applyPatch(`${patchTypes.merge}; charset=utf-8`, {}, { a: 1 }, { now }), { a: 1 });
  assert.deepEqual(parsePatch(patchTypes.apply, 'a: [1]\nb: {c: d}\n'), { a: [1], b: { c: 'd' } });
  assert.throws(() => parsePatch(patchTypes.merge, 'a: 1'), refusedWith(400, 'BadRequest'));
  assert.throws(() => parsePatch(patchTypes.apply, 'a: [1'), refusedWith(400, 'BadRequest'));
});
