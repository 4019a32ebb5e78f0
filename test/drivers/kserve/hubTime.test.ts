import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../../src/call.ts';
import { manualClock } from '../../../src/demo/host/clock.ts';
import { createBudgets } from '../../../src/drivers/kserve/hub/budget.ts';
import { turn, within } from '../../support/server.ts';
import { callOf, failure } from '../scripted.ts';
import { recording, startLab, tiny } from './hubLab.ts';

const id = 'acme/x';
const models = [tiny(id)];

/** Time that passes when the test says so; ends with the test, when nothing waits in it any more. */
function mockTime(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.parse('2026-01-02T03:04:05Z') });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.timers.reset();
    syncBuiltinESMExports();
  });
  return async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      t.mock.timers.tick(50);
      for (let turns = 0; turns < 20; turns++) await turn();
    }
  };
}

// The HTTP client keeps one timer for ever: it is to be of the real time.
test('before all: a request in real time', async t => {
  const { hub } = await startLab(t, { models });
  assert.equal((await hub.repository(callOf(), id)).value?.id, id);
});

test('a Hub that takes a request and never answers costs the timeout', async t => {
  const { server, hub } = await startLab(t, { models, timeoutMs: 60 });
  server.trouble({ kind: 'silent' });
  const facts = await within(hub.weights(callOf(), id, 'main', []), 'weights');
  const words = `the Hugging Face Hub did not answer within 60ms: nothing came from ${server.url}`;
  assert.deepEqual(facts, { miss: { why: 'timeout', words, withinMs: 60 } });
  const error = await within(failure(hub.search(callOf(), 'x', 5)), 'a search');
  assert.deepEqual([error.code, error.message], ['backend_error', words]);
});

test('two seconds of the deadline are for everything else', async t => {
  const { server, hub } = await startLab(t, { models });
  server.trouble({ kind: 'silent' });
  const { miss } = await within(hub.weights(callOf({ timeoutMs: 2_300 }), id, 'main', []), 'weights');
  assert.equal(miss?.why, 'timeout');
  assert.ok((miss.withinMs ?? 0) > 0 && (miss.withinMs ?? 0) <= 300, String(miss.withinMs));

  const asked = server.requests.length;
  const late = await hub.weights(callOf({ timeoutMs: 1_900 }), id, 'main', []);
  assert.match(late.miss?.words ?? '', /^the Hugging Face Hub did not answer within 0s: /);
  assert.equal(late.miss?.withinMs, 0);
  assert.equal(server.requests.length, asked, 'where there is no time nobody is asked');
});

test('what is known is answered without any time', async t => {
  const { hub } = await startLab(t, { models });
  await hub.weights(callOf(), id, 'main', []);
  const { weights } = await hub.weights(callOf({ timeoutMs: 1_000 }), id, 'main', []);
  assert.equal(weights?.bytes, 995);
});

test('all look-ups of one call share its budget, and those of another call have their own', async t => {
  const { server, hub } = await startLab(t, { models, timeoutMs: 60 });
  server.trouble({ kind: 'silent' });
  const call = callOf();
  await within(hub.repository(call, id), 'the first');
  const asked = server.requests.length;
  const { miss } = await within(hub.files(call, id, 'main'), 'the second');
  assert.deepEqual([miss?.why, miss?.withinMs], ['timeout', 60]);
  assert.equal(server.requests.length, asked);
  server.trouble(undefined);
  assert.equal((await hub.files(callOf(), id, 'main')).value?.length, 3);
});

test('a budget counts the time in which there are look-ups, those at the same time once', () => {
  let now = 1_000_000;
  const enter = createBudgets(4_000, () => now);
  const call = callOf();
  const left = () => {
    const budget = enter(call);
    budget.release();
    return budget.until - now;
  };
  const [first, second] = [enter(call), enter(call)];
  now += 1_000;
  first.release();
  assert.equal(left(), 3_000, 'while one is under way');
  now += 500;
  second.release();
  assert.equal(left(), 2_500);
  now += 60_000;
  assert.equal(left(), 2_500, 'time without look-ups costs nothing');
  const third = enter(call);
  now += 9_000;
  assert.ok(third.expired);
  third.release();
  assert.equal(left(), 0);
  assert.equal(third.allowedMs, 4_000);

  const due = { ...call, deadline: now + 3_500 } as Call;
  const bounded = enter(due);
  assert.deepEqual([bounded.allowedMs, bounded.until - now], [1_500, 1_500]);
  bounded.release();
});

test('an index that comes too late is a warning, and the files count', async t => {
  const { log, lines } = recording('warn');
  const { server, hub } = await startLab(t, { models, timeoutMs: 600, log });
  server.fault({ kind: 'hang', path: `/${id}/resolve/main/model.safetensors.index.json` });
  const { weights } = await within(hub.weights(callOf(), id, 'main', []), 'weights');
  assert.deepEqual(weights, { bytes: 1_000, source: 'tree' });
  assert.match(String(lines[0]?.reason), /^the Hugging Face Hub did not answer within 600ms/);
});

test('an answer that stops in the middle costs the timeout', async t => {
  const { server, hub } = await startLab(t, { models, timeoutMs: 500, clock: manualClock() });
  server.fault({ kind: 'split', path: `/api/models/${id}/tree/main`, pieceBytes: 50, everyMs: 1_000 });
  const { miss, repository } = await within(hub.weights(callOf(), id, 'main', []), 'weights');
  assert.equal(miss?.why, 'timeout');
  assert.equal(repository?.id, id);
});

