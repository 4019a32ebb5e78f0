import assert from 'node:assert/strict';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { answerWords, createHttp, type HttpAnswer, oneLine, transportWords } from '../../src/drivers/http.ts';
import { answer, callOf, failure, serve, soon } from './scripted.ts';

const client = (endpoint: string) => createHttp({ kind: 'ollama', product: 'Ollama', endpoint });
const get = { method: 'GET', path: '/api/tags' } as const;

test('no timer of the HTTP library ends a request, and nothing of the caller travels', async t => {
  const options: { headersTimeout: unknown; bodyTimeout: unknown }[] = [];
  const onCreate = (message: unknown) => options.push((message as { request: (typeof options)[0] }).request);
  diagnostics.subscribe('undici:request:create', onCreate);
  t.after(() => diagnostics.unsubscribe('undici:request:create', onCreate));
  const { endpoint, requests } = await serve(t, (_, response) => answer(response, 200, {}));
  const http = client(endpoint);
  await http.document(callOf(), get);
  await http.document(callOf(), { method: 'POST', path: '/api/generate', body: { model: 'é' }, budgetMs: 600_000 });
  const { chunks } = await http.stream(callOf(), { method: 'POST', path: '/api/pull', body: {} });
  for await (const _ of chunks ?? []);
  assert.deepEqual(
    options.map(({ headersTimeout, bodyTimeout }) => [headersTimeout, bodyTimeout]),
    [
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  );
  assert.deepEqual(Object.keys(requests[0]?.headers ?? {}).sort(), ['accept', 'connection', 'host', 'user-agent']);
  assert.deepEqual(Object.keys(requests[1]?.headers ?? {}).sort(), [
    'accept',
    'connection',
    'content-length',
    'content-type',
    'host',
    'user-agent',
  ]);
  assert.deepEqual(requests[1]?.body, { model: 'é' });
});

test('an endpoint with a path keeps it', async t => {
  const { endpoint, requests } = await serve(t, (_, response) => answer(response, 200, {}));
  await client(`${endpoint}/behind/proxy`).document(callOf(), get);
  assert.equal(requests[0]?.path, '/behind/proxy/api/tags');
});

test('a token of the operator goes with every request, and is not repeated when the server does', async t => {
  const { endpoint, requests } = await serve(t, ({ method, headers }, response) =>
    answer(response, method === 'GET' ? 401 : 200, `no: ${headers.authorization}`, 'text/plain'),
  );
  const http = createHttp({ kind: 'ollama', product: 'Ollama', endpoint, apiToken: ' sk-lm-s3cret\n' });
  assert.equal((await http.document(callOf(), get)).text, 'no: Bearer …');
  assert.equal((await http.stream(callOf(), get)).answer.text, 'no: Bearer …');
  await http.document(callOf(), { method: 'POST', path: '/', body: {} });
  assert.deepEqual(
    requests.map(({ headers }) => headers.authorization),
    requests.map(() => 'Bearer sk-lm-s3cret'),
  );
  const blank = createHttp({ kind: 'ollama', product: 'Ollama', endpoint, apiToken: ' ' });
  assert.equal((await blank.document(callOf(), get)).text, 'no: undefined');
});

test('a token that no header can carry is refused at once, without repeating it', () => {
  for (const apiToken of ['two words', 'two\nlines', 'schlüssel'])
    assert.throws(
      () => createHttp({ kind: 'ollama', product: 'Ollama', endpoint: 'http://h', apiToken }),
      /^GatewayError: invalid request: the API token for ollama has a blank, a line break or a foreign character in it$/,
    );
});

test('a redirect is answered as it is and not followed', async t => {
  const other = await serve(t, (_, response) => answer(response, 200, {}));
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(302, { location: `${other.endpoint}/login?state=s3cret` }).end();
  });
  const found = await client(endpoint).document(callOf(), get);
  assert.equal(found.status, 302);
  assert.equal(found.location, `${other.endpoint}/login`);
  assert.equal(other.requests.length, 0);
});

