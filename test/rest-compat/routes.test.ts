import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchRoute, routesOf } from '../../src/rest-compat/routes.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { rest, serveRest } from '../support/rest.ts';
import { operations } from '../support/server.ts';

const routes = routesOf(operations);

/** What a request line is for: an operation and what its path captured, the allowed methods, or another path. */
function meaningOf(line: string): unknown {
  const [method = '', path = ''] = line.split(/ (.*)/s);
  const match = matchRoute(routes, method, path);
  if (!match || !('route' in match)) return match;
  return [match.route.operation.name, ...Object.values(match.captured)];
}

test('the routes of the contract are there, with their statuses', () => {
  const found = routes.map(({ rest: { method, path, status }, operation }) =>
    [method, path, status, operation.name].join(' '),
  );
  const expected = [
    'GET /api/v1/backends 200 listBackends',
    'GET /api/v1/backend 200 getBackend',
    'GET /api/v1/models 200 listModels',
    'GET /api/v1/models/{name...} 200 getModel',
    'DELETE /api/v1/models/{name...} 200 deleteModel',
    'GET /api/v1/loaded 200 listLoaded',
    'POST /api/v1/models/pull 202 pullModel',
    'POST /api/v1/models/load 200 loadModel',
    'POST /api/v1/models/unload 200 unloadModel',
    'POST /api/v1/models/wire 200 wireModel',
    'POST /api/v1/models/unwire 200 unwireModel',
    'POST /api/v1/models/fit-check 200 fitCheck',
    'GET /api/v1/presets 200 listPresets',
    'GET /api/v1/search 200 searchModels',
    'GET /api/v1/nodes 200 listNodes',
    'GET /api/v1/jobs 200 listJobs',
    'GET /api/v1/jobs/{id} 200 getJob',
    'DELETE /api/v1/jobs/{id} 200 cancelJob',
  ];
  assert.deepEqual(
    expected.filter(route => !found.includes(route)),
    [],
  );
});

test('a path finds its operation, and a model name is all the rest of it, decoded once', () => {
  const table: Record<string, unknown> = {
    'GET /api/v1/backends': ['listBackends'],
    'GET /api/v1/models': ['listModels'],
    'HEAD /api/v1/models': ['listModels'],
    'GET /api/v1/models/smollm2:135m': ['getModel', 'smollm2:135m'],
    'GET /api/v1/models/smollm2%3A135m': ['getModel', 'smollm2:135m'],
    'GET /api/v1/models/Qwen/Qwen3-14B': ['getModel', 'Qwen/Qwen3-14B'],
    'GET /api/v1/models/Qwen%2FQwen3-14B': ['getModel', 'Qwen/Qwen3-14B'],
    'GET /api/v1/models/Qwen%2fQwen3-14B': ['getModel', 'Qwen/Qwen3-14B'],
    'GET /api/v1/models/hf.co/org/repo:Q4_K_M': ['getModel', 'hf.co/org/repo:Q4_K_M'],
    'DELETE /api/v1/models/hf.co%2Forg%2Frepo%3AQ4_K_M': ['deleteModel', 'hf.co/org/repo:Q4_K_M'],
    'GET /api/v1/models/50%25': ['getModel', '50%'],
    'GET /api/v1/models/a%253Ab': ['getModel', 'a%3Ab'],
    'GET /api/v1/models/a+b%20c': ['getModel', 'a+b c'],
    'GET /api/v1/models/%E6%A8%A1%E5%9E%8B': ['getModel', '模型'],
    // What is encoded wrongly stands for itself.
    'GET /api/v1/models/a%zz': ['getModel', 'a%zz'],
    'GET /api/v1/models/a%FF': ['getModel', 'a%FF'],
    'GET /api/v1/models/': ['getModel', ''],
    'GET /api/v1/models/a/': ['getModel', 'a/'],
    'GET /api/v1/models/..a/b..': ['getModel', '..a/b..'],
    // An encoded segment is part of the name, whatever it says.
    'GET /api/v1/models/%2e%2e/x': ['getModel', '../x'],
    'GET /api/v1/models/a%2F%2Fb': ['getModel', 'a//b'],
    'GET /api/v1/jobs/0123456789abcdef': ['getJob', '0123456789abcdef'],
    'DELETE /api/v1/jobs/0123456789abcdef': ['cancelJob', '0123456789abcdef'],
    'GET /api/v1/jobs/a%2Fb': ['getJob', 'a/b'],
    // The words are only special for POST.
    'POST /api/v1/models/pull': ['pullModel'],
    'GET /api/v1/models/pull': ['getModel', 'pull'],
    'HEAD /api/v1/models/unload': ['getModel', 'unload'],
    'POST /api/v1/models/fit-check': ['fitCheck'],
    'GET /api/v1/models/fit-check': ['getModel', 'fit-check'],
    'DELETE /api/v1/models/unwire': ['deleteModel', 'unwire'],
    'DELETE /api/v1/models/load': ['deleteModel', 'load'],
  };
  for (const [line, meaning] of Object.entries(table)) assert.deepEqual(meaningOf(line), meaning, line);
});

