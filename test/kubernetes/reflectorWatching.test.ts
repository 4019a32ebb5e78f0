import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settled } from '../live/clock.ts';
import { bookmark, config, expired, gaps, minutes, modified, reflecting, reset, seconds } from './reflectorLab.ts';

test('a watch that breaks after a long life is resumed where it stood, and nobody hears of it', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  let told = 0;
  await listen(() => told++);
  await time.pass(30 * seconds);
  server.open[0]?.send(bookmark(40));
  await settled();
  server.open[0]?.fail(reset());
  await settled();
  await time.pass(500);
  assert.equal(server.open.length, 1);
  assert.equal(server.open[0]?.options.resourceVersion, '40');
  assert.equal(server.lists.length, 1);
  assert.equal(reflector.state.restarts, 1);
  assert.equal(told, 1);
});

test('chaos 3: a watch that is reset every second backs off, with at most a list every 5 s, and loses no last state', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  await listen();
  await time.pass(30 * seconds);
  let version = 100;
  for (let second = 0; second < 60; second++) {
    server.version = ++version;
    server.objects = [config('a', version)];
    for (const watch of server.open) watch.fail(reset());
    await time.passSlowly(1 * seconds);
  }
  assert.ok(server.watches.length <= 9, `${server.watches.length} watches`);
  for (const gap of gaps(server.lists)) assert.ok(gap >= 5 * seconds, `${gap} ms between two lists`);
  assert.equal(reflector.current?.error?.message, reset().message, 'what may be old says why');
  await time.passSlowly(31 * seconds);
  assert.equal(reflector.current?.value?.[0]?.metadata.resourceVersion, String(version));
  assert.equal(reflector.current?.error, undefined);
});

test('chaos 4, F7: a watch that has died in silence is noticed within 60 s, and what it missed is there', async t => {
  const { server, reflector, listen, time, names } = reflecting(t);
  await listen();
  await time.pass(20 * seconds);
  server.open[0]?.send(bookmark(20));
  await settled();
  // From here on the first watch is dead; a new one is told what has happened meanwhile.
  server.onWatch = watch => watch.send(modified(config('c', 31)));
  await time.passSlowly(60 * seconds);
  assert.deepEqual(names(), ['a', 'b', 'c']);
  assert.equal(reflector.state.restarts, 1);
  assert.equal(server.open.length, 1);
  assert.equal(server.watches[1]?.options.resourceVersion, '20');
  assert.equal(server.lists.length, 1, 'a watch is enough');
  assert.equal(reflector.current?.error, undefined);
});

test('chaos 4: a change after the silence began is noticed at once, while nobody knows yet that the watch is dead', async t => {
  const { server, listen, time, names, reflector } = reflecting(t);
  await listen();
  await time.passSlowly(50 * seconds);
  assert.equal(server.open.length, 2, 'one that is in doubt, and one beside it');
  server.watches[1]?.send(modified(config('c', 31)));
  await settled();
  assert.deepEqual(names(), ['a', 'b', 'c']);
  await time.passSlowly(1 * seconds);
  assert.equal(server.watches[0]?.isOpen, false);
  assert.equal(server.watches[1]?.isOpen, true);
  assert.equal(reflector.state.restarts, 1);
});

test('chaos 4: a dead watch on which nothing would have happened is replaced after 70 s', async t => {
  const { server, listen, time, reflector } = reflecting(t);
  await listen();
  await time.passSlowly(70 * seconds);
  assert.deepEqual(
    server.watches.map(({ isOpen }) => isOpen),
    [false, true],
  );
  assert.equal(reflector.state.restarts, 1);
  assert.equal(server.lists.length, 1);
});

test('chaos 4: when the second watch dies together with the first, a third is there within 60 s', async t => {
  const { server, listen, time, reflector } = reflecting(t);
  await listen();
  await time.passSlowly(41 * seconds);
  assert.equal(server.open.length, 2);
  // From here on both are dead.
  server.onWatch = watch => watch.send(modified(config('c', 31)));
  await time.passSlowly(60 * seconds);
  assert.equal(reflector.current?.value?.length, 3);
  assert.equal(reflector.state.restarts, 2);
  assert.equal(server.open.length, 1);
});

test('chaos 5: a server that forgets everything at once is listed with growing pauses', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  server.onWatch = watch => watch.fail(expired());
  await listen();
  await time.passSlowly(3 * minutes);
  assert.ok(server.lists.length >= 6 && server.lists.length <= 12, `${server.lists.length} lists`);
  for (const gap of gaps(server.lists)) assert.ok(gap >= 5 * seconds, `${gap} ms between two lists`);
  assert.ok((gaps(server.lists).at(-1) ?? 0) > 20 * seconds, 'they grow');
  assert.equal(reflector.current?.error?.message, expired().message, 'that it happens again and again is told');

  server.onWatch = () => {};
  await time.passSlowly(35 * seconds);
  assert.equal(reflector.current?.error, undefined);
  assert.equal(server.open.length, 1);
});

test('chaos 5: one 410 after a long life means a list at once, and no error', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  const errors: unknown[] = [];
  await listen(() => errors.push(reflector.current?.error));
  await time.pass(30 * seconds);
  server.objects = [config('z', 90)];
  server.open[0]?.fail(expired());
  await settled();
  assert.equal(server.lists.length, 2);
  assert.deepEqual(errors, [undefined, undefined]);
  assert.equal(reflector.current?.value?.length, 1);
});

test('chaos 7: an hour of bookmarks is no list, no restart and no second watch', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  let told = 0;
  await listen(() => told++);
  for (let minute = 1; minute <= 60; minute++) {
    await time.passSlowly(61 * seconds, 1 * seconds);
    const open = server.open.filter(({ isOpen }) => isOpen);
    open[0]?.send(bookmark(100 + minute));
    await settled();
    if (minute % 6 === 0) server.open[0]?.end();
    await settled();
    assert.equal(server.open.length, 1);
    assert.ok(Number(server.open[0]?.options.resourceVersion) <= 100 + minute);
  }
  assert.equal(server.lists.length, 1);
  assert.equal(reflector.state.restarts, 0);
  assert.equal(told, 1);
  assert.equal(server.watches.length, 1 + 10 + 60, 'its own eleven, and one a minute beside it');
});
