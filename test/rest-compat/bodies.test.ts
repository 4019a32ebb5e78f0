import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GraphQLInt } from 'graphql';
import type { GatewayError } from '../../src/errors.ts';
import type { Operation, Variable } from '../../src/operations/load.ts';
import { askedByBody, askedByQuery, bodyFieldsOf } from '../../src/rest-compat/input.ts';
import { type Route, routesOf } from '../../src/rest-compat/routes.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { refusalOf, serveRest } from '../support/rest.ts';
import { operations } from '../support/server.ts';

const routes = routesOf(operations);
const fields = bodyFieldsOf(routes);
const routeOf = (name: string) => routes.find(route => route.operation.name === name) as Route;
const read = (name: string, body: string) => askedByBody(routeOf(name), fields, body).variables;

test('a body becomes the variables that its route knows', () => {
  const table: [name: string, body: string, variables: object][] = [
    ['pullModel', '{"model":"a"}', { model: 'a' }],
    ['pullModel', ' \n\t{"model":"a","wire":true,"backend":"b"}\r\n', { model: 'a', wire: true, backend: 'b' }],
    // Field names match without regard to case, and the last of a repeated one wins.
    ['pullModel', '{"Model":"a"}', { model: 'a' }],
    ['loadModel', '{"MODEL":"a","keepalive":"1m"}', { model: 'a', keepAlive: '1m' }],
    ['pullModel', '{"model":"a","model":"b"}', { model: 'b' }],
    ['pullModel', '{"model":"a","MODEL":"b"}', { model: 'b' }],
    // A null is a field not sent.
    ['pullModel', '{"model":"a","wire":null,"backend":null,"preset":null}', { model: 'a' }],
    // Unknown fields are ignored, and so are fields of other routes.
    ['pullModel', '{"model":"a","dryRun":true,"":1,"колір":{}}', { model: 'a' }],
    ['unloadModel', '{"model":"a","keepAlive":"0","wire":true,"preset":"p"}', { model: 'a' }],
    ['pullModel', '{"__proto__":{"model":"x"},"constructor":1,"toString":2,"model":"a"}', { model: 'a' }],
    // A preset stands in for the model of a load.
    ['loadModel', '{"preset":"p"}', { preset: 'p' }],
    ['loadModel', '{"model":"","preset":"p"}', { model: '', preset: 'p' }],
  ];
  for (const [name, body, variables] of table) assert.deepEqual(read(name, body), variables, body);
  assert.equal(({} as { model?: string }).model, undefined, 'no prototype was touched');
});

test('a body that is none is refused with what is wrong with it', () => {
  const table: [name: string, body: string, message: RegExp][] = [
    ['pullModel', '', /^invalid request: JSON body with "model" is required$/],
    ['loadModel', ' \r\n\t ', /^invalid request: JSON body with "model" is required$/],
    ['pullModel', 'null', /^invalid request: "model" is required$/],
    ['pullModel', '{}', /^invalid request: "model" is required$/],
    ['pullModel', '{"model":null}', /^invalid request: "model" is required$/],
    ['pullModel', '{"model":" \\t"}', /^invalid request: "model" is required$/],
    ['pullModel', '{"preset":"p"}', /^invalid request: "model" is required$/],
    ['pullModel', '{"__proto__":{"model":"x"}}', /^invalid request: "model" is required$/],
    ['loadModel', '{"model":"","preset":" "}', /^invalid request: "model" is required$/],
    ['pullModel', '{"model":"a"', /^invalid request: invalid JSON: ./],
    ['pullModel', '{model:"a"}', /^invalid request: invalid JSON: ./],
    ['pullModel', '{"model":"a"} {}', /^invalid request: invalid JSON: ./],
    ['pullModel', '{"model":"a"}x', /^invalid request: invalid JSON: ./],
    ['pullModel', 'model=a', /^invalid request: invalid JSON: ./],
    ['pullModel', '[{"model":"a"}]', /^invalid request: invalid JSON: the body must be an object, got an array$/],
    ['pullModel', '"a"', /^invalid request: invalid JSON: the body must be an object, got "a"$/],
    ['pullModel', '7', /^invalid request: invalid JSON: the body must be an object, got 7$/],
    ['pullModel', '{"model":5}', /^invalid request: invalid JSON: "model" must be a string, got 5$/],
    ['pullModel', '{"model":["a"]}', /"model" must be a string, got an array$/],
    ['pullModel', '{"Model":{}}', /"model" must be a string, got an object$/],
    ['pullModel', '{"model":"a","wire":"true"}', /"wire" must be a boolean, got "true"$/],
    ['pullModel', '{"model":"a","wire":1}', /"wire" must be a boolean, got 1$/],
    ['loadModel', '{"model":"a","keepAlive":300}', /"keepAlive" must be a string, got 300$/],
    // Known fields are checked for their type also where they are not used.
    ['unloadModel', '{"model":"a","wire":"yes"}', /"wire" must be a boolean, got "yes"$/],
    ['unloadModel', '{"model":"a","keepAlive":0}', /"keepAlive" must be a string, got 0$/],
  ];
  for (const [name, body, message] of table) {
    assert.throws(() => read(name, body), { code: 'invalid_request', status: 400, message }, body);
  }
});

