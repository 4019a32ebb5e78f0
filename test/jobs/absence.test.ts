import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAbsence } from '../../src/jobs/kubernetes/absence.ts';
import { heldBy, released } from '../../src/jobs/kubernetes/lease.ts';
import type { Lease } from '../../src/kubernetes/resource.ts';

/** A Lease at a version, of a clock that is anywhere. */
function leaseAt(resourceVersion: string, isReleased = false): Lease {
  const lease = heldBy('one', 'a', '0000000000000001', 'models');
  const at = { ...lease, metadata: { ...lease.metadata, resourceVersion } };
  return isReleased ? released(at) : at;
}

/** What is seen of one Lease, on a clock that the test moves. */
function watching() {
  const clock = { ms: 0 };
  const absence = createAbsence(() => clock.ms);
  const see = (lease: Lease | undefined) => {
    absence.look(new Map(lease ? [['a', lease]] : []));
    return absence.alone('a', lease);
  };
  return { clock, absence, see };
}

test('a holder is dead when its Lease has not moved for 15 s, counted from when it was seen first', () => {
  const { clock, see } = watching();
  clock.ms = 1_000_000;
  assert.equal(see(leaseAt('1')), -15_000);
  clock.ms += 14_999;
  assert.equal(see(leaseAt('1')), -1);
  clock.ms += 1;
  assert.equal(see(leaseAt('1')), 0);
  clock.ms += 7_000;
  assert.equal(see(leaseAt('1')), 7_000);
});

test('one that moves is alive, however old the times in it are', () => {
  const { clock, see } = watching();
  for (const version of ['1', '2', '3']) {
    assert.equal(see(leaseAt(version)), -15_000);
    clock.ms += 14_000;
  }
  assert.equal(see(leaseAt('3')), -1_000);
});

test('what is given back is alone at once', () => {
  const { clock, see } = watching();
  see(leaseAt('1'));
  clock.ms += 5;
  assert.equal(see(leaseAt('2', true)), 0);
  clock.ms += 5;
  assert.equal(see(leaseAt('2', true)), 5);
});

test('without a Lease it is alone after as long as a Lease lasts; one that goes and comes is new', () => {
  const { clock, see } = watching();
  assert.equal(see(undefined), -15_000);
  clock.ms += 15_000;
  assert.equal(see(undefined), 0);
  assert.equal(see(leaseAt('1')), -15_000);
  clock.ms += 15_000;
  assert.equal(see(leaseAt('1')), 0);
  assert.equal(see(undefined), -15_000);
  assert.equal(see(leaseAt('1')), -15_000);
});

test('while nothing can be seen nobody is dead', () => {
  const { clock, absence, see } = watching();
  see(leaseAt('1'));
  clock.ms += 60_000;
  absence.forget();
  assert.equal(see(leaseAt('1')), -15_000);
});
