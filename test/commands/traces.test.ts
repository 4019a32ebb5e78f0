import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { answer, serve, soon } from '../drivers/scripted.ts';
import { startGateway } from './running.ts';

interface SentSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string | number>> }[];
  readonly links?: readonly { readonly traceId: string }[];
}

/** Takes spans as a collector does, by OTLP over HTTP in JSON. */
async function startCollector(t: TestContext) {
  const { endpoint, requests } = await serve(t, (_seen, response) => answer(response, 200, {}));
  const resources = () =>
    requests.flatMap(
      ({ body }) => (body as { resourceSpans: { resource: unknown; scopeSpans: unknown }[] }).resourceSpans,
    );
  const spans = () =>
    resources().flatMap(({ scopeSpans }) => (scopeSpans as { spans: SentSpan[] }[]).flatMap(({ spans }) => spans));
  return { endpoint, requests, resources, spans };
}

/** One that has no model, and refuses whatever else is asked. */
const startOllama = (t: TestContext) =>
  serve(t, ({ path }, response) => {
    const documents: Record<string, object> = {
      '/api/version': { version: '0.12.0' },
      '/api/tags': { models: [] },
      '/api/ps': { models: [] },
    };
    const document = documents[path];
    answer(response, document ? 200 : 404, document ?? { error: 'not here' });
  });

const { PATH } = process.env;

/** The gateway over that Ollama, with an environment of its own. */
async function startTraced(t: TestContext, env: NodeJS.ProcessEnv) {
  const ollama = await startOllama(t);
  const flags = ['--backends', 'ollama', '--ollama-endpoint', ollama.endpoint, '--verbose'];
  const { gateway, url } = await startGateway(t, flags, { env: { PATH, ...env } });
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }).then(response => response.text());
  const stop = async () => {
    gateway.kill('SIGINT');
    assert.equal(await gateway.ended, 0, gateway.out);
  };
  return { url, post, stop, ollama, gateway };
}

const kinds: Record<number, string> = { 2: 'server', 3: 'client' };

/** Spans of a trace as lines: each below its parent, by name. `remote` is what the request named as its parent. */
function treeOf(spans: readonly SentSpan[], traceId: string, remote?: string): string[] {
  const ours = spans.filter(span => span.traceId === traceId);
  const below = (parent: string | undefined, depth: number): string[] =>
    ours
      .filter(({ parentSpanId }) => (parentSpanId || undefined) === parent)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap(span => [line(span, depth), ...below(span.spanId, depth + 1)]);
  const lines = below(remote, 0);
  assert.equal(lines.length, ours.length, 'every span has a parent that is there');
  return lines;
}

const line = ({ kind, name, attributes }: SentSpan, depth: number) => {
  const facts = attributes.map(({ key, value }) => `${key}=${Object.values(value)[0]}`);
  return `${'  '.repeat(depth)}${kinds[kind]} ${name}: ${facts.join(' ')}`;
};

const trace = (digit: string) => digit.repeat(32);
const parent = 'b'.repeat(16);
const traceparent = (digit: string) => `00-${trace(digit)}-${parent}-01`;

/** One operation over a WebSocket that was opened with a `traceparent`. */
async function askSocket(url: string, query: string, headers: Record<string, string>): Promise<void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { headers });
  const done = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init' })));
    socket.on('message', data => {
      const { type } = JSON.parse(String(data)) as { type: string };
      if (type === 'connection_ack') socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
      if (type === 'complete') resolve();
    });
  });
  await soon(done, 'the answer over the socket');
  socket.close();
}

