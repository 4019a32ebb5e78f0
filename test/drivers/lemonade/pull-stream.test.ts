import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { PullProgress } from '../../../src/domain.ts';
import type { LemonadeOptions } from '../../../src/drivers/lemonade/index.ts';
import { all, answer, callOf, failure, serve, soon } from '../scripted.ts';
import { fixture } from './fixtures.ts';
import { asked, driverAt, list } from './host.ts';

/** A clock on which every step is late enough to pass. */
function ticking() {
  let at = 0;
  return () => {
    at += 1_000;
    return at;
  };
}

function pull(endpoint: string, model: string, signal?: AbortSignal, options: Partial<LemonadeOptions> = {}) {
  const driver = driverAt(endpoint, { now: ticking(), ...options });
  return driver.pull(callOf(signal ? { signal } : {}), { model });
}

const stream = { 'content-type': 'text/event-stream' };

/** A server whose pull is written by the test, and a pull from it. */
async function pulling(t: TestContext, signal?: AbortSignal) {
  const arrived = Promise.withResolvers<ServerResponse>();
  const closed = Promise.withResolvers<void>();
  const { endpoint, requests } = await serve(t, ({ path }, response) => {
    if (path !== '/api/v1/pull') return answer(response, 200, list('Qwen3-0.6B-GGUF'));
    response.on('close', closed.resolve);
    response.writeHead(200, stream).flushHeaders();
    arrived.resolve(response);
  });
  const steps = pull(endpoint, ' Qwen3-0.6B-GGUF ', signal)[Symbol.asyncIterator]();
  const first = steps.next();
  first.catch(() => {});
  const response = await soon(arrived.promise, 'the pull request');
  return { endpoint, requests, response, steps, first, closed: closed.promise };
}

const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const part = (bytes: number) =>
  event('progress', {
    file: 'a.gguf',
    file_index: 1,
    total_files: 1,
    bytes_downloaded: bytes,
    bytes_total: 100,
    total_download_size: 100,
  });

test('each event is passed on when it comes, however slowly they trickle, and the end is looked after', async t => {
  const { requests, response, steps, first } = await pulling(t);
  assert.deepEqual(requests[0]?.body, { model_name: 'Qwen3-0.6B-GGUF', stream: true });
  response.write(part(0));
  assert.deepEqual((await soon(first, 'first')).value, {
    status: 'downloading a.gguf (1/1)',
    bytesCompleted: 0,
    bytesTotal: 100,
  });
  for (const bytes of [1, 50, 40, 100]) {
    const next = steps.next();
    const text = part(bytes);
    response.write(text.slice(0, 30), () => response.write(text.slice(30)));
    const { value } = await soon(next, `at ${bytes}`);
    assert.deepEqual([value.bytesCompleted, value.bytesTotal], [bytes === 40 ? 50 : bytes, 100]);
  }
  const success = steps.next();
  response.end(event('complete', { bytes_downloaded: 0, total_download_size: 0 }));
  assert.deepEqual((await soon(success, 'success')).value, { status: 'success', bytesCompleted: 100, bytesTotal: 100 });
  assert.equal((await soon(steps.next(), 'end')).done, true);
  assert.equal(requests.at(-1)?.path, '/api/v1/models?show_all=true');
});

test('a server that keeps the stream open after its last event keeps nobody waiting', async t => {
  const { response, first, steps, closed } = await pulling(t);
  response.write(event('complete', {}));
  assert.equal((await soon(first, 'success')).value.status, 'success');
  assert.equal((await soon(steps.next(), 'end')).done, true);
  await soon(closed, 'close');
});

test('an abort in the middle of a silence ends the pull and closes the connection at once', async t => {
  const abort = new AbortController();
  const { response, steps, first, closed } = await pulling(t, abort.signal);
  response.write(part(10));
  await soon(first, 'first');
  const silent = failure(steps.next());
  abort.abort();
  const error = await soon(silent, 'abort');
  assert.equal(error.code, 'backend_error');
  assert.equal(error.message, 'lemonade: POST /api/v1/pull: cancelled by the caller');
  await soon(closed, 'close');
});

