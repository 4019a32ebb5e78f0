import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { manualClock, startCluster } from '../../../src/demo/cluster.ts';
import { within } from '../../support/server.ts';

const pod = (name: string, containers: readonly string[], more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { containers: containers.map(each => ({ name: each, image: `${each}:1` })) },
  ...more,
});

async function started(t: TestContext, ...objects: object[]) {
  const clock = manualClock();
  const cluster = await startCluster({ clock, objects });
  t.after(() => cluster.close());
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${cluster.url}/api/v1/namespaces/default/${path}`, { signal: AbortSignal.timeout(5_000), ...init });
  return { clock, cluster, get };
}

type Got = Awaited<ReturnType<typeof fetch>>;
const refusal = async (answer: Got) => {
  const { code, reason, message } = (await answer.json()) as { code: number; reason: string; message: string };
  assert.equal(answer.status, code);
  return `${code} ${reason}: ${message}`;
};

describe('logs of containers', () => {
  test('of the only container, now and before', async t => {
    const { cluster, get } = await started(t, pod('web', ['app']));
    cluster.logs.set('default', 'web', 'app', { current: 'one\ntwo\n', previous: 'crashed\n' });
    const now = await get('pods/web/log');
    assert.match(now.headers.get('content-type') ?? '', /^text\/plain/);
    assert.equal(await now.text(), 'one\ntwo\n');
    assert.equal(await (await get('pods/web/log?previous=true&container=app')).text(), 'crashed\n');
  });

  test('nothing is written yet', async t => {
    const { get } = await started(t, pod('web', ['app']));
    assert.equal(await (await get('pods/web/log')).text(), '');
  });

  const parts: Readonly<Record<string, string>> = {
    '?tailLines=2': 'three\nfour\n',
    '?tailLines=0': '',
    '?sinceSeconds=60': 'three\nfour\n',
    '?sinceTime=2026-08-22T08:02:00Z': 'four\n',
    '?sinceSeconds=600&tailLines=1': 'four\n',
    '?limitBytes=5': 'one\nt',
    '?timestamps=true&tailLines=1': '2026-08-22T08:02:00.000Z four\n',
  };
  for (const [query, expected] of Object.entries(parts)) {
    test(`a part of it: ${query}`, async t => {
      const { cluster, clock, get } = await started(t, pod('web', ['app']));
      cluster.logs.set('default', 'web', 'app', { current: 'one\ntwo\n' });
      for (const line of ['three\n', 'four\n']) {
        await clock.advance(60_000);
        cluster.logs.append('default', 'web', 'app', line);
      }
      assert.equal(await (await get(`pods/web/log${query}`)).text(), expected);
    });
  }

  test('a limit does not break a character', async t => {
    const { cluster, get } = await started(t, pod('web', ['app']));
    cluster.logs.set('default', 'web', 'app', { current: 'aä' });
    assert.equal(await (await get('pods/web/log?limitBytes=2')).text(), 'a');
  });

  test('followed until the pod has ended', async t => {
    const { cluster, get } = await started(t, pod('web', ['app']));
    cluster.logs.set('default', 'web', 'app', { current: 'one\ntwo\n' });
    const answer = await get('pods/web/log?follow=true&tailLines=1');
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await reader?.read())?.value, 'two\n');
    cluster.logs.append('default', 'web', 'app', 'three\n');
    assert.equal((await reader?.read())?.value, 'three\n');
    cluster.update<{ status: { phase?: string } }>('pods', 'web', 'default', ({ status }) => {
      status.phase = 'Succeeded';
    });
    assert.equal((await reader?.read())?.done, true);
  });

  test('followed until the pod is gone, or the client, or so many bytes have come', async t => {
    const { cluster, get } = await started(t, pod('web', ['app']));
    cluster.logs.set('default', 'web', 'app', { current: 'one\n' });
    const bounded = await get('pods/web/log?follow=true&limitBytes=6');
    cluster.logs.append('default', 'web', 'app', 'two\n');
    assert.equal(await bounded.text(), 'one\ntw');

    const leaving = new AbortController();
    await get('pods/web/log?follow=true', { signal: leaving.signal });
    const request = await cluster.requested({ resource: 'pods/log' }, 2);
    leaving.abort();
    assert.equal(await within(request.ended, 'the end of the request'), 'cut');

    const last = await get('pods/web/log?follow=true');
    cluster.remove('pods', 'web', 'default');
    assert.equal(await last.text(), 'one\ntwo\n');
  });

  test('refused in the words of an API server', async t => {
    const waiting = [{ name: 'app', state: { waiting: { reason: 'ContainerCreating' } } }];
    const { get } = await started(
      t,
      pod('one', ['app'], { status: { containerStatuses: waiting } }),
      pod('two', ['a', 'b'], {
        spec: { containers: [{ name: 'a' }, { name: 'b' }], initContainers: [{ name: 'fetch' }] },
      }),
    );
    const refusals: Readonly<Record<string, string>> = {
      'none/log': '404 NotFound: pods "none" not found',
      'one/log': '400 BadRequest: container "app" in pod "one" is waiting to start: ContainerCreating',
      'one/log?previous=true': '400 BadRequest: previous terminated container "app" in pod "one" not found',
      'one/log?container=x': '400 BadRequest: container x is not valid for pod one',
      'two/log':
        '400 BadRequest: a container name must be specified for pod two, choose one of: [a b] or one of the init containers: [fetch]',
      'two/log?container=a&tailLines=-1':
        '422 Invalid: PodLogOptions "" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
      'two/log?container=a&sinceSeconds=0':
        '422 Invalid: PodLogOptions "" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
      'two/log?container=a&sinceSeconds=1&sinceTime=2026-08-22T08:00:00Z':
        '422 Invalid: PodLogOptions "" is invalid: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
      'two/log?container=a&limitBytes=x': '400 BadRequest: strconv.ParseInt: parsing "x": invalid syntax',
    };
    for (const [path, words] of Object.entries(refusals)) assert.equal(await refusal(await get(`pods/${path}`)), words);
  });
});

describe('services behind the API server', () => {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'model', namespace: 'default' },
    spec: { ports: [{ port: 80 }] },
  };

  /** Answers with what it was asked. */
  async function echo(t: TestContext, name: string) {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer(async (request, response) => {
      seen.push(request.headers);
      const body = await text(request);
      response.writeHead(request.url === '/gone' ? 410 : 200, { 'x-server': name });
      response.end(`${name}: ${request.method} ${request.url} ${body}`);
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  test('get the request as it is, but for what is between client and API server', async t => {
    const { cluster, get } = await started(t, service);
    const target = await echo(t, 'a');
    cluster.proxy.set('default', 'model', target.url);
    const answer = await get('services/model/proxy/v1/models/a%2Fb/?q=1&r=x+y', {
      method: 'POST',
      body: 'hello',
      headers: { authorization: 'Bearer secret', 'x-client': 'me' },
    });
    assert.equal(await answer.text(), 'a: POST /v1/models/a%2Fb/?q=1&r=x+y hello');
    assert.equal(answer.headers.get('x-server'), 'a');
    assert.equal(target.seen[0]?.['x-client'], 'me');
    assert.equal(target.seen[0]?.authorization, undefined);
    assert.equal((await get('services/model/proxy/gone')).status, 410);
    assert.equal(await (await get('services/model/proxy')).text(), 'a: GET / ');
  });

  test('are told apart by port', async t => {
    const { cluster, get } = await started(t, service);
    cluster.proxy.set('default', 'model', (await echo(t, 'a')).url);
    cluster.proxy.set('default', 'model:metrics', (await echo(t, 'b')).url);
    const words = async (name: string) => (await (await get(`services/${name}/proxy/`)).text()).slice(0, 1);
    assert.deepEqual(await Promise.all(['model', 'model:80', 'model:metrics', 'http:model:metrics'].map(words)), [
      'a',
      'a',
      'b',
      'b',
    ]);
  });

  test('that are not there, or have nothing behind them, are told', async t => {
    const { cluster, get } = await started(t, service);
    assert.equal(await refusal(await get('services/x/proxy/')), '404 NotFound: services "x" not found');
    assert.equal(
      await refusal(await get('services/model/proxy/')),
      '503 ServiceUnavailable: no endpoints available for service "model"',
    );
    cluster.proxy.set('default', 'model', 'http://127.0.0.1:1');
    assert.match(
      await refusal(await get('services/model/proxy/')),
      /^503 ServiceUnavailable: error trying to reach service: connect ECONNREFUSED/,
    );
  });
});
