import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/http/metrics.ts';
import { refusalReasons } from '../../src/http/refusals.ts';
import { testGateway } from '../support/gateway.ts';
import { freePort } from '../support/ports.ts';

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
