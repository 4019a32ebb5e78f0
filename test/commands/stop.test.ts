/** How the process ends: by the signal of a cluster, and by that of a person. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { startCluster } from '../../src/demo/cluster.ts';
import { answer, serve } from '../drivers/scripted.ts';
import { namespace, namespaceOf } from '../support/cluster.ts';
import { openSocket, openStream, send, textOf, within } from '../support/server.ts';
import { folder, startGateway } from './running.ts';

interface Around {
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Of the models that Ollama has; loading one never ends. */
  readonly model?: string;
}

/** The gateway over an Ollama whose pulls never end. */
async function startOverOllama(t: TestContext, { flags = [], env = process.env, model }: Around = {}) {
  const ollama = await serve(t, ({ path }, response) => {
    const documents: Record<string, object> = {
      '/api/version': { version: '0.12.0' },
      '/api/tags': { models: model ? [{ name: model, model, size: 1, digest: 'd', details: {} }] : [] },
      '/api/ps': { models: [] },
    };
    if (path === '/api/generate') return;
    if (path === '/api/pull') return void response.write('{"status":"pulling manifest"}\n');
    const document = documents[path];
    answer(response, document ? 200 : 404, document ?? { error: 'not here' });
  });
  return startGateway(t, ['--backends', 'ollama', '--ollama-endpoint', ollama.endpoint, ...flags], { env });
}

const draining = 'not ready any more';
const stopped = 'model-manager has stopped';
const loaded = '/api/v1/loaded';

test('on SIGTERM it is not ready, serves on for a while, and then ends what follows it', {
  timeout: 60_000,
}, async t => {
  const { gateway, url } = await startOverOllama(t);
  const pulled = await send(`${url}/api/v1/models/pull`, { model: 'a' });
  const { id } = pulled.json.job;
  const subscribe = { query: textOf('watchJob'), variables: { id } };
  const stream = await openStream(`${url}/graphql`, subscribe);
  assert.equal((await stream.nextPayload()).data.job.job.phase, 'RUNNING');

  gateway.kill('SIGTERM');
  await gateway.wrote(draining);
  const ready = await send(`${url}/readyz`);
  assert.deepEqual([ready.status, ready.text, ready.headers.get('connection')], [503, 'stopping', 'close']);
  assert.equal((await send(`${url}/healthz`)).status, 200);
  const read = await send(url + loaded);
  assert.deepEqual([read.status, read.json.loaded, read.headers.get('connection')], [200, [], 'close']);
  const socket = await openSocket(`${url.replace('http', 'ws')}/graphql`);
  socket.send({ id: '1', type: 'subscribe', payload: subscribe });
  assert.equal((await socket.next()).payload.data.job.job.phase, 'RUNNING', 'jobs go on meanwhile');

  await within(stream.ended, 'the end of the stream', 20_000);
  const jobs = stream.unread.flatMap(({ event, data = '' }) => (event === 'next' ? JSON.parse(data).data.job.job : []));
  assert.match(jobs.at(-1)?.error, /^interrupted: model-manager was stopped/, 'it is told how the job ended');
  assert.equal((await within(socket.closed, 'the end of the socket', 20_000)).code, 1001);
  assert.equal(await gateway.ended, 0, gateway.err);
  assert.match(gateway.out, new RegExp(`${stopped}[^\\n]*\\n$`), 'the last line is written');
  await assert.rejects(send(`${url}/healthz`), TypeError);
});

test('on SIGINT it ends without that while', async t => {
  const { gateway } = await startOverOllama(t);
  gateway.kill('SIGINT');
  assert.equal(await gateway.ended, 0, gateway.err);
  assert.ok(gateway.out.includes(stopped));
  assert.ok(!gateway.out.includes(draining), gateway.out);
});

test('a second signal ends it at once', async t => {
  const { gateway } = await startOverOllama(t);
  gateway.kill('SIGTERM');
  await gateway.wrote(draining);
  gateway.kill('SIGINT');
  assert.equal(await gateway.ended, 1, gateway.err);
  assert.ok(!gateway.out.includes(stopped), gateway.out);
});

test('a signal ends it also while it starts', async t => {
  const module = new URL('../../src/commands/process.ts', import.meta.url).href;
  const script = `import { runUntilStopped } from '${module}';
    setInterval(() => {}, 1_000);
    runUntilStopped(() => { console.log('it starts'); return new Promise(() => {}); }, { info() {} });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  assert.equal((await once(child, 'close'))[0], 0);
});

/** How long a cluster waits for a pod that it has asked to stop, in milliseconds. */
function clusterPatience(): number {
  const deployment = new URL('../../helm/model-manager/templates/deployment.yaml', import.meta.url);
  const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(readFileSync(deployment, 'utf8')) ?? [];
  return Number(seconds) * 1000;
}

test('with API server and collector of traces silent, and a load and a pull under way, it ends before it is killed', {
  timeout: 90_000,
}, async t => {
  const cluster = await startCluster();
  t.after(() => cluster.close());
  cluster.put(namespaceOf(namespace));
  const kubeconfig = folder(t).put('kubeconfig', cluster.kubeconfig());
  const collector = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise(resolve => collector.once('listening', resolve));
  t.after(() => {
    collector.closeAllConnections();
    collector.close();
  });
  const { port } = collector.address() as AddressInfo;
  const { gateway, url } = await startOverOllama(t, {
    flags: ['--kubeconfig', kubeconfig, '--namespace', namespace, '--job-store', 'kubernetes', '--disable-wiring'],
    env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
    model: 'b:1b',
  });
  await send(`${url}/api/v1/models/pull`, { model: 'a' });
  const body = JSON.stringify({ model: 'b:1b' });
  const headers = { 'content-type': 'application/json' };
  const load = fetch(`${url}/api/v1/models/load`, { method: 'POST', body, headers }).catch(() => 'broken off');
  cluster.fault({ kind: 'hang' });

  gateway.kill('SIGTERM');
  const kill = setTimeout(() => gateway.kill('SIGKILL'), clusterPatience());
  t.after(() => clearTimeout(kill));
  assert.equal(await gateway.ended, 0, 'it was killed');
  assert.ok(gateway.out.includes(stopped));
  assert.equal(await load, 'broken off');
});
