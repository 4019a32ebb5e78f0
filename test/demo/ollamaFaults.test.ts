import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { instant, manualClock, type OllamaOptions, startOllama } from '../../src/demo/ollama.ts';

const bounded = { timeout: 10_000 };

async function started(t: TestContext, options: OllamaOptions = {}) {
  const clock = manualClock();
  const server = await startOllama({ clock, timings: instant, models: [{ name: 'qwen3:8b', bytes: 1 }], ...options });
  t.after(() => server.close());
  return { server, clock, get: (path: string, init?: RequestInit) => fetch(server.url + path, init) };
}

/** The body as it arrives, piece by piece; `fetch` would join what it has not yet been asked for. */
async function piecesOf(url: string, method: string, body = ''): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  const sent = request(url, { method }).end(body);
  const [answer] = await once(sent, 'response');
  answer.on('data', (piece: Buffer) => pieces.push(piece));
  await once(answer, 'end');
  return pieces;
}

describe('a fault', bounded, () => {
  test('that hangs takes the request and never answers, until it is cleared', async t => {
    const { server, get } = await started(t);
    const clear = server.fault({ path: '/api/tags', kind: 'hang' });
    const abort = new AbortController();
    const hanging = get('/api/tags', { signal: abort.signal });
    const recorded = await server.requested('/api/tags');
    assert.equal((await get('/api/version')).status, 200);
    abort.abort();
    await assert.rejects(hanging);
    assert.equal(await recorded.ended, 'cut');
    clear();
    assert.equal((await get('/api/tags')).status, 200);
  });

  test('that answers can be a page, a plain text, or an error inside a 200', async t => {
    const { server, get } = await started(t);
    const page = '<!doctype html><title>Sign in</title>';
    for (const [status, contentType, body] of [
      [502, 'text/html', page],
      [200, 'text/html', page],
      [404, 'text/plain', '404 page not found'],
      [403, '', ''],
      [200, 'application/json', '{"error":"Unexpected endpoint or method. (GET /api/version)"}'],
    ] as const) {
      const clear = server.fault({ path: '/api/version', kind: 'answer', status, contentType, body });
      const answer = await get('/api/version');
      assert.deepEqual(
        [answer.status, answer.headers.get('content-type') ?? '', await answer.text()],
        [status, contentType, body],
      );
      clear();
    }
  });

  test('meets just the nth request when it says so', async t => {
    const { server, get } = await started(t);
    server.fault({ path: '/api/ps', nth: 2, kind: 'answer', status: 500, body: '{"error":"once"}' });
    const statuses = [];
    for (const _ of [1, 2, 3]) statuses.push((await get('/api/ps')).status);
    assert.deepEqual(statuses, [200, 500, 200]);
  });

  test('meets just its method, and the newest one wins', async t => {
    const { server, get } = await started(t);
    server.fault({ path: '/api/tags', method: 'HEAD', kind: 'answer', status: 500, body: '' });
    assert.equal((await get('/api/tags')).status, 200);
    server.fault({ path: '/api/tags', kind: 'answer', status: 503, body: '', headers: { 'retry-after': '7' } });
    const answer = await get('/api/tags', { method: 'HEAD' });
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '7']);
  });

  test('that drops closes the connection before any answer', async t => {
    const { server, get } = await started(t);
    server.fault({ path: '/api/tags', kind: 'drop' });
    await assert.rejects(get('/api/tags'), { message: 'fetch failed' });
  });

  test('that drops late cuts a document or a stream at its byte', async t => {
    const { server, get } = await started(t);
    server.fault({ path: '/api/tags', kind: 'drop', afterBytes: 10 });
    const answer = await get('/api/tags');
    assert.equal(answer.status, 200);
    await assert.rejects(answer.text());

    server.fault({ path: '/api/pull', kind: 'drop', afterBytes: 30 });
    const stream = await get('/api/pull', { method: 'POST', body: '{"model":"qwen3:8b"}' });
    const received: string[] = [];
    await assert.rejects(async () => {
      for await (const chunk of stream.body ?? []) received.push(Buffer.from(chunk).toString());
    });
    assert.equal(received.join(''), '{"status":"pulling manifest"}\n');
  });

  test('that splits sends the true answer in pieces, byte by byte if need be', async t => {
    const { server, get } = await started(t);
    const whole = await (await get('/api/tags')).text();
    server.fault({ path: '/api/tags', kind: 'split', pieceBytes: 1 });
    const pieces = await piecesOf(`${server.url}/api/tags`, 'GET');
    assert.equal(pieces.length, whole.length);
    assert.equal(Buffer.concat(pieces).toString(), whole);
  });

  test('that replays cuts a recorded stream wherever it likes, even inside a character', async t => {
    const { server } = await started(t);
    const body = '{"status":"couldn\'t remove unused layers: „Überprüfung“ 🚧"}\n{"status":"success"}\n';
    const contentType = 'application/x-ndjson';
    server.fault({ path: '/api/pull', kind: 'answer', contentType, body, pieceBytes: 3 });
    const pieces = await piecesOf(`${server.url}/api/pull`, 'POST', '{}');
    assert.ok(pieces.every(piece => piece.byteLength <= 3));
    assert.equal(Buffer.concat(pieces).toString(), body);
  });

  test('that replays can end in the middle of a line', async t => {
    const { server, get } = await started(t);
    const body = '{"status":"pulling manifest"}\n{"status":"pulling 879cc67a846b","tot';
    server.fault({ path: '/api/pull', kind: 'answer', body, afterBytes: 40 });
    const stream = await get('/api/pull', { method: 'POST', body: '{}' });
    await assert.rejects(stream.text());
  });

  test('that delays answers when its time has come', async t => {
    const { server, clock, get } = await started(t);
    server.fault({ path: '/api/version', kind: 'delay', ms: 60_000 });
    let answered = false;
    const answer = get('/api/version').finally(() => {
      answered = true;
    });
    await clock.sleeping();
    await clock.advance(59_999);
    assert.equal(answered, false);
    await clock.advance(1);
    assert.equal((await answer).status, 200);
  });

  test('that is slow sends a piece at a time', async t => {
    const { server, clock, get } = await started(t);
    server.fault({ path: '/api/version', kind: 'split', pieceBytes: 10, everyMs: 1000 });
    const answer = await get('/api/version');
    const body = answer.text();
    await clock.sleeping();
    await clock.advance(2000);
    assert.equal(await body, '{"version":"0.33.0"}');
  });
});

describe('a restart', bounded, () => {
  test('breaks every connection, empties the memory and keeps the library', async t => {
    const { server, get } = await started(t);
    server.load('qwen3:8b', -1);
    server.fault({ path: '/api/version', nth: 1, kind: 'hang' });
    const hanging = get('/api/version');
    await server.requested('/api/version');
    await server.restart();
    await assert.rejects(hanging);
    assert.deepEqual(server.loaded(), []);
    assert.deepEqual(server.models(), ['qwen3:8b']);
    assert.equal((await get('/api/version')).status, 200);
  });

  test('takes as long as it is told, and nobody answers meanwhile', async t => {
    const { server, clock, get } = await started(t);
    const restart = server.restart(5000);
    await clock.sleeping();
    await assert.rejects(get('/api/version'));
    await clock.advance(5000);
    await restart;
    assert.equal((await get('/api/version')).status, 200);
  });

  test('that is closed meanwhile never comes back', async t => {
    const { server, clock, get } = await started(t);
    const restart = server.restart(5000);
    await clock.sleeping();
    await server.close();
    await restart;
    await clock.advance(10_000);
    await assert.rejects(get('/api/version'));
  });
});
