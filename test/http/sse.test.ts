import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { type Client, createClient } from 'graphql-sse';
import { fakeDriver, hang, testGateway } from '../support/gateway.ts';
import { eventually, openStream, send, startServer, type TestServer, textOf, turn, within } from '../support/server.ts';

const stream = { accept: 'text/event-stream' };

/** A driver whose pulls go on when the test says so. */
function pullingDriver() {
  const driver = fakeDriver({ models: ['a'] });
  const go = Promise.withResolvers<void>();
  driver.script.pull = async function* () {
    yield { status: 'downloading', bytesCompleted: 25, bytesTotal: 100 };
    await go.promise;
    yield { status: 'success', bytesCompleted: 100, bytesTotal: 100 };
  };
  return { driver, go: go.resolve };
}

/** A client of graphql-sse, as an application has one. */
const clientOf = (server: TestServer, retryAttempts = 0): Client =>
  createClient({ url: server.graphqlUrl, retryAttempts });

async function startPull(server: TestServer): Promise<string> {
  const { json } = await send(server.graphqlUrl, { query: textOf('pullModel'), variables: { model: 'b' } });
  return json.data.pullModel.job.id;
}

test('a client follows a job to its end, and the stream is complete then', async () => {
  const { driver, go } = pullingDriver();
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const id = await startPull(server);
  const seen: Array<[phase: string, percent: number]> = [];
  let revision = 0;
  for await (const { data } of clientOf(server).iterate<{
    job: { revision: number; job: { phase: string; percent: number } };
  }>({ query: textOf('watchJob'), variables: { id } })) {
    assert.ok(data);
    assert.ok(data.job.revision > revision);
    revision = data.job.revision;
    const { phase, percent } = data.job.job;
    seen.push([phase, percent]);
    if (percent === 25) go();
  }
  assert.deepEqual(seen.at(-1), ['SUCCEEDED', 100]);
  assert.ok(seen.some(([phase, percent]) => phase === 'RUNNING' && percent === 25));
  assert.ok(seen.slice(0, -1).every(([, percent]) => percent < 100));
  await eventually(() => server.counts.members === 0, 'no member left');
});

test('a job that has ended is one event and the end', async () => {
  const { driver, go } = pullingDriver();
  go();
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const id = await startPull(server);
  await eventually(() => server.gateway.jobs.get(id).phase === 'succeeded', 'the end of the job');
  const { text } = await send(
    server.graphqlUrl,
    { query: textOf('watchJob'), variables: { id } },
    { headers: { ...stream } },
  );
  const [head, next, complete, ...more] = text.split('\n\n');
  assert.equal(head, ':');
  assert.match(next as string, /^event: next\ndata: \{"data":\{"job":\{.*"phase":"SUCCEEDED".*\}\}\}$/);
  assert.equal(complete, 'event: complete\ndata: ');
  assert.deepEqual(more, ['']);
});

test('the head of a stream keeps proxies from holding it back', async () => {
  await using server = await startServer();
  const { response, leave } = await openStream(
    server.graphqlUrl,
    { query: textOf('watchModels') },
    { 'accept-encoding': 'gzip, deflate, br' },
  );
  const { headers, statusCode } = response;
  assert.equal(statusCode, 200);
  assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8');
  assert.equal(headers['x-accel-buffering'], 'no');
  assert.equal(headers['cache-control'], 'no-cache, no-transform');
  assert.equal(headers['content-encoding'], undefined);
  assert.match(headers['x-request-id'] as string, /^[\w-]{36}$/);
  leave();
});

test('models: the whole state first, then what changed', async () => {
  const driver = fakeDriver({ models: ['a', 'b'] });
  const gateway = testGateway({ drivers: [driver] });
  await using server = await startServer({ gateway });
  const models = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  const first = (await models.nextPayload()).data.models;
  assert.deepEqual([first.snapshot, first.items.length], [true, 2]);
  driver.world.models = [{ backend: 'ollama', name: 'a', sizeBytes: 5 }];
  gateway.registry.backends[0]?.changed();
  const second = (await models.nextPayload()).data.models;
  assert.equal(second.snapshot, false);
  assert.deepEqual(
    second.items.map(({ name, sizeBytes }: { name: string; sizeBytes: number }) => [name, sizeBytes]),
    [['a', 5]],
  );
  assert.deepEqual(second.removed, [first.items[1].id]);
  models.leave();
});

test('a quiet stream says something every 15 s', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  await using server = await startServer();
  const streams = await Promise.all(
    ['watchModels', 'watchJobs', 'watchBackends'].map(name => openStream(server.graphqlUrl, { query: textOf(name) })),
  );
  for (const each of streams) {
    await each.nextComment('the comment at the beginning');
    await each.next('the first event');
  }
  for (let round = 0; round < 3; round++) {
    t.mock.timers.tick(14_999);
    await turn();
    t.mock.timers.tick(1);
    for (const each of streams) assert.deepEqual(await each.nextComment(), { comment: '' });
  }
  for (const each of streams) each.leave();
});

test('a query is one event and the end, by GET too', async () => {
  await using server = await startServer({ gateway: testGateway({ drivers: [fakeDriver({ models: ['a'] })] }) });
  const query = '{ models { items { name } } }';
  const expected = `event: next\ndata: {"data":{"models":{"items":[{"name":"a"}]}}}\n\nevent: complete\ndata: \n\n`;
  const post = await send(server.graphqlUrl, { query }, { headers: { ...stream } });
  assert.equal(post.text, expected);
  const get = await send(`${server.graphqlUrl}?query=${encodeURIComponent(query)}`, undefined, { headers: stream });
  assert.equal(get.text, expected);
});

