/** F14: a download whose bytes are all there, and which is not done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { percentOf } from '../../src/jobs/runner.ts';
import { through } from '../support/facts.ts';
import { startHosts } from '../support/hosts.ts';
import { jobEnd, jobWhen } from '../support/jobs.ts';
import { openStream, startServer, textOf } from '../support/server.ts';

const inTime = { timeout: 30_000 };
const timings = { tickMs: 100, verifyMs: 120_000 };

for (const [backend, model, status] of [
  ['ollama', 'small:1b', /^verifying sha256 digest$/],
  ['lemonade', 'Small-GGUF', /verifying|checking/i],
  ['lmstudio', 'acme/small', /verifying|finali|all bytes|moving/i],
] as const) {
  test(
    `F14: ${backend} verifies for two minutes: that is what the job says, and it is not at 100 %`,
    inTime,
    async t => {
      t.mock.timers.enable({ apis: ['setInterval'] });
      await using world = await startHosts({
        ollama: { timings, registry: [{ name: 'small:1b', layers: [{ bytes: 1000 }], pullMs: 1_000 }] },
        lemonade: {
          timings,
          registry: [{ name: 'Small-GGUF', files: [{ name: 'a.gguf', bytes: 1000 }], pullMs: 1_000 }],
        },
        lmstudio: { registry: [{ name: 'acme/small', bytes: 1000, pullMs: 1_000, finalize: { ms: 120_000 } }] },
      });
      await using server = await startServer({ gateway: world.gateway });
      const { job } = await through('REST', server, 'pullModel', { backend, model });
      const stream = await openStream(server.graphqlUrl, { query: textOf('watchJob'), variables: { id: job.id } });
      await stream.nextComment('the comment at the beginning');
      if (backend === 'lmstudio') await world.lmstudio.requested('/api/v1/models/download');
      else await world.clock.sleeping();

      await world.clock.advance(1_000);
      await world.clock.advance(1_000);
      const verifying = await jobWhen(world.gateway, job.id, each => status.test(each.status ?? ''));
      assert.equal(verifying.phase, 'running');
      for (let beat = 0; beat < 8; beat++) {
        await world.clock.advance(14_000);
        t.mock.timers.tick(15_000);
        await stream.nextComment('a beat while it verifies');
        assert.ok(percentOf(world.gateway.jobs.get(job.id)) < 100);
      }
      await world.clock.advance(20_000);
      assert.equal((await jobEnd(world.gateway, job.id)).phase, 'succeeded');
      let last: { phase: string; percent: number } | undefined;
      do {
        last = (await stream.nextPayload('the end of the job')).data.job.job as { phase: string; percent: number };
        assert.equal(last.percent === 100, last.phase === 'SUCCEEDED', JSON.stringify(last));
      } while (last.phase !== 'SUCCEEDED');
      stream.leave();
    },
  );
}
