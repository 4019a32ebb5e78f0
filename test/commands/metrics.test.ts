import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/ports.ts';
import { start } from './running.ts';

test('a gateway that is measured counts at all its edges: backends, the API server, watches, downloads', async t => {
  const port = await freePort();
  const demo = start(t, ['demo', '--listen', '127.0.0.1:0', '--metrics-listen', `127.0.0.1:${port}`]);
  // The demo has a model pulled by itself.
  const expected = [
    /^model_manager_backend_requests_total\{backend="ollama",op="POST \/api\/pull",outcome="ok"\} [1-9]/m,
    /^model_manager_backend_requests_total\{backend="kubernetes",op="list configmaps",outcome="ok"\} [1-9]/m,
    /^model_manager_watch_up\{resource="configmaps"\} 1$/m,
    /^model_manager_job_bytes_total\{backend="ollama"\} [1-9]/m,
    /^model_manager_http_requests_total\{surface="rest",route="\/api\/v1\/models\/pull",method="POST",code="202"\} 1$/m,
  ];
  await demo.wrote('pull started');
  let text = '';
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(100)) {
    text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    if (expected.every(line => line.test(text))) break;
  }
  for (const line of expected) assert.match(text, line);
});
