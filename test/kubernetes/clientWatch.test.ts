import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { createKubernetesClient, type WatchEvent } from '../../src/kubernetes/client.ts';
import { type ConfigMap, configMaps } from '../../src/kubernetes/resource.ts';
import { all, callOf, failure, soon } from '../drivers/scripted.ts';
import { accessTo, configMap, refuse, startApi } from './apiLab.ts';

const options = { resourceVersion: '5', timeoutSeconds: 300 };
const event = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`;

/** A watch of the ConfigMaps of a namespace whose answer a test writes. */
async function watching(t: TestContext, script: (response: ServerResponse) => void, signal?: AbortSignal) {
  const api = await startApi(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    script(response);
  });
  const client = createKubernetesClient(accessTo(api.url));
  const call = callOf(signal && { signal });
  const events = client.watch(call, configMaps, { namespace: 'own', labelSelector: 'a=b,c in (d, e)' }, options);
  return { api, client, events, read: events[Symbol.asyncIterator]() };
}

const end = { done: true, value: undefined };
const nameOf = (event: WatchEvent<ConfigMap>) =>
  'object' in event ? event.object.metadata.name : event.resourceVersion;

test('a watch asks for what is selected, with bookmarks, from a version on', async t => {
  const { api, events } = await watching(t, response => response.end());
  assert.deepEqual(await all(events), []);
  const [{ path, query } = assert.fail()] = api.asked;
  assert.equal(path, '/api/v1/namespaces/own/configmaps');
  assert.deepEqual(Object.fromEntries(query), {
    watch: 'true',
    allowWatchBookmarks: 'true',
    labelSelector: 'a=b,c in (d, e)',
    resourceVersion: '5',
    timeoutSeconds: '300',
  });
});

test('events come as they are, bookmarks as their version, and types nobody knows not at all', async t => {
  const { events } = await watching(t, response =>
    response.end(
      event('ADDED', configMap('a')) +
        event('PROPHECY', { any: 'thing' }) +
        event('MODIFIED', configMap('a', '2')) +
        '\n\r\n' +
        event('BOOKMARK', { kind: 'ConfigMap', metadata: { resourceVersion: '9' } }) +
        event('DELETED', configMap('a', '3')),
    ),
  );
  assert.deepEqual(await all(events), [
    { type: 'ADDED', object: configMap('a') },
    { type: 'MODIFIED', object: configMap('a', '2') },
    { type: 'BOOKMARK', resourceVersion: '9' },
    { type: 'DELETED', object: configMap('a', '3') },
  ]);
});

test('lines are put together whatever the connection cuts, within characters, too', async t => {
  const names = ['ä', '日本', '🦙', 'plain'];
  const bytes = Buffer.from(names.map(name => event('ADDED', configMap(name))).join(''));
  const { events } = await watching(t, async response => {
    for (const byte of bytes) {
      response.write(Buffer.of(byte));
      await new Promise(resolve => setImmediate(resolve));
    }
    response.end();
  });
  assert.deepEqual((await all(events)).map(nameOf), names);
});

test('an event is there as soon as its line is', async t => {
  let more = () => {};
  const { read } = await watching(t, response => {
    response.write(event('ADDED', configMap('a')));
    more = () => response.end(event('ADDED', configMap('b')));
  });
  const first = await soon(read.next(), 'the first event');
  assert.equal(nameOf(first.value), 'a');
  more();
  assert.equal(nameOf((await read.next()).value), 'b');
  assert.deepEqual(await read.next(), end);
  assert.deepEqual(await read.next(), end);
});

test('an ERROR event is the failure that it says, after the events before it', async t => {
  const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version: 5 (9)' };
  const { read } = await watching(t, response =>
    response.write(event('ADDED', configMap('a')) + event('ERROR', status)),
  );
  assert.equal(nameOf((await read.next()).value), 'a');
  await assert.rejects(() => read.next(), {
    code: 'backend_error',
    message: 'cannot watch configmaps in namespace own: too old resource version: 5 (9)',
    details: { reason: 'Expired' },
  });
  assert.deepEqual(await read.next(), end, 'and that was all');
});

test('an ERROR event of a server that asks for patience says how much', async t => {
  const status = { code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 7 } };
  const { events } = await watching(t, response => response.end(event('ERROR', status)));
  await assert.rejects(all(events), {
    code: 'rate_limited',
    details: { reason: 'TooManyRequests', retryAfterMs: 7_000 },
  });
});

for (const [what, line] of [
  ['no JSON', 'this is no event'],
  ['no event', '{"kind":"Status"}'],
  ['an object without a name', event('ADDED', { metadata: {} })],
  ['a bookmark without a version', event('BOOKMARK', { metadata: {} })],
  ['a list', '[]'],
]) {
  test(`a line that is ${what} ends the watch with a sentence`, async t => {
    const { api, events } = await watching(t, response => response.write(`${line?.trim()}\n`));
    const error = await soon(failure(all(events)), 'an end');
    assert.equal(error.code, 'backend_error');
    assert.equal(error.message, `cannot watch configmaps in namespace own: ${api.url} sent a line that is no event`);
    await api.until(() => api.open.size === 0, 'the connection is closed');
  });
}

test('a line without an end is given up, and its connection with it', async t => {
  const { api, events } = await watching(t, response => {
    const more = () => {
      while (response.write(Buffer.alloc(1024 * 1024, 'x')));
    };
    response.on('drain', more);
    more();
  });
  const error = await failure(all(events));
  assert.equal(error.message, 'cannot watch configmaps in namespace own: an event of more than 8 MiB');
  await api.until(() => api.open.size === 0, 'the connection is closed');
});

test('a watch that breaks off says so: within an event, or with its connection', async t => {
  const cut = await watching(t, response => response.end(event('ADDED', configMap('a')).slice(0, 40)));
  assert.match((await failure(all(cut.events))).message, /^cannot watch configmaps .*: it broke off within an event$/);

  const broken = await watching(t, response =>
    response.write(event('ADDED', configMap('a')), () => response.destroy()),
  );
  assert.equal(nameOf((await broken.read.next()).value), 'a');
  const error = await failure(broken.read.next());
  assert.equal(error.code, 'unavailable');
  assert.equal(
    error.message,
    `cannot watch configmaps in namespace own: the connection to the API server at ${broken.api.url} was lost (UND_ERR_SOCKET)`,
  );
});

test('leaving a watch ends it at once and closes its connection', async t => {
  const { api, read, events } = await watching(t, response => response.write(event('ADDED', configMap('a'))));
  await read.next();
  const waiting = read.next();
  assert.deepEqual(await soon(read.return?.() as Promise<unknown>, 'return'), end);
  assert.deepEqual(await soon(waiting, 'the next that waited'), end);
  await api.until(() => api.open.size === 0, 'the connection is closed');
  for await (const _ of events) break;
  await api.until(() => api.asked.length === 2 && api.open.size === 0, 'that of a loop, too');
});

test('a watch that is left before it has begun is not begun, or not kept', async t => {
  const answers: ServerResponse[] = [];
  const api = await startApi(t, (_, response) => answers.push(response));
  const client = createKubernetesClient(accessTo(api.url));
  const watch = () => client.watch(callOf(), configMaps, {}, options)[Symbol.asyncIterator]();
  const unread = watch();
  assert.deepEqual(await unread.return?.(), end);
  assert.deepEqual(await unread.next(), end);
  assert.equal(api.asked.length, 0);

  const read = watch();
  const waiting = read.next();
  await api.until(() => answers.length === 1, 'the watch is asked for');
  await read.return?.();
  assert.deepEqual(await soon(waiting, 'the next that waited'), end);
  answers[0]?.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
  await api.until(() => api.open.size === 0, 'the connection is closed');
});

test("the call's signal ends a watch: while it waits, and before it has begun", async t => {
  const abort = new AbortController();
  const { api, read } = await watching(t, response => response.write(event('ADDED', configMap('a'))), abort.signal);
  await read.next();
  const waiting = failure(read.next());
  abort.abort();
  const error = await soon(waiting, 'an end');
  assert.equal(error.message, 'cannot watch configmaps in namespace own: cancelled by the caller');
  await api.until(() => api.open.size === 0, 'the connection is closed');

  const silent = await startApi(t, () => {});
  const leaving = new AbortController();
  const client = createKubernetesClient(accessTo(silent.url));
  const watch = failure(all(client.watch(callOf({ signal: leaving.signal }), configMaps, {}, options)));
  await silent.until(() => silent.asked.length === 1, 'the watch is asked for');
  leaving.abort();
  assert.match((await soon(watch, 'an end')).message, /cancelled by the caller$/);
  const late = client.watch(callOf({ signal: leaving.signal }), configMaps, {}, options);
  assert.match((await soon(failure(all(late)), 'an end')).message, /cancelled by the caller$/);
  assert.equal(silent.asked.length, 1);
});

test('a watch has to begin within ten seconds, and may then be silent for as long as it likes', async t => {
  const answers: ServerResponse[] = [];
  const api = await startApi(t, (_, response) => answers.push(response));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const client = createKubernetesClient(accessTo(api.url));
  const open = () => client.watch(callOf(), configMaps, {}, options)[Symbol.asyncIterator]();
  const never = failure(open().next());
  await api.until(() => answers.length === 1, 'the first watch is asked for');
  t.mock.timers.tick(10_000);
  const error = await soon(never, 'an end');
  assert.equal(error.code, 'backend_error');
  assert.equal(
    error.message,
    `cannot watch configmaps in all namespaces: no answer from the API server at ${api.url} within 10 s`,
  );

  const read = open();
  const first = read.next();
  await api.until(() => answers.length === 2, 'the second watch is asked for');
  answers[1]?.writeHead(200, { 'content-type': 'application/json' }).write(event('ADDED', configMap('a')));
  assert.equal(nameOf((await first).value), 'a');
  const second = read.next();
  t.mock.timers.tick(3_600_000);
  answers[1]?.end(event('ADDED', configMap('b')));
  assert.equal(nameOf((await second).value), 'b');
});

test('a slow reader holds the server up, not the memory', async t => {
  const total = 3_000;
  const body = 'x'.repeat(20_000);
  let sent = 0;
  const { read } = await watching(t, response => {
    const more = () => {
      while (sent < total) if (!response.write(event('ADDED', { ...configMap(`c${sent++}`), data: { body } }))) return;
      response.end();
    };
    response.on('drain', more);
    more();
  });
  await read.next();
  // Until nothing moves any more.
  for (let before = -1, still = 0; still < 500; still = before === sent ? still + 1 : 0) {
    before = sent;
    await new Promise(resolve => setImmediate(resolve));
  }
  assert.ok(sent < total / 2, `${sent} events were taken of which one was read`);
  let count = 1;
  while (!(await read.next()).done) count++;
  assert.equal(count, total, 'and nothing is lost');
});

test('watches do not keep short requests waiting, however many there are', async t => {
  const api = await startApi(t, ({ query }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (query.has('watch')) response.flushHeaders();
    else response.end(JSON.stringify(configMap('a')));
  });
  const abort = new AbortController();
  const client = createKubernetesClient(accessTo(api.url));
  const call = callOf({ signal: abort.signal });
  const watches = Array.from({ length: 80 }, () => failure(all(client.watch(call, configMaps, {}, options))));
  await api.until(() => api.asked.length === 80, 'all watches are open');
  const { metadata } = await soon(client.get(callOf(), configMaps, 'a', 'own'), 'a short request');
  assert.equal(metadata.name, 'a');
  abort.abort();
  await soon(Promise.all(watches), 'all watches end');
});

test('a watch that is refused is not tried again: when to come back is for its reader to decide', async t => {
  const api = await startApi(t, (_, response) =>
    refuse(response, 429, { reason: 'TooManyRequests', headers: { 'retry-after': '1' } }),
  );
  const client = createKubernetesClient(accessTo(api.url));
  await assert.rejects(all(client.watch(callOf(), configMaps, {}, options)), {
    code: 'rate_limited',
    details: { reason: 'TooManyRequests', retryAfterMs: 1_000 },
  });
  assert.equal(api.asked.length, 1);
});
