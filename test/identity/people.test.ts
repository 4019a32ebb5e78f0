import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createPeople } from '../../src/identity/people.ts';

const claimsOf = (subject: string, expiresAt: number) => ({
  issuer: 'https://dex.example.com',
  subject,
  name: `${subject}@example.com`,
  expiresAt,
});

test('a person is one caller, whatever token they come with, and the token that is good for longest counts', () => {
  let now = 0;
  const people = createPeople(() => now);
  const ann = people.callerOf(claimsOf('ann', 10_000), 'first');
  assert.equal(people.callerOf(claimsOf('ann', 20_000), 'second'), ann);
  assert.equal(people.callerOf(claimsOf('ann', 15_000), 'third'), ann);
  assert.deepEqual([ann.token?.(), ann.until?.()], ['second', 20_000]);
  assert.equal(people.callerOf(claimsOf('ann', 20_000), 'as long'), ann);
  assert.equal(ann.token?.(), 'as long', 'of two that are good for as long the newer');
  const other = people.callerOf({ ...claimsOf('ann', 10_000), issuer: 'https://other.example.com' }, 'other');
  assert.notEqual(other.scope, ann.scope);
  now = 20_000;
  assert.throws(() => ann.token?.(), {
    code: 'unauthenticated',
    message: 'the token of ann@example.com has expired; sign in again',
  });
  assert.doesNotMatch(`${inspect(ann, { depth: 9, showHidden: true })} ${JSON.stringify(ann)}`, /second|as long/);
});

test('who comes back within ten minutes is who they were; later nothing of them is left', () => {
  let now = 0;
  const people = createPeople(() => now);
  const ann = people.callerOf(claimsOf('ann', 1_000), 'one');
  now = 601_000;
  people.callerOf(claimsOf('ben', 10_000_000), 'his');
  assert.equal(people.callerOf(claimsOf('ann', 700_000), 'two'), ann);
  now = 1_300_001;
  people.callerOf(claimsOf('eve', 10_000_000), 'hers');
  assert.notEqual(people.callerOf(claimsOf('ann', 2_000_000), 'three'), ann);
});

test('a thousand people are remembered, those who came last', () => {
  const people = createPeople(() => 0);
  const first = people.callerOf(claimsOf('0', 1_000), 'token');
  const second = people.callerOf(claimsOf('1', 1_000), 'token');
  for (let index = 2; index < 1_000; index++) people.callerOf(claimsOf(`${index}`, 1_000), 'token');
  assert.equal(people.callerOf(claimsOf('0', 1_000), 'token'), first);
  people.callerOf(claimsOf('1000', 1_000), 'token');
  assert.equal(people.callerOf(claimsOf('0', 1_000), 'token'), first);
  assert.notEqual(people.callerOf(claimsOf('1', 1_000), 'token'), second);
});