test('one request over each face is one trace: what was asked, and below it what that asked of the backend', async t => {
  const collector = await startCollector(t);
  const { url, post, stop, ollama, gateway } = await startTraced(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=lab',
  });
  const models = 'query listModels { models { totalCount } }';

  await fetch(`${url}/readyz`);
  await fetch(`${url}/api/v1/backends`, { headers: { traceparent: traceparent('1') } });
  await post('/graphql', { query: models }, { traceparent: traceparent('2') });
  const unload = (name: string, _meta?: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: { model: 'private-model' }, ...(_meta && { _meta }) },
  });
  // Readers within a second share a look.
  await sleep(1_100);
  const accept = 'application/json, text/event-stream';
  const tool = await post('/mcp', unload('get_model', { traceparent: traceparent('4') }), {
    accept,
    traceparent: traceparent('3'),
  });
  assert.match(tool, /"isError":true/);
  await post('/mcp', unload('private_tool'), { accept, traceparent: traceparent('5') });
  await sleep(1_100);
  await askSocket(url, models, { traceparent: traceparent('6') });
  await post('/graphql', { query: '{ node(id: "private") { id } }' }, { traceparent: traceparent('7') });
  await post('/graphql', { query: 'query private { nope: __typename }' }, { traceparent: 'not-one' });
  await stop();

  const spans = collector.spans();
  const version = 'client GET /api/version: model_manager.backend=ollama';
  const looks = [
    'client GET /api/ps: model_manager.backend=ollama',
    'client GET /api/tags: model_manager.backend=ollama',
  ];
  const tree = (digit: string) => treeOf(spans, trace(digit), parent);
  const http = (method: string, route: string) =>
    `server ${method} ${route}: http.request.method=${method} http.route=${route} http.response.status_code=200`;
  const called = 'server mcp.tools/call: mcp.method.name=tools/call gen_ai.operation.name=execute_tool';
  const query = 'server query listModels: graphql.operation.type=query graphql.operation.name=listModels';
  const inside = (lines: string[], depth: number) => lines.map(each => '  '.repeat(depth) + each);

  assert.deepEqual(tree('1'), [http('GET', '/api/v1/backends'), ...inside([version], 1)]);
  assert.deepEqual(tree('2'), [http('POST', '/graphql'), `  ${query}`, ...inside(looks, 2)]);
  assert.deepEqual(tree('3'), [http('POST', '/mcp')]);
  assert.deepEqual(tree('4'), [`${called} gen_ai.tool.name=get_model error.type=tool_error`, ...inside(looks, 1)]);
  assert.deepEqual(tree('5'), [http('POST', '/mcp'), `  ${called} error.type=_OTHER`]);
  assert.deepEqual(tree('6'), [query, ...inside(looks, 1)]);
  assert.deepEqual(tree('7'), [
    http('POST', '/graphql'),
    '  server query other: graphql.operation.type=query graphql.operation.name=other error.type=invalid_request',
  ]);
  const known = new Set(['1', '2', '3', '4', '5', '6', '7'].map(trace));
  const [fresh, ...others] = [...new Set(spans.map(({ traceId }) => traceId))].filter(id => !known.has(id));
  assert.deepEqual(others, [], 'probes and what the gateway does by itself are in no trace');
  assert.deepEqual(treeOf(spans, fresh as string), [
    http('POST', '/graphql'),
    '  server query other: graphql.operation.type=query graphql.operation.name=other',
  ]);

  const linked = spans.filter(({ traceId }) => traceId === trace('4')).flatMap(({ links = [] }) => links);
  assert.deepEqual(
    linked.map(({ traceId }) => traceId),
    [trace('3')],
    'a call with a trace of its own says which request brought it',
  );
  const sent = JSON.stringify(collector.requests.map(({ body }) => body));
  assert.doesNotMatch(sent, /private/, 'nothing that callers wrote is in a span');
  const resource = JSON.stringify(collector.resources()[0]?.resource);
  assert.match(resource, /"service.name","value":\{"stringValue":"model-manager"/);
  assert.match(resource, /"deployment.environment.name","value":\{"stringValue":"lab"/);
  for (const { headers } of ollama.requests) assert.equal(headers.traceparent, undefined);
  const lines = gateway.out.split('\n').filter(text => text.includes('"tool called"'));
  assert.deepEqual(
    lines.map(text => (JSON.parse(text) as { traceId: string }).traceId),
    [trace('4')],
  );
});

/**
 * Tells on standard error of every module of OpenTelemetry's SDK that is loaded, by import or by require. Its API is no part of
 * that: it does nothing by itself, and metrics load it.
 */
const telling = `--import=data:text/javascript,${encodeURIComponent(
  'import { registerHooks } from "node:module"; registerHooks({ load(url, context, next) ' +
    '{ if (/@opentelemetry.(?!api\\/)/.test(url)) process.stderr.write(url + "\\n"); return next(url, context); } });',
)}`;

test('where nobody wants traces nothing of the SDK is loaded, whatever is asked', async t => {
  const off: NodeJS.ProcessEnv[] = [
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  ];
  for (const env of off) {
    const { url, post, stop, gateway } = await startTraced(t, { ...env, NODE_OPTIONS: telling });
    await fetch(`${url}/api/v1/models`, { headers: { traceparent: traceparent('1') } });
    await post('/graphql', { query: '{ __typename }' });
    await stop();
    assert.equal(gateway.err, '', JSON.stringify(env));
    assert.doesNotMatch(gateway.out, /"traceId"/);
    assert.equal(
      gateway.out.includes('nothing is traced: OTEL_EXPORTER_OTLP_PROTOCOL'),
      'OTEL_EXPORTER_OTLP_PROTOCOL' in env,
    );
  }
  const { stop, gateway } = await startTraced(t, { OTEL_TRACES_EXPORTER: 'otlp', NODE_OPTIONS: telling });
  await stop();
  assert.match(gateway.err, /@opentelemetry\/sdk-trace-node/, 'the hook sees what is loaded');
});

test('a collector that is not there keeps nobody from stopping, and the log says that spans were lost', async t => {
  const { url, stop, gateway } = await startTraced(t, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  await fetch(`${url}/api/v1/models`);
  await stop();
  assert.match(gateway.out, /"the last spans could not be sent"/);
});
