import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { type ConfigMap, configMaps, type Resource } from '../../src/kubernetes/resource.ts';
import { callOf, settled } from '../live/clock.ts';
import {
  config,
  expired,
  forbidden,
  logLines,
  minutes,
  modified,
  putOff,
  reflecting,
  refused,
  reset,
  seconds,
} from './reflectorLab.ts';

test('chaos 6: a server that asks for 7 s has them, whoever reads, listens or comes back', async t => {
  const { server, reflector, time } = reflecting(t);
  server.onList = () => {
    throw putOff(7 * seconds);
  };
  const leave = reflector.subscribe(() => {});
  await settled();
  for (let tenth = 0; tenth < 69; tenth++) {
    if (tenth === 20) leave();
    if (tenth > 20) reflector.subscribe(() => {})();
    const { error } = await reflector.read(callOf());
    assert.equal(error?.code, 'rate_limited');
    await time.pass(100);
  }
  assert.equal(server.lists.length, 1);
  server.onList = () => {};
  await time.passSlowly(1 * seconds);
  assert.equal(server.lists.length, 2);
  assert.equal(reflector.current?.error, undefined);
});

test('chaos 6: nor is it forgotten while it has to wait', async t => {
  const { server, reflector, time } = reflecting(t);
  server.onList = () => {
    throw putOff(7 * seconds);
  };
  const leave = reflector.subscribe(() => {});
  await settled();
  leave();
  assert.equal(reflector.idle, false);
  await time.pass(8 * seconds);
  assert.equal(reflector.idle, true);
});

test('chaos 6: an error in the middle of a watch may ask for time, too', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  await listen();
  await time.pass(30 * seconds);
  server.open[0]?.fail(putOff(7 * seconds));
  await settled();
  assert.equal(reflector.current?.error?.code, 'rate_limited');
  await time.passSlowly(6.9 * seconds);
  assert.equal(server.calls.length, 2);
  await time.passSlowly(4 * seconds);
  assert.equal(server.open.length, 1);
  assert.equal(reflector.current?.error, undefined);
});

test('chaos 8: what was deleted while nobody could see it is gone after the list', async t => {
  const { server, reflector, listen, time, names } = reflecting(t);
  await listen();
  const kept = reflector.current?.value?.[1];
  await time.pass(30 * seconds);
  server.objects = [config('b', 2)];
  server.open[0]?.fail(expired());
  await settled();
  assert.deepEqual(names(), ['b']);
  assert.equal(reflector.current?.value?.[0], kept, 'the other is what it was');
});

test('chaos 9: what was made anew under its name is another object', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  await listen();
  const before = reflector.current?.value?.[0];
  await time.pass(30 * seconds);
  // Even if it had the version of the old one.
  server.objects = [config('a', 1, 'another'), config('b', 2)];
  server.open[0]?.fail(expired());
  await settled();
  const after = reflector.current?.value?.[0];
  assert.notEqual(after, before);
  assert.equal(after?.metadata.uid, 'another');
});

test('chaos 10: objects of which nothing can be made cost their own rows, and one line of the log', async t => {
  const { log, lines } = logLines();
  const { server, reflector, listen, names } = reflecting(t, { log });
  const malformed = [null, 7, 'text', {}, { metadata: null }, { metadata: { name: 5 } }, { metadata: { name: '' } }];
  server.objects = [...malformed, config('b', 2), config('a', 1)] as ConfigMap[];
  await listen();
  assert.deepEqual(names(), ['a', 'b']);
  server.open[0]?.send(modified({} as ConfigMap), modified(config('c', 11)));
  await settled();
  assert.deepEqual(names(), ['a', 'b', 'c']);
  assert.equal(reflector.state.malformed, malformed.length + 1);
  assert.equal(reflector.current?.error, undefined);
  assert.deepEqual(
    lines.map(({ level, resource, namespace }) => ({ level, resource, namespace })),
    [{ level: 'warn', resource: 'configmaps', namespace: 'kagent' }],
  );
});

test('chaos 10: a namespace that is none disturbs no order', async t => {
  const { server, reflector, listen, names } = reflecting(t);
  const strange = (name: string, namespace: unknown) => config(name, 1, `uid-${name}`, namespace as string);
  server.objects = [config('b', 2), strange('x', 7), config('a', 1), strange('y', {}), config('c', 3)];
  await listen();
  const before = names();
  server.open[0]?.send(modified(strange('x', 7)), modified(config('b', 12)), modified(config('a', 13)));
  await settled();
  assert.deepEqual(names(), before);
  assert.equal(reflector.current?.value?.length, 5);
});

