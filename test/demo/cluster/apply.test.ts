import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyPatch, type JsonObject, PatchError, patchTypes, trackUpdate } from '../../../src/demo/cluster/patch.ts';

const start = Date.parse('2026-08-22T08:00:00Z');
const at = (seconds: number) => new Date(start + seconds * 1_000).toISOString().replace('.000', '');

interface Wish {
  readonly by: string;
  readonly force?: boolean;
  readonly seconds?: number;
  readonly schema?: object;
}
const apply = (current: object | undefined, wanted: object, { by, force, seconds = 0, schema }: Wish) =>
  applyPatch(patchTypes.apply, current, wanted, { fieldManager: by, force, now: start + seconds * 1_000, schema });
const update = (before: object | undefined, after: object, by: string, seconds = 0) =>
  trackUpdate(before, after, { fieldManager: by, now: start + seconds * 1_000 });

const configMap = (data: Record<string, string>, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'x', ...metadata },
  data,
});
const podOf = (...containers: object[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a' },
  spec: { containers },
});

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly time: string;
  readonly fieldsV1: JsonObject;
}
const entriesOf = (object: JsonObject) =>
  ((object.metadata as { managedFields?: Entry[] }).managedFields ?? []) as readonly Entry[];
const fieldsBy = (object: JsonObject, manager: string) =>
  entriesOf(object).find(entry => entry.manager === manager)?.fieldsV1;

function conflictOf(act: () => unknown): PatchError {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof PatchError, String(error));
    assert.deepEqual([error.status, error.reason], [409, 'Conflict']);
    return error;
  }
  throw new assert.AssertionError({ message: 'there is no conflict' });
}

