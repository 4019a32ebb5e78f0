import assert from 'node:assert/strict';
import { test } from 'node:test';
import { all, answer, callOf, failure, serve, soon } from '../scripted.ts';
import { fixtureJson, fixtureLines } from './fixtures.ts';
import { against, asked, driverAt, entry } from './host.ts';

const list = 'GET /api/v1/models';
const start = 'POST /api/v1/models/download';
const status = (id: string) => `GET /api/v1/models/download/status/${id}`;
const library = { models: [entry('x')] };
const job = { job_id: 'j', status: 'downloading', total_size_bytes: 100 };
const completed = { status: 'completed' };

test('a pull asks for the library, starts, asks until the end, and looks for what it became', async t => {
  const [first, ...polls] = fixtureLines('download.ndjson');
  const before = { models: [entry('other')] };
  let isThere = false;
  const { driver, requests } = await against(t, {
    [list]: () => (isThere ? { models: [entry('other'), entry('qwen/qwen3-8b')] } : before),
    [start]: first,
    [status('job_6f1b2c9e01')]: () => {
      isThere = polls.length === 1;
      return polls.shift();
    },
  });
  const steps = await all(driver.pull(callOf(), { model: ' qwen/qwen3-8b ' }));
  assert.deepEqual(steps.at(-1), { status: 'completed', bytesCompleted: 2_279_145_003, bytesTotal: 2_279_145_003 });
  assert.deepEqual(asked(requests), [
    [list],
    [start, { model: 'qwen/qwen3-8b' }],
    ...Array.from({ length: 4 }, () => [status('job_6f1b2c9e01')]),
    [list],
  ]);
});

test('a model the server has already costs three requests', async t => {
  const { driver, requests } = await against(t, { [list]: library, [start]: fixtureJson('download-already.json') });
  assert.deepEqual(await all(driver.pull(callOf(), { model: 'x' })), [
    { status: 'completed', bytesCompleted: 100, bytesTotal: 100 },
  ]);
  assert.deepEqual(asked(requests), [[list], [start, { model: 'x' }], [list]]);
});

test('the id of a job is one segment of the path, whatever it is', async t => {
  const { driver } = await against(t, {
    [list]: library,
    [start]: { ...job, job_id: '../models?x=ä' },
    [status('..%2Fmodels%3Fx%3D%C3%A4')]: completed,
  });
  assert.equal((await all(driver.pull(callOf(), { model: 'x' }))).length, 2);
});

test('an answer that is not of LM Studio is one that did not come; the pull goes on', async t => {
  const answers: unknown[] = [
    [502, '<h1>Bad Gateway</h1>', 'text/html'],
    [503, { error: 'soon' }],
    [500, { error: { type: 'unknown', message: 'busy' } }],
    [429, '', ''],
    [408, '', ''],
    [200, '<!doctype html><title>Sign in</title>', 'text/html'],
    [200, '', ''],
    {},
    'dropped',
    completed,
  ];
  const { endpoint } = await serve(t, ({ method, path }, response) => {
    if (method === 'POST') return answer(response, 200, job);
    if (path === '/api/v1/models') return answer(response, 200, library);
    const next = answers.shift();
    if (next === 'dropped') response.socket?.destroy();
    else if (Array.isArray(next)) answer(response, ...(next as [number, unknown, string?]));
    else answer(response, 200, next);
  });
  const steps = await soon(all(driverAt(endpoint).pull(callOf(), { model: 'x' })), 'pull');
  assert.deepEqual(
    steps.map(step => step.status),
    ['downloading', ...Array.from({ length: 9 }, () => 'no answer from LM Studio; asking again'), 'completed'],
  );
});

test('a server that dies in the middle is asked thirty-one times, then the pull has failed', async t => {
  let questions = 0;
  const { endpoint } = await serve(t, ({ method, path }, response) => {
    if (method === 'POST') return answer(response, 200, job);
    if (path === '/api/v1/models') return answer(response, 200, library);
    questions++;
    response.socket?.destroy();
  });
  const error = await soon(failure(all(driverAt(endpoint).pull(callOf(), { model: 'x' }))), 'pull');
  assert.equal(error.code, 'backend_error');
  assert.match(error.message, /^lmstudio: GET \/api\/v1\/models\/download\/status\/j: the connection to \S+ was lost/);
  assert.match(error.message, /it may go on in LM Studio, and a new pull finds it there$/);
  assert.equal(questions, 31);
});