test('a refused connection names the address and asks whether the server runs', async t => {
  const { endpoint, server } = await serve(t, (_, response) => answer(response, 200, {}));
  server.close();
  await once(server, 'close');
  const error = await failure(client(endpoint).document(callOf(), get));
  assert.equal(error.code, 'backend_error');
  assert.equal(error.message, `ollama: GET /api/tags: connection refused at ${endpoint}; is Ollama running there?`);
});

test('a host that accepts and never answers costs the budget, or less when the deadline is nearer', async t => {
  const { endpoint } = await serve(t, () => {});
  const http = client(endpoint);
  const budget = await soon(failure(http.document(callOf(), { ...get, budgetMs: 30 })), 'budget');
  assert.equal(budget.message, `ollama: GET /api/tags: no answer from ${endpoint} within 30 ms`);
  const deadline = await soon(failure(http.document(callOf({ timeoutMs: 30 }), get)), 'deadline');
  assert.match(deadline.message, /no answer from http:\/\/127\.0\.0\.1:\d+ (within|before the request's deadline)/);
  assert.equal(deadline.code, 'backend_error');
});

test('a body that stops in the middle costs the budget as well', async t => {
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"models":');
  });
  const error = await soon(failure(client(endpoint).document(callOf(), { ...get, budgetMs: 50 })), 'half a body');
  assert.match(error.message, /no answer .* within 50 ms$/);
});

test('an aborted caller is heard at once: before sending, while queued, while waiting', async t => {
  const arrived = Promise.withResolvers<void>();
  let closed = 0;
  const { endpoint, requests } = await serve(t, (_, response) => {
    response.on('close', () => closed++);
    if (requests.length === 8) arrived.resolve();
  });
  const http = client(endpoint);
  const early = await failure(http.document(callOf({ signal: AbortSignal.abort() }), get));
  assert.equal(early.message, 'ollama: GET /api/tags: cancelled by the caller');

  const abort = new AbortController();
  const call = callOf({ signal: abort.signal });
  const waiting = Array.from({ length: 8 }, () => failure(http.document(call, get)));
  await soon(arrived.promise, 'eight requests');
  const queuedAbort = new AbortController();
  const queued = failure(http.document(callOf({ signal: queuedAbort.signal }), get));
  queuedAbort.abort();
  assert.match((await soon(queued, 'queued')).message, /cancelled by the caller/);
  assert.equal(closed, 0);
  abort.abort();
  for (const error of await soon(Promise.all(waiting), 'waiting')) assert.match(error.message, /cancelled/);
});

test('streams that hold their connections do not keep a document waiting', async t => {
  const { endpoint, requests } = await serve(t, ({ path }, response) => {
    if (path === '/api/pull') response.writeHead(200).write('{}\n');
    else answer(response, 200, {});
  });
  const http = client(endpoint);
  const abort = new AbortController();
  const call = callOf({ signal: abort.signal });
  const pulls = Array.from({ length: 40 }, () => http.stream(call, { method: 'POST', path: '/api/pull', body: {} }));
  await soon(Promise.all(pulls.slice(0, 32)), 'the pulls that fit');
  const { status } = await soon(http.document(callOf(), get), 'a read beside them');
  assert.equal(status, 200);
  assert.equal(requests.filter(({ path }) => path === '/api/pull').length, 32);
  abort.abort();
  await soon(Promise.allSettled(pulls), 'the rest');
});

test('a document larger than 32 MiB is given up', async t => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(megabyte));
    };
    response.on('drain', more);
    more();
  });
  const error = await soon(failure(client(endpoint).document(callOf(), get)), 'huge answer', 7_000);
  assert.match(error.message, /the answer of http:\/\/127\.0\.0\.1:\d+ is larger than 32 MiB$/);
});

test('of an endless refusal 64 KiB are read and the connection is closed', async t => {
  const closed = Promise.withResolvers<void>();
  const { endpoint } = await serve(t, (_, response) => {
    response.on('close', closed.resolve);
    response.writeHead(500, { 'content-type': 'text/plain' });
    const more = () => {
      while (!response.destroyed && response.write('y'.repeat(65_536)));
    };
    response.on('drain', more);
    more();
  });
  for (const kind of ['document', 'stream'] as const) {
    const got = await soon<unknown>(client(endpoint)[kind](callOf(), get), kind);
    const { text } = kind === 'stream' ? (got as { answer: HttpAnswer }).answer : (got as HttpAnswer);
    assert.equal(text.length, 65_536);
    await soon(closed.promise, 'close');
  }
});

