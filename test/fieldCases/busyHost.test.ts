/** F13: a server that answers nobody while it loads, its health included. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allFaces, through } from '../support/facts.ts';
import { startHosts } from '../support/hosts.ts';
import { eventually, openStream, startServer, textOf, within } from '../support/server.ts';

const inTime = { timeout: 30_000 };

const lemonadeOf = (rows: readonly { backend: string; healthy: boolean; message?: string }[]) =>
  rows.find(({ backend }) => backend === 'lemonade');

for (const lookMs of [undefined, 500])
  test(
    `F13: a host that blocks during a load of ours is shown as it was last seen, ${lookMs ? 'alone' : 'beside others'}`,
    inTime,
    async () => {
      await using world = await startHosts({
        ollama: { models: [{ name: 'other:1b' }] },
        lemonade: { models: [{ name: 'A' }, { name: 'B' }], timings: { loadMs: 120_000 }, blocks: ['load'] },
        ...(lookMs && { lookMs }),
      });
      await using server = await startServer({ gateway: world.gateway });
      const only = lookMs ? { backend: 'lemonade' } : {};
      const stream = await openStream(server.graphqlUrl, { query: textOf('watchBackends') });
      assert.equal(lemonadeOf((await through('REST', server, 'listBackends')).backends)?.healthy, true);
      const before = await through('REST', server, 'listModels', only);

      const load = through('REST', server, 'loadModel', { backend: 'lemonade', model: 'B' });
      await world.lemonade.requested('/api/v1/load');
      await world.clock.sleeping();
      for (let round = 0; round < (lookMs ? 4 : 1); round++) {
        world.lookAgain();
        for (const face of allFaces) {
          const [models, backends] = await within(
            Promise.all([through(face, server, 'listModels', only), through(face, server, 'listBackends')]),
            `the answers of ${face}`,
            4_000,
          );
          assert.deepEqual(models.errors ?? {}, {}, `${face}: nothing is missing`);
          assert.deepEqual(
            models.models.map(({ name }: { name: string }) => name),
            before.models.map(({ name }: { name: string }) => name),
          );
          const lemonade = lemonadeOf(backends.backends);
          assert.equal(lemonade?.healthy, true, `${face}: ${lemonade?.message}`);
          assert.match(lemonade?.message ?? '', /^busy, it does not answer now; it was last seen at 20\d\d-/);
        }
      }
      await world.clock.advance(120_000);
      assert.equal((await within(load, 'the load')).loaded, true);
      await eventually(() => world.gateway.registry.backends[1]?.loads.size === 0, 'the end of the load');
      const { healthy, message } = lemonadeOf((await through('REST', server, 'listBackends')).backends) ?? {};
      assert.deepEqual([healthy, message], [true, undefined]);
      for (const { data } of stream.unread) assert.doesNotMatch(data ?? '', /"healthy":false/);
      stream.leave();
    },
  );
