import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWriter } from '../../src/jobs/kubernetes/writer.ts';
import { mockTime, settled } from '../live/clock.ts';

/** A writer whose writes end when the test says so, at most every 3 s, and every 5 s after a failure. */
function writing() {
  const writes: { readonly value: number; readonly end: PromiseWithResolvers<void> }[] = [];
  const failures: unknown[] = [];
  const writer = createWriter<number>({
    write(value) {
      const end = Promise.withResolvers<void>();
      writes.push({ value, end });
      return end.promise;
    },
    onFailure: error => failures.push(error),
    intervalMs: 3_000,
    retryMs: 5_000,
  });
  const values = () => writes.map(({ value }) => value);
  const end = async () => {
    writes.at(-1)?.end.resolve();
    await settled();
  };
  return { writer, writes, failures, values, end };
}

test('one is written at a time, then the newest, when its time has come', async t => {
  const time = mockTime(t);
  const { writer, values, end } = writing();
  writer.put(1, false);
  writer.put(2, false);
  writer.put(3, false);
  assert.deepEqual(values(), [1]);
  await end();
  await time.pass(2_999);
  assert.deepEqual(values(), [1]);
  await time.pass(1);
  assert.deepEqual(values(), [1, 3]);
  await end();
  await time.pass(1_000);
  writer.put(4, false);
  await time.pass(1_999);
  assert.deepEqual(values(), [1, 3]);
  await time.pass(1);
  assert.deepEqual(values(), [1, 3, 4]);
  await end();
  await time.pass(10_000);
  writer.put(5, false);
  assert.deepEqual(values(), [1, 3, 4, 5], 'what comes after a pause need not wait');
});

test('what is urgent waits for what is being written, and for nothing else', async t => {
  mockTime(t);
  const { writer, values, end } = writing();
  writer.put(1, true);
  writer.put(2, true);
  assert.deepEqual(values(), [1]);
  await end();
  assert.deepEqual(values(), [1, 2]);
  await end();
  writer.put(3, false);
  assert.deepEqual(values(), [1, 2]);
  writer.put(4, true);
  await settled();
  assert.deepEqual(values(), [1, 2, 4]);
});

test('what fails is told, and the newest is tried again', async t => {
  const time = mockTime(t);
  const { writer, writes, failures, values, end } = writing();
  writer.put(1, true);
  writes[0]?.end.reject(new Error('no'));
  await settled();
  assert.deepEqual(failures.map(String), ['Error: no']);
  await time.pass(4_999);
  assert.deepEqual(values(), [1]);
  await time.pass(1);
  assert.deepEqual(values(), [1, 1]);
  writer.put(2, false);
  writes[1]?.end.reject(new Error('no'));
  await settled();
  await time.pass(5_000);
  assert.deepEqual(values(), [1, 1, 2]);
  await end();
});

test('it is settled when the newest is written', async t => {
  mockTime(t);
  const { writer, values, end } = writing();
  await writer.settled();
  writer.put(1, false);
  writer.put(2, false);
  let isSettled = false;
  const done = writer.settled().then(() => {
    isSettled = true;
  });
  await end();
  assert.deepEqual([values(), isSettled], [[1, 2], false]);
  await end();
  await done;
});

test('what has ended writes nothing more', async t => {
  const time = mockTime(t);
  const { writer, values, end } = writing();
  writer.put(1, false);
  writer.put(2, false);
  writer.end();
  await end();
  await time.pass(10_000);
  writer.put(3, true);
  await writer.settled();
  assert.deepEqual(values(), [1]);
});
