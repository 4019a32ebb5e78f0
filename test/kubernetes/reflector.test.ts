import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { callOf, settled } from '../live/clock.ts';
import { added, bookmark, config, deleted, minutes, modified, reflecting, refused, seconds } from './reflectorLab.ts';

test('nothing is asked for until somebody wants to know', async t => {
  const { server, reflector, time } = reflecting(t);
  await time.pass(10 * minutes);
  assert.equal(server.calls.length, 0);
  assert.equal(reflector.current, undefined);
  assert.equal(reflector.idle, true);
});

test('who listens gets a list, and then a watch from where it was made', async t => {
  const { server, reflector, listen, names } = reflecting(t);
  let told = 0;
  await listen(() => told++);
  assert.deepEqual(names(), ['a', 'b']);
  assert.equal(told, 1);
  assert.equal(server.lists.length, 1);
  assert.equal(server.watches.length, 1);
  const [watch] = server.watches;
  assert.equal(watch?.options.resourceVersion, '10');
  assert.equal(watch?.options.timeoutSeconds, 360);
  const { synced, watching, lists, restarts } = reflector.state;
  assert.deepEqual({ synced, watching, lists, restarts }, { synced: true, watching: true, lists: 1, restarts: 0 });
});

test('each change is a new list of objects, in which the others are what they were', async t => {
  const { server, reflector, listen, names } = reflecting(t);
  let told = 0;
  await listen(() => told++);
  const before = reflector.current;
  const [watch] = server.watches;

  watch?.send(added(config('aa', 11)));
  await settled();
  const after = reflector.current;
  assert.deepEqual(names(), ['a', 'aa', 'b'], 'sorted');
  assert.equal(after?.value?.[0], before?.value?.[0]);
  assert.equal(after?.value?.[2], before?.value?.[1]);
  assert.ok((after?.revision ?? 0) > (before?.revision ?? 0));

  watch?.send(modified(config('b', 12)));
  await settled();
  assert.equal(reflector.current?.value?.[2]?.metadata.resourceVersion, '12');
  assert.equal(reflector.current?.value?.[1], after?.value?.[1]);

  watch?.send(deleted(config('a', 13)));
  await settled();
  assert.deepEqual(names(), ['aa', 'b']);
  assert.equal(told, 4, 'once for the list and once for each change');
});

test('objects are sorted by namespace and then by name', async t => {
  const { server, listen, reflector } = reflecting(t);
  server.objects = [config('b', 1, 'u1', 'z'), config('c', 2, 'u2', 'a'), config('a', 3, 'u3', 'z')];
  await listen();
  server.watches[0]?.send(added(config('b', 11, 'u4', 'a')));
  await settled();
  const places = reflector.current?.value?.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  assert.deepEqual(places, ['a/b', 'a/c', 'z/a', 'z/b']);
});

test('a bookmark is no change, but confirms what is known', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  let told = 0;
  await listen(() => told++);
  const before = reflector.current;
  await time.pass(30 * seconds);
  server.watches[0]?.send(bookmark(50));
  await settled();
  const after = reflector.current;
  assert.equal(after?.value, before?.value);
  assert.equal(after?.revision, before?.revision);
  assert.equal((after?.observedAt.getTime() ?? 0) - (before?.observedAt.getTime() ?? 0), 30 * seconds);
  assert.equal(told, 1);
});

test('an event that was seen already changes nothing', async t => {
  const { server, reflector, listen } = reflecting(t);
  await listen();
  const [watch] = server.watches;
  watch?.send(modified(config('a', 11)), deleted(config('a', 12)));
  await settled();
  const before = reflector.current;
  watch?.send(modified(config('a', 11)));
  await settled();
  assert.equal(reflector.current?.value, before?.value, 'what is gone is not back');
});

test('a watch that ends after its time is resumed at once, from the last bookmark', async t => {
  const { server, listen, reflector, time } = reflecting(t);
  await listen();
  for (let minute = 0; minute < 6; minute++) {
    await time.pass(59 * seconds);
    server.open[0]?.send(bookmark(20 + minute));
    await settled();
  }
  server.open[0]?.end();
  await settled();
  assert.equal(server.open.length, 1);
  assert.equal(server.open[0]?.options.resourceVersion, '25');
  assert.equal(server.lists.length, 1);
  assert.equal(reflector.state.restarts, 0, 'that is how watches end');
  assert.equal(reflector.current?.error, undefined);
});

