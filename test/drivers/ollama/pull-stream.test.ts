import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { PullProgress } from '../../../src/domain.ts';
import { createOllamaDriver } from '../../../src/drivers/ollama/index.ts';
import { all, answer, callOf, failure, type Script, serve, soon } from '../scripted.ts';
import { fixture } from './fixtures.ts';

/** A server whose pull is scripted; what it is, it says plainly. */
async function servePull(t: TestContext, script: Script) {
  const requests: Parameters<Script>[0][] = [];
  const { endpoint } = await serve(t, (seen, response, request) => {
    if (seen.path === '/api/version') return answer(response, 200, { version: '0.33.0' });
    requests.push(seen);
    script(seen, response, request);
  });
  return { endpoint, requests };
}

/** A server whose pull is written by the test, and a pull from it. */
async function pulling(t: TestContext, signal?: AbortSignal) {
  const arrived = Promise.withResolvers<ServerResponse>();
  const closed = Promise.withResolvers<void>();
  const { endpoint, requests } = await servePull(t, (_, response) => {
    response.on('close', closed.resolve);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    arrived.resolve(response);
  });
  const steps = pull(endpoint, ' qwen3:8b ', signal)[Symbol.asyncIterator]();
  const first = steps.next();
  first.catch(() => {});
  const response = await soon(arrived.promise, 'the pull request');
  return { endpoint, requests, response, steps, first, closed: closed.promise };
}

function pull(endpoint: string, model: string, signal?: AbortSignal): AsyncIterable<PullProgress> {
  const driver = createOllamaDriver({ endpoint, keepAliveDefault: '5m' });
  assert.ok(driver.pull);
  return driver.pull(callOf(signal ? { signal } : {}), { model });
}

const line = (value: object) => `${JSON.stringify(value)}\n`;
const layer = (completed: number) => line({ status: 'pulling 1', digest: 'sha256:1', total: 100, completed });

test('F4: an error line inside the 200 stream fails the pull, in one piece or two, and a later pull works', async t => {
  const error = line({ error: 'pull model manifest: file does not exist' });
  const [first = '', second = ''] = [error.slice(0, 17), error.slice(17)];
  const scripts: ((response: ServerResponse) => void)[] = [
    response => response.end(line({ status: 'pulling manifest' }) + error),
    response => response.write(line({ status: 'pulling manifest' }) + first, () => response.end(second)),
  ];
  let script: ((response: ServerResponse) => void) | undefined;
  const { endpoint } = await servePull(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    if (script) script(response);
    else response.end(fixture('pull-ok.ndjson'));
  });
  for (script of scripts) {
    const failed = await failure(all(pull(endpoint, 'nope')));
    assert.equal(failed.code, 'not_found');
    assert.equal(failed.message, 'model not found: ollama: pull model manifest: file does not exist');
  }
  script = response => response.end(line({ status: 'pulling manifest' }));
  assert.match((await failure(all(pull(endpoint, 'nope')))).message, /ended without success/);
  script = undefined;
  assert.equal((await all(pull(endpoint, 'nope'))).at(-1)?.status, 'success');
});

test('each line is passed on when it comes, however slowly they trickle', async t => {
  const { requests, response, steps, first } = await pulling(t);
  assert.deepEqual(requests[0]?.body, { model: 'qwen3:8b', stream: true });
  response.write(line({ status: 'pulling manifest' }));
  assert.deepEqual((await soon(first, 'first')).value, {
    status: 'pulling manifest',
    bytesCompleted: 0,
    bytesTotal: 0,
  });
  for (const completed of [1, 50, 40, 100]) {
    const next = steps.next();
    const text = layer(completed);
    response.write(text.slice(0, 20), () => response.write(text.slice(20)));
    const { value } = await soon(next, `at ${completed}`);
    assert.deepEqual([value.bytesCompleted, value.bytesTotal], [completed === 40 ? 50 : completed, 100]);
  }
  const verifying = steps.next();
  response.write(line({ status: 'verifying sha256 digest' }));
  assert.equal((await soon(verifying, 'verifying')).value.status, 'verifying sha256 digest');
  const success = steps.next();
  response.end(line({ status: 'success' }));
  assert.equal((await soon(success, 'success')).value.status, 'success');
  assert.equal((await soon(steps.next(), 'end')).done, true);
});

test('an abort in the middle of a silence ends the pull and closes the connection at once', async t => {
  const abort = new AbortController();
  const { response, steps, first, closed } = await pulling(t, abort.signal);
  response.write(layer(10));
  await soon(first, 'first');
  const silent = failure(steps.next());
  abort.abort();
  const error = await soon(silent, 'abort');
  assert.equal(error.code, 'backend_error');
  assert.equal(error.message, 'ollama: POST /api/pull: cancelled by the caller');
  await soon(closed, 'close');
});

test('a reader who walks away closes the connection, also while it waits for a line', async t => {
  const waiting = await pulling(t);
  waiting.response.write(layer(10));
  await soon(waiting.first, 'first');
  const next = failure(waiting.steps.next());
  assert.equal((await soon(waiting.steps.return?.() ?? Promise.reject(), 'return')).done, true);
  await soon(next, 'the waiting read');
  await soon(waiting.closed, 'close');

  const between = await pulling(t);
  between.response.write(layer(10) + layer(20));
  await soon(between.first, 'first');
  await soon(between.steps.return?.() ?? Promise.reject(), 'return');
  await soon(between.closed, 'close');
});

test('a connection lost in the middle of a pull fails it', async t => {
  const { response, steps, first } = await pulling(t);
  response.write(layer(10));
  await soon(first, 'first');
  const next = failure(steps.next());
  response.socket?.destroy();
  const error = await soon(next, 'loss');
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /^ollama: POST \/api\/pull: the connection to http:\S+ was lost before the answer was/);
});

test('a server that takes the request and dies before its headers fails the pull', async t => {
  const { endpoint } = await servePull(t, (_, response) => response.socket?.destroy());
  assert.match((await soon(failure(all(pull(endpoint, 'x'))), 'loss')).message, /was lost/);
});

test('a refusal before the stream has its own code, and a web page in its place is named', async t => {
  const table: [[number, unknown, string?], string, RegExp][] = [
    [
      [400, { error: 'invalid model name' }],
      'invalid_request',
      /^invalid request: ollama: invalid model name \(HTTP 400\)$/,
    ],
    [[500, { error: 'pull model manifest: file does not exist' }], 'not_found', /^model not found: ollama: pull model/],
    [
      [200, '<!doctype html><title>Sign in</title>', 'text/html'],
      'backend_error',
      /a web page titled "Sign in" \(HTTP 200\)$/,
    ],
    [[200, { error: 'Unexpected endpoint or method. (POST /api/pull)' }], 'backend_error', /Unexpected endpoint/],
    [[503, '', ''], 'backend_error', /Service Unavailable \(HTTP 503\)$/],
  ];
  for (const [response, code, words] of table) {
    const { endpoint } = await servePull(t, (_, res) => answer(res, ...response));
    const error = await failure(all(pull(endpoint, 'x')));
    assert.equal(error.code, code);
    assert.match(error.message, words);
  }
});

test('a pull that nobody reads asks the server for nothing', async t => {
  const { endpoint, requests } = await servePull(t, (_, response) => answer(response, 200, ''));
  const steps = pull(endpoint, 'x')[Symbol.asyncIterator]();
  assert.equal((await steps.return?.())?.done, true);
  assert.equal(requests.length, 0);
});
