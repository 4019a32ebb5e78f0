import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { listen } from '../../src/http/listen.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { refusalReasons } from '../../src/http/refusals.ts';
import { testGateway } from '../support/gateway.ts';

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
  server.close();
  return port;
}

test('every limit has a counter from the start, by its name, and a refusal counts there alone', async t => {
  const metrics = createMetrics(testGateway());
  const port = await freePort();
  const { close } = await metrics.serve({ host: '127.0.0.1', port });
  t.after(close);
  metrics.onRefused('mutations');
  metrics.onRefused('mutations');
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counted = [...text.matchAll(/^model_manager_refusals_total\{reason="(\w+)"\} (\d+)$/gm)];
  assert.deepEqual(
    Object.fromEntries(counted.map(([, reason, count]) => [reason, Number(count)])),
    Object.fromEntries(refusalReasons.map(reason => [reason, reason === 'mutations' ? 2 : 0])),
  );
});
