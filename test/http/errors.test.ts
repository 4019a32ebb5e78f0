import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { type Answer, ask, send, startServer } from '../support/server.ts';

const driver = fakeDriver({ models: ['a'] });
const server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
after(() => server.close());

const strict = { accept: 'application/graphql-response+json' };

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

  test('what does not fit the graph is told once', async () => {
    const { json } = await ask(server, '{ modles { totalCount } job(id: "x", colour: "red") { jobId } }');
    assert.deepEqual(
      json.errors.map(({ message }: { message: string }) => message),
      ['Cannot query field "modles" on type "Query".', 'Unknown argument "colour" on field "Query.job".'],
    );
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
