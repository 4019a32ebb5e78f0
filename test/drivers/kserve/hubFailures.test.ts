import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { createHub } from '../../../src/drivers/kserve/hub.ts';
import { answer, callOf, failure, serve, soon } from '../scripted.ts';
import { recording, silent, startLab, tiny } from './hubLab.ts';

const id = 'acme/x';
const rows = [
  { type: 'file', path: 'model.safetensors', size: 135, lfs: { size: 700 } },
  { type: 'file', path: 'model.safetensors.index.json', size: 90 },
];
const about = `/api/models/${id}`;
const tree = `${about}/tree/main?recursive=true`;
const index = `/${id}/resolve/main/model.safetensors.index.json`;

/** A Hub in which some paths answer by a script, and the others like one that works. */
async function scripted(t: TestContext, scripts: Readonly<Record<string, (response: ServerResponse) => void>>) {
  const usual: Readonly<Record<string, unknown>> = {
    [about]: { id, gated: false, private: false },
    [tree]: rows,
    [index]: { metadata: { total_size: 699 }, weight_map: { a: 'model.safetensors' } },
  };
  const { endpoint, requests } = await serve(t, ({ path }, response) => {
    const script = scripts[path];
    if (script) script(response);
    else answer(response, path in usual ? 200 : 404, usual[path] ?? {});
  });
  const { log, lines } = recording('warn');
  const hub = createHub({ endpoint, token: async () => undefined, timeoutMs: 4_000, log });
  const weights = () => soon(hub.weights(callOf(), id, 'main', []), 'weights');
  return { endpoint, requests, hub, weights, lines };
}

const says = (status: number, body: unknown, type?: string) => (response: ServerResponse) =>
  answer(response, status, body, type);