test('a reader who walks away closes the connection, also while it waits for an event', async t => {
  const waiting = await pulling(t);
  waiting.response.write(part(10));
  await soon(waiting.first, 'first');
  const next = failure(waiting.steps.next());
  assert.equal((await soon(waiting.steps.return?.() ?? Promise.reject(), 'return')).done, true);
  await soon(next, 'the waiting read');
  await soon(waiting.closed, 'close');

  const between = await pulling(t);
  between.response.write(part(10) + part(20));
  await soon(between.first, 'first');
  await soon(between.steps.return?.() ?? Promise.reject(), 'return');
  await soon(between.closed, 'close');
});

test('a connection lost in the middle of a pull fails it', async t => {
  const { response, steps, first } = await pulling(t);
  response.write(part(10));
  await soon(first, 'first');
  const next = failure(steps.next());
  response.socket?.destroy();
  const error = await soon(next, 'loss');
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /^lemonade: POST \/api\/v1\/pull: the connection to http:\S+ was lost before the answer/);
});

test('a server that takes the request and dies before its headers fails the pull', async t => {
  const { endpoint } = await serve(t, (_, response) => response.socket?.destroy());
  assert.match((await soon(failure(all(pull(endpoint, 'x'))), 'loss')).message, /was lost/);
});

test('a stream cut off fails the pull, and the next one resumes', async t => {
  let file = 'pull-cut.sse';
  const { endpoint } = await serve(t, ({ path }, response) => {
    if (path === '/api/v1/pull') response.writeHead(200, stream).end(fixture(file));
    else answer(response, 200, list('Drop'));
  });
  const cut = await failure(all(pull(endpoint, 'Drop')));
  assert.match(cut.message, /ended without completing after 10485760 of 12582912 bytes; a new pull resumes$/);
  file = 'pull-resume.sse';
  const steps = await all(pull(endpoint, 'Drop'));
  assert.equal(steps.find(({ bytesCompleted }) => bytesCompleted > 0)?.bytesCompleted, 8_388_608);
  assert.deepEqual(steps.at(-1), { status: 'success', bytesCompleted: 41_943_040, bytesTotal: 41_943_040 });
});

