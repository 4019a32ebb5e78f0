import assert from 'node:assert/strict';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { buildClientSchema, getIntrospectionQuery, printSchema } from 'graphql';
import { schema } from '../../src/resolvers/schema.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { usedMemory } from '../support/memory.ts';
import { type Answer, ask, send, startServer, within } from '../support/server.ts';

const driver = fakeDriver({ models: ['a'] });
const server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
after(() => server.close());

const strict = { accept: 'application/graphql-response+json' };
const pull = 'mutation { pullModel(model: "x") { created } }';

/** Nothing was asked of the backend while this ran. */
async function untouched(run: () => Promise<void>) {
  const before = driver.asked.length;
  const jobs = server.gateway.jobs.store.list().length;
  await run();
  assert.equal(driver.asked.length, before);
  assert.equal(server.gateway.jobs.store.list().length, jobs);
}

/** A request with headers that fetch does not let through. */
async function raw(options: RequestOptions, body?: string): Promise<{ status: number; text: string; head: string }> {
  const req = request(server.graphqlUrl, { agent: false, ...options });
  // Some methods have no body unless one is announced.
  if (body !== undefined && !req.hasHeader('transfer-encoding'))
    req.setHeader('content-length', Buffer.byteLength(body));
  req.end(body);
  const response = await within(
    new Promise<IncomingMessage>((resolve, reject) => req.on('response', resolve).on('error', reject)),
    'an answer',
  );
  return { status: response.statusCode ?? 0, text: await text(response), head: JSON.stringify(response.headers) };
}

describe('a mutation is only taken as JSON by POST', () => {
  const form = new URLSearchParams({ query: pull }).toString();
  const multipart = `--x\r\ncontent-disposition: form-data; name="query"\r\n\r\n${pull}\r\n--x--\r\n`;
  const operations = `--x\r\ncontent-disposition: form-data; name="operations"\r\n\r\n${JSON.stringify({ query: pull })}\r\n--x\r\ncontent-disposition: form-data; name="map"\r\n\r\n{}\r\n--x--\r\n`;
  for (const [type, body] of [
    ['application/x-www-form-urlencoded', form],
    ['multipart/form-data; boundary=x', multipart],
    ['multipart/form-data; boundary=x', operations],
    ['text/plain', JSON.stringify({ query: pull })],
    ['text/plain; application/json', JSON.stringify({ query: pull })],
    ['application/graphql', pull],
    ['', JSON.stringify({ query: pull })],
  ] as const) {
    test(`${type || 'no content type'} is refused, and nothing happens`, () =>
      untouched(async () => {
        for (const accept of ['*/*', 'application/graphql-response+json', 'text/event-stream']) {
          const headers = { accept, ...(type && { 'content-type': type }) };
          const { status } = await raw({ method: 'POST', headers }, body);
          assert.equal(status, 415);
        }
      }));
  }

  test('GET is refused with 405', () =>
    untouched(async () => {
      for (const accept of ['*/*', 'application/graphql-response+json', 'text/html, */*']) {
        const answer = await send(`${server.graphqlUrl}?query=${encodeURIComponent(pull)}`, undefined, {
          headers: { accept },
        });
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.get('allow'), 'POST');
      }
    }));

  test('other methods are refused with 405', () =>
    untouched(async () => {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const { status } = await raw(
          { method, headers: { 'content-type': 'application/json' } },
          JSON.stringify({ query: pull }),
        );
        assert.equal(status, 405, method);
      }
    }));

  test('a page of another origin cannot use the REST routes either', () =>
    untouched(async () => {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', undefined]) {
        const headers = { origin: 'https://evil.example', ...(type && { 'content-type': type }) };
        const req = { method: 'POST', path: '/api/v1/models/pull', headers };
        assert.equal((await raw(req, '{"model":"x"}')).status, 403);
      }
    }));
});

test('no origin is told that it may read answers', async () => {
  for (const origin of ['https://evil.example', 'null', server.url]) {
    for (const path of ['/graphql', '/api/v1/models', '/mcp', '/healthz', '/api/v1/openapi.yaml']) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
        const headers = { origin, 'content-type': 'application/json', ...(method === 'OPTIONS' && preflight) };
        const { head } = await raw(
          { method, path, headers },
          method === 'POST' ? '{"query":"{__typename}"}' : undefined,
        );
        assert.doesNotMatch(head, /access-control/i, `${method} ${path} ${origin}`);
      }
    }
  }
});

