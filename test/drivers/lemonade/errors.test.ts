import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { all, answer, callOf, failure, serve } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, driverAt, list, model } from './host.ts';

test('every failure of the error table has its code, in words without line breaks', async t => {
  for (const { call, status, body, expect } of fixtureJson('errors.json').cases) {
    const { endpoint } = await serve(t, ({ method, path }, response) => {
      const looking = ['load', 'delete'].includes(call) && method === 'GET' && path === '/api/v1/models';
      if (looking) answer(response, 200, list('Nope'));
      else answer(response, status, body);
    });
    const driver = driverAt(endpoint);
    const calls: Record<string, () => Promise<unknown>> = {
      load: () => driver.load(callOf(), { model: 'Nope', keepAlive: '10m' }),
      unload: () => driver.unload(callOf(), model('Nope')),
      delete: () => driver.remove(callOf(), model('Nope')),
      pull: () => all(driver.pull(callOf(), { model: 'Nope' })),
      any: () => driver.models(callOf()),
    };
    if (expect === 'success (no-op)') {
      await calls[call]?.();
      continue;
    }
    let message: string;
    if (call === 'health') {
      const described = await driver.describe(callOf());
      assert.equal(described.healthy, false);
      message = described.message ?? '';
    } else {
      const error = await failure(calls[call]?.() ?? Promise.resolve());
      assert.ok(error instanceof GatewayError, JSON.stringify(body));
      assert.equal(error.code, expect, JSON.stringify(body));
      message = error.message;
    }
    assert.match(message, /lemonade: \S/);
    assert.doesNotMatch(message, /[\n\t]/);
  }
});

test('each kind of refusal says what can be done about it', async t => {
  const coded = (code: string) => ({ error: { code, message: 'the words', type: code } });
  const table: [unknown, string, RegExp][] = [
    [[500, { error: 'boom\n\tbang' }], 'backend_error', /^lemonade: boom bang \(HTTP 500\)$/],
    [[404, coded('model_not_found')], 'not_found', /^model not found: lemonade: the words \(HTTP 404\)$/],
    [[404, { error: { message: 'the words', type: 'model_not_found' } }], 'not_found', /the words \(HTTP 404\)$/],
    [[400, coded('not_found')], 'not_found', /the words \(HTTP 400\)$/],
    [[404, { error: 'gone' }], 'not_found', /^model not found: lemonade: gone \(HTTP 404\)$/],
    [
      [422, { error: 'Model not found: x' }],
      'not_found',
      /^model not found: lemonade: Model not found: x \(HTTP 422\)$/,
    ],
    [
      [422, { code: 'bad_file', error: 'file not found in it' }],
      'invalid_request',
      /^invalid request: lemonade: file not found in it/,
    ],
    [[422, { error: 'odd' }], 'invalid_request', /^invalid request: lemonade: odd \(HTTP 422\)$/],
    [
      [400, { error: 'Invalid JSON in request body: x' }],
      'invalid_request',
      /^invalid request: lemonade: Invalid JSON in request body: x \(HTTP 400\)$/,
    ],
    [[409, coded('router_residency_conflict')], 'conflict', /^conflict: lemonade: the words \(HTTP 409\)$/],
    [[500, coded('model_load_error')], 'backend_error', /^lemonade: the words \(HTTP 500\)$/],
    [[500, { error: 'libfoo.so not found' }], 'backend_error', /^lemonade: libfoo\.so not found \(HTTP 500\)$/],
    [
      [401, { error: 'Invalid or missing API key' }],
      'backend_error',
      /^lemonade: Invalid or missing API key \(HTTP 401\); the server wants an API key \(LEMONADE_API_KEY\), and the gateway/,
    ],
    [
      [403, { error: 'Origin not allowed' }],
      'backend_error',
      /^lemonade: Origin not allowed \(HTTP 403\); the server, or a proxy before it, does not let the gateway in$/,
    ],
    [
      [401, 'Authorization Required', 'text/plain'],
      'backend_error',
      /the text Authorization Required \(HTTP 401\); something in front of Lemonade asks for credentials, and the gateway has/,
    ],
    [
      [405, { error: 'Method Not Allowed. Use POST for this endpoint' }],
      'backend_error',
      /^lemonade: POST \/api\/v1\/load: http:\S+ has no such endpoint; .*: Method Not Allowed\. Use POST for this endpoint \(/,
    ],
    [
      [404, { detail: 'Not Found' }],
      'backend_error',
      /^lemonade: POST \/api\/v1\/load: http:\S+ has no such endpoint; is this the root address of a Lemonade Server, and/,
    ],
    [
      [404, { error: { message: 'The requested endpoint does not exist', type: 'not_found' } }],
      'backend_error',
      /has no such endpoint; .*: The requested endpoint does not exist \(HTTP 404\)$/,
    ],
    [
      [502, '<html><body><h1>502 Bad Gateway</h1>', 'text/html'],
      'backend_error',
      /^lemonade: POST \/api\/v1\/load: a web page titled "502 Bad Gateway" \(HTTP 502\)$/,
    ],
    [[503, '', ''], 'backend_error', /^lemonade: POST \/api\/v1\/load: Service Unavailable \(HTTP 503\)$/],
    [[500, { error: { why: 1 } }], 'backend_error', /^lemonade: {"why":1} \(HTTP 500\)$/],
    [[500, { status: 'error', message: 'docs shape' }], 'backend_error', /^lemonade: docs shape \(HTTP 500\)$/],
  ];
  for (const [response, code, words] of table) {
    const { driver } = await against(t, { 'GET /api/v1/models': list('x'), 'POST /api/v1/load': response });
    const error = await failure(driver.load(callOf(), { model: 'x', keepAlive: '5m' }));
    assert.equal(error.code, code, JSON.stringify(response));
    assert.match(error.message, words);
  }
});

test('a list has no model that could be missing', async t => {
  for (const response of [
    [404, { error: { code: 'model_not_found', message: 'm' } }],
    [422, { error: 'Model not found: x' }],
    [400, { error: 'odd' }],
  ]) {
    const { driver } = await against(t, { 'GET /api/v1/models': response });
    assert.equal((await failure(driver.models(callOf()))).code, 'backend_error');
  }
});

test('a redirect is not followed, and the message says where to', async t => {
  const away = await serve(t, (_, response) => {
    response.writeHead(307, { location: 'https://sso.example.com/login?state=s3cret' }).end();
  });
  const driver = driverAt(away.endpoint);
  for (const work of [
    () => driver.models(callOf()),
    () => driver.unload(callOf(), model('x')),
    () => all(driver.pull(callOf(), { model: 'x' })),
  ]) {
    const error = await failure(work());
    assert.equal(error.code, 'backend_error');
    assert.match(
      error.message,
      /^lemonade: (GET|POST) \/api\/v1\/\w+: a redirect to https:\/\/sso\.example\.com\/login \(HTTP 307\); redirects are not/,
    );
  }
  assert.ok(away.requests.every(({ path }) => path.startsWith('/api/v1/')));
});