test('what is no answer of the Hub is a failure in words', async t => {
  const page = '<!doctype html><html><title>Sign in</title>';
  const table: [script: (response: ServerResponse) => void, words: RegExp, status?: number][] = [
    [
      says(200, page, 'text/html'),
      /did not answer like the Hugging Face Hub but with a web page titled "Sign in" \(HTTP 200\)$/,
    ],
    [says(200, ''), /but with an empty answer \(HTTP 200\)$/],
    [says(200, '{"id": "acme/x"'), /but with the document \{"id": "acme\/x" \(HTTP 200\)$/],
    [
      says(200, { error: 'Unexpected endpoint' }),
      /but with the document \{"error":"Unexpected endpoint"\} \(HTTP 200\)$/,
    ],
    [says(200, 'null'), /but with the text null \(HTTP 200\)$/],
    [says(200, '['.repeat(100_000)), /but with the document \[+… \(HTTP 200\)$/],
    [says(500, { error: 'Internal' }), /answered with the document \{"error":"Internal"\} \(HTTP 500\)$/, 500],
    [says(502, page, 'text/html'), /answered with a web page titled "Sign in" \(HTTP 502\)$/, 502],
    [says(451, ''), /answered with Unavailable For Legal Reasons \(HTTP 451\)$/, 451],
    [says(429, ''), /wants no more requests for now$/, 429],
    [says(304, ''), /answered with a redirect, which is not followed \(HTTP 304\)$/, 304],
  ];
  for (const [script, words, status] of table) {
    const broken = await scripted(t, { [about]: script });
    const { miss, weights, downloadBytes } = await broken.weights();
    assert.equal(miss?.why, 'failed');
    assert.match(miss.words, words);
    assert.ok(miss.words.startsWith(broken.endpoint), miss.words);
    assert.equal(miss.status, status);
    assert.deepEqual([weights, downloadBytes], [undefined, undefined]);
  }
});

test('a list that is none leaves what is known of the repository', async t => {
  for (const body of [{}, null, 'x', { error: 'no' }]) {
    const { weights } = await scripted(t, { [tree]: says(200, JSON.stringify(body)) });
    const facts = await weights();
    assert.deepEqual(facts.repository, { id, gated: false, private: false });
    assert.match(facts.miss?.words ?? '', /did not answer like the Hugging Face Hub/);
  }
});

test('an index that cannot be read is a warning, whatever is wrong with it', async t => {
  const table: [script: (response: ServerResponse) => void, reason: RegExp][] = [
    [says(200, '{'), /did not answer like the Hugging Face Hub/],
    [says(200, { metadata: {}, weight_map: [] }), /did not answer like the Hugging Face Hub/],
    [says(404, {}), /^model\.safetensors\.index\.json of acme\/x is not on the hub$/],
    [says(500, {}), /HTTP 500/],
    [says(200, `{"a":"${'x'.repeat(9 * 1024 * 1024)}"}`), /an answer of .* is larger than 8 MiB$/],
    [
      response => response.writeHead(302, { location: 'http://127.0.0.1:9/cdn?secret=1' }).end(),
      /a redirect to http:\/\/127\.0\.0\.1:9\/cdn, which is not followed \(HTTP 302\)$/,
    ],
  ];
  for (const [script, reason] of table) {
    const { weights, lines } = await scripted(t, { [index]: script });
    const facts = await weights();
    assert.deepEqual(facts.weights, { bytes: 700, source: 'tree' });
    assert.equal(lines.length, 1);
    assert.match(String(lines[0]?.reason), reason);
  }
});

test('an index that is said to be larger than what is read is not asked for', async t => {
  const listed = [rows[0], { ...rows[1], size: 9 * 1024 * 1024 }];
  const { weights, lines, requests } = await scripted(t, { [tree]: says(200, listed) });
  assert.deepEqual((await weights()).weights, { bytes: 700, source: 'tree' });
  assert.equal(lines[0]?.reason, 'it is larger than 8 MiB');
  assert.ok(!requests.some(({ path }) => path === index));
});

test('sizes that are none are not counted as nothing', async t => {
  for (const size of ['-700', 'null', '"700"', '1e400', '7.5']) {
    const text = `[{"type":"file","path":"model.safetensors","size":135,"lfs":{"size":${size}}},{"type":"file","path":"a","size":1}]`;
    const { weights } = await scripted(t, { [tree]: says(200, text) });
    const facts = await weights();
    assert.deepEqual([facts.weights, facts.downloadBytes, facts.miss], [undefined, undefined, undefined], size);
  }
});

test('a document of more than 8 MiB is given up, and its connection with it', async t => {
  const closed = Promise.withResolvers<void>();
  const { weights } = await scripted(t, {
    [tree](response) {
      response.once('close', closed.resolve);
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = () => {
        while (!response.destroyed && response.write(`[${' '.repeat(65_536)}`));
        response.once('drain', more);
      };
      more();
    },
  });
  const { miss } = await weights();
  assert.match(miss?.words ?? '', /^an answer of .* is larger than 8 MiB$/);
  await soon(closed.promise, 'the end of the connection');
});

test('a list without an end is given up', async t => {
  const { hub, requests } = await scripted(t, {
    [tree](response) {
      response.setHeader('link', `<http://h${about}/tree/main?recursive=true>; rel="next"`);
      answer(response, 200, rows);
    },
  });
  const { miss } = await soon(hub.files(callOf(), id, 'main'), 'files');
  assert.deepEqual([miss?.why, miss?.words], ['failed', 'the list of the files of acme/x has no end']);
  assert.equal(requests.length, 64);
});

test('a list that repeats itself counts each file once', async t => {
  const next = `${about}/tree/main?recursive=true&cursor=2`;
  const { hub } = await scripted(t, {
    [tree](response) {
      response.setHeader('link', `<http://elsewhere${next}>; rel="next"`);
      answer(response, 200, rows);
    },
    [next]: says(200, [...rows, { type: 'file', path: 'b', size: 1 }]),
  });
  const { value } = await hub.files(callOf(), id, 'main');
  assert.deepEqual(
    value?.map(({ path }) => path),
    ['model.safetensors', 'model.safetensors.index.json', 'b'],
  );
});

test('redirects within the Hub are followed, but not for ever', async t => {
  const to = (location: string) => (response: ServerResponse) => response.writeHead(307, { location }).end();
  const fine = await scripted(t, {
    [about]: to('/1'),
    '/1': to('/2'),
    '/2': to('3?x=1'),
    '/3?x=1': says(200, { id: 'acme/new' }),
  });
  assert.equal((await fine.weights()).repository?.id, 'acme/new');
  const round = await scripted(t, { [about]: to(about) });
  assert.match((await round.weights()).miss?.words ?? '', /answered with a redirect to \/api\/models\/acme\/x/);
  assert.equal(round.requests.filter(({ path }) => path === about).length, 4);
  for (const location of ['https://evil.example/x', '//evil.example/x', 'file:///etc/passwd', 'http://[', '']) {
    const { weights } = await scripted(t, { [about]: to(location) });
    const { miss } = await weights();
    assert.equal(miss?.why, 'failed', location);
    assert.match(miss.words, /which is not followed \(HTTP 307\)$/);
  }
});

test('a Hub that is not there says what to look at', async t => {
  const { server, hub } = await startLab(t);
  await server.stop();
  const { miss } = await soon(hub.weights(callOf(), 'Qwen/Qwen3-8B', 'main', []), 'weights');
  assert.equal(miss?.why, 'failed');
  assert.equal(miss.words, `connection refused at ${server.url}; is the Hugging Face Hub running there?`);
  await server.start();
  assert.equal((await hub.weights(callOf(), 'Qwen/Qwen3-8B', 'main', [])).weights?.bytes, 16_381_470_720);
});

test('a connection that breaks once is tried again, one that breaks always is not', async t => {
  const models = [tiny(id)];
  const path = `/api/models/${id}`;
  for (const afterBytes of [undefined, 10]) {
    const { server, hub } = await startLab(t, { models });
    server.fault({ kind: 'drop', path, nth: 1, ...(afterBytes !== undefined && { afterBytes }) });
    assert.equal((await hub.repository(callOf(), id)).value?.id, id, String(afterBytes));
    server.fault({ kind: 'drop', path, ...(afterBytes !== undefined && { afterBytes }) });
    server.publish(tiny('acme/y'));
    server.fault({ kind: 'drop', path: '/api/models/acme/y' });
    const { miss } = await hub.repository(callOf(), 'acme/y');
    assert.equal(miss?.words, `the connection to ${server.url} was lost before the answer was complete`);
    assert.equal(server.requests.filter(request => request.path === '/api/models/acme/y').length, 2);
  }
});

test('an answer in tiny pieces is an answer', async t => {
  const { server, hub } = await startLab(t, { models: [tiny(id)] });
  server.fault({ kind: 'split', path: `/api/models/${id}/tree/main`, pieceBytes: 7 });
  assert.equal((await hub.weights(callOf(), id, 'main', [])).weights?.bytes, 995);
});

test('a search that fails is an error in words', async t => {
  const table: [script: (response: ServerResponse) => void, message: RegExp][] = [
    [
      says(200, '<!doctype html><title>Login</title>', 'text/html'),
      /^the Hugging Face Hub lookup failed \(.* but with a web page titled "Login" \(HTTP 200\)\)$/,
    ],
    [
      says(404, { error: 'no' }),
      /^the Hugging Face Hub lookup failed \(.* answered with the document \{"error":"no"\} \(HTTP 404\)\)$/,
    ],
    [says(401, { error: 'Invalid credentials' }), /Invalid credentials"\} \(HTTP 401\)\)$/],
  ];
  for (const [script, message] of table) {
    const { hub } = await scripted(t, { '/api/models?search=a&limit=5&sort=downloads&direction=-1&full=true': script });
    const error = await failure(hub.search(callOf(), 'a', 5));
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, message);
  }
});

test('what does not speak HTTP is said to be that', async t => {
  const { createServer } = await import('node:net');
  const server = createServer(socket => socket.end('SSH-2.0-OpenSSH_9\r\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const endpoint = `http://127.0.0.1:${port}`;
  const hub = createHub({ endpoint, token: async () => undefined, timeoutMs: 4_000, log: silent });
  const { miss } = await soon(hub.repository(callOf(), id), 'an answer');
  assert.equal(miss?.words, `${endpoint} does not speak HTTP; check scheme and port`);
});