test('a batch is refused with 400', () =>
  untouched(async () => {
    const { status, json } = await send(server.graphqlUrl, [{ query: pull }, { query: pull }]);
    assert.equal(status, 400);
    assert.equal(json.errors[0].extensions.code, 'invalid_request');
  }));

/** The status and the code of the first error, and the milliseconds of the fastest of a few times. */
async function refusal(query: string, variables?: object): Promise<{ status: number; code: string; ms: number }> {
  let best = Number.POSITIVE_INFINITY;
  let answer: Answer | undefined;
  for (let time = 0; time < 5 && best > 50; time++) {
    const begin = performance.now();
    answer = await ask(server, query, variables);
    best = Math.min(best, performance.now() - begin);
  }
  const { status, json } = answer as Answer;
  return { status, code: json.errors?.[0].extensions.code, ms: best };
}

const nested = (levels: number) => `${'{ a '.repeat(levels)}${'}'.repeat(levels)}`;
const numbered = (count: number, text: (index: number) => string) => Array.from({ length: count }, (_, i) => text(i));

describe('a document that asks too much is refused before it costs anything', () => {
  const asked: Array<[what: string, query: string, code: string]> = [
    ['11 levels', nested(11), 'DEPTH_LIMIT'],
    ['11 levels by fragments', `{ ...F } fragment F on Query ${nested(11)}`, 'DEPTH_LIMIT'],
    ['11 levels by inline fragments', `{ a { ... on X ${nested(10)} } }`, 'DEPTH_LIMIT'],
    ['31 aliases', `{ info { ${numbered(31, i => `a${i}: version`).join(' ')} } }`, 'ALIAS_LIMIT'],
    ['31 aliases by a fragment', `{ ${'...F '.repeat(8)}} fragment F on Query { a: b c: d e: f g: h }`, 'ALIAS_LIMIT'],
    [
      '31 aliases of introspection',
      `{ __schema { ${numbered(31, i => `a${i}: types { name }`).join(' ')} } }`,
      'ALIAS_LIMIT',
    ],
    ['11 root fields', `{ ${'info '.repeat(11)}}`, 'ROOT_FIELD_LIMIT'],
    ['501 fields', `{ info { ${'version '.repeat(500)} } }`, 'COST_LIMIT'],
    ['501 fields of introspection', `{ __schema { ${'types '.repeat(500)} } }`, 'COST_LIMIT'],
    ['2,001 tokens', `{${'a '.repeat(1_999)}}`, 'TOKEN_LIMIT'],
    ['10,000 tokens', `{${'a '.repeat(10_000)}}`, 'TOKEN_LIMIT'],
    ['5,000 directives', `{ info ${'@a '.repeat(5_000)}{ version } }`, 'TOKEN_LIMIT'],
    ['5,000 variables', `query (${numbered(5_000, i => `$v${i}: Int`).join(' ')}) { info { version } }`, 'TOKEN_LIMIT'],
    [
      'fragments that double 60 times',
      `{ ...F0 } ${numbered(60, i => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`).join(' ')} fragment F60 on Query { info { version } }`,
      'ROOT_FIELD_LIMIT',
    ],
  ];
  for (const [what, query, code] of asked) {
    test(`${what}: 400 ${code} within 50 ms`, () =>
      untouched(async () => {
        const refused = await refusal(query);
        assert.deepEqual([refused.status, refused.code], [400, code]);
        assert.ok(refused.ms < 50, `it took ${refused.ms} ms`);
      }));
  }

  test('what is just within the limits is answered', async () => {
    const deep =
      '{ backend { models { backend { models { backend { models { backend { models { backend { name } } } } } } } } } }';
    for (const query of [
      deep,
      `{ info { ${numbered(30, i => `a${i}: version`).join(' ')} } }`,
      `{ ${'info { version } '.repeat(10)}}`,
      `{ info { ${'version '.repeat(499)} } }`,
    ]) {
      const { status, json } = await ask(server, query);
      assert.deepEqual([status, json.errors], [200, undefined]);
    }
  });

  test('the refusal says what the limit is', async () => {
    const { json } = await ask(server, `{${'a '.repeat(3_000)}}`);
    assert.equal(json.errors[0].message, 'invalid request: the document has more than 2000 tokens, 2000 are allowed');
    const { json: deep } = await ask(server, nested(12));
    assert.equal(deep.errors[0].message, 'invalid request: the document has 12 levels of fields, 10 are allowed');
  });

  test('a document that does not parse or fit the graph is refused with 400, fast', () =>
    untouched(async () => {
      for (const query of [
        'query { ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
        `{ info ${'@a '.repeat(900)}{ version } }`,
        `query (${numbered(480, i => `$v${i}: Int`).join(' ')}) { info { version } }`,
        '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
        `{ info(a: ${'['.repeat(900)}${']'.repeat(900)}) { version } }`,
        '{ info { ',
        '',
        '{ nope }',
      ]) {
        let best = Number.POSITIVE_INFINITY;
        for (let time = 0; time < 5 && best > 50; time++) {
          const begin = performance.now();
          const { status, json } = await send(server.graphqlUrl, { query }, { headers: strict });
          best = Math.min(best, performance.now() - begin);
          assert.equal(status, 400, query.slice(0, 60));
          assert.equal(json.errors[0].extensions.code, 'invalid_request');
        }
        assert.ok(best < 50, `${query.slice(0, 60)} took ${best} ms`);
      }
    }));

  test('5,000 variables nobody declared, and one that is nested without end, are harmless', async () => {
    const many = Object.fromEntries(numbered(5_000, i => `v${i}`).map(name => [name, 1]));
    assert.equal((await ask(server, '{ __typename }', many)).status, 200);
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const query = 'query ($backend: String) { models(backend: $backend) { totalCount } }';
    const body = `{"query":"${query}","variables":{"backend":${deep}}}`;
    for (const accept of ['*/*', 'text/event-stream']) {
      const { status, text } = await send(server.graphqlUrl, body, { headers: { accept } });
      assert.equal(status, 200);
      assert.match(text, /"code":"invalid_request"/);
      assert.ok(text.length < 2_000);
    }
  });
});

test('broken documents and huge ones are not kept', async () => {
  await ask(server, '{ __typename }');
  const before = (await usedMemory()).heap;
  for (let index = 0; index < 300; index++) {
    const padding = `# ${index} ${'x'.repeat(200_000)}\n`;
    await ask(server, `${padding}{ __typename }`);
    await ask(server, `${padding}{ broken`);
  }
  const grown = (await usedMemory()).heap - before;
  assert.ok(grown < 10, `${grown} MB of 120 were kept`);
});

