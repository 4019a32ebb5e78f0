import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Readiness, readinessOf } from '../../src/wiring/kagent/readiness.ts';

const accepted = (status: unknown, message?: unknown) => ({ type: 'Accepted', status, message, reason: 'Reconciled' });
const resolved = (status: unknown, message?: unknown) => ({ type: 'ResolvedRefs', status, message });

test('the conditions say whether it is ready', () => {
  const fresh = { ready: false, message: 'not yet reconciled' };
  const table: [conditions: unknown, expected: Readiness][] = [
    [[], fresh],
    [[accepted('False', 'no such provider')], { ready: false, message: 'no such provider' }],
    [[accepted('Unknown', 'looking')], { ready: false, message: 'looking' }],
    [
      [accepted('True', 'accepted'), resolved('False', 'Secret kagent/key not found')],
      { ready: false, message: 'Secret kagent/key not found' },
    ],
    [[resolved('False', 'Secret kagent/key not found'), accepted('False', 'no')], { ready: false, message: 'no' }],
    [[resolved('True', 'resolved'), accepted('True', 'accepted')], { ready: true, message: 'accepted' }],
    [[accepted('True', 'accepted')], { ready: true, message: 'accepted' }],
    [[accepted('True')], { ready: true, message: undefined }],
    // Who decided, when nobody says why.
    [[accepted('False', ' ')], { ready: false, message: 'Accepted is False (Reconciled)' }],
    [[accepted('True'), resolved('Unknown')], { ready: false, message: 'ResolvedRefs is Unknown' }],
    // Nothing about acceptance yet.
    [[resolved('True', 'resolved')], fresh],
  ];
  for (const [conditions, expected] of table)
    assert.deepEqual(readinessOf({ conditions }), expected, JSON.stringify(conditions));
});

test('what is no condition is none', () => {
  for (const status of [undefined, null, 7, 'True', [], {}, { conditions: null }, { conditions: { Accepted: 'True' } }])
    assert.deepEqual(readinessOf(status), { ready: false, message: 'not yet reconciled' });
  const conditions = [null, 'Accepted', ['Accepted'], { type: 7 }, accepted(true, { text: 'yes' })];
  assert.deepEqual(readinessOf({ conditions }), { ready: false, message: 'Accepted is Unknown (Reconciled)' });
});

test('a message has an end', () => {
  const { message } = readinessOf({ conditions: [accepted('False', 'x'.repeat(1_000_000))] });
  assert.equal(message, `${'x'.repeat(4_096)}…`);
});

test('conditions of an earlier generation are about what is no longer said', () => {
  const conditions = [{ type: 'Accepted', status: 'True', message: 'fine' }];
  const of = (observedGeneration: unknown, generation?: number) =>
    readinessOf({ conditions, observedGeneration }, generation);
  assert.deepEqual(of(1, 2), { ready: false, message: 'not yet reconciled' });
  for (const ready of [of(2, 2), of(3, 2), of(undefined, 2), of('1', 2), of(1)]) assert.equal(ready.ready, true);
});