describe('server-side apply', () => {
  test('creates, and says who owns what', () => {
    const made = apply(undefined, configMap({ k: '1' }, { labels: { app: 'a' }, finalizers: ['f/x'] }), { by: 'one' });
    assert.deepEqual(made, {
      ...configMap({ k: '1' }),
      metadata: {
        name: 'a',
        namespace: 'x',
        labels: { app: 'a' },
        finalizers: ['f/x'],
        managedFields: [
          {
            manager: 'one',
            operation: 'Apply',
            apiVersion: 'v1',
            time: at(0),
            fieldsType: 'FieldsV1',
            fieldsV1: {
              'f:data': { 'f:k': {} },
              'f:metadata': { 'f:finalizers': { 'v:"f/x"': {} }, 'f:labels': { 'f:app': {} } },
            },
          },
        ],
      },
    });
  });

  test('the same again changes nothing, not even the time', () => {
    const made = apply(undefined, configMap({ k: '1' }), { by: 'one' });
    assert.deepEqual(apply(made, configMap({ k: '1' }), { by: 'one', seconds: 60 }), made);
    const changed = apply(made, configMap({ k: '2' }), { by: 'one', seconds: 60 });
    assert.equal(entriesOf(changed)[0]?.time, at(60));
  });

  test('what its manager no longer says goes, what others own or nobody owns stays', () => {
    const made = apply(undefined, configMap({ own: '1', shared: '2' }), { by: 'one' });
    const shared = apply(made, configMap({ shared: '2', theirs: '3' }), { by: 'two' });
    const updated = update(shared, { ...shared, data: { ...(shared.data as object), third: '4' } }, 'editor');
    const left = apply(updated, configMap({}), { by: 'one' });
    assert.deepEqual(left.data, { shared: '2', theirs: '3', third: '4' });
  });

  test('another value of what another owns is a conflict, which names manager and field', () => {
    const made = apply(undefined, configMap({ k: '1', l: '1' }), { by: 'one' });
    const error = conflictOf(() => apply(made, configMap({ k: '2' }), { by: 'two' }));
    assert.equal(error.message, 'Apply failed with 1 conflict: conflict with "one": .data.k');
    assert.deepEqual(error.causes, [
      { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.k' },
    ]);
    const both = conflictOf(() => apply(made, configMap({ k: '2', l: '2' }), { by: 'two' }));
    assert.equal(both.message, 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.k\n- .data.l');
  });

  test('a conflict with what was written otherwise says with which version', () => {
    const made = update(undefined, configMap({ k: '1' }), 'kubectl-create');
    const error = conflictOf(() => apply(made, configMap({ k: '2' }), { by: 'two' }));
    assert.equal(error.message, 'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.k');
  });

  test('force takes the field over, and the loser no longer owns it', () => {
    const made = apply(undefined, configMap({ k: '1', l: '1' }), { by: 'one' });
    const forced = apply(made, configMap({ k: '2' }), { by: 'two', force: true });
    assert.deepEqual(forced.data, { k: '2', l: '1' });
    assert.deepEqual(fieldsBy(forced, 'one'), { 'f:data': { 'f:l': {} } });
    assert.deepEqual(fieldsBy(forced, 'two'), { 'f:data': { 'f:k': {} } });
    assert.deepEqual(apply(forced, configMap({ l: '1' }), { by: 'one' }).data, { k: '2', l: '1' });
  });

  test('the same value is owned together, and goes only with its last owner', () => {
    const one = apply(undefined, configMap({ k: '1' }), { by: 'one' });
    const both = apply(one, configMap({ k: '1' }), { by: 'two' });
    const two = apply(both, configMap({}), { by: 'one' });
    assert.deepEqual(two.data, { k: '1' });
    assert.equal(apply(two, { ...configMap({}), data: undefined }, { by: 'two' }).data, undefined);
  });

  test('items of known lists are owned one by one', () => {
    const made = apply(undefined, podOf({ name: 'a', image: 'a:1', ports: [{ containerPort: 80 }] }), { by: 'one' });
    const more = apply(made, podOf({ name: 'b', image: 'b:1' }), { by: 'two' });
    assert.deepEqual(fieldsBy(made, 'one'), {
      'f:spec': {
        'f:containers': {
          'k:{"name":"a"}': {
            '.': {},
            'f:image': {},
            'f:name': {},
            'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
          },
        },
      },
    });
    const error = conflictOf(() => apply(more, podOf({ name: 'a', image: 'a:2' }), { by: 'two' }));
    assert.match(error.message, /conflict with "one": \.spec\.containers\[name="a"\]\.image$/);
    const left = apply(more, { ...podOf(), spec: {} }, { by: 'one' });
    assert.deepEqual(left.spec, { containers: [{ name: 'b', image: 'b:1' }] });
  });

  test('an item that another has a field in stays with what that one owns', () => {
    const made = apply(undefined, podOf({ name: 'a', image: 'a:1', command: ['x'] }), { by: 'one' });
    const more = apply(made, podOf({ name: 'a', workingDir: '/' }), { by: 'two' });
    assert.deepEqual(apply(more, { ...podOf(), spec: {} }, { by: 'one' }).spec, {
      containers: [{ name: 'a', workingDir: '/' }],
    });
  });

  test('an item goes with what others have set in it, unless they want the item too', () => {
    const made = apply(undefined, podOf({ name: 'a', image: 'a:1' }, { name: 'b', image: 'b:1' }), { by: 'one' });
    const [a, b] = [
      { name: 'a', image: 'a:1', workingDir: '/' },
      { name: 'b', image: 'b:1' },
    ];
    const edited = update(made, { ...made, spec: { containers: [a, b] } }, 'kubectl-edit');
    const left = apply(edited, podOf({ name: 'b', image: 'b:1' }), { by: 'one' });
    assert.deepEqual(left.spec, { containers: [b] });
    assert.equal(fieldsBy(left, 'kubectl-edit'), undefined, 'nothing is left of what it owned');
  });

  test('a map that is wanted without members is not in the way of those it has', () => {
    const made = apply(undefined, configMap({ k: '1' }), { by: 'one' });
    const both = apply(made, configMap({}), { by: 'two' });
    assert.deepEqual(both.data, { k: '1' });
    const selecting = (nodeSelector: object) => ({ ...podOf(), spec: { nodeSelector } });
    const error = conflictOf(() =>
      apply(apply(undefined, selecting({ a: '1' }), { by: 'one' }), selecting({}), { by: 'two' }),
    );
    assert.match(error.message, /\.spec\.nodeSelector$/, 'but where a map is one value');
  });

  test('finalizers are a set of which each owns its own', () => {
    const made = apply(undefined, configMap({}, { finalizers: ['f/a'] }), { by: 'one' });
    const both = apply(made, configMap({}, { finalizers: ['f/b'] }), { by: 'two' });
    assert.deepEqual((both.metadata as JsonObject).finalizers, ['f/a', 'f/b']);
    const left = apply(both, configMap({}), { by: 'one' });
    assert.deepEqual((left.metadata as JsonObject).finalizers, ['f/b']);
  });

  test('a list has the wanted order; what others want stays in front of what it was in front of', () => {
    const finalizers = (object: JsonObject) => (object.metadata as JsonObject).finalizers;
    const wish = (...names: string[]) => configMap({}, { finalizers: names.map(name => `f/${name}`) });
    const made = apply(apply(undefined, wish('a', 'b'), { by: 'one' }), wish('c', 'b'), { by: 'two' });
    assert.deepEqual(finalizers(made), ['f/a', 'f/c', 'f/b']);
    assert.deepEqual(finalizers(apply(made, wish('b', 'c'), { by: 'two' })), ['f/a', 'f/b', 'f/c']);
  });

  test('an owner is one value, and a list without items is nobody’s', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: '1' };
    const made = apply(undefined, configMap({ k: '1' }, { ownerReferences: [owner], finalizers: [] }), { by: 'one' });
    assert.deepEqual(fieldsBy(made, 'one'), {
      'f:data': { 'f:k': {} },
      'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"1"}': {} } },
    });
    const other = configMap({}, { ownerReferences: [{ ...owner, controller: true }] });
    const error = conflictOf(() => apply(made, other, { by: 'two' }));
    assert.match(error.message, /conflict with "one": \.metadata\.ownerReferences\[uid="1"\]$/);
  });

  test('what was there before anybody was written down belongs to somebody else', () => {
    const error = conflictOf(() => apply(configMap({ k: '1' }), configMap({ k: '2' }), { by: 'one' }));
    assert.match(error.message, /conflict with "before-first-apply" using v1: \.data\.k/);
  });

  test('what kubectl has set by itself before is its own to set, unless somebody changed it since', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(configMap({ k: '1' })) };
    const made = update(undefined, configMap({ k: '1' }, { annotations }), 'kubectl-client-side-apply');
    assert.deepEqual(apply(made, configMap({ k: '2' }), { by: 'kubectl' }).data, { k: '2' });
    conflictOf(() => apply(made, configMap({ k: '2' }), { by: 'other' }));
    const edited = update(made, { ...made, data: { k: '3' } }, 'kubectl-edit');
    conflictOf(() => apply(edited, configMap({ k: '2' }), { by: 'kubectl' }));
  });

  test('a scalar in place of a map takes what others own in it', () => {
    const thing = (spec: unknown) => ({ apiVersion: 'x.dev/v1', kind: 'Thing', metadata: { name: 'a' }, spec });
    const made = apply(undefined, thing({ a: { b: 1 } }), { by: 'one' });
    const error = conflictOf(() => apply(made, thing({ a: null }), { by: 'two' }));
    assert.match(error.message, /conflict with "one": \.spec\.a\.b$/);
    assert.deepEqual(apply(made, thing({ a: null }), { by: 'two', force: true }).spec, {});
  });

  test('lists of custom kinds are merged as their schema says, else replaced', () => {
    const thing = (...list: object[]) => ({
      apiVersion: 'x.dev/v1',
      kind: 'Thing',
      metadata: { name: 'a' },
      spec: { list },
    });
    const schema = {
      properties: {
        spec: {
          properties: {
            list: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['id'], items: {} },
          },
        },
      },
    };
    const both = apply(apply(undefined, thing({ id: 1 }), { by: 'one', schema }), thing({ id: 2 }), {
      by: 'two',
      schema,
    });
    assert.deepEqual(both.spec, { list: [{ id: 1 }, { id: 2 }] });
    const error = conflictOf(() =>
      apply(apply(undefined, thing({ id: 1 }), { by: 'one' }), thing({ id: 2 }), { by: 'two' }),
    );
    assert.match(error.message, /conflict with "one": \.spec\.list$/);
  });

  test('what is no object with a kind, and what speaks of its managers itself, is refused', () => {
    const refusal = (wanted: object) => {
      assert.throws(
        () => apply(undefined, wanted, { by: 'one' }),
        (error: unknown) => error instanceof PatchError && error.status === 400,
      );
    };
    refusal([]);
    refusal({ metadata: { name: 'a' } });
    refusal(configMap({}, { managedFields: [] }));
  });
});