test('watches that end too soon are begun ever more slowly', async t => {
  const { server, listen, time } = reflecting(t);
  server.onWatch = watch => watch.end();
  await listen();
  await time.passSlowly(60 * seconds);
  assert.ok(server.watches.length >= 5 && server.watches.length <= 8, `${server.watches.length} watches`);
  assert.equal(server.lists.length, 1);
});

test('a read starts it and has the first list', async t => {
  const { reflector, server } = reflecting(t);
  const seen = await reflector.read(callOf());
  assert.equal(seen.value?.length, 2);
  assert.equal(seen.error, undefined);
  assert.equal(server.lists.length, 1);
});

test('readers at the same time share one list, and later ones cost nothing', async t => {
  const { reflector, server, time } = reflecting(t);
  await Promise.all([reflector.read(callOf()), reflector.read(callOf()), reflector.read(callOf())]);
  for (let reads = 0; reads < 20; reads++) {
    await time.pass(29 * seconds);
    server.open[0]?.send(bookmark(20 + reads));
    await settled();
    await reflector.read(callOf());
  }
  assert.equal(server.lists.length, 1);
  assert.equal(server.watches.length, 1);
});

test('30 s after the last read nothing runs any more', async t => {
  const { reflector, server, time } = reflecting(t);
  await reflector.read(callOf());
  await time.pass(29 * seconds);
  assert.equal(server.open.length, 1);
  await time.pass(1 * seconds);
  assert.equal(server.open.length, 0);
  assert.equal(reflector.state.synced, false);
  assert.equal(reflector.idle, true);
  const requests = server.calls.length;
  await time.passSlowly(10 * minutes, 10 * seconds);
  assert.equal(server.calls.length, requests);
});

test('a reader who waits long keeps it running, one who left does so for 30 s', async t => {
  const { reflector, server, time } = reflecting(t);
  const listing = Promise.withResolvers<void>();
  server.onList = () => listing.promise;
  const patient = reflector.read(callOf());
  const leaver = new AbortController();
  const left = assert.rejects(reflector.read(callOf(leaver.signal)));
  leaver.abort();
  await left;
  await time.pass(2 * minutes);
  listing.resolve();
  assert.equal((await patient).value?.length, 2);
  await time.pass(30 * seconds);
  assert.equal(server.open.length, 0);
});

test('the last listener who leaves stops it at once, unless somebody has just read', async t => {
  const { reflector, server, time } = reflecting(t);
  const leave = reflector.subscribe(() => {});
  await settled();
  leave();
  assert.equal(server.open.length, 0);

  const again = reflector.subscribe(() => {});
  await reflector.read(callOf());
  again();
  assert.equal(server.open.length, 1);
  await time.pass(30 * seconds);
  assert.equal(server.open.length, 0);
});

test('stopped while it lists, it lists and watches no more and tells nobody', async t => {
  const { reflector, server, time } = reflecting(t);
  const listing = Promise.withResolvers<void>();
  server.onList = () => listing.promise;
  let told = 0;
  const leave = reflector.subscribe(() => told++);
  await settled();
  leave();
  listing.resolve();
  await time.passSlowly(5 * minutes, 5 * seconds);
  assert.deepEqual([server.lists.length, server.watches.length, told], [1, 0, 0]);
  assert.equal(server.calls[0]?.signal.aborted, true);
  assert.equal(reflector.current?.revision, undefined);
});

test('stopped while it asks for the version of the resource, it lists no more', async t => {
  const locating = Promise.withResolvers<typeof configMaps>();
  const { reflector, server, time } = reflecting(t, {
    resource: { name: 'configmaps', locate: () => locating.promise },
  });
  const leave = reflector.subscribe(() => {});
  leave();
  locating.resolve(configMaps);
  await time.passSlowly(5 * minutes, 5 * seconds);
  assert.equal(server.calls.length, 0);
});