describe('bodies have an end', () => {
  test('300 KiB are refused with 413, announced or not', async () => {
    const body = JSON.stringify({ query: '{ __typename }', extensions: { x: 'x'.repeat(300 * 1024) } });
    assert.equal((await send(server.graphqlUrl, body)).status, 413);
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    assert.equal((await raw({ method: 'POST', headers }, body)).status, 413);
  });

  test('255 KiB are read', async () => {
    const body = JSON.stringify({ query: '{ __typename }', extensions: { x: 'x'.repeat(255 * 1024) } });
    assert.equal((await send(server.graphqlUrl, body)).status, 200);
  });

  test('one that goes on for ever is answered and cut off', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const answer: Buffer[] = [];
    socket.on('data', chunk => answer.push(chunk));
    socket.on('error', () => {});
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    socket.write(
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    let sent = 0;
    const pump = () => {
      while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
      sent += chunk.length;
      if (!socket.destroyed) socket.once('drain', pump);
    };
    pump();
    await within(closed, 'the end of the connection');
    assert.match(Buffer.concat(answer).toString(), /^HTTP\/1\.1 413 /);
    assert.ok(sent < 16e6, `${sent} bytes were taken`);
  });

  test('one that comes slowly holds up nobody', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.write(
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{',
    );
    assert.equal((await ask(server, '{ __typename }')).status, 200);
    socket.destroy();
  });
});

