/** The demo without its greeting, in a world whose time a test moves. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { serveWorld, settingsFor } from '../../src/commands/demo.ts';
import { manualClock } from '../../src/demo/cluster.ts';
import { startWorld } from '../../src/demo/world.ts';
import { silent } from './gateway.ts';
import { turn } from './server.ts';

export async function startDemo(t: TestContext, ...flags: string[]) {
  // As the gateway's own time, which tells how long a download takes.
  const clock = manualClock(Date.now());
  const world = await startWorld({ clock });
  const served = await serveWorld(world, settingsFor(world, ['--listen', '127.0.0.1:0', ...flags]), silent);
  t.after(async () => {
    await world[Symbol.asyncDispose]();
    await served.stop();
  });
  /** Lets time go by in steps while it `moves`, so that clients keep up with it, until something holds. */
  async function live(holds: () => boolean | Promise<boolean>, what: string, moves = () => true, ms = 20_000) {
    const end = performance.now() + ms;
    while (!(await holds())) {
      assert.ok(performance.now() < end, `did not become true within ${ms} ms: ${what}`);
      if (moves()) await clock.advance(250);
      for (let turns = 0; turns < 5; turns++) await turn();
    }
  }
  return { clock, world, url: served.url, live };
}