test('who comes while it stops is served', async t => {
  const { reflector, server } = reflecting(t);
  const listing = Promise.withResolvers<void>();
  server.onList = () => listing.promise;
  const leave = reflector.subscribe(() => {});
  await settled();
  leave();
  server.onList = () => {};
  let told = 0;
  t.after(reflector.subscribe(() => told++));
  await settled();
  listing.resolve();
  await settled();
  assert.deepEqual([server.lists.length, server.watches.length, told], [2, 1, 1]);
  assert.equal(reflector.state.watching, true);
});

test('stopped while it watches, it hears nothing more, whatever the server sends', async t => {
  const { reflector, server, time } = reflecting(t);
  let told = 0;
  const leave = reflector.subscribe(() => told++);
  await settled();
  const [watch] = server.watches;
  watch?.send(modified(config('a', 11)));
  leave();
  watch?.send(modified(config('a', 12)));
  await time.passSlowly(5 * minutes, 5 * seconds);
  assert.equal(told, 1);
  assert.equal(reflector.current?.value?.[0]?.metadata.resourceVersion, '1');
  assert.equal(server.calls.length, 2);
});

test('stopped while it waits to try again, it does not', async t => {
  const { reflector, server, time } = reflecting(t);
  server.onList = () => {
    throw refused();
  };
  const leave = reflector.subscribe(() => {});
  await time.pass(0);
  leave();
  await time.passSlowly(5 * minutes, 5 * seconds);
  assert.equal(server.lists.length, 1);
});

test('stopped by the one it tells, in the middle of things', async t => {
  const { reflector, server, time } = reflecting(t);
  let leave = () => {};
  leave = reflector.subscribe(() => leave());
  await settled();
  assert.equal(server.watches.length, 0);
  leave = reflector.subscribe(() => server.watches.length > 0 && leave());
  await settled();
  server.watches[0]?.send(modified(config('a', 11)), modified(config('a', 12)));
  await time.passSlowly(5 * minutes, 5 * seconds);
  assert.equal(reflector.current?.value?.[0]?.metadata.resourceVersion, '11');
  assert.equal(server.open.length, 0);
  assert.equal(server.calls.length, 3);
});

test('begun anew, it shows nothing of before until it has looked', async t => {
  const { reflector, server } = reflecting(t);
  reflector.subscribe(() => {})();
  let leave = reflector.subscribe(() => {});
  await settled();
  const before = reflector.current;
  leave();
  let told = 0;
  leave = reflector.subscribe(() => told++);
  assert.equal(reflector.current?.revision, undefined);
  await settled();
  assert.equal(told, 1);
  assert.equal(reflector.current?.value, before?.value, 'nothing has changed');
  assert.equal(reflector.current?.revision, before?.revision);
  leave();
  server.objects = [config('b', 2)];
  t.after(reflector.subscribe(() => {}));
  await settled();
  assert.ok((reflector.current?.revision ?? 0) > (before?.revision ?? 0));
  assert.equal(reflector.current?.value?.[0], before?.value?.[1]);
});

test('who wrote waits until the write shows, a second at most', async t => {
  const { reflector, server, listen, time } = reflecting(t);
  const { signal } = new AbortController();
  await reflector.seen(config('a', 99), signal);
  await listen();
  await reflector.seen(config('a', 1), signal);

  let seen = false;
  const wait = reflector.seen(config('a', 12), signal).then(() => {
    seen = true;
  });
  server.watches[0]?.send(modified(config('a', 11)));
  await settled();
  assert.equal(seen, false, 'an older one is not it');
  server.watches[0]?.send(modified(config('a', 13)));
  await wait;

  let gone = false;
  const waitGone = reflector.gone(config('a', 13), signal).then(() => {
    gone = true;
  });
  await settled();
  assert.equal(gone, false);
  server.watches[0]?.send(deleted(config('a', 14)));
  await waitGone;

  const late = reflector.seen(config('a', 99), signal);
  await time.pass(1 * seconds);
  await late;
});

test('who wrote and left waits no longer', async t => {
  const { reflector, listen } = reflecting(t);
  await listen();
  const leaver = new AbortController();
  const wait = reflector.seen(config('a', 99), leaver.signal);
  leaver.abort();
  await assert.rejects(wait);
});