test('chaos 11: a listener that throws is counted and logged, and the others are told', async t => {
  const { log, lines } = logLines();
  const { server, reflector, listen } = reflecting(t, { log });
  let told = 0;
  await listen(() => {
    throw new Error('a bug');
  });
  await listen(() => told++);
  server.open[0]?.send(modified(config('a', 11)));
  await settled();
  server.open[0]?.send(modified(config('a', 12)));
  await settled();
  assert.equal(told, 2);
  assert.equal(reflector.state.listenerErrors, 3);
  assert.equal(lines.filter(({ level }) => level === 'error').length, 3);
  assert.equal(server.lists.length, 1);
});

test('chaos 12: a resource that is removed is not installed; one that returns is found, in its new version', async t => {
  const v2: Resource<ConfigMap> = { ...configMaps, version: 'v2' };
  let served: Resource<ConfigMap> | undefined = configMaps;
  const located: (string | undefined)[] = [];
  const { server, reflector, listen, time } = reflecting(t, {
    resource: {
      name: 'configmaps',
      async locate() {
        located.push(served?.version);
        if (!served) throw new GatewayError('not_found', 'no such group');
        return served;
      },
    },
  });
  await listen();
  const before = reflector.current?.value;
  await time.pass(30 * seconds);
  server.onList = server.onWatch = () => {
    throw new GatewayError('not_found', '404 page not found');
  };
  server.open[0]?.fail(new GatewayError('not_found', '404 page not found'));
  await settled();
  assert.equal(
    reflector.current?.error?.message,
    'configmaps are not installed in the cluster; once they are, they show within 30 s',
  );
  assert.equal(reflector.current?.error?.details, undefined);
  assert.equal(reflector.current?.value, before, 'what was last seen stands beside it');
  served = undefined;
  await time.passSlowly(2 * minutes);
  assert.equal(reflector.current?.error?.message, 'no such group');
  assert.ok(located.length < 12, `${located.length} looks in two minutes`);

  served = v2;
  server.objects = server.objects.map(object => ({ ...object, apiVersion: 'v2' }));
  server.onList = server.onWatch = () => {};
  await time.passSlowly(30 * seconds);
  assert.equal(reflector.current?.error, undefined);
  assert.equal(server.resources.at(-1)?.version, 'v2');
  assert.equal(reflector.current?.value?.[0]?.apiVersion, 'v2', 'what reads differently is not what it was');
});

test('chaos 13: without the right to list it says so, and recovers within 30 s of its return', async t => {
  const { log, lines } = logLines();
  const { server, reflector, listen, time } = reflecting(t, { log });
  server.onList = () => {
    throw forbidden('list');
  };
  await listen();
  await time.passSlowly(3 * minutes);
  assert.equal(reflector.current?.error?.message, forbidden('list').message);
  assert.deepEqual(reflector.current?.value ?? 'none', 'none');
  assert.ok(server.lists.length < 14, `${server.lists.length} lists`);
  server.onList = () => {};
  await time.passSlowly(30 * seconds);
  assert.equal(reflector.current?.error, undefined);
  assert.equal(reflector.current?.value?.length, 2);
  assert.deepEqual(
    lines.map(({ level, msg }) => `${level} ${msg}`),
    ['warn cannot list configmaps', 'info configmaps can be seen again'],
    'one line when it begins, and one when it ends',
  );
});

test('chaos 13: without the right to watch it lists from time to time, and the error stands', async t => {
  const { log, lines } = logLines();
  const { server, reflector, listen, time } = reflecting(t, { log });
  server.onWatch = watch => watch.fail(forbidden('watch'));
  const messages: (string | undefined)[] = [];
  await listen(() => messages.push(reflector.current?.error?.message));
  server.objects = [config('c', 20)];
  await time.passSlowly(3 * minutes);
  assert.deepEqual(reflector.current?.value?.[0], config('c', 20), 'what lists say is shown');
  assert.deepEqual(new Set(messages.slice(1)), new Set([forbidden('watch').message]), 'it does not flap');
  assert.equal(lines.length, 1);
  server.onWatch = () => {};
  await time.passSlowly(33 * seconds);
  assert.equal(reflector.current?.error, undefined);
});