test('a subscription by GET streams, as EventSource asks for it', async () => {
  await using server = await startServer();
  const query = encodeURIComponent('subscription { jobs { snapshot } }');
  const abort = new AbortController();
  const response = await fetch(`${server.graphqlUrl}?query=${query}`, { headers: stream, signal: abort.signal });
  let text = '';
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"snapshot":true')) break;
  }
  abort.abort();
  await eventually(() => server.counts.members === 0, 'no member left');
});

test('a mutation is executed by POST and refused by GET', async () => {
  const driver = fakeDriver({ models: ['a'] });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const query = 'mutation { deleteModel(model: "a") { deleted } }';
  const get = await send(`${server.graphqlUrl}?query=${encodeURIComponent(query)}`, undefined, { headers: stream });
  assert.equal(get.status, 405);
  assert.equal(get.headers.get('allow'), 'POST');
  assert.equal(driver.world.models.length, 1);
  const post = await send(server.graphqlUrl, { query }, { headers: { ...stream } });
  assert.match(post.text, /^event: next\ndata: \{"data":\{"deleteModel":\{"deleted":true\}\}\}\n\n/);
  assert.equal(driver.world.models.length, 0);
});

test('what is refused before it begins is a 400 with the reason, not a stream', async () => {
  await using server = await startServer();
  const refuse = (body: unknown) => send(server.graphqlUrl, body, { headers: { ...stream } });
  for (const [body, code] of [
    [{ query: 'subscription { nope }' }, 'invalid_request'],
    [{ query: 'subscription { jobs {' }, 'invalid_request'],
    [{ query: `{ ${'a '.repeat(3_000)}}` }, 'TOKEN_LIMIT'],
    [{ variables: {} }, 'invalid_request'],
    ['{"query":', 'invalid_request'],
  ] as const) {
    const { status, json, headers } = await refuse(body);
    assert.equal(status, 400);
    assert.equal(json.errors[0].extensions.code, code);
    assert.match(headers.get('content-type') ?? '', /^application\/json/);
  }
  const form = await send(server.graphqlUrl, 'query=x', {
    headers: { ...stream, 'content-type': 'application/x-www-form-urlencoded' },
  });
  assert.equal(form.status, 415);
});

test('what a resolver refuses is one event with the reason, and the end', async () => {
  await using server = await startServer();
  for (const [query, code] of [
    ['subscription { job(id: "f00") { removed } }', 'not_found'],
    ['subscription { models(backend: "nope") { snapshot } }', 'invalid_request'],
  ]) {
    const { text } = await send(server.graphqlUrl, { query }, { headers: { ...stream } });
    const [, data] = /^event: next\ndata: (.*)\n\nevent: complete\ndata: \n\n$/.exec(text) ?? [];
    assert.equal(JSON.parse(data as string).errors[0].extensions.code, code);
  }
  const variables = { backend: {} };
  const { text } = await send(server.graphqlUrl, { query: textOf('watchJobs'), variables }, { headers: { ...stream } });
  assert.match(text, /"code":"invalid_request"/);
  assert.equal(server.counts.members, 0);
});

test('a subscription that does not ask for a stream is told how to', async () => {
  await using server = await startServer();
  const { json } = await send(server.graphqlUrl, { query: textOf('watchJobs') });
  assert.match(json.errors[0].message, /text\/event-stream/);
  assert.equal(json.errors[0].extensions.code, 'invalid_request');
});

test('who leaves leaves nothing behind: no member, no look at the backend', async () => {
  const driver = fakeDriver({ models: ['a'] });
  const hanging = hang();
  driver.script.models = hanging.answer;
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const models = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  await hanging.reached;
  await eventually(() => server.counts.members === 1, 'a member');
  models.leave();
  await within(hanging.aborted, 'the end of the look');
  await eventually(() => server.counts.members === 0, 'no member left');
});

test('who leaves before the answer begins leaves nothing behind either', async () => {
  await using server = await startServer();
  for (let round = 0; round < 50; round++) {
    const req = request(server.graphqlUrl, { method: 'POST', agent: false, headers: { ...stream, ...json } });
    req.on('error', () => {});
    req.end(JSON.stringify({ query: textOf('watchModels') }));
    for (let turns = 0; turns < round % 5; turns++) await turn();
    req.destroy();
  }
  await (await openStream(server.graphqlUrl, { query: textOf('watchModels') })).next();
  await eventually(() => server.counts.members === 1, 'only who is here is a member');
});

const json = { 'content-type': 'application/json' };

test('a server that stops ends streams without saying that they are complete, and at once', async () => {
  await using server = await startServer();
  const models = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
  await models.next();
  const client = clientOf(server);
  const begun = Promise.withResolvers<void>();
  const ended = new Promise<string>(resolve => {
    client.subscribe(
      { query: textOf('watchJobs') },
      { next: () => begun.resolve(), complete: () => resolve('complete'), error: () => resolve('error') },
    );
  });
  await within(begun.promise, 'the first event');
  await within(server.close(60_000), 'the end of the server');
  await within(models.ended, 'the end of the stream');
  assert.deepEqual(models.unread, []);
  assert.equal(await within(ended, 'the end for the client'), 'error', 'a client with attempts left would come again');
});
