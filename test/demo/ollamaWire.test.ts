import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { instant, manualClock, type OllamaOptions, startOllama } from '../../src/demo/ollama.ts';

const bounded = { timeout: 10_000 };
const model = { name: 'qwen3:8b', bytes: 5000, contextLength: 40_960, capabilities: ['completion'] };

async function started(t: TestContext, options: OllamaOptions = {}) {
  const server = await startOllama({ clock: manualClock(), timings: instant, models: [model], ...options });
  t.after(() => server.close());
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const answer = await fetch(server.url + path, { method, headers, ...sent });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text(), answer };
  };
  return { server, call };
}

describe('documents', bounded, () => {
  test('answer HEAD where a real server does, and only there', async t => {
    const { call } = await started(t);
    for (const path of ['/', '/api/version', '/api/tags']) {
      const { status, text: body, answer } = await call('HEAD', path);
      assert.deepEqual([status, body], [200, '']);
      assert.ok(Number(answer.headers.get('content-length')) > 0);
    }
    assert.equal((await call('HEAD', '/api/ps')).status, 405);
  });

  test('carry the content type of their kind', async t => {
    const { call } = await started(t);
    assert.deepEqual((await call('GET', '/')).text, 'Ollama is running');
    assert.equal((await call('GET', '/')).type, 'text/plain; charset=utf-8');
    assert.equal((await call('GET', '/api/version')).text, '{"version":"0.33.0"}');
    assert.equal((await call('GET', '/api/version')).type, 'application/json; charset=utf-8');
    assert.equal((await call('POST', '/api/pull', { model: 'nope' })).type, 'application/x-ndjson');
    assert.equal(
      (await call('POST', '/api/generate', { model: 'qwen3:8b', prompt: 'hi' })).type,
      'application/x-ndjson',
    );
  });

  test('show loading and unloading byte for byte', async t => {
    const { call } = await started(t);
    assert.equal(
      (await call('POST', '/api/generate', { model: 'qwen3:8b', keep_alive: -1 })).text,
      '{"model":"qwen3:8b","created_at":"2026-08-22T08:00:00.000364907Z","response":"","done":true,"done_reason":"load"}',
    );
    assert.match((await call('GET', '/api/ps')).text, /"expires_at":"2318-12-02T09:47:16\.855140714\+02:00"/);
    assert.equal(
      (await call('POST', '/api/chat', { model: 'qwen3:8b', messages: [], keep_alive: 0 })).text,
      '{"model":"qwen3:8b","created_at":"2026-08-22T08:00:00.000364907Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"unload"}',
    );
    assert.equal((await call('GET', '/api/ps')).text, '{"models":[]}');
  });

  test('are empty after a delete', async t => {
    const { call } = await started(t);
    const { status, text: body, type } = await call('DELETE', '/api/delete', { model: 'qwen3:8b' });
    assert.deepEqual([status, body, type], [200, '', null]);
    assert.equal((await call('DELETE', '/api/delete', { model: 'qwen3:8b' })).status, 404);
    assert.equal((await call('DELETE', '/api/delete')).text, '{"error":"missing request body"}');
  });

  test('escape what HTML would read, as Go does', async t => {
    const { call } = await started(t);
    const { text: body } = await call('POST', '/api/show', { model: 'a' });
    assert.equal(body, `{"error":"model 'a' not found"}`);
    const refusal = await call('DELETE', '/api/delete', { model: '<b>' });
    assert.equal(refusal.text, '{"error":"name \\"\\u003cb\\u003e\\" is invalid"}');
  });

  test('show dates as they were given, even if they are none', async t => {
    const { call } = await started(t, {
      models: [{ name: 'old', bytes: 1, modifiedAt: '2026-07-28T18:00:00-07:00', families: null }],
    });
    const [row] = JSON.parse((await call('GET', '/api/tags')).text).models;
    assert.equal(row.modified_at, '2026-07-28T18:00:00-07:00');
    assert.equal(row.details.families, null);
  });
});