test('F8: refused for 20 s, it asks at most 12 times, and then there is one list and one watch', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  await listen();
  await time.pass(30 * seconds);
  const requests = () => server.lists.length + server.watches.length;
  const before = requests();
  server.onList = () => {
    throw refused();
  };
  server.onWatch = watch => watch.fail(refused());
  for (const watch of server.open) watch.fail(reset());
  await time.passSlowly(20 * seconds);
  assert.ok(requests() - before <= 12, `${requests() - before} requests`);
  assert.equal(reflector.current?.error?.message, refused().message);
  assert.equal(reflector.current?.value?.length, 2);

  server.onList = () => {};
  server.onWatch = () => {};
  const [lists, watches] = [server.lists.length, server.watches.length];
  await time.passSlowly(30 * seconds);
  assert.deepEqual([server.lists.length - lists, server.watches.length - watches], [1, 1]);
  assert.equal(reflector.current?.error, undefined);
});

test('while it fails, a reader makes it try again, but not every reader', async t => {
  const { server, reflector, time } = reflecting(t);
  server.onList = () => {
    throw refused();
  };
  for (let tenth = 0; tenth < 100; tenth++) {
    const { error } = await reflector.read(callOf());
    assert.equal(error?.code, 'unavailable');
    await time.pass(100);
  }
  assert.ok(server.lists.length >= 9 && server.lists.length <= 13, `${server.lists.length} lists in 10 s`);
  server.onList = () => {};
  await time.pass(1 * seconds);
  assert.equal((await reflector.read(callOf())).error, undefined);
});

test('after a watch that lived long, pauses begin anew', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  server.onList = () => {
    throw refused();
  };
  await listen();
  await time.passSlowly(2 * minutes);
  server.onList = () => {};
  await time.passSlowly(60 * seconds);
  assert.equal(reflector.current?.error, undefined);
  server.open[0]?.fail(reset());
  await settled();
  assert.equal(server.open.length, 0);
  await time.pass(500);
  assert.equal(server.open.length, 1);
});

test('a reader waits for the attempt that is under way, and has its outcome', async t => {
  const { server, reflector, time } = reflecting(t);
  server.onList = () => {
    throw refused();
  };
  await reflector.read(callOf());
  const listing = Promise.withResolvers<void>();
  server.onList = () => listing.promise;
  await time.passSlowly(2 * seconds);
  const leaver = new AbortController();
  const reads = [reflector.read(callOf()), reflector.read(callOf())];
  const left = assert.rejects(reflector.read(callOf(leaver.signal)));
  leaver.abort();
  await left;
  listing.resolve();
  for (const { error, value } of await Promise.all(reads)) {
    assert.equal(error, undefined);
    assert.equal(value?.length, 2);
  }
  assert.equal(server.lists.length, 2);
});

test('what nobody expected is one failure in the same words, with its cause in the log', async t => {
  const { log, lines } = logLines();
  const { server, reflector, listen, time } = reflecting(t, { log });
  server.onList = () => {
    throw new TypeError(`a bug ${Date.now()}`);
  };
  let told = 0;
  await listen(() => told++);
  await time.passSlowly(20 * seconds);
  assert.equal(reflector.current?.error?.code, 'internal_error');
  assert.equal(told, 1);
  assert.ok(lines.some(({ level }) => level === 'error'));
});

test('chaos 14: the clock may be set back by ten minutes: it goes on', async t => {
  const { server, reflector, listen, time } = reflecting(t);
  await listen();
  await time.pass(30 * seconds);
  const before = reflector.current?.revision ?? 0;
  t.mock.timers.setTime(Date.now() - 10 * minutes);
  server.open[0]?.send(modified(config('a', 11)));
  await settled();
  assert.ok((reflector.current?.revision ?? 0) > before);
  server.open[0]?.fail(expired());
  await time.passSlowly(6 * seconds);
  assert.equal(server.lists.length, 2);
  assert.equal(server.open.length, 1);
});

test('chaos 14: set back while it fails, the clock keeps readers away no longer than before', async t => {
  const { server, reflector, time } = reflecting(t);
  server.onList = () => {
    throw refused();
  };
  await reflector.read(callOf());
  t.mock.timers.setTime(Date.now() - 10 * minutes);
  await reflector.read(callOf());
  assert.equal(server.lists.length, 1);
  await time.pass(1 * seconds);
  await reflector.read(callOf());
  assert.equal(server.lists.length, 2);
});