test('an unknown path is none, another method is told which there are', () => {
  const table: Record<string, readonly string[] | undefined> = {
    'GET /': undefined,
    'GET /api/v1': undefined,
    'GET /api/v1/': undefined,
    'GET /api/v1/nothing': undefined,
    'GET /API/V1/models': undefined,
    'GET /api/v1/backends/': undefined,
    'GET /api/v1/jobs/': undefined,
    'GET /api/v1/jobs/a/b': undefined,
    'POST /api/v1/backends': ['GET', 'HEAD'],
    'OPTIONS /api/v1/models': ['GET', 'HEAD'],
    'PUT /api/v1/models/x': ['DELETE', 'GET', 'HEAD'],
    'PATCH /api/v1/models/a/b': ['DELETE', 'GET', 'HEAD'],
    'POST /api/v1/models/pull/': ['DELETE', 'GET', 'HEAD'],
    'PUT /api/v1/models/pull': ['DELETE', 'GET', 'HEAD', 'POST'],
    'POST /api/v1/jobs/a': ['DELETE', 'GET', 'HEAD'],
    // Methods are spelled in capitals.
    'get /api/v1/nodes': ['GET', 'HEAD'],
  };
  for (const [line, allow] of Object.entries(table)) assert.deepEqual(meaningOf(line), allow && { allow }, line);
});

test('other spellings of a path lead to it', async () => {
  const table: Record<string, string | undefined> = {
    'GET //api/v1/models': '/api/v1/models',
    'GET /api/v1/./models': '/api/v1/models',
    'GET /api/v1/x/../models': '/api/v1/models',
    'GET /../api/v1/jobs': '/api/v1/jobs',
    'GET /api/v1/models/../../v1/models/a': '/api/v1/models/a',
    'GET /api/v1/models/hf.co//org/repo': '/api/v1/models/hf.co/org/repo',
    'GET /api/v1/models//': '/api/v1/models/',
    'GET /api/v1/models/.': '/api/v1/models',
    'POST /api/v1//models/pull': '/api/v1/models/pull',
    'DELETE /api/v1/models': '/api/v1/models/',
    // It leads to routes of ours only, never to a page elsewhere.
    'GET //elsewhere.example/..': undefined,
    'GET /\\elsewhere.example//api': undefined,
  };
  await using server = await serveRest();
  for (const [line, location] of Object.entries(table)) {
    const { status, headers } = await rest(server.url, line);
    assert.deepEqual([status, headers.location], location ? [301, location] : [404, undefined], line);
  }
  const asked = await rest(server.url, 'GET /api/v1//models?backend=ollama&x=a%20b');
  assert.equal(asked.headers.location, '/api/v1/models?backend=ollama&x=a+b');
});

test('an unknown route and a wrong method answer in plain text, so that a client can tell them from a missing model', async () => {
  await using server = await serveRest();
  const unknown = await server.send('GET nothing');
  assert.deepEqual([unknown.status, unknown.text], [404, '404 page not found']);
  assert.equal(unknown.headers['content-type'], 'text/plain; charset=utf-8');

  const table: Record<string, string> = {
    'POST backends': 'GET, HEAD',
    'PUT models/x': 'DELETE, GET, HEAD',
    'OPTIONS models': 'GET, HEAD',
    'OPTIONS models/load': 'DELETE, GET, HEAD, POST',
    'DELETE /healthz': 'GET, HEAD',
    'POST /readyz': 'GET, HEAD',
    'OPTIONS /backendz': 'GET, HEAD',
    'PUT openapi.yaml': 'GET, HEAD',
  };
  for (const [line, allow] of Object.entries(table)) {
    const { status, text, headers } = await server.send(line);
    assert.deepEqual([status, text, headers.allow], [405, 'Method Not Allowed', allow], line);
    assert.equal(headers['content-type'], 'text/plain; charset=utf-8', line);
    assert.equal(headers['access-control-allow-origin'], undefined, line);
  }
});

test('HEAD answers what GET answers, without the body', async () => {
  await using server = await serveRest({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })] }) });
  const paths = [
    '/healthz',
    '/readyz',
    '/backendz',
    ...['openapi.yaml', 'backends', 'backend', 'models', 'models/a:1b', 'models/nope', 'models/', 'loaded', 'nodes'],
    ...['jobs', 'jobs/nope', 'nothing', 'models?backend=nope', '/api//v1/models'],
  ];
  for (const path of paths) {
    const get = await server.send(`GET ${path}`);
    const head = await server.send(`HEAD ${path}`);
    assert.equal(head.text, '', path);
    assert.equal(head.status, get.status, path);
    const facts = ({ headers }: typeof get) => ({ ...headers, date: '', 'x-request-id': '' });
    assert.deepEqual(facts(head), facts(get), path);
    assert.equal(head.headers['content-length'], String(Buffer.byteLength(get.text)), path);
  }
});
