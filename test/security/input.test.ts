/** Checks 44, 45 and 47: what clients send changes nothing but what it is about, and what they are told is meant for them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseDocument } from '../../src/backends/documents/document.ts';
import { parseRecording } from '../../src/drivers/kserve/recording/parse.ts';
import { createLogger } from '../../src/log.ts';
import { callTool, post } from '../mcp/muster.ts';
import { documentMap, startOnCluster } from '../support/cluster.ts';
import { allFaces, through } from '../support/facts.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { jobEnd } from '../support/jobs.ts';
import { rest } from '../support/rest.ts';
import { ask, eventually, openSocket, send, startServer } from '../support/server.ts';
import { fakeWiring } from '../support/serving.ts';

/** Keys and values that every object has, in the ways one might try to change them. */
const poisons = [
  '{"__proto__":{"polluted":1},"model":"a:1b"}',
  '{"model":"a:1b","constructor":{"prototype":{"polluted":1}}}',
  '{"__proto__":{"model":"a:1b","backend":"ollama","dryRun":true}}',
  '{"prototype":{"polluted":1},"toString":1,"hasOwnProperty":1,"valueOf":null,"model":"a:1b"}',
  '{"model":{"__proto__":{"polluted":1}}}',
];

const inherited = () => [Object.prototype, Array.prototype, Function.prototype].map(each => Reflect.ownKeys(each));