test('a job that the server forgot ends the pull at once, as a failure of the backend', async t => {
  const { driver, requests } = await against(t, {
    [list]: library,
    [start]: job,
    [status('j')]: [404, { error: { type: 'job_not_found', message: 'Download job not found' } }],
  });
  const error = await failure(all(driver.pull(callOf(), { model: 'x' })));
  assert.equal(error.code, 'backend_error');
  assert.equal(
    error.message,
    'lmstudio: Download job not found (HTTP 404); LM Studio forgets its downloads when it restarts, so pull the model again',
  );
  assert.equal(requests.length, 3);
});

test('the failure of a download is its own words, and not taken for a refusal', async t => {
  const table: [unknown, string][] = [
    ['disk full', 'lmstudio: disk full'],
    [{ type: 'model_not_found', message: 'file not found' }, 'lmstudio: file not found'],
    [undefined, 'lmstudio: download failed'],
  ];
  for (const [error, message] of table) {
    const { driver } = await against(t, { [list]: library, [start]: job, [status('j')]: { status: 'failed', error } });
    const failed = await failure(all(driver.pull(callOf(), { model: 'x' })));
    assert.equal(failed.code, 'backend_error');
    assert.equal(failed.message, message);
  }
});

test('a model nobody knows is not found, and what the server calls invalid is invalid', async t => {
  const table: [number, string, string][] = [
    [404, 'model_not_found', 'not_found'],
    [400, 'not_implemented', 'invalid_request'],
    [500, 'unknown', 'backend_error'],
  ];
  for (const [code, type, expected] of table) {
    const { driver } = await against(t, { [list]: library, [start]: [code, { error: { type, message: 'no' } }] });
    const error = await failure(all(driver.pull(callOf(), { model: 'nope' })));
    assert.equal(error.code, expected);
    assert.match(error.message, /lmstudio: no \(HTTP \d+\)$/);
  }
});

test('cancelling ends the wait between two questions; the last status says that LM Studio goes on', async t => {
  const { driver, requests } = await against(t, { [list]: library, [start]: job }, { pollMs: 3_600_000 });
  const abort = new AbortController();
  const steps = driver.pull(callOf({ signal: abort.signal }), { model: 'x' })[Symbol.asyncIterator]();
  assert.equal((await steps.next()).value.status, 'downloading');
  const next = steps.next();
  abort.abort();
  assert.deepEqual((await soon(next, 'the last status')).value, {
    status: 'no longer followed; LM Studio goes on with the download',
    bytesCompleted: 0,
    bytesTotal: 100,
  });
  const error = await soon(failure(steps.next()), 'the end');
  assert.equal(error.code, 'backend_error');
  assert.equal(error.message, 'lmstudio: download of x: cancelled by the caller');
  assert.equal(requests.length, 2, 'nothing is sent to the server');
});

test('cancelling closes a question that is not answered', async t => {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, ({ method, path }, response) => {
    if (method === 'POST') return answer(response, 200, job);
    if (path === '/api/v1/models') return answer(response, 200, library);
    response.on('close', closed.resolve);
    arrived.resolve();
  });
  const abort = new AbortController();
  const pull = failure(all(driverAt(endpoint).pull(callOf({ signal: abort.signal }), { model: 'x' })));
  await soon(arrived.promise, 'question');
  abort.abort();
  assert.match((await soon(pull, 'pull')).message, /status\/j: cancelled by the caller$/);
  await soon(closed.promise, 'close');
});

test('a reader who walks away ends the pull, also while it waits', async t => {
  const { driver } = await against(t, { [list]: library, [start]: job }, { pollMs: 3_600_000 });
  const steps = driver.pull(callOf(), { model: 'x' })[Symbol.asyncIterator]();
  await steps.next();
  const waiting = steps.next();
  assert.equal((await soon(steps.return?.() as Promise<IteratorResult<unknown>>, 'return')).done, true);
  await soon(waiting, 'the waiting step');
  assert.equal((await soon(steps.next(), 'after the end')).done, true);
});

test('a pull that nobody reads asks the server for nothing', async t => {
  const { driver, requests } = await against(t, {});
  driver.pull(callOf(), { model: 'x' });
  assert.equal(requests.length, 0);
});
