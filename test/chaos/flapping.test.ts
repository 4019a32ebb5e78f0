/** Chaos case 19: a backend that comes and goes every two seconds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackend } from '../../src/backends/backend.ts';
import { createCall } from '../../src/call.ts';
import type { BackendStatus } from '../../src/domain.ts';
import { watch } from '../../src/live/watch.ts';
import { mockTime } from '../live/clock.ts';
import { fakeDriver, silent } from '../support/gateway.ts';

const seconds = 1_000;
const up: BackendStatus = { healthy: true, version: '1' };
const down: BackendStatus = { healthy: false, message: 'connection refused' };

for (const [who, readsEvery] of [
  ['nobody else asks', undefined],
  ['somebody asks for its health twice a second', 500],
] as const) {
  test(`chaos 19: a host that flaps every 2 s changes its health at most every 5 s for who watches, while ${who}`, async t => {
    const time = mockTime(t);
    const driver = fakeDriver();
    const backend = createBackend(driver, 'static', silent);
    const states = watch(backend.status);
    const told: { at: number; healthy: boolean }[] = [];
    const watching = (async () => {
      for await (const { error } of states) told.push({ at: Date.now(), healthy: error === undefined });
    })();

    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 500) {
        if (readsEvery) await backend.status.read(createCall({ log: silent }));
        await time.pass(500);
      }
    };
    for (let flap = 0; flap < 60; flap++) {
      driver.world.status = flap % 2 === 0 ? up : down;
      await pass(2 * seconds);
    }
    const changes = told.filter((each, place) => place === 0 || each.healthy !== told[place - 1]?.healthy);
    // The first is how it was found, and no change.
    for (const [place, { at }] of changes.entries()) {
      const before = (place > 1 && changes[place - 1]?.at) || Number.NEGATIVE_INFINITY;
      // Looks come up to a twentieth early, so that many gateways do not knock together.
      assert.ok(at - before >= 4_750, `the change ${place} came after ${at - before} ms`);
    }
    assert.ok(changes.length > 1, 'it is seen to flap');

    // It stays up: that is the last word, at the latest after the longest pause between two probes.
    driver.world.status = up;
    await pass(70 * seconds);
    assert.equal(told.at(-1)?.healthy, true);
    assert.equal((await backend.status.read(createCall({ log: silent }))).error, undefined);
    // And when it goes for good, that is.
    driver.world.status = down;
    await pass(70 * seconds);
    assert.equal(told.at(-1)?.healthy, false);
    await states.return();
    await watching;
  });
}