describe('updates', () => {
  test('the writer owns what it changed and nothing else', () => {
    const made = update(undefined, configMap({ a: '1', b: '1' }), 'maker');
    const changed = update(made, configMap({ a: '2', c: '3' }), 'editor', 60);
    assert.deepEqual(fieldsBy(made, 'maker'), { 'f:data': { 'f:a': {}, 'f:b': {} } });
    assert.deepEqual(
      entriesOf(changed).map(({ manager, operation, time, fieldsV1 }) => ({ manager, operation, time, fieldsV1 })),
      [{ manager: 'editor', operation: 'Update', time: at(60), fieldsV1: { 'f:data': { 'f:a': {}, 'f:c': {} } } }],
      'nothing of the maker is left',
    );
  });

  test('an applier loses what somebody changes, and gets it back only by force', () => {
    const made = apply(undefined, configMap({ a: '1', b: '1' }), { by: 'one' });
    const edited = update(made, { ...made, data: { a: '2', b: '1' } }, 'kubectl-edit');
    assert.deepEqual(fieldsBy(edited, 'one'), { 'f:data': { 'f:b': {} } });
    conflictOf(() => apply(edited, configMap({ a: '1', b: '1' }), { by: 'one' }));
    assert.deepEqual(apply(edited, configMap({ a: '1', b: '1' }), { by: 'one', force: true }).data, { a: '1', b: '1' });
  });

  test('nothing changed, nothing said', () => {
    const made = update(undefined, configMap({ a: '1' }), 'maker');
    assert.deepEqual(update(made, configMap({ a: '1' }), 'editor', 60), made);
  });

  test('managers are cleared by an empty list, and set by whoever sends them', () => {
    const made = update(undefined, configMap({ a: '1' }), 'maker');
    for (const managedFields of [[], [{}]]) {
      const cleared = update(made, configMap({ a: '2' }, { managedFields }), 'editor');
      assert.deepEqual(cleared.metadata, configMap({}).metadata);
      assert.deepEqual(update(cleared, configMap({ a: '3' }), 'editor'), configMap({ a: '3' }), 'and none comes back');
    }
    const managedFields = [{ ...entriesOf(made)[0], manager: 'other' }];
    const renamed = update(made, configMap({ a: '1' }, { managedFields }), 'editor');
    assert.deepEqual(fieldsBy(renamed, 'other'), { 'f:data': { 'f:a': {} } });
  });

  test('a writer through a subresource is another manager', () => {
    const pod = podOf({ name: 'a', image: 'a:1' });
    const made = update(undefined, pod, 'kubelet');
    const seen = trackUpdate(
      made,
      { ...made, status: { phase: 'Running' } },
      {
        fieldManager: 'kubelet',
        now: start,
        subresource: 'status',
      },
    );
    assert.deepEqual(
      (entriesOf(seen) as readonly (Entry & { subresource?: string })[]).map(entry => entry.subresource),
      [undefined, 'status'],
    );
  });
});
