import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createServerClock } from '../../src/kubernetes/transport/serverClock.ts';

test('the time of the API server is told by its answers, and ours is good enough when it is nearly the same', t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-10-05T08:00:00Z') });
  const clock = createServerClock();
  const ahead = () => clock.now() - Date.now();
  assert.equal(ahead(), 0);
  clock.seen('Mon, 05 Oct 2026 08:10:00 GMT');
  assert.equal(ahead(), 600_500);
  for (const none of [undefined, 'noon', ['Mon, 05 Oct 2026 08:00:00 GMT']]) clock.seen(none);
  t.mock.timers.tick(1_000);
  assert.equal(ahead(), 600_500);
  clock.seen('Mon, 05 Oct 2026 07:50:01 GMT');
  assert.equal(ahead(), -599_500);
  clock.seen('Mon, 05 Oct 2026 08:00:03 GMT');
  assert.equal(ahead(), 0);
});