describe('requests', bounded, () => {
  test('are read as JSON whatever they call themselves', async t => {
    const { call } = await started(t);
    const headers = { 'content-type': 'text/html' };
    assert.equal((await call('POST', '/api/show', { model: 'qwen3:8b' }, headers)).status, 200);
    assert.equal((await call('POST', '/api/show', '{"model":', headers)).text, '{"error":"unexpected EOF"}');
    assert.equal(
      (await call('POST', '/api/pull', { model: 5 })).text,
      '{"error":"json: cannot unmarshal number into Go struct field PullRequest.model of type string"}',
    );
  });

  for (const [keepAlive, expected] of [
    ['-1', 'time: missing unit in duration "-1"'],
    ['300', 'time: missing unit in duration "300"'],
    ['soon', 'time: invalid duration "soon"'],
    ['', 'time: invalid duration ""'],
    ['1x', 'time: unknown unit "x" in duration "1x"'],
    [true, "Unsupported type: 'bool'"],
  ] as const) {
    test(`with keep_alive ${JSON.stringify(keepAlive)} are refused in the words of Go`, async t => {
      const { call } = await started(t);
      const { status, text: body } = await call('POST', '/api/generate', { model: 'qwen3:8b', keep_alive: keepAlive });
      assert.deepEqual([status, JSON.parse(body)], [400, { error: expected }]);
    });
  }

  for (const [keepAlive, seconds] of [
    [90, 90],
    ['1h30m', 5400],
    ['1.5s', 1.5],
    ['-1m', Number.POSITIVE_INFINITY],
    [-5, Number.POSITIVE_INFINITY],
    [null, 300],
  ] as const) {
    test(`with keep_alive ${JSON.stringify(keepAlive)} keep the model ${seconds} seconds`, async t => {
      const { server, call } = await started(t);
      await call('POST', '/api/generate', { model: 'qwen3:8b', keep_alive: keepAlive });
      const expires = server.loaded()[0]?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
      assert.equal((expires - Date.parse('2026-08-22T08:00:00Z')) / 1000, seconds);
    });
  }

  test('without a usable name are refused by each route in its own words', async t => {
    const { call } = await started(t);
    const said = async (method: string, path: string, body: object) => {
      const { status, text: answer } = await call(method, path, body);
      return [status, JSON.parse(answer).error];
    };
    assert.deepEqual(await said('POST', '/api/generate', {}), [404, "model '' not found"]);
    assert.deepEqual(await said('POST', '/api/chat', {}), [400, 'model is required']);
    assert.deepEqual(await said('POST', '/api/show', {}), [400, 'model is required']);
    assert.deepEqual(await said('POST', '/api/pull', {}), [400, 'invalid model name']);
    assert.deepEqual(await said('POST', '/api/generate', { model: 'a b' }), [400, 'invalid model name']);
    assert.deepEqual(await said('POST', '/api/pull', { name: 'x:cloud:local' }), [
      400,
      'use either :local or :cloud, not both: "x:cloud:local"',
    ]);
  });

  test('are recorded with method, path, headers and body', async t => {
    const { server, call } = await started(t);
    await call('POST', '/api/show?x=1', { model: 'qwen3:8b' }, { 'x-test': 'yes' });
    const recorded = await server.requested('/api/show');
    assert.partialDeepStrictEqual(recorded, { method: 'POST', path: '/api/show', body: { model: 'qwen3:8b' } });
    assert.equal(recorded.headers['x-test'], 'yes');
    assert.equal(await recorded.ended, 'answered');
  });
});