test('a refusal quotes no more of a body than it takes to find the place', () => {
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  for (const body of [
    `{"model":"a","wire":"${'x'.repeat(10_000)}"}`,
    `{"model":${deep}}`,
    deep,
    `"${deep}"`,
    `{${deep}`,
  ]) {
    assert.throws(
      () => read('pullModel', body),
      ({ code, message }: GatewayError) => code === 'invalid_request' && message.length < 200,
    );
  }
});

test('of a body the first mebibyte counts; what is cut off there is broken', async () => {
  await using server = await serveRest({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })] }) });
  const limit = 1024 * 1024;
  const padded = (size: number) => {
    const body = '{"model":"a:1b","filler":""}';
    return body.replace('""', `"${'x'.repeat(size - body.length)}"`);
  };
  const unload = (body: string) => server.send('POST models/unload', body);
  assert.equal((await unload(padded(limit))).status, 200);
  assert.match(refusalOf(await unload(padded(limit + 1))), /^400 invalid_request: invalid request: invalid JSON: /);
  assert.match(refusalOf(await unload(padded(4 * limit))), /^400 invalid_request: invalid request: invalid JSON: /);
  // What follows a document within the mebibyte is cut off with the rest.
  assert.equal((await unload(`{"model":"a:1b"}${' '.repeat(limit)}x`)).status, 200);
  assert.equal((await server.send('GET models')).status, 200);
});

test('the content type of a body is not looked at', async () => {
  await using server = await serveRest({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })] }) });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'x']) {
    const { status } = await server.send('POST models/unload', '{"model":"a:1b"}', { 'content-type': type });
    assert.equal(status, 200, type);
  }
});

test('a body asks for a dry run by a boolean, on the routes that have one', () => {
  const asked = (name: string, body: string) => askedByBody(routeOf(name), fields, body).dryRun;
  const table: [body: string, dryRun: boolean][] = [
    ['{"model":"a"}', false],
    ['{"model":"a","dryRun":false}', false],
    ['{"model":"a","dryRun":null}', false],
    ['{"model":"a","dryRun":true}', true],
    ['{"model":"a","DRYRUN":true}', true],
    ['{"model":"a","dryRun":false,"dryrun":true}', true],
  ];
  for (const name of ['pullModel', 'loadModel', 'unloadModel'])
    for (const [body, dryRun] of table) assert.equal(asked(name, body), dryRun, `${name} ${body}`);
  for (const value of ['"true"', '""', '1', '[]', '{}']) {
    const shown = JSON.stringify(value.replace(/^"|"$/g, ''));
    const message = `invalid request: "dryRun" is ${shown}, it must be true or false`;
    assert.throws(() => asked('loadModel', `{"model":"a","dryRun":${value}}`), { code: 'invalid_request', message });
  }
  // Elsewhere it is a field that nobody knows.
  for (const value of ['true', '"x"']) assert.equal(asked('fitCheck', `{"model":"a","dryRun":${value}}`), false);
});

