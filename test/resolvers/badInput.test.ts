import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Operation } from '../../src/operations/load.ts';
import { callTool } from '../mcp/muster.ts';
import { restRequestOf, toolArgumentsOf } from '../support/cases.ts';
import { startEmulated } from '../support/emulated.ts';
import { jobEnd } from '../support/jobs.ts';
import { refusalOf, rest, serveRest } from '../support/rest.ts';
import { ask, operations, send } from '../support/server.ts';

const named = (name: string) => operations.find(each => each.name === name) as Operation;

/** A gateway in front of an emulated host, asked for the same thing on all its faces. */
async function start() {
  const stack = new AsyncDisposableStack();
  const world = stack.use(await startEmulated({ models: [{ name: 'a:1b' }] }));
  const { server, send, url } = stack.use(await serveRest({ gateway: world.gateway }));
  return {
    ...world,
    send,
    url,
    server,
    /** How each face refuses: `code: message`. */
    async refusals(name: string, asks: Readonly<Record<string, unknown>>) {
      const operation = named(name);
      const { json } = await ask(server, operation.text, asks);
      const [error] = json.errors ?? [{ message: 'not refused', extensions: { code: '200' } }];
      const { line, body } = restRequestOf(operation, asks);
      const tool = await callTool(`${url}/mcp`, operation.tool?.name ?? '', toolArgumentsOf(operation, asks));
      return {
        graphql: `${error.extensions.code}: ${error.message}`,
        rest: refusalOf(await send(line, body)).replace(/^\d+ /, ''),
        mcp: tool.isError ? tool.text : '200: not refused',
      };
    },
    async alive() {
      assert.equal((await send('GET /healthz')).text, 'ok');
      assert.deepEqual(
        server.logged.filter(line => JSON.parse(line).level >= 50),
        [],
        'no fault of ours',
      );
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const byReference = ['getModel', 'pullModel', 'unloadModel', 'deleteModel'];

/** References that are none, and what the refusal says of them. */
const references: readonly [reference: string, words: string][] = [
  ['', '"model" is required'],
  [' \t\n ', '"model" is required'],
  ['../x', '"model" is "../x", it must have no ".." in its path'],
  ['..', '"model" is "..", it must have no ".." in its path'],
  ['hf.co/../../etc/passwd', '"model" is "hf.co/../../etc/passwd", it must have no ".." in its path'],
  ['%2e%2E/x', '"model" is "%2e%2E/x", it must have no ".." in its path'],
  ['a\\..\\b', '"model" is "a\\\\..\\\\b", it must have no ".." in its path'],
  [
    'file:///etc/passwd',
    '"model" is "file:///etc/passwd", its scheme must be one of hf, http, https, oci, s3, gs, pvc',
  ],
  ['a\u0000b', '"model" is "a\\u0000b", it must have no control characters'],
  ['a\nb: c', '"model" is "a\\nb: c", it must have no control characters'],
  ['a\r\nx-header: y', '"model" is "a\\r\\nx-header: y", it must have no control characters'],
  ['\u001b[31mred', '"model" is "\\u001b[31mred", it must have no control characters'],
  ['a\u007f', '"model" is "a\u007f", it must have no control characters'],
  ['a\u0085b', '"model" is "a\u0085b", it must have no control characters'],
  ['x'.repeat(10_240), '"model" has 10240 bytes, at most 512 are allowed'],
  ['é'.repeat(257), '"model" has 514 bytes, at most 512 are allowed'],
];

test('a reference that is none is refused alike on all faces, and the backend never sees it', {
  timeout: 60_000,
}, async () => {
  await using world = await start();
  for (const [reference, words] of references) {
    for (const name of byReference) {
      const { graphql, rest, mcp } = await world.refusals(name, { model: reference });
      const where = `${name} ${JSON.stringify(reference.slice(0, 40))}`;
      assert.equal(graphql, `invalid_request: invalid request: ${words}`, where);
      assert.equal(mcp, graphql, where);
      // The path of REST has words of its own for an empty name.
      if (reference.trim() !== '' || name.startsWith('pull')) assert.equal(rest, graphql, where);
      assert.match(rest, /^invalid_request: invalid request: /, where);
      assert.ok(graphql.length < 250, where);
    }
    if (reference.trim() === '') continue;
    const { graphql, rest, mcp } = await world.refusals('loadModel', { model: reference });
    assert.equal(graphql, `invalid_request: invalid request: ${words}`);
    assert.deepEqual([rest, mcp], [graphql, graphql]);
  }
  assert.deepEqual(world.ollama.requests, []);
  assert.deepEqual(world.gateway.jobs.store.list(), []);
  await world.alive();
});

test('an encoded way up in a path is a reference like any other, and refused as one', async () => {
  await using world = await start();
  for (const path of [
    '%2e%2e',
    '%2e%2e/x',
    '%2E%2E%2Fx',
    'a/%2e%2e/b',
    '..%2Fx',
    '%252e%252e',
    '.%252e%252Fx',
    'a%00b',
    'a%0Ab',
    'a%0d%0ax',
  ]) {
    for (const method of ['GET', 'DELETE']) {
      const refusal = refusalOf(await rest(world.url, `${method} /api/v1/models/${path}`));
      assert.match(refusal, /^400 invalid_request: invalid request: "model" is ".+", it must have no /, path);
    }
  }
  // Encoded twice it is one for whoever decodes it again.
  assert.match(
    refusalOf(await world.send('GET models/%252e%252e')),
    /^400 invalid_request: invalid request: "model" is /,
  );
  assert.deepEqual(
    world.ollama.requests.filter(({ path }) => path !== '/api/tags' && path !== '/api/ps'),
    [],
  );
  await world.alive();
});

test('a backend that there is not is named in the refusal, as much of it as is needed', {
  timeout: 60_000,
}, async () => {
  await using world = await start();
  const backends: readonly [name: string, shown: string][] = [
    ['nope', '"nope"'],
    ['../ollama', '"../ollama"'],
    ['ollama\u0000', '"ollama\\u0000"'],
    ['a\nb', '"a\\nb"'],
    ['"x"', '"\\"x\\""'],
    ['__proto__', '"__proto__"'],
    ['x'.repeat(10_240), `"${'x'.repeat(80)}…"`],
  ];
  for (const [backend, shown] of backends) {
    for (const name of [
      'getBackend',
      'listModels',
      'listLoaded',
      'listNodes',
      'listJobs',
      ...byReference,
      'loadModel',
    ]) {
      const expected = `invalid_request: invalid request: unknown backend ${shown} (configured: ollama)`;
      const asks = named(name).variables.some(variable => variable.name === 'model')
        ? { model: 'a:1b', backend }
        : { backend };
      assert.deepEqual(await world.refusals(name, asks), { graphql: expected, rest: expected, mcp: expected }, name);
    }
  }
  assert.deepEqual(world.ollama.requests, []);
  await world.alive();
});

test('a job that there is not is not found, whatever its id looks like', async () => {
  await using world = await start();
  for (const id of ['0123456789abcdef', 'nope', '../jobs', ' ', 'a\u0000b', 'a\nb', '__proto__', 'x'.repeat(10_240)]) {
    const expected = `not_found: job not found: ${id.slice(0, 80)}`;
    for (const name of ['getJob', 'cancelJob']) {
      assert.deepEqual(await world.refusals(name, { id }), { graphql: expected, rest: expected, mcp: expected }, id);
    }
  }
  await world.alive();
});

test('a value of the wrong type is refused in the words of each face', async () => {
  await using world = await start();
  for (const model of [5, true, ['a:1b'], { name: 'a:1b' }, null]) {
    const shown = Array.isArray(model) ? 'an array' : typeof model === 'object' ? 'an object' : String(model);
    for (const name of byReference) {
      const { json, status } = await ask(world.server, named(name).text, { model });
      assert.ok([200, 400].includes(status));
      assert.equal(json.errors[0].extensions.code, 'invalid_request', shown);
      assert.match(json.errors[0].message, /\$model/, shown);
      const tool = await callTool(`${world.url}/mcp`, named(name).tool?.name ?? '', { model });
      assert.equal(tool.text, 'backend_error: argument "model" is not a string', shown);
    }
    const expected = model === null ? '"model" is required' : `invalid JSON: "model" must be a string, got ${shown}`;
    for (const path of ['pull', 'load', 'unload']) {
      const refusal = refusalOf(await world.send(`POST models/${path}`, { model }));
      assert.equal(refusal, `400 invalid_request: invalid request: ${expected}`);
    }
  }
  assert.deepEqual(world.ollama.requests, []);
  await world.alive();
});

test('names in any writing are looked for like others', { timeout: 60_000 }, async () => {
  await using world = await start();
  const names = [
    '模型:1b',
    '🦙:latest',
    'e\u0301',
    '\u202Egpj.exe',
    'a b',
    "'; drop table",
    '<script>',
    '-rf',
    '%s%n',
    '{}',
  ];
  for (const model of names) {
    const { graphql, rest, mcp } = await world.refusals('getModel', { model });
    assert.match(graphql, /^not_found: model not found: .+ is not on ollama$/s, JSON.stringify(model));
    assert.deepEqual([rest, mcp], [graphql, graphql]);
  }
  assert.deepEqual(
    world.ollama.requests.filter(({ path }) => path !== '/api/tags' && path !== '/api/ps'),
    [],
  );

  // Whether it can be pulled is for the host to say.
  const { job } = (await world.send('POST models/pull', { model: '模型:1b' })).json;
  const { phase, error } = await jobEnd(world.gateway, job.id);
  assert.deepEqual([phase, error], ['failed', 'invalid request: ollama: invalid model name (HTTP 400)']);
  await world.alive();
});

test('what no face knows is ignored, and does not reach the backend', async () => {
  await using world = await start();
  const extra = { model: 'a:1b', colour: 'red', stream: false, insecure: true, __proto__: { keepAlive: '0' } };
  assert.equal((await world.send('POST models/load', extra)).json.loaded, true);
  assert.equal((await callTool(`${world.url}/mcp`, 'load_model', extra)).data.loaded, true);
  const { json } = await ask(world.server, named('loadModel').text, extra);
  assert.equal(json.data.loadModel.loaded, true);
  const bodies = world.ollama.requests.filter(({ method }) => method === 'POST').map(({ body }) => body);
  assert.deepEqual(bodies, Array(3).fill({ model: 'a:1b', keep_alive: '5m' }));

  const unknown = await ask(world.server, '{ info { colour } }');
  assert.equal(unknown.json.errors[0].extensions.code, 'invalid_request');
  await world.alive();
});

test('a huge body is refused and harms nobody', async () => {
  await using world = await start();
  const huge = JSON.stringify({ model: 'a:1b', filler: 'x'.repeat(3 * 1024 * 1024) });
  assert.equal((await world.send('POST models/load', huge)).status, 400);
  assert.equal((await ask(world.server, `query { info { version } } # ${huge}`)).status, 413);
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  assert.equal((await world.send('POST models/load', `{"model":${deep(500_000)}}`)).status, 400);
  const { text } = named('getModel');
  const asked = `{"query":${JSON.stringify(text)},"variables":{"model":${deep(100_000)}}}`;
  assert.equal((await send(world.server.graphqlUrl, asked)).json.errors[0].extensions.code, 'invalid_request');
  assert.deepEqual(world.ollama.requests, []);
  await world.alive();
});
