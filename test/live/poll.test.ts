import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../src/call.ts';
import { createCall } from '../../src/call.ts';
import { backendError } from '../../src/errors.ts';
import { type PollOptions, poll } from '../../src/live/poll.ts';
import { keepValue } from '../../src/live/rows.ts';
import { watch } from '../../src/live/watch.ts';
import { silent } from '../support/gateway.ts';
import { callOf, mockTime, settled, start } from './clock.ts';

interface World {
  load: number;
}

/** One look that is under way: the test answers it. */
interface PendingLook extends PromiseWithResolvers<World> {
  readonly call: Call;
}

/** A polled source whose looks wait for the test. */
function polled(t: TestContext, options: Partial<PollOptions<World>> = {}) {
  const time = mockTime(t);
  const looks: PendingLook[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  const source = poll<World>({
    callFor: signal => createCall({ log: silent, signal }),
    merge: keepValue,
    look(call) {
      const pending = { call, ...Promise.withResolvers<World>() };
      looks.push(pending);
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      const leave = () => pending.reject(call.signal.reason);
      call.signal.addEventListener('abort', leave, { once: true });
      return pending.promise.finally(() => atOnce--);
    },
    ...options,
  });
  return {
    source,
    time,
    looks,
    get mostAtOnce() {
      return mostAtOnce;
    },
    /** Answers the newest look. */
    async answer(world: World) {
      looks.at(-1)?.resolve(world);
      await settled();
    },
    async fail(error: unknown) {
      looks.at(-1)?.reject(error);
      await settled();
    },
  };
}

test('readers at the same time share one look', async t => {
  const { source, looks, answer } = polled(t);
  const reads = [source.read(callOf()), source.read(callOf()), source.read(callOf())];
  await answer({ load: 1 });
  const seen = await Promise.all(reads);
  assert.equal(looks.length, 1);
  for (const observation of seen) assert.deepEqual(observation.value, { load: 1 });
});

test('what was seen less than a second ago is not looked at again', async t => {
  const { source, looks, time, answer } = polled(t);
  const first = source.read(callOf());
  await answer({ load: 1 });
  await time.pass(999);
  assert.equal(await source.read(callOf()), await first);
  assert.equal(looks.length, 1);

  await time.pass(1);
  const second = source.read(callOf());
  assert.equal(looks.length, 2);
  await answer({ load: 1 });
  const { revision, observedAt, value } = await second;
  assert.equal(revision, (await first).revision, 'nothing changed');
  assert.equal(value, (await first).value, 'an equal state keeps its identity');
  assert.equal(observedAt.getTime(), start + 1_000, 'it was confirmed a second later');
});

test('a clock that is set back makes nothing fresh again', async t => {
  let skew = 0;
  const { source, looks, answer } = polled(t, { now: () => start + skew });
  void source.read(callOf());
  await answer({ load: 1 });
  skew = -3_600_000;
  void source.read(callOf());
  assert.equal(looks.length, 2);
});

test('a change gives a higher revision, an hour back on the clock too', async t => {
  let skew = 0;
  const { source, answer } = polled(t, { now: () => start + skew });
  const first = source.read(callOf());
  await answer({ load: 1 });
  skew = -3_600_000;
  const second = source.read(callOf());
  await answer({ load: 2 });
  assert.ok((await second).revision > (await first).revision);
});

test('after an invalidation during a look the next reader gets a new one', async t => {
  const { source, looks, answer } = polled(t);
  const before = source.read(callOf());
  source.invalidate();
  const after = source.read(callOf());
  assert.equal(looks.length, 1, 'never two looks at once');
  await answer({ load: 1 });
  assert.deepEqual((await before).value, { load: 1 }, 'who asked before takes what was seen');
  assert.equal(looks.length, 2);
  await answer({ load: 2 });
  assert.deepEqual((await after).value, { load: 2 });
  assert.equal(looks.length, 2);
});

test('an invalidation makes a standing watch look at once', async t => {
  const { source, looks, time, answer } = polled(t);
  t.after(source.subscribe(() => {}));
  await answer({ load: 1 });
  source.invalidate();
  await time.pass(0);
  assert.equal(looks.length, 2);
});

test('the last reader who leaves ends the look', async t => {
  const { source, looks } = polled(t);
  const [one, other] = [new AbortController(), new AbortController()];
  const reads = [source.read(callOf(one.signal)), source.read(callOf(other.signal))].map(read => assert.rejects(read));
  one.abort();
  await settled();
  assert.equal(looks[0]?.call.signal.aborted, false, 'somebody still waits');
  other.abort();
  await settled();
  assert.equal(looks[0]?.call.signal.aborted, true);
  await Promise.all(reads);
  assert.equal(source.current, undefined, 'nothing was learnt, not even a failure');
});

test('a reader who leaves does not end the look of those who watch', async t => {
  const { source, looks, answer } = polled(t);
  t.after(source.subscribe(() => {}));
  const leaver = new AbortController();
  const read = assert.rejects(source.read(callOf(leaver.signal)));
  leaver.abort();
  await read;
  assert.equal(looks[0]?.call.signal.aborted, false);
  await answer({ load: 1 });
  assert.deepEqual(source.current?.value, { load: 1 });
});

test('who comes while a look is being given up gets a look of their own', async t => {
  const { source, looks, answer } = polled(t);
  source.subscribe(() => {})();
  assert.equal(looks[0]?.call.signal.aborted, true);
  let told = 0;
  t.after(source.subscribe(() => told++));
  await settled();
  assert.equal(looks.length, 2, 'at once, not at the next interval');
  await answer({ load: 1 });
  assert.equal(told, 1);
});

test('the last reader leaves while another comes: the other is served', async t => {
  for (let turns = 0; turns < 10; turns++) {
    const { source, answer } = polled(t);
    const leaver = new AbortController();
    const left = assert.rejects(source.read(callOf(leaver.signal)));
    leaver.abort();
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    const read = source.read(callOf());
    await left;
    await settled();
    await answer({ load: turns });
    assert.deepEqual((await read).value, { load: turns });
    t.mock.timers.reset();
  }
});

test('nobody watches: nothing is looked at, however long', async t => {
  const { source, looks, time, answer } = polled(t);
  void source.read(callOf());
  await answer({ load: 1 });
  await time.pass(3_600_000);
  assert.equal(looks.length, 1);

  const leave = source.subscribe(() => {});
  await answer({ load: 1 });
  leave();
  await time.pass(3_600_000);
  assert.equal(looks.length, 2);
});

test('watched and quiet, a look every 30 s', async t => {
  const { source, looks, time, answer } = polled(t);
  t.after(source.subscribe(() => {}));
  t.after(source.subscribe(() => {}));
  await answer({ load: 0 });
  for (let round = 2; round <= 5; round++) {
    await time.pass(28_499); // a tenth of jitter around 30 s
    assert.equal(looks.length, round - 1);
    await time.pass(3_002);
    assert.equal(looks.length, round);
    await answer({ load: 0 });
  }
});

test('after a change a look every 2 s, for 30 s', async t => {
  const { source, looks, time, answer } = polled(t);
  t.after(source.subscribe(() => {}));
  await answer({ load: 0 });
  await time.pass(31_500);
  await answer({ load: 1 });
  const begin = Date.now();
  const times: number[] = [];
  while (Date.now() < begin + 63_000) {
    const before = looks.length;
    await time.pass(100);
    if (looks.length === before) continue;
    times.push(Date.now() - begin);
    await answer({ load: 1 });
  }
  const pauses = times.map((time, index) => time - (times[index - 1] ?? 0));
  assert.ok(times.length >= 15 && times.length <= 18, `${times.length} looks in a minute`);
  for (const pause of pauses.slice(0, -1)) assert.ok(pause >= 1_900 && pause <= 2_200, `a pause of ${pause} ms`);
  assert.ok((pauses.at(-1) as number) > 28_000, 'slow again');
});

test('what moves by itself is looked at when it is due, but not more often than every 2 s', async t => {
  const { source, looks, time, answer } = polled(t, { movesIn: ({ load }) => load });
  t.after(source.subscribe(() => {}));
  await answer({ load: 10_000 });
  await time.pass(9_499);
  assert.equal(looks.length, 1);
  await time.pass(1_002);
  assert.equal(looks.length, 2);
  await answer({ load: 10 });
  await time.pass(1_899);
  assert.equal(looks.length, 2);
  await time.pass(202);
  assert.equal(looks.length, 3);
});

test('a look that takes longer than the pace is waited for', async t => {
  const watched = polled(t);
  const { source, looks, time } = watched;
  t.after(source.subscribe(() => {}));
  for (let minute = 0; minute < 10; minute++) {
    await time.pass(60_000);
    source.invalidate();
    void source.read(callOf());
  }
  assert.equal(looks.length, 1);
  assert.equal(watched.mostAtOnce, 1);
});

test('a failure keeps the last value, its identity, and when it was seen', async t => {
  const { source, time, answer, fail } = polled(t);
  const first = source.read(callOf());
  await answer({ load: 1 });
  const { value, observedAt, revision } = await first;
  await time.pass(5_000);
  const second = source.read(callOf());
  await fail(backendError('it hangs'));
  const failed = await second;
  assert.equal(failed.value, value);
  assert.equal(failed.observedAt, observedAt);
  assert.equal(failed.error?.message, 'it hangs');
  assert.ok(failed.revision > revision, 'that it fails is news');

  await time.pass(5_000);
  const third = source.read(callOf());
  await fail(backendError('it hangs'));
  assert.equal((await third).revision, failed.revision, 'that it still fails is none');
  assert.equal((await third).error, failed.error);
  await time.pass(5_000);
  const fourth = source.read(callOf());
  await answer({ load: 1 });
  assert.equal((await fourth).value, value, 'and it is the same as ever when it works again');
  assert.equal((await fourth).error, undefined);
  assert.ok((await fourth).revision > failed.revision);
});

test('a first look that fails is an observation, not a rejection', async t => {
  const { source, fail } = polled(t);
  const read = source.read(callOf());
  await fail(backendError('it hangs'));
  const { value, error } = await read;
  assert.equal(value, undefined);
  assert.equal(error?.message, 'it hangs');
});

test('what nobody expected of a look is kept from clients, and is news once', async t => {
  const { source, time, fail } = polled(t);
  const bug = new TypeError('a bug at /srv/app/secret.ts');
  const first = source.read(callOf());
  await fail(bug);
  const { error, revision } = await first;
  assert.equal(error?.code, 'internal_error');
  assert.doesNotMatch(error?.message ?? '', /secret/);
  assert.equal(error?.cause, bug);
  await time.pass(5_000);
  const second = source.read(callOf());
  await fail(bug);
  assert.equal((await second).revision, revision);
});

test('listeners hear of changes only', async t => {
  const { source, time, answer } = polled(t);
  let told = 0;
  t.after(source.subscribe(() => told++));
  await answer({ load: 1 });
  assert.equal(told, 1);
  await time.pass(31_500);
  await answer({ load: 1 });
  assert.equal(told, 1);
  await time.pass(31_500);
  await answer({ load: 2 });
  assert.equal(told, 2);
});

test('a watch begins with what is known and goes on with what is seen', async t => {
  const { source, time, answer } = polled(t);
  void source.read(callOf());
  await answer({ load: 1 });
  await time.pass(60_000);
  const states = watch(source);
  assert.deepEqual((await states.next()).value?.value, { load: 1 });
  const next = states.next();
  await answer({ load: 2 });
  assert.deepEqual((await next).value?.value, { load: 2 });
  await states.return();
});

test('a failure that is excused is none: the last value stands, nobody is told, and it is left alone for 5 s', async t => {
  const { source, looks, time, answer, fail } = polled(t, { excuses: error => error.message === 'busy' });
  let told = 0;
  const first = source.read(callOf());
  await answer({ load: 1 });
  const { value, revision, observedAt } = await first;
  t.after(source.subscribe(() => told++));
  await time.pass(31_500);
  await fail(backendError('busy'));
  const seen = source.current;
  assert.deepEqual(
    [seen?.value, seen?.revision, seen?.observedAt, seen?.error],
    [value, revision, observedAt, undefined],
  );
  assert.equal(seen?.busy?.message, 'busy');
  assert.equal(told, 0);
  await time.pass(4_999);
  await source.read(callOf());
  assert.equal(looks.length, 2);
  await time.pass(1);
  const next = source.read(callOf());
  await answer({ load: 1 });
  assert.equal((await next).busy, undefined);
  assert.equal((await next).revision, revision);
});

test('another pace is kept when one is given', async t => {
  const { source, looks, time, answer } = polled(t, { activeMs: 500, movesIn: () => 1 });
  t.after(source.subscribe(() => {}));
  await answer({ load: 0 });
  for (let round = 2; round <= 4; round++) {
    await time.pass(474);
    assert.equal(looks.length, round - 1);
    await time.pass(52);
    assert.equal(looks.length, round);
    await answer({ load: 0 });
  }
});