test('a URL asks for a dry run by true or false, on the route that has one', () => {
  const asked = (name: string, query: string) =>
    askedByQuery(routeOf(name), { name: 'a' }, new URLSearchParams(query)).dryRun;
  for (const [query, dryRun] of [
    ['', false],
    ['dryRun=false', false],
    ['dryRun=True', true],
    ['unwire=false&dryRun=true', true],
    // Whoever asks for one at all does not want it done.
    ['dryRun=false&dryRun=true', true],
  ] as const)
    assert.equal(asked('deleteModel', query), dryRun, query);
  for (const value of ['', '1', 'yes', ' true']) {
    assert.throws(() => asked('deleteModel', `dryRun=${value}`), {
      code: 'invalid_request',
      message: `invalid request: "dryRun" is ${JSON.stringify(value)}, it must be true or false`,
    });
  }
  assert.equal(asked('getModel', 'dryRun=1'), false);
});

test('an integer in a URL is a non-negative one, however large', () => {
  const limit = { name: 'limit', restName: 'limit', type: GraphQLInt } as unknown as Variable;
  const route = { operation: { variables: [limit] } as unknown as Operation, rest: {} } as unknown as Route;
  const limitOf = (query: string) => askedByQuery(route, {}, new URLSearchParams(query)).variables.limit;
  assert.equal(limitOf(''), undefined);
  assert.equal(limitOf('limit=0'), 0);
  assert.equal(limitOf('limit=007'), 7);
  assert.equal(limitOf('limit=51'), 51);
  assert.equal(limitOf('limit=99999999999999999999'), 2 ** 31 - 1);
  for (const text of ['abc', '-1', '1.5', '1e3', '+1', ' 1', '0x10', '', 'NaN']) {
    assert.throws(() => limitOf(`limit=${encodeURIComponent(text)}`), {
      code: 'invalid_request',
      message: 'invalid request: limit must be a non-negative integer',
    });
  }
});

test('of a query parameter the first counts, and what a route does not know is ignored', async () => {
  const drivers = [fakeDriver({ models: ['a:1b'] }), fakeDriver({ name: 'lemonade', models: ['b:1b'] })];
  await using server = await serveRest({ gateway: testGateway({ drivers }) });
  const names = async (query: string) =>
    (await server.send(`GET models?${query}`)).json.models.map(({ name }: { name: string }) => name);
  assert.deepEqual(await names('backend=lemonade&backend=ollama'), ['b:1b']);
  assert.deepEqual(await names('backend=%20lemonade+'), ['b:1b']);
  assert.deepEqual(await names('backend=&colour=red'), ['a:1b', 'b:1b']);
  assert.deepEqual(await names('Backend=lemonade'), ['a:1b', 'b:1b']);
});

test('a dry run that is asked for where or as nobody hears it is refused, not done', () => {
  const query = new URLSearchParams('dryRun=true');
  const [load, remove] = [routeOf('loadModel'), routeOf('deleteModel')];
  const refused = (ask: () => unknown, message: string) =>
    assert.throws(ask, { code: 'invalid_request', message: `invalid request: ${message}` });
  refused(
    () => askedByBody(load, fields, '{"model":"a"}', query),
    '"dryRun" is not read here; write "dryRun": true into the JSON body',
  );
  refused(() => askedByBody(load, fields, '{"model":"a","dry_run":true}'), '"dry_run" is not known; write "dryRun"');
  refused(
    () => askedByQuery(remove, { name: 'a' }, new URLSearchParams(), '{"dryRun":true}'),
    '"dryRun" is not read here; ask with ?dryRun=true',
  );
  refused(
    () => askedByQuery(remove, { name: 'a' }, new URLSearchParams('dry-run=true')),
    '"dry-run" is not known; write "dryRun"',
  );
  assert.equal(askedByQuery(remove, { name: 'a' }, new URLSearchParams(), 'what?').dryRun, false);
  assert.equal(askedByBody(routeOf('fitCheck'), fields, '{"model":"a"}', query).dryRun, false);
});