test('__proto__ in a body is a name like any other', async () => {
  const evil = '{"polluted":true}';
  for (const body of [
    `{"query":"{ __typename }","variables":{"__proto__":${evil},"constructor":{"prototype":${evil}}}}`,
    `{"query":"{ __typename }","__proto__":${evil},"extensions":{"__proto__":${evil}}}`,
    `{"query":"query ($__proto__: String) { models(backend: $__proto__) { totalCount } }","variables":{"__proto__":"ollama"}}`,
  ]) {
    const { status, json } = await send(server.graphqlUrl, body);
    assert.equal(status, 200);
    assert.equal(json.errors, undefined);
  }
  const stream = await send(
    server.graphqlUrl,
    `{"query":"subscription { job(id: \\"x\\") { removed } }","variables":{"__proto__":${evil}}}`,
    { headers: { accept: 'text/event-stream' } },
  );
  assert.match(stream.text, /not_found/);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('introspection gives the whole graph to the tools that ask for it', async () => {
  const query = getIntrospectionQuery({ inputValueDeprecation: true, specifiedByUrl: true, schemaDescription: true });
  const { json } = await ask(server, query);
  assert.equal(json.errors, undefined);
  assert.equal(printSchema(buildClientSchema(json.data)), printSchema(schema));
});

describe('errors', () => {
  test('a refusal has its code, its status, its path, and the words of the contract', async () => {
    for (const [query, code, status, message] of [
      ['{ model(model: "nope") { name } }', 'not_found', 404, 'model not found: nope is not on ollama'],
      ['{ job(id: "nope") { jobId } }', 'not_found', 404, 'job not found: nope'],
      [
        '{ models(backend: "nope") { totalCount } }',
        'invalid_request',
        400,
        'invalid request: unknown backend "nope" (configured: ollama)',
      ],
      [
        'mutation { pullModel(model: "x", wire: true) { created } }',
        'unsupported',
        501,
        'operation not supported: agent wiring is disabled (no Kubernetes access)',
      ],
    ] as const) {
      const { status: http, json } = await ask(server, query);
      assert.equal(http, 200);
      const [error] = json.errors;
      assert.equal(error.message, message);
      assert.deepEqual(error.extensions, { code, http: { status } });
      assert.equal(error.path.length, 1);
    }
  });

  test('what nobody expected is masked, and found in the log by its request id', async () => {
    const driver = fakeDriver({ models: ['a'] });
    driver.script.load = () => Promise.reject(new TypeError('no such thing at /srv/app/secret.ts:12'));
    await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
    const headers = { 'x-request-id': 'my-request-7' };
    const query = 'mutation { loadModel(model: "a") { name } }';
    const answer = await send(server.graphqlUrl, { query }, { headers });
    const [error] = answer.json.errors;
    assert.equal(error.message, 'unexpected error; the log has it under request my-request-7');
    assert.deepEqual(error.extensions, { code: 'internal_error', http: { status: 500 } });
    assert.equal(answer.headers.get('x-request-id'), 'my-request-7');
    const line = server.logged.find(each => each.includes('my-request-7') && each.includes('unexpected error'));
    assert.match(line ?? '', /no such thing at/);
  });

  test('no answer has a stack, a path of a file, or the name of a class in it', async () => {
    const driver = fakeDriver();
    driver.script.models = () => Promise.reject(new TypeError('bad at /srv/app/secret.ts:12'));
    await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
    const answers: Answer[] = [];
    for (const query of [
      '{ models { totalCount } }',
      '{ nope }',
      '{',
      '{ node(id: "x") { id } }',
      '{ backend { models { name } } }',
    ]) {
      answers.push(await ask(server, query), await send(server.graphqlUrl, { query }, { headers: strict }));
      answers.push(await send(server.graphqlUrl, { query }, { headers: { accept: 'text/event-stream' } }));
    }
    answers.push(await send(server.graphqlUrl, '{"query":'), await send(server.graphqlUrl, 'null'));
    answers.push(await send(`${server.url}/api/v1/models`), await send(`${server.graphqlUrl}?query=%ff&variables={`));
    for (const { text } of answers)
      assert.doesNotMatch(text, /secret|\.ts\b|node_modules|file:|\bat \w+ \(|TypeError|"stack/);
  });
});

describe('a server on this machine only answers to names of this machine', () => {
  const hosts: Array<[host: string, status: number]> = [
    ['evil.example', 403],
    [`evil.example:${server.port}`, 403],
    ['127.0.0.1.evil.example', 403],
    ['localhost.evil.example', 403],
    [`127.0.0.1:${server.port}`, 200],
    ['localhost', 200],
    ['[::1]:80', 200],
  ];
  for (const [host, status] of hosts) {
    test(`Host: ${host} → ${status}`, async () => {
      for (const path of ['/graphql?query={__typename}', '/healthz', '/api/v1/models']) {
        assert.equal((await raw({ path, headers: { host } })).status, status, path);
      }
    });
  }

  test('no Host at all → 403', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.end('GET /healthz HTTP/1.0\r\n\r\n');
    assert.match(await within(text(socket), 'an answer'), /^HTTP\/1\.1 403 /);
  });

  test('Host is not asked of a server that listens on every address', async () => {
    await using open = await startServer({ host: '0.0.0.0' });
    const req = request(`http://127.0.0.1:${open.port}/healthz`, {
      agent: false,
      headers: { host: 'gateway.example' },
    });
    req.end();
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      req.on('response', resolve).on('error', reject),
    );
    assert.equal(response.statusCode, 200);
    response.resume();
  });
});