test('a connection dropped in the middle of a body is lost, not complete', async t => {
  const { endpoint } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
    response.write('{"models":', () => response.socket?.destroy());
  });
  const error = await soon(failure(client(endpoint).document(callOf(), get)), 'drop');
  assert.match(error.message, /the connection to http:\/\/127\.0\.0\.1:\d+ was lost before the answer was complete$/);
});

test('a server that speaks something else is told apart from a dead one', async t => {
  const server = createServer(socket => {
    socket.on('error', () => {});
    socket.end('SSH-2.0-OpenSSH_9.9\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const plain = await soon(failure(client(`http://127.0.0.1:${port}`).document(callOf(), get)), 'ssh');
  assert.match(plain.message, /does not speak HTTP; check scheme and port$/);
  const secure = await soon(failure(client(`https://127.0.0.1:${port}`).document(callOf(), get)), 'ssh over TLS');
  assert.match(secure.message, /does not speak TLS \(ERR_SSL_\w+\); should it be http:\/\/\?$/);
});

test('transport failures are put in our own words, without the address behind the name', () => {
  const table: [unknown, RegExp][] = [
    [{ code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND box' }, /host name box cannot be resolved \(ENOTFOUND\)/],
    [{ code: 'UND_ERR_CONNECT_TIMEOUT' }, /cannot connect to http:\/\/box:1 in time/],
    [{ code: 'EHOSTUNREACH', message: 'connect EHOSTUNREACH 10.1.2.3:1' }, /no route to http:\/\/box:1/],
    [{ code: 'UND_ERR_SOCKET', message: 'other side closed' }, /was lost before/],
    [{ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, /certificate of http:\/\/box:1 is not accepted/],
    [new AggregateError([{ code: 'ECONNREFUSED' }]), /connection refused at http:\/\/box:1; is Ollama running there\?/],
    [{ code: 'EWHATEVER', message: '10.1.2.3' }, /no answer from http:\/\/box:1: EWHATEVER$/],
    [new Error('odd\nthing'), /no answer from http:\/\/box:1: odd thing$/],
  ];
  for (const [error, words] of table) {
    assert.match(transportWords(error, 'http://box:1', 'Ollama'), words);
    assert.doesNotMatch(transportWords(error, 'http://box:1', 'Ollama'), /10\.1\.2\.3/);
  }
});

test('foreign text becomes one short line without markup', () => {
  assert.equal(oneLine('a\r\n\n\tb\u0000c  d '), 'a b c d');
  assert.equal(oneLine('x'.repeat(600)), `${'x'.repeat(500)}…`);
  assert.equal(oneLine('<|im_start|> stays'), '<|im_start|> stays');
  assert.equal(
    oneLine('pull: 502: <!DOCTYPE html><title>Bad\nGateway</title>…'),
    'pull: 502: (a web page titled "Bad Gateway")',
  );
});

test('an unexpected answer is described by what it is', () => {
  const of = (text: string, status = 200, contentType = '', location?: string) =>
    answerWords({ text, status, contentType, location });
  assert.equal(of('<!doctype html><title>Sign in</title>', 200, 'text/html'), 'a web page titled "Sign in"');
  assert.equal(of('<html><body><h1>502 Bad Gateway</h1>', 502), 'a web page titled "502 Bad Gateway"');
  assert.equal(of('plain', 200, 'text/html'), 'a web page');
  assert.equal(of('', 200), 'an empty answer');
  assert.equal(of(' ', 502), 'Bad Gateway');
  assert.equal(of('Ollama is running'), 'the text Ollama is running');
  assert.equal(of('{"a":\n1}'), 'the document {"a": 1}');
  assert.equal(of('', 302, '', 'https://sso.example.com/x'), 'a redirect to https://sso.example.com/x');
});
