import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { all, callOf, failure, serve } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, driverAt, entry, model } from './host.ts';

const library = { models: [entry('x', 'x')] };
const job = { job_id: 'j', status: 'downloading' };

/** Calls by the names of the error table, each with the request that it is about. */
const calls: Readonly<Record<string, { route: string; run(driver: ReturnType<typeof driverAt>): Promise<unknown> }>> = {
  models: { route: 'GET /api/v1/models', run: driver => driver.models(callOf()) },
  load: { route: 'POST /api/v1/models/load', run: driver => driver.load(callOf(), { model: 'nope', keepAlive: '5m' }) },
  unload: { route: 'POST /api/v1/models/unload', run: driver => driver.unload(callOf(), model('x')) },
  download: { route: 'POST /api/v1/models/download', run: driver => all(driver.pull(callOf(), { model: 'nope' })) },
  status: {
    route: 'GET /api/v1/models/download/status/j',
    run: driver => all(driver.pull(callOf(), { model: 'x' })),
  },
};
const fine = { 'GET /api/v1/models': library, 'POST /api/v1/models/download': job };

test('every failure of the error table has its code, on every call it may happen to', async t => {
  for (const { call, status, body, expect } of fixtureJson('errors.json').cases) {
    for (const [name, { route, run }] of Object.entries(calls)) {
      if (call !== 'any' && call !== name) continue;
      const { driver } = await against(t, { ...fine, [route]: [status, body] });
      const error = await failure(run(driver));
      assert.ok(error instanceof GatewayError, error.message);
      const code = ['not_found', 'invalid_request'].includes(expect) ? expect : 'backend_error';
      assert.equal(error.code, code, `${name}: ${error.message}`);
      assert.match(error.message, new RegExp(`lmstudio: .*\\(HTTP ${status}\\)`));
      if (call === 'models') assert.equal((await driver.describe(callOf())).message, error.message);
    }
  }
});

test('F5: a server that answers every call 200 with an error has done nothing, and is told which version is needed', async t => {
  const unknown = (route: string) => ({ error: `Unexpected endpoint or method. (${route})` });
  const old = await against(t, {});
  assert.equal((await old.driver.describe(callOf())).healthy, false);
  for (const { run } of Object.values(calls)) {
    const error = await failure(run(old.driver));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, /LM Studio 0\.4\.0 or newer is needed$/);
  }
  assert.ok(
    old.requests.every(({ method }) => method === 'GET'),
    'nothing was tried on a server that is not understood',
  );

  for (const [name, { route, run }] of Object.entries(calls)) {
    const { driver } = await against(t, { ...fine, [route]: unknown(route) });
    const error = await failure(run(driver));
    assert.equal(error.code, 'backend_error', name);
    assert.match(
      error.message,
      /answered the error "Unexpected .*" \(HTTP 200\); LM Studio 0\.4\.0 or newer is needed$/,
    );
  }
});

test('an error beside a success is an error, on every call', async t => {
  const done = { models: [], instance_id: 'x', job_id: 'j', status: 'completed' };
  for (const error of ['no', { type: 'unknown', message: 'no' }, '', false]) {
    for (const [name, { route, run }] of Object.entries(calls)) {
      const { driver } = await against(t, { ...fine, [route]: { ...done, error } });
      const failed = await failure(run(driver));
      assert.equal(failed.code, 'backend_error', name);
      assert.match(failed.message, /answered the error "(no|no reason given|false)" \(HTTP 200\)/);
    }
  }
});

test('each kind of refusal says what can be done about it', async t => {
  const table: [unknown, string, RegExp][] = [
    [
      [500, { error: { type: 'unknown', message: 'boom\n\tbang' } }],
      'backend_error',
      /^lmstudio: boom bang \(HTTP 500\)$/,
    ],
    [[500, { error: 'libcuda.so not found' }], 'backend_error', /^lmstudio: libcuda\.so not found \(HTTP 500\)$/],
    [[404, { error: 'gone' }], 'not_found', /^model not found: lmstudio: gone \(HTTP 404\)$/],
    [[400, { error: { code: 'model_not_found', message: 'gone' } }], 'not_found', /gone \(HTTP 400\)$/],
    [[400, { error: 'Model x Not Found' }], 'not_found', /Not Found/],
    [[422, { error: 'odd' }], 'invalid_request', /^invalid request: lmstudio: odd \(HTTP 422\)$/],
    [[409, { error: { type: 'invalid_arguments', message: 'odd' } }], 'invalid_request', /odd/],
    [[409, { error: 'busy' }], 'backend_error', /^lmstudio: busy \(HTTP 409\)$/],
    [[404, '404 page not found', 'text/plain'], 'backend_error', /has no such endpoint; is this the root address/],
    [[405, '', ''], 'backend_error', /has no such endpoint; .*: Method Not Allowed \(HTTP 405\)$/],
    [
      [502, '<html><body><h1>502 Bad Gateway</h1>', 'text/html'],
      'backend_error',
      /^lmstudio: POST \/api\/v1\/models\/load: a web page titled "502 Bad Gateway" \(HTTP 502\)$/,
    ],
    [[503, '', ''], 'backend_error', /^lmstudio: POST \/api\/v1\/models\/load: Service Unavailable \(HTTP 503\)$/],
  ];
  for (const [response, code, words] of table) {
    const { driver } = await against(t, { ...fine, 'POST /api/v1/models/load': response });
    const error = await failure(driver.load(callOf(), { model: 'y', keepAlive: '5m' }));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, /<|doctype/i);
  }
});

