import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitReasons } from '../../src/domain/reasons/fit.ts';
import { inventoryReasons } from '../../src/domain/reasons/inventory.ts';
import { passedOnReasons } from '../../src/domain/reasons/passedOn.ts';
import { stepReasons } from '../../src/domain/reasons/steps.ts';
import { wiringTable } from '../../src/domain/reasons/wiring.ts';
import { catalogue, obstacle, oneOf, phrase, reasonOf, say } from '../../src/domain.ts';

test('every code is there once', () => {
  const codes = [stepReasons, passedOnReasons, wiringTable, inventoryReasons, fitReasons].flatMap(Object.keys);
  assert.deepEqual(codes.toSorted(), [...new Set(codes)].toSorted());
  assert.deepEqual(
    catalogue.map(({ code }) => code),
    codes,
  );
});

test('every reason says where it shows, what it means and what to do, in sentences', () => {
  for (const { code, where, meaning, remedy } of catalogue) {
    assert.ok(where.length > 0, code);
    assert.match(meaning, /^[A-Z].*[.]$/, code);
    assert.match(remedy, where.includes('fit') ? /^\S.*[^ ,;]$/ : /^[A-Z`].*[.]$/, code);
  }
});

test('every obstacle has a change for each text, and a remedy of its own where there are several', () => {
  for (const [code, entry] of Object.entries(fitReasons)) {
    assert.deepEqual(Object.keys(entry.changes), Object.keys(entry.texts), code);
    assert.ok('remedy' in entry || new Set(Object.values(entry.changes)).size === 1, code);
  }
});

test('a text is filled, and what is put in stays as it is', () => {
  assert.equal(
    phrase('NodeLaunching', 'claimUnread', { claim: 'gpu-{problem}', problem: '{claim} $& $1' }),
    'whether NodeClaim gpu-{problem} launched could not be read ({claim} $& $1)',
  );
  assert.deepEqual(say('WaitingForPod', 'waiting'), {
    reason: 'WaitingForPod',
    message: 'waiting for the predictor pod',
  });
  assert.deepEqual(obstacle('gpus', 'size', { gpus: 8, has: 0 }), {
    code: 'gpus',
    text: '8 GPU requested, it has 0',
    change: 'a size with 8 GPU, or a preset that requests fewer',
  });
});

test('what is not in the catalogue, and a text without its values, do not compile', () => {
  const unused = [
    // @ts-expect-error no such reason
    () => phrase('NoSuchReason', 'waiting'),
    // @ts-expect-error no such text
    () => phrase('WaitingForPod', 'nominated'),
    // @ts-expect-error no values
    () => phrase('NodeLaunching', 'nominated'),
    // @ts-expect-error one is missing
    () => say('NodeStarting', 'launched', { claim: 'a' }),
    // @ts-expect-error one is too many
    () => say('NodeStarting', 'nominated', { node: 'a', claim: 'b' }),
    // @ts-expect-error the change wants a value as well
    () => obstacle('unreadable', 'problem', { problem: 'a' }),
    // @ts-expect-error no such reason
    () => oneOf('NoSuchReason'),
  ];
  assert.equal(unused.length, 7);
});

test('words are found as they are written, and only described ones', () => {
  assert.equal(reasonOf('OOMKilled')?.from, 'Kubernetes');
  assert.equal(reasonOf('CapacityUnavailable')?.from, undefined);
  for (const word of [undefined, null, '', 'oomkilled', 'constructor']) assert.equal(reasonOf(word), undefined);
  const isNode = oneOf('NodeLaunching', 'NodeStarting');
  assert.deepEqual(['NodeStarting', 'Pulling', undefined].map(isNode), [true, false, false]);
});
