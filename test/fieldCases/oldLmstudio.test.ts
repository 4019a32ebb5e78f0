/** F5: an LM Studio that answers 200 to what it does not know. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allFaces, through } from '../support/facts.ts';
import { startHosts } from '../support/hosts.ts';
import { pullToTheEnd } from '../support/pulling.ts';
import { startServer } from '../support/server.ts';

const inTime = { timeout: 30_000 };
const backend = 'lmstudio';
const needed = /LM Studio 0\.4\.0 or newer is needed/;
const models = [{ name: 'acme/small', bytes: 1000 }];

test('F5: an LM Studio before 0.4.0 is unhealthy, and whatever is asked of it fails and says why', inTime, async () => {
  await using world = await startHosts({ lmstudio: { models, version: '0.3.39' } });
  await using server = await startServer({ gateway: world.gateway });
  for (const face of allFaces) {
    const { healthy, message } = await through(face, server, 'getBackend', { backend });
    assert.equal(healthy, false, face);
    assert.match(message, needed, face);
    for (const operation of ['listModels', 'listLoaded']) {
      assert.match(
        await through(face, server, operation, { backend }),
        /^backend_error: .*0\.4\.0 or newer/,
        operation,
      );
    }
    for (const operation of ['loadModel', 'unloadModel']) {
      const answer = await through(face, server, operation, { model: 'acme/small', backend });
      assert.match(answer, /^backend_error: .*0\.4\.0 or newer/, `${face}: ${operation}`);
    }
  }
  const { phase, error } = await pullToTheEnd(world, server, backend, 'acme/other');
  assert.equal(phase, 'failed');
  assert.match(error ?? '', needed);
  assert.deepEqual(world.lmstudio.loaded(), []);
});

test('F5: one that becomes old between two questions changes nothing that it did not do', inTime, async () => {
  await using world = await startHosts({ lmstudio: { models } });
  await using server = await startServer({ gateway: world.gateway });
  const unexpected = (path: string) =>
    world.lmstudio.fault({
      kind: 'answer',
      path,
      body: `{"error":"Unexpected endpoint or method. (POST ${path}). Returning 200 anyway"}`,
    });
  for (const what of ['load', 'unload', 'download']) unexpected(`/api/v1/models/${what}`);
  const act = (operation: string) => through('MCP', server, operation, { model: 'acme/small', backend });
  const isLoaded = async () => (await act('getModel')).loaded;

  assert.match(await act('loadModel'), /^backend_error: .*0\.4\.0 or newer is needed/);
  assert.equal(await isLoaded(), false);
  world.lmstudio.load('acme/small');
  world.lookAgain();
  assert.match(await act('unloadModel'), /^backend_error: .*0\.4\.0 or newer is needed/);
  assert.equal(await isLoaded(), true);
  const { phase, error } = await pullToTheEnd(world, server, backend, 'acme/other');
  assert.equal(phase, 'failed');
  assert.match(error ?? '', needed);
});
