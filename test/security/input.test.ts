import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseDocument } from '../../src/backends/documents/document.ts';
import { callTool } from '../mcp/muster.ts';
import { refusalOf, rest } from '../support/rest.ts';
import { ask, openSocket, send } from '../support/server.ts';
import { startGuarded } from './lab.ts';

const server = await startGuarded();
after(() => server.close());

const isClean = () => assert.equal(({} as { polluted?: boolean }).polluted, undefined);

test('check 44: __proto__ in a GraphQL body is a name like any other', async () => {
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
  isClean();
});

test('check 44: nor in a body of REST, a tool call, a WebSocket message or a backend document', async () => {
  const evil = '{"polluted":true}';
  const both = `"__proto__":${evil},"constructor":{"prototype":${evil}}`;
  const restAnswer = await send(`${server.url}/api/v1/models/load`, `{"model":"a",${both}}`);
  assert.equal(restAnswer.status, 200);
  isClean();

  const head = '"jsonrpc":"2.0","id":1,"method":"tools/call"';
  const params = `"params":{"name":"load_model","arguments":{"model":"a",${both}}}`;
  const call = await send(`${server.url}/mcp`, `{${head},${params}}`);
  assert.equal(call.json.result.isError, undefined);
  // Beside its own fields a message of JSON-RPC has none.
  const strange = await send(`${server.url}/mcp`, `{${head},${both},${params}}`);
  assert.equal(strange.status, 400);
  isClean();

  const socket = await openSocket(server.socketUrl, { init: false });
  socket.send(`{"type":"connection_init","payload":{${both}},${both}}`);
  assert.equal((await socket.next()).type, 'connection_ack');
  socket.send(
    `{"id":"__proto__","type":"subscribe","payload":{"query":"{ __typename }",${both},"variables":{${both}}}}`,
  );
  assert.deepEqual((await socket.next()).payload, { data: { __typename: 'Query' } });
  isClean();
  socket.raw.terminate();

  for (const yaml of [
    `__proto__: ${evil}\nspec: {}`,
    'spec:\n  __proto__:\n    polluted: true\n',
    `constructor: {prototype: ${evil}}`,
    `a: &a ${evil}\n__proto__:\n  <<: *a\n`,
  ]) {
    assert.ok('problem' in parseDocument(yaml), yaml);
    isClean();
  }
});

test('check 45: a reference that leads elsewhere is refused on all faces, and no backend is asked', () =>
  server.untouched(async () => {
    for (const model of [
      '../x',
      '..',
      'hf.co/../../etc/passwd',
      'a\\..\\b',
      '%2e%2e',
      '%2E%2e/x',
      'a/.%2e%2Fb',
      '..%2fx',
      'a\u0000b',
      'a\nb',
      'a\r\nx-header: y',
      'x'.repeat(10_240),
      'file:///etc/passwd',
      'gopher://host/x',
    ]) {
      const shown = JSON.stringify(model.slice(0, 40));
      for (const name of ['pullModel', 'unloadModel', 'deleteModel']) {
        const field = { pullModel: 'created', unloadModel: 'loaded', deleteModel: 'model' }[name] as string;
        const { json } = await ask(server, `mutation ($model: String!) { ${name}(model: $model) { ${field} } }`, {
          model,
        });
        assert.deepEqual(
          json.errors?.[0].extensions,
          { code: 'invalid_request', http: { status: 400 } },
          `${name} ${shown}`,
        );
      }
      assert.match(
        refusalOf(await rest(server.url, 'POST /api/v1/models/pull', { body: { model } })),
        /^400 invalid_request/,
      );
      const path = `/api/v1/models/${encodeURIComponent(model)}`;
      assert.match(refusalOf(await rest(server.url, `DELETE ${path}`)), /^400 invalid_request/, shown);
      assert.equal((await callTool(`${server.url}/mcp`, 'pull_model', { model })).code, 'invalid_request', shown);
    }
  }));

test('check 45: what backends do have models from is no way elsewhere', async () => {
  for (const model of ['hf://org/name', 'https://huggingface.co/org/name', 'a..b', 'org/...x', 'qwen3:8b', 'v1.%2e5']) {
    const { json } = await ask(server, 'query ($model: String!) { model(model: $model) { name } }', { model });
    assert.equal(json.errors[0].extensions.code, 'not_found', model);
  }
});