test('one document instead of a stream is a success or a failure', async t => {
  const table: [unknown, string, RegExp?][] = [
    [{ status: 'success', model_name: 'x' }, 'success'],
    [{ status: 'OK' }, 'success'],
    [{ status: 'error', message: 'disk full' }, 'backend_error', /^lemonade: disk full \(HTTP 200\)$/],
    [
      { code: 'unknown_model', error: 'When registering a new model, …' },
      'not_found',
      /^model not found: lemonade: x is not in the catalog/,
    ],
    [{ error: 'Unexpected endpoint or method. (POST /api/v1/pull)' }, 'backend_error', /is LM Studio \("Unexpected/],
    [{ error: 'quota' }, 'backend_error', /did not answer like Lemonade but with the error "quota" \(HTTP 200\)$/],
    [
      { status: 'downloading', running: true },
      'backend_error',
      /did not answer like Lemonade but with the document {"/,
    ],
    ['{"status":"succ', 'backend_error', /did not answer like Lemonade but with the document {"status":"succ/],
    ['', 'backend_error', /but with an empty answer/],
  ];
  for (const [body, end, words] of table) {
    const { endpoint } = await serve(t, ({ path }, response) =>
      answer(response, 200, path === '/api/v1/pull' ? body : list('x'), 'application/json; charset=utf-8'),
    );
    const steps: PullProgress[] = [];
    try {
      for await (const step of pull(endpoint, 'x')) steps.push(step);
      assert.equal(end, 'success');
      assert.deepEqual(steps, [{ status: 'success', bytesCompleted: 0, bytesTotal: 0 }]);
    } catch (error) {
      assert.equal((error as { code?: string }).code, end, String(error));
      assert.match((error as Error).message, words ?? /^$/);
    }
  }
});

test('a document larger than 4 MiB is not read to its end', async t => {
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const piece = 'x'.repeat(1024 * 1024);
    const more = () => response.write(piece, error => error || setImmediate(more));
    more();
  });
  const error = await soon(failure(all(pull(endpoint, 'x'))), 'the bound');
  assert.equal(error.message, 'lemonade: POST /api/v1/pull: an answer of more than 4194304 characters');
});

test('a refusal before the stream has its own code, and a web page in its place is named', async t => {
  const table: [[number, unknown, string?], string, RegExp][] = [
    [
      [400, { code: 'unknown_model', error: 'When registering a new model, …' }],
      'not_found',
      /^model not found: lemonade: x is not in the catalog of the server; .* have to be registered there first$/,
    ],
    [
      [400, { code: 'lemond_offline', error: 'Lemond is in offline mode, models not downloaded' }],
      'backend_error',
      /^lemonade: Lemond is in offline mode, models not downloaded \(HTTP 400\)$/,
    ],
    [[400, { error: 'bad recipe' }], 'invalid_request', /^invalid request: lemonade: bad recipe \(HTTP 400\)$/],
    [[500, { error: 'Model not found: x' }], 'backend_error', /^lemonade: Model not found: x \(HTTP 500\)$/],
    [
      [200, '<!doctype html><title>Sign in</title>', 'text/html'],
      'backend_error',
      /did not answer like Lemonade but with a web page titled "Sign in" \(HTTP 200\)$/,
    ],
    [[503, '', ''], 'backend_error', /Service Unavailable \(HTTP 503\)$/],
  ];
  for (const [response, code, words] of table) {
    const { endpoint } = await serve(t, (_, res) => answer(res, ...response));
    const error = await failure(all(pull(endpoint, 'x')));
    assert.equal(error.code, code);
    assert.match(error.message, words);
  }
});

/** A server whose pull is complete at once and whose list is `lists`, one after the other, the last one for ever. */
async function complete(t: TestContext, ...lists: unknown[]) {
  const host = await serve(t, ({ path }, response) => {
    if (path === '/api/v1/pull') return response.writeHead(200, stream).end(event('complete', {}));
    const next = lists.length > 1 ? lists.shift() : lists[0];
    return Array.isArray(next) ? answer(response, ...(next as [number, unknown])) : answer(response, 200, next);
  });
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  return { ...host, pauses, run: (model: string) => all(pull(host.endpoint, model, undefined, { pause })) };
}
const entry = (id: string, downloaded: boolean) => ({ data: [{ id, downloaded }] });

test('a pull is done when the list has the model, under its public name too, or cannot tell', async t => {
  const table: [string, unknown][] = [
    ['X', entry('X', true)],
    ['user.X', entry('X', true)],
    ['user.X', list('user.X', 'X')],
    ['X', list()],
    ['X', [500, { error: 'boom' }]],
    ['X', [404, 'not this time']],
  ];
  for (const [model, listed] of table) {
    const { run, pauses } = await complete(t, listed);
    assert.equal((await run(model)).at(-1)?.status, 'success');
    assert.deepEqual(pauses, []);
  }
});

test('a list that is behind is asked again; one that goes on to say "not downloaded" fails the pull', async t => {
  const behind = await complete(t, entry('X', false), entry('X', false), entry('X', true));
  assert.equal((await behind.run('X')).at(-1)?.status, 'success');
  assert.deepEqual(behind.pauses, [250, 1_000]);

  const never = await complete(t, { data: [...entry('user.X', false).data, ...entry('X', true).data] });
  const error = await failure(never.run('user.X'));
  assert.equal(error.code, 'backend_error');
  assert.match(
    error.message,
    /^lemonade: POST \/api\/v1\/pull: complete, but http:\S+ lists user\.X as not downloaded$/,
  );
  assert.deepEqual(never.pauses, [250, 1_000, 2_500]);
});

test('a caller who leaves while a list that is behind is waited for has a complete model', async t => {
  const abort = new AbortController();
  const { endpoint } = await complete(t, entry('X', false));
  const pause = (_: number, signal: AbortSignal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      abort.abort();
    });
  const steps = await soon(all(pull(endpoint, 'X', abort.signal, { pause })), 'the end');
  assert.equal(steps.at(-1)?.status, 'success');
});

test('a pull that nobody reads, or of a blank name, asks the server for nothing', async t => {
  const { endpoint, requests } = await serve(t, (_, response) => answer(response, 200, ''));
  const steps = pull(endpoint, 'x')[Symbol.asyncIterator]();
  assert.equal((await steps.return?.())?.done, true);
  assert.equal((await failure(all(pull(endpoint, ' ')))).message, 'invalid request: a model reference is required');
  assert.deepEqual(asked(requests), []);
});
