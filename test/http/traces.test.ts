import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Span } from '../../src/call.ts';
import { createHttp } from '../../src/drivers/http.ts';
import { createHub } from '../../src/drivers/kserve/hub.ts';
import { tracedRequestsTo } from '../../src/http/traces.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { poll } from '../../src/live/poll.ts';
import { answer, callOf, serve } from '../drivers/scripted.ts';
import { accessTo } from '../kubernetes/apiLab.ts';
import { silent } from '../support/gateway.ts';

/** A span that writes down what is begun in it: kind, name, facts, and how it ended. */
function written(): { readonly parts: string[]; readonly span: Span } {
  const parts: string[] = [];
  const span: Span = {
    traceId: 'a',
    begin: ({ kind, name, facts }) => ({
      ...span,
      end: (_facts, failure = 'ok') => void parts.push(`${kind} ${name} ${JSON.stringify(facts)} ${failure}`),
    }),
    end() {},
  };
  return { parts, span };
}

test('requests to backends and to the API server are parts of the trace of whom they are made for', async t => {
  const server = await serve(t, ({ path }, response) => {
    if (path.includes('lost')) return void response.destroy();
    response.writeHead(path.includes('two') ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ metadata: { name: 'one' } }));
  });
  const { parts, span } = written();
  const call = callOf({ span });
  const { endpoint } = server;
  const http = createHttp({ kind: 'ollama', product: 'Ollama', endpoint, onRequest: tracedRequestsTo('ollama') });
  await http.document(call, { method: 'GET', path: '/api/tags?x=secret' });
  await http.document(call, { method: 'GET', path: '/lost/qwen3', op: 'GET /lost' }).catch(() => {});
  await http.document(callOf(), { method: 'GET', path: '/for-nobody' });
  const client = createKubernetesClient(accessTo(endpoint), tracedRequestsTo('kubernetes'));
  await client.get(call, configMaps, 'one', 'a');
  await client.get(call, configMaps, 'two', 'a').catch(() => {});
  await client.get(callOf(), configMaps, 'one', 'a');
  assert.deepEqual(parts, [
    'client GET /api/tags {"model_manager.backend":"ollama"} ok',
    'client GET /lost {"model_manager.backend":"ollama"} failed',
    'client get configmaps {"model_manager.backend":"kubernetes"} ok',
    'client get configmaps {"model_manager.backend":"kubernetes"} refused',
  ]);
  assert.ok(server.requests.length >= 6);
  for (const { headers } of server.requests) assert.equal(headers.traceparent, undefined);
});

test('a look-up of the Hub is in the trace of who asked first; what is kept is in none', async t => {
  const server = await serve(t, (_seen, response) => answer(response, 200, { id: 'acme/private' }));
  const { endpoint } = server;
  const onRequest = tracedRequestsTo('hub');
  const hub = createHub({ endpoint, token: async () => undefined, timeoutMs: 4_000, log: silent, onRequest });
  const [first, second] = [written(), written()];
  await Promise.all([first, second].map(({ span }) => hub.repository(callOf({ span }), 'acme/private')));
  await hub.repository(callOf({ span: second.span }), 'acme/private');
  assert.deepEqual(first.parts, ['client GET /api/models/{repository} {"model_manager.backend":"hub"} ok']);
  assert.deepEqual(second.parts, []);
  for (const { headers } of server.requests) assert.equal(headers.traceparent, undefined);
});

test('a look that several wait for is in the trace of who asked first', async () => {
  const looks: (string | undefined)[] = [];
  const source = poll<number>({
    look: async call => looks.push(call.span?.traceId),
    callFor: (signal, asking) => callOf({ signal, span: asking?.span }),
    merge: (_previous, next) => next,
  });
  const asking = (traceId: string) => callOf({ span: { ...written().span, traceId } });
  await Promise.all([source.read(asking('first')), source.read(asking('second'))]);
  source.invalidate();
  await source.read(callOf());
  assert.deepEqual(looks, ['first', undefined]);
});