describe('the door', bounded, () => {
  const withHost = (url: string, host: string) =>
    new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      request(`${url}/api/version`, { headers: { host } }, async answer => {
        resolve({ status: answer.statusCode, body: await text(answer) });
      })
        .on('error', reject)
        .end();
    });

  test('is open to local names and closed to public ones, with an empty body', async t => {
    const { server } = await started(t);
    for (const host of ['localhost:11434', '192.168.1.9', '[::1]:11434', 'box.local', 'host.docker.internal:80']) {
      assert.equal((await withHost(server.url, host)).status, 200, host);
    }
    for (const host of ['ollama.example.com', '8.8.8.8', 'local']) {
      assert.deepEqual(await withHost(server.url, host), { status: 403, body: '' }, host);
    }
  });

  test('is open to every name on a server that listens to the network, or is old', async t => {
    const { server } = await started(t, { checkHost: false });
    assert.equal((await withHost(server.url, 'ollama.example.com')).status, 200);
    const { server: old } = await started(t, { version: '0.1.28' });
    assert.equal((await withHost(old.url, 'ollama.example.com')).status, 200);
  });

  test('lets local pages and listed ones read, and answers their preflights', async t => {
    const { call } = await started(t, { origins: ['https://portal.example'] });
    for (const origin of ['http://localhost:3000', 'app://obsidian', 'https://portal.example']) {
      const { status, answer } = await call('GET', '/api/version', undefined, { origin });
      assert.equal(status, 200, origin);
      assert.equal(answer.headers.get('access-control-allow-origin'), origin);
      assert.equal((await call('OPTIONS', '/api/pull', undefined, { origin })).status, 204);
    }
  });
});

describe('an older release', bounded, () => {
  const rows = async (call: Awaited<ReturnType<typeof started>>['call'], path: string) =>
    JSON.parse((await call('GET', path)).text).models;

  test('before 0.30 lists no capabilities and no context', async t => {
    const { call } = await started(t, { version: '0.24.0' });
    const [row] = await rows(call, '/api/tags');
    assert.equal('capabilities' in row, false);
    assert.equal('context_length' in row.details, false);
    const shown = JSON.parse((await call('POST', '/api/show', { model: 'qwen3:8b' })).text);
    assert.deepEqual(shown.capabilities, ['completion']);
  });

  test('before 0.10 lists loaded models without context', async t => {
    const { server, call } = await started(t, { version: '0.9.6' });
    server.load('qwen3:8b');
    const [row] = await rows(call, '/api/ps');
    assert.equal('context_length' in row, false);
  });

  test('before 0.6.9 knows no 405', async t => {
    const { call } = await started(t, { version: '0.6.8' });
    assert.equal((await call('PUT', '/api/tags')).status, 404);
  });

  test('before 0.3.11 loads in order to unload', async t => {
    const { call, server } = await started(t, { version: '0.3.10' });
    const { text: body } = await call('POST', '/api/generate', { model: 'qwen3:8b', keep_alive: 0 });
    assert.equal(JSON.parse(body).done_reason, 'load');
    assert.deepEqual(server.loaded(), []);
  });

  test('before 0.3.6 loads nothing for an empty input', async t => {
    const { call, server } = await started(t, { version: '0.3.5' });
    assert.equal((await call('POST', '/api/embed', { model: 'qwen3:8b', input: '' })).status, 200);
    assert.deepEqual(server.loaded(), []);
    assert.equal((await call('POST', '/api/embed', { model: 'qwen3:8b' })).text, '{"error":"invalid input type"}');
  });

  test('before 0.2 forgets a keep-alive with the next request', async t => {
    const { call, server } = await started(t, { version: '0.1.48' });
    server.load('qwen3:8b', -1);
    await call('POST', '/api/generate', { model: 'qwen3:8b', prompt: 'hi', stream: false });
    assert.equal(server.loaded()[0]?.expiresAt?.toISOString(), '2026-08-22T08:05:00.000Z');
  });

  test('before 0.1.38 has no list of loaded models, and null for an empty library', async t => {
    const { call } = await started(t, { version: '0.1.37', models: [] });
    assert.equal((await call('GET', '/api/tags')).text, '{"models":null}');
    assert.deepEqual(
      [(await call('GET', '/api/ps')).status, (await call('GET', '/api/ps')).text],
      [404, '404 page not found'],
    );
  });

  test('comes back as a newer one after an update', async t => {
    const { server, call } = await started(t, { version: '0.24.0' });
    await server.stop();
    await assert.rejects(call('GET', '/api/version'));
    await server.start('0.33.1-rc2');
    assert.equal((await call('GET', '/api/version')).text, '{"version":"0.33.1-rc2"}');
    const [row] = await rows(call, '/api/tags');
    assert.deepEqual(row.capabilities, ['completion']);
  });
});
