import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { all, answer, callOf, failure, serve } from '../scripted.ts';
import { fixtureJson } from './fixtures.ts';
import { against, driverAt, model } from './host.ts';

test('every failure of the error table has its code, in words without markup', async t => {
  for (const { call, status, contentType, body, expect } of fixtureJson('errors.json').cases) {
    const { endpoint } = await serve(t, ({ path, body: sent }, response) => {
      const unloading =
        call === 'delete' && path === '/api/generate' && (sent as { keep_alive?: unknown }).keep_alive === 0;
      if (unloading) answer(response, 404, { error: "model 'nope' not found" });
      else answer(response, status, body, contentType);
    });
    const driver = driverAt(endpoint);
    const calls: Record<string, () => Promise<unknown>> = {
      load: () => driver.load(callOf(), { model: 'nope:latest', keepAlive: '10m' }),
      delete: () => driver.remove(callOf(), model('nope')),
      ps: () => driver.loaded(callOf()),
      tags: () => driver.models(callOf()),
      pull: () => all(driver.pull(callOf(), { model: 'no pe' })),
    };
    let message: string;
    if (call === 'version') {
      const described = await driver.describe(callOf());
      assert.equal(described.healthy, false);
      message = described.message ?? '';
    } else {
      const error = await failure(calls[call]?.() ?? Promise.resolve());
      assert.ok(error instanceof GatewayError, body);
      assert.equal(error.code, expect, body);
      message = error.message;
    }
    assert.match(message, /ollama: \S/);
    assert.match(message, new RegExp(`\\(HTTP ${status}\\)`));
    assert.doesNotMatch(message, /<|doctype/i);
  }
});

test('each kind of refusal says what can be done about it', async t => {
  const table: [unknown, string, RegExp][] = [
    [[500, { error: 'boom\n\tbang' }], 'backend_error', /^ollama: boom bang \(HTTP 500\)$/],
    [
      [404, '404 page not found', 'text/plain'],
      'backend_error',
      /^ollama: GET \/api\/ps: http:\S+ has no such endpoint; it came with Ollama 0\.1\.38, so this server is older or/,
    ],
    [[405, '405 method not allowed', 'text/plain'], 'backend_error', /has no such endpoint/],
    [[404, { detail: 'Not Found' }], 'backend_error', /has no such endpoint/],
    [[404, { error: 'gone' }], 'backend_error', /^ollama: gone \(HTTP 404\)$/],
    [[404, { error: { message: 'x', type: 'not_found' } }], 'backend_error', /has no such endpoint/],
    [[400, { error: 'odd' }], 'backend_error', /^ollama: odd \(HTTP 400\)$/],
    [[403, '', ''], 'backend_error', /refused without a word \(HTTP 403\); .*Host: localhost.*OLLAMA_HOST/],
    [[401, 'Authorization Required', 'text/plain'], 'backend_error', /asks for credentials, and the gateway has none$/],
    [
      [502, '<html><body><h1>502 Bad Gateway</h1>', 'text/html'],
      'backend_error',
      /a web page titled "502 Bad Gateway" \(/,
    ],
    [[503, '', ''], 'backend_error', /^ollama: GET \/api\/ps: Service Unavailable \(HTTP 503\)$/],
    [
      [401, { error: 'unauthorized', signin_url: 'https://ollama.com/connect?key=s3cret' }],
      'backend_error',
      /^ollama: unauthorized \(HTTP 401\); sign the host in with "ollama signin"$/,
    ],
  ];
  for (const [response, code, words] of table) {
    const { driver } = await against(t, { 'GET /api/ps': response });
    const error = await failure(driver.loaded(callOf()));
    assert.equal(error.code, code);
    assert.match(error.message, words);
    assert.doesNotMatch(error.message, /s3cret/);
  }
  const away = await serve(t, (_, response) => {
    response.writeHead(307, { location: 'https://sso.example.com/login?state=s3cret' }).end();
  });
  assert.match(
    (await failure(driverAt(away.endpoint).models(callOf()))).message,
    /^ollama: GET \/api\/tags: a redirect to https:\/\/sso\.example\.com\/login \(HTTP 307\); redirects are not followed/,
  );
});
