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

test('a request is done with the token it came with; what goes on without it with the one that is good for longest', () => {
  let now = 0;
  const people = createPeople(() => now);
  const first = people.callerOf(claimsOf('ann', 10_000), 'first');
  const second = people.callerOf(claimsOf('ann', 20_000), 'second');
  const third = people.callerOf(claimsOf('ann', 15_000), 'third');
  assert.deepEqual(
    [first, second, third].map(caller => caller.token?.()),
    ['first', 'second', 'third'],
  );
  const { person } = first;
  assert.ok(person === second.person && person === third.person);
  assert.deepEqual([person?.token?.(), person?.until?.()], ['second', 20_000]);
  now = 10_000;
  assert.equal(first.token?.(), 'second', 'what outlives its token goes on with another of the person');
  people.callerOf(claimsOf('ann', 20_000), 'as long');
  assert.equal(person?.token?.(), 'as long', 'of two that are good for as long the newer');
  const other = people.callerOf({ ...claimsOf('ann', 10_000), issuer: 'https://other.example.com' }, 'other');
  assert.notEqual(other.scope, first.scope);
  now = 20_000;
  for (const caller of [first, second, third, person]) {
    assert.throws(() => caller?.token?.(), {
      code: 'unauthenticated',
      message: 'the token of ann@example.com has expired; sign in again',
    });
  }
  assert.doesNotMatch(`${inspect(first, { depth: 9, showHidden: true })} ${JSON.stringify(first)}`, /second|as long/);
});

test('who comes back within ten minutes is who they were; later nothing of them is left', () => {
  let now = 0;
  const people = createPeople(() => now);
  const ann = people.callerOf(claimsOf('ann', 1_000), 'one').person;
  now = 601_000;
  people.callerOf(claimsOf('ben', 10_000_000), 'his');
  assert.equal(people.callerOf(claimsOf('ann', 700_000), 'two').person, ann);
  now = 1_300_001;
  people.callerOf(claimsOf('eve', 10_000_000), 'hers');
  assert.notEqual(people.callerOf(claimsOf('ann', 2_000_000), 'three').person, ann);
});

test('a thousand people are remembered, those who came last', () => {
  const people = createPeople(() => 0);
  const first = people.callerOf(claimsOf('0', 1_000), 'token').person;
  const second = people.callerOf(claimsOf('1', 1_000), 'token').person;
  for (let index = 2; index < 1_000; index++) people.callerOf(claimsOf(`${index}`, 1_000), 'token');
  assert.equal(people.callerOf(claimsOf('0', 1_000), 'token').person, first);
  people.callerOf(claimsOf('1000', 1_000), 'token');
  assert.equal(people.callerOf(claimsOf('0', 1_000), 'token').person, first);
  assert.notEqual(people.callerOf(claimsOf('1', 1_000), 'token').person, second);
});