test('what was too slow for one call is there for the next', async t => {
  const clock = manualClock();
  const { server, hub } = await startLab(t, { models, timeoutMs: 80, clock });
  server.trouble({ kind: 'slow', ms: 6_000 });
  assert.equal((await within(hub.repository(callOf(), id), 'too slow')).miss?.why, 'timeout');
  await clock.sleeping(1);
  await clock.advance(6_000);
  await server.requests[0]?.ended;
  const found = await within(hub.repository(callOf(), id), 'the second');
  assert.equal(found.value?.id, id);
  assert.equal(server.requests.length, 1);
});

test('a caller who leaves is let go at once', async t => {
  const { server, hub } = await startLab(t, { models });
  server.trouble({ kind: 'silent' });
  const leaving = new AbortController();
  const asked = [
    hub.weights(callOf({ signal: leaving.signal }), id, 'main', []),
    hub.search(callOf({ signal: leaving.signal }), 'x', 5),
  ].map(failure);
  await server.requested('/api/models');
  leaving.abort();
  for (const error of await within(Promise.all(asked), 'both')) {
    assert.equal(error.code, 'backend_error');
    assert.equal(error.message, 'the hub look-up was cancelled by the caller');
  }
  const gone = await failure(hub.repository(callOf({ signal: AbortSignal.abort() }), id));
  assert.equal(gone.message, 'the hub look-up was cancelled by the caller');
});

test('a wait that fits is waited for, on either header', async t => {
  for (const header of ['retry-after', 'ratelimit'] as const) {
    await t.test(header, async t => {
      const pass = mockTime(t);
      const { server, hub } = await startLab(t, { models });
      server.trouble({ kind: 'limited', seconds: 2, header });
      const asking = hub.repository(callOf(), id);
      await server.requested(`/api/models/${id}`);
      await pass(1_500);
      server.trouble(undefined);
      assert.equal(server.requests.length, 1, 'not before its time');
      await pass(600);
      assert.equal((await within(asking, 'the answer')).value?.id, id);
      assert.equal(server.requests.length, 2);
    });
  }
});

test('a wait that does not fit is a failure at once, and nobody is asked until it is over', async t => {
  const pass = mockTime(t);
  const { server, hub } = await startLab(t, { models });
  server.trouble({ kind: 'limited', seconds: 30 });
  const { miss } = await within(hub.repository(callOf(), id), 'the first');
  assert.deepEqual(miss, { why: 'failed', words: `${server.url} wants no more requests for 30 s`, status: 429 });
  await pass(10_000);
  server.trouble(undefined);
  const second = await within(hub.weights(callOf(), id, 'main', []), 'the second');
  assert.equal(second.miss?.words, `${server.url} wants no more requests for 20 s`);
  const error = await within(failure(hub.search(callOf(), 'x', 5)), 'a search');
  assert.match(error.message, /wants no more requests for 20 s/);
  assert.equal(server.requests.length, 1);
  await pass(20_000);
  assert.equal((await within(hub.repository(callOf(), id), 'the third')).value?.id, id);
});

test('a Hub that is under maintenance is left alone as well, if it says for how long', async t => {
  const pass = mockTime(t);
  const { server, hub } = await startLab(t, { models });
  const path = `/api/models/${id}`;
  const gone = { kind: 'answer', path, status: 503, body: '{"error":"maintenance"}' } as const;
  server.fault({ ...gone, headers: { 'retry-after': '60' } });
  const words = async () => (await within(hub.repository(callOf(), id), 'a miss')).miss?.words;
  assert.equal(await words(), `${server.url} wants no more requests for 60 s`);
  assert.equal(await words(), `${server.url} wants no more requests for 60 s`);
  assert.equal(server.requests.length, 1);
  await pass(60_000);
  server.fault(gone);
  for (const asked of [2, 3]) {
    assert.match((await words()) ?? '', /answered with the document \{"error":"maintenance"\} \(HTTP 503\)$/);
    assert.equal(server.requests.length, asked);
  }
});

test('no server silences us for longer than five minutes, and none makes us ask without end', async t => {
  const pass = mockTime(t);
  const { server, hub } = await startLab(t, { models });
  server.trouble({ kind: 'limited', seconds: 1e12 });
  assert.equal((await within(hub.repository(callOf(), id), 'the first')).miss?.status, 429);
  await pass(5 * 60_000);
  server.trouble({ kind: 'limited', seconds: 0 });
  assert.equal((await within(hub.repository(callOf(), id), 'the second')).miss?.status, 429);
  assert.equal(server.requests.length, 5, 'one, and four that were put off by nothing');
  server.trouble(undefined);
  assert.equal((await within(hub.repository(callOf(), id), 'the third')).value?.id, id);
});

test('an answer in time leaves no timer behind', async t => {
  const { hub } = await startLab(t, { models });
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length;
  await hub.weights(callOf(), id, 'main', []);
  const before = timers();
  for (let round = 0; round < 50; round++) await hub.weights(callOf(), id, 'main', []);
  assert.ok(timers() <= before, `${timers()} timers after ${before}`);
});
