import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCircuit } from '../../src/backends/circuit.ts';
import { backendError, modelNotFound } from '../../src/errors.ts';

const staying = new AbortController().signal;
const down = async () => {
  throw backendError('connection refused');
};

function circuit() {
  const clock = { now: 0 };
  const recoveries: number[] = [];
  const guarded = createCircuit({ onRecovery: () => recoveries.push(clock.now), now: () => clock.now });
  let looks = 0;
  const look = (answer: () => Promise<unknown>, signal = staying) =>
    guarded.guard(() => {
      looks++;
      return answer();
    }, signal);
  return { clock, recoveries, look, guarded, looks: () => looks };
}

test('after three failures in a row looks fail at once with the last words, and the server is left alone', async () => {
  const { look, looks } = circuit();
  for (let n = 0; n < 10; n++) await assert.rejects(look(down), /connection refused/);
  assert.equal(looks(), 3);
});

test('a probe is let through after about five seconds, then ever less often, at least every 66 seconds', async () => {
  const { clock, look, looks } = circuit();
  for (let n = 0; n < 3; n++) await assert.rejects(look(down));
  const probes: number[] = [];
  for (; clock.now < 300_000; clock.now += 100) {
    const before = looks();
    await assert.rejects(look(down));
    if (looks() > before) probes.push(clock.now);
  }
  const gaps = probes.map((at, index) => at - (probes[index - 1] ?? 0));
  assert.ok(gaps[0] && gaps[0] >= 4_500 && gaps[0] <= 5_600, `first probe after ${gaps[0]} ms`);
  assert.ok(gaps.every(gap => gap <= 66_100));
  assert.ok((gaps.at(-1) ?? 0) >= 54_000);
});

test('one probe at a time', async () => {
  const { clock, look, looks } = circuit();
  for (let n = 0; n < 3; n++) await assert.rejects(look(down));
  clock.now = 10_000;
  const slow = Promise.withResolvers<string>();
  const probe = look(() => slow.promise);
  await assert.rejects(look(down), /connection refused/);
  assert.equal(looks(), 4);
  slow.resolve('there');
  assert.equal(await probe, 'there');
});

test('the first success ends it, and is told once', async () => {
  const { clock, look, looks, recoveries } = circuit();
  for (let n = 0; n < 3; n++) await assert.rejects(look(down));
  clock.now = 6_000;
  assert.equal(await look(async () => 'there'), 'there');
  assert.equal(await look(async () => 'there'), 'there');
  assert.deepEqual(recoveries, [6_000]);
  assert.equal(looks(), 5);
});

test('what the server says of a model, and a look that was given up, are no failures of the server', async () => {
  const { look, looks } = circuit();
  const unknown = async () => {
    throw modelNotFound('nope');
  };
  const left = AbortSignal.abort();
  for (let n = 0; n < 5; n++) await assert.rejects(look(unknown));
  for (let n = 0; n < 5; n++) await assert.rejects(look(down, left));
  assert.equal(looks(), 10);
});

test('a hint that the server is back lets the next look through', async () => {
  const { look, looks, guarded } = circuit();
  for (let n = 0; n < 4; n++) await assert.rejects(look(down));
  guarded.retry();
  await look(async () => 'there');
  assert.equal(looks(), 4);
});
