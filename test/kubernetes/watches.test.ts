import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Caller, createCall } from '../../src/call.ts';
import { configMaps, secrets } from '../../src/kubernetes/resource.ts';
import { createWatches, located } from '../../src/kubernetes/watches.ts';
import { mockTime, settled } from '../live/clock.ts';
import { silent } from '../support/gateway.ts';
import { config, modified, putOff, reset, scriptedServer, seconds } from './reflectorLab.ts';

const caller = (scope: string, token?: string): Caller => ({
  name: scope === '' ? 'service-account' : scope,
  anonymous: false,
  scope,
  ...(token && { token: () => token }),
});
const callAs = (scope: string, token?: string) => createCall({ log: silent, caller: caller(scope, token) });

function watching(t: TestContext) {
  const time = mockTime(t);
  const server = scriptedServer();
  return { time, server, watches: createWatches({ client: server, log: silent }) };
}

test('who wants the same shares one watch', async t => {
  const { server, watches } = watching(t);
  const selection = { namespace: 'kagent', labelSelector: 'a=b' };
  const one = watches.of(callAs(''), located(configMaps), selection);
  const other = watches.of(callAs(''), located(configMaps), { ...selection });
  t.after(one.subscribe(() => {}));
  t.after(other.subscribe(() => {}));
  await settled();
  await other.read(callAs(''));
  assert.equal(server.lists.length, 1);
  assert.equal(server.watches.length, 1);
  assert.equal(one.current, other.current);
  assert.deepEqual(server.selections, [selection]);
});

test('another resource, place, selector or scope has a watch of its own', async t => {
  const { server, watches } = watching(t);
  const all = [
    watches.of(callAs(''), located(configMaps)),
    watches.of(callAs(''), located(secrets)),
    watches.of(callAs(''), located(configMaps), { namespace: 'a' }),
    watches.of(callAs(''), located(configMaps), { labelSelector: 'a' }),
    watches.of(callAs(''), located(configMaps), { fieldSelector: 'a' }),
    watches.of(callAs('jane'), located(configMaps)),
  ];
  for (const each of all) t.after(each.subscribe(() => {}));
  await settled();
  assert.equal(server.lists.length, 6);
  assert.deepEqual(
    watches.states().map(({ scope, resource, selection, synced }) => [scope, resource, selection, synced]),
    [
      ['', 'configmaps', {}, true],
      ['', 'secrets', {}, true],
      ['', 'configmaps', { namespace: 'a' }, true],
      ['', 'configmaps', { labelSelector: 'a' }, true],
      ['', 'configmaps', { fieldSelector: 'a' }, true],
      ['jane', 'configmaps', {}, true],
    ],
  );
});

test('a caller is watched for with their own token, and with the newest one of their scope', async t => {
  const { server, watches, time } = watching(t);
  const tokens = () => server.calls.map(({ caller }) => caller.token?.());
  const held = watches.of(callAs('jane', 'first'), located(configMaps));
  t.after(held.subscribe(() => {}));
  await settled();
  assert.deepEqual(tokens(), ['first', 'first']);
  await time.pass(30 * seconds);
  watches.of(callAs('jane', 'second'), located(configMaps));
  watches.of(callAs('joe', 'third'), located(configMaps));
  // Whoever holds the older one does not bring it back.
  await held.read(callAs('jane', 'first'));
  server.open[0]?.fail(reset());
  await settled();
  await time.pass(1 * seconds);
  assert.deepEqual(tokens(), ['first', 'first', 'second']);
});

test('a watch that nobody wants any more is forgotten, and begins anew for those who still hold it', async t => {
  const { server, watches } = watching(t);
  const held = watches.of(callAs(''), located(configMaps));
  const leave = held.subscribe(() => {});
  await settled();
  leave();
  assert.deepEqual(watches.states(), []);
  const other = watches.of(callAs(''), located(secrets));
  assert.equal(held.current, undefined);
  t.after(held.subscribe(() => {}));
  const again = watches.of(callAs(''), located(configMaps));
  t.after(again.subscribe(() => {}));
  t.after(other.subscribe(() => {}));
  await settled();
  assert.equal(server.lists.length, 3);
  assert.equal(held.current, again.current);
});

test('what the server has put off stays put off, also when nobody wants it meanwhile', async t => {
  const { server, watches, time } = watching(t);
  server.onList = () => {
    throw putOff(7 * seconds);
  };
  for (let second = 0; second < 7; second++) {
    watches.of(callAs(''), located(configMaps)).subscribe(() => {})();
    watches.of(callAs(''), located(secrets), { namespace: `n${second}` });
    await settled();
    const leave = watches.of(callAs(''), located(configMaps)).subscribe(() => {});
    await settled();
    leave();
    await time.pass(999);
  }
  assert.equal(server.resources.filter(({ plural }) => plural === 'configmaps').length, 1);
});

test('who wrote sees it through what they hold', async t => {
  const { server, watches } = watching(t);
  const held = watches.of(callAs(''), located(configMaps));
  t.after(held.subscribe(() => {}));
  await settled();
  const { signal } = new AbortController();
  const seen = held.seen(config('a', 11), signal);
  server.open[0]?.send(modified(config('a', 11)));
  await seen;
  assert.equal(held.current?.value?.[0]?.metadata.resourceVersion, '11');
  assert.equal(held.state.synced, true);
});