describe('check 44: __proto__ in what is sent', () => {
  const before = inherited();
  const unpolluted = () => {
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    assert.deepEqual(inherited(), before);
  };

  test('in bodies, variables, tool arguments and messages of a socket', async () => {
    const driver = fakeDriver({ models: ['a:1b'] });
    await using server = await startServer({ gateway: testGateway({ drivers: [driver], wiring: fakeWiring() }) });
    for (const poison of poisons) {
      for (const path of ['load', 'unload', 'pull'])
        assert.ok((await send(`${server.url}/api/v1/models/${path}`, poison)).status < 500, poison);
      const query = 'mutation ($model: String!) { unloadModel(model: $model) { model } }';
      const message = `{"query":${JSON.stringify(query)},"variables":${poison},"__proto__":{"query":"{x}"},"extensions":${poison}}`;
      assert.ok((await send(server.graphqlUrl, message)).status < 500);
      const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"unload_model","arguments":${poison}},"__proto__":{"polluted":1}}`;
      assert.ok((await post(`${server.url}/mcp`, JSON.parse(call))).response.status < 500);
      const socket = await openSocket(server.socketUrl, { init: false });
      socket.send(`{"type":"connection_init","payload":${poison},"__proto__":{"polluted":1}}`);
      await socket.next('the acknowledgement');
      socket.send(`{"type":"subscribe","id":"__proto__","payload":${message}}`);
      await socket.next('an answer');
      socket.raw.terminate();
      unpolluted();
    }
    // What is only inherited is not sent: there is no model in that.
    const { status, json } = await send(`${server.url}/api/v1/models/load`, poisons[2]);
    assert.deepEqual([status, json.error?.code], [400, 'invalid_request']);
  });

  test('in documents and recordings', async () => {
    const head = 'apiVersion: agent-platform.giantswarm.io/v1alpha1\nkind: ModelBackend\n';
    const documents = [
      `${head}__proto__: {polluted: 1}\nspec: {kind: ollama, endpoint: "http://a:1"}\n`,
      `${head}spec: {kind: ollama, endpoint: "http://a:1", __proto__: {polluted: 1}}\n`,
      `${head}spec: &a {kind: ollama, endpoint: "http://a:1"}\n<<: {__proto__: {polluted: 1}}\n`,
      `${head}spec: {__proto__: {kind: ollama, endpoint: "http://a:1"}}\n`,
      `${head}spec: {kind: kserve, kserve: {target: {servingNamespace: x}, gpuPool: {nodeSelector: {__proto__: a, constructor: b}}}}\n`,
    ];
    for (const text of documents) {
      parseDocument(text);
      assert.ok('problem' in parseRecording(text));
      unpolluted();
    }
    assert.ok('problem' in parseDocument(documents[3] as string), 'nothing is inherited from a document');
    await using world = await startOnCluster();
    world.cluster.put(documentMap('ollama', documents[1] as string));
    await eventually(
      () => (world.gateway.registry.registered.current?.value?.documents ?? []).length > 0,
      'the document',
    );
    assert.match(world.gateway.registry.registered.current?.value?.documents?.[0]?.error ?? '', /__proto__/);
    unpolluted();
  });

  test('in what is logged: the line says what there was', () => {
    const lines: string[] = [];
    const log = createLogger({ format: 'json', stream: { write: line => lines.push(line) } });
    log.info({ sent: JSON.parse('{"__proto__":{"polluted":1,"token":"abc"}}') }, 'sent');
    assert.doesNotMatch(lines.join(''), /abc/);
    unpolluted();
  });
});

describe('check 45: references that lead elsewhere', () => {
  const ways = [
    '../x',
    'a/../../b',
    '..',
    '%2e%2e/x',
    'a/%2E%2e%2fx',
    'a/.%2e%2Fb',
    '..\\x',
    'file:///etc/passwd',
    'gopher://host/x',
    'a\0b',
    'a\nb',
    'a\r\nx: y',
    'x'.repeat(10_240),
  ];

  for (const face of allFaces) {
    test(`are refused through ${face}, and no backend hears of them`, async () => {
      const driver = fakeDriver({ models: ['a:1b'] });
      await using server = await startServer({ gateway: testGateway({ drivers: [driver], wiring: fakeWiring() }) });
      for (const model of ways) {
        for (const name of [
          'pullModel',
          'loadModel',
          'unloadModel',
          'deleteModel',
          'wireModel',
          'unwireModel',
          'getModel',
        ]) {
          const refusal = await through(face, server, name, { model });
          assert.match(String(refusal), /^invalid_request: /, `${name} ${model.slice(0, 40)}`);
          assert.ok(String(refusal).length < 300);
        }
      }
      assert.deepEqual(driver.asked, []);
    });
  }

  test('are refused as they stand in a path, too', async () => {
    const driver = fakeDriver({ models: ['a:1b'] });
    await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
    for (const path of ['..%2f..%2fetc', '%2e%2e%2fx', 'a%00', 'a%0d%0aHost:%20x', '%252e%252e%252fx', '%ff%fe', '%']) {
      for (const method of ['GET', 'DELETE']) {
        const { status } = await rest(server.url, `${method} /api/v1/models/${path}`);
        assert.ok(status === 400 || status === 404, `${method} ${path}: ${status}`);
      }
    }
    for (const asked of driver.asked) assert.match(asked, /^[a-z]+$/, 'lists only, and no reference');
  });
});

test('check 45: what backends do have models from is no way elsewhere', async () => {
  await using server = await startServer({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a:1b'] })] }) });
  for (const model of ['hf://org/name', 'https://huggingface.co/org/name', 'a..b', 'org/...x', 'qwen3:8b', 'v1.%2e5']) {
    const { json } = await ask(server, 'query ($model: String!) { model(model: $model) { name } }', { model });
    assert.equal(json.errors[0].extensions.code, 'not_found', model);
  }
});

describe('check 47: what nobody expected', () => {
  const inner = "ENOENT: no such file '/srv/internal/secrets.json' at db-7.internal.example:5432";
  const surprise = () => {
    throw new TypeError(inner);
  };
  const leaks = /srv|internal\.example|ENOENT|TypeError|\.ts:|at .*\(|node_modules/;

  for (const face of allFaces) {
    test(`is masked through ${face}, with the request it is logged under`, async () => {
      const driver = fakeDriver({ models: ['a:1b'] });
      await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
      driver.script.unload = async () => surprise();
      const refusal = String(await through(face, server, 'unloadModel', { model: 'a:1b', backend: 'ollama' }));
      const [, id] = /^internal_error: unexpected error; the log has it under request ([\w-]+)$/.exec(refusal) ?? [];
      assert.ok(id, refusal);
      assert.ok(
        server.logged.some(line => line.includes('/srv/internal') && line.includes(id)),
        'it is in the log',
      );
      // A look that all share is nobody's request.
      driver.script.models = async () => surprise();
      server.gateway.registry.backends[0]?.changed();
      for (const [name, asks] of [
        ['listModels', { backend: 'ollama' }],
        ['getModel', { model: 'a:1b' }],
      ] as const) {
        const looked = String(await through(face, server, name, asks));
        assert.match(looked, /^internal_error: unexpected error while looking; the log has it$/, name);
      }
    });
  }

  test('is masked over a socket, as a failed job, in a list, and in the health', async () => {
    const driver = fakeDriver({ models: ['a:1b'] });
    const others = fakeDriver({ name: 'lemonade', models: ['b:1b'] });
    const gateway = testGateway({ drivers: [driver, others], wiring: fakeWiring() });
    await using server = await startServer({ gateway });
    driver.script.models = async () => surprise();
    driver.script.describe = async () => surprise();
    // biome-ignore lint/correctness/useYield: it fails before it has anything to tell
    driver.script.pull = async function* () {
      surprise();
    };
    const { job } = await through('REST', server, 'pullModel', { model: 'x', backend: 'ollama' });
    const ended = await jobEnd(gateway, job.id);
    assert.equal(ended.phase, 'failed');
    assert.match(ended.error ?? '', /^unexpected error; the log has it under request [\w-]+$/);
    const socket = await openSocket(server.socketUrl);
    socket.send({ type: 'subscribe', id: '1', payload: { query: '{ models(backend: "ollama") { nodes { name } } }' } });
    const { payload } = await socket.next('an answer');
    socket.raw.terminate();
    const seen = [
      payload,
      ended,
      (await send(`${server.url}/api/v1/models`)).text,
      (await send(`${server.url}/api/v1/backends`)).text,
      (await send(`${server.url}/backendz`)).text,
      (await callTool(`${server.url}/mcp`, 'list_models')).text,
      (await ask(server, '{ jobs { nodes { error } } backends { nodes { message } } }')).text,
    ];
    for (const each of seen) assert.doesNotMatch(JSON.stringify(each), leaks);
  });

  test('has no stack in what a broken request is told', async () => {
    await using server = await startServer();
    for (const body of ['{', '[]', 'null', '"x"', '{"query":1}', '{"query":"{"}', '{"query":"{ nope }"}']) {
      for (const path of ['/graphql', '/mcp', '/api/v1/models/load']) {
        const { status, text } = await send(`${server.url}${path}`, body);
        assert.ok(status < 500, `${path} ${body}: ${status}`);
        assert.doesNotMatch(text, /\.ts:|node_modules|\n *at |\\n *at /);
      }
    }
  });
});