test('what a list is refused with is not about a model', async t => {
  for (const response of [
    [400, { error: 'odd' }],
    [404, { error: 'not found' }],
    [429, { error: 'slow down' }],
  ]) {
    const { driver } = await against(t, { 'GET /api/v1/models': response });
    assert.equal((await failure(driver.models(callOf()))).code, 'backend_error');
  }
});

test('a redirect is named and not followed, and its secrets are not repeated', async t => {
  const { endpoint, requests } = await serve(t, (_, response) => {
    response.writeHead(307, { location: 'https://sso.example.com/login?state=s3cret' }).end();
  });
  const error = await failure(driverAt(endpoint, { apiToken: 'sk-lm-t0ken' }).models(callOf()));
  assert.equal(
    error.message,
    'lmstudio: GET /api/v1/models: a redirect to https://sso.example.com/login (HTTP 307); redirects are not followed, ' +
      'so configure the address it leads to',
  );
  assert.equal(requests.length, 1);
});

test('a server that asks for a token is told so in words, with where the token goes', async t => {
  const refused = { error: { type: 'invalid_request', code: 'invalid_api_key', message: 'A token is required' } };
  const table: [unknown, RegExp][] = [
    [
      [401, refused],
      / needs an API token: A token is required \(HTTP 401\); make one .* put it into LMSTUDIO_API_TOKEN$/,
    ],
    [[200, refused], / needs an API token: A token is required \(HTTP 200\)/],
    [[403, { error: 'no' }], / needs an API token: no \(HTTP 403\)/],
    [[401, '', ''], / needs an API token: Unauthorized \(HTTP 401\)/],
  ];
  for (const [response, words] of table) {
    for (const { route, run } of Object.values(calls)) {
      const { driver, endpoint } = await against(t, { ...fine, [route]: response });
      const error = await failure(run(driver));
      assert.equal(error.code, 'backend_error');
      assert.match(error.message, words);
      assert.ok(error.message.includes(endpoint));
    }
  }
});

test('the token goes with every request; a wrong one is told from a missing one and never repeated', async t => {
  const apiToken = 'sk-lm-s3cret:t0ken';
  const withToken = await against(
    t,
    {
      'GET /api/v1/models': { models: [entry('x', 'x'), entry('y')] },
      'POST /api/v1/models/load': { instance_id: 'y' },
      'POST /api/v1/models/unload': { instance_id: 'x' },
      'POST /api/v1/models/download': job,
      'GET /api/v1/models/download/status/j': { status: 'completed' },
    },
    { apiToken: `${apiToken}\n` },
  );
  await withToken.driver.load(callOf(), { model: 'y', keepAlive: '' });
  await withToken.driver.unload(callOf(), model('x'));
  await all(withToken.driver.pull(callOf(), { model: 'x' }));
  assert.equal(new Set(withToken.requests.map(({ path }) => path)).size, 5);
  for (const { headers } of withToken.requests) assert.equal(headers.authorization, `Bearer ${apiToken}`);

  const { driver } = await against(
    t,
    { 'GET /api/v1/models': [401, { error: { code: 'invalid_api_key', message: `no such token: ${apiToken}` } }] },
    { apiToken },
  );
  const { message = '' } = await driver.describe(callOf());
  assert.match(message, / needs an API token other than the one in LMSTUDIO_API_TOKEN: no such token: … \(HTTP 401\)/);
  assert.throws(() => driverAt('http://h', { apiToken: 'two words' }), /the API token for lmstudio has a blank/);
});
