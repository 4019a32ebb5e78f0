/** Checks 48 and 49: no secret in anything that comes out, whoever brought it in. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { openAuditFile } from '../../src/audit/file.ts';
import { createLmstudioDriver } from '../../src/drivers/lmstudio/index.ts';
import { GatewayError, messageOf } from '../../src/errors.ts';
import { createLogger } from '../../src/log.ts';
import { redacted } from '../../src/secrets.ts';
import { registryOf } from '../support/backends.ts';
import { kagentNamespace, startOnCluster } from '../support/cluster.ts';
import { startEmulated } from '../support/emulated.ts';
import { allFaces, through } from '../support/facts.ts';
import { fakeDriver } from '../support/gateway.ts';
import { startHosts } from '../support/hosts.ts';
import { jobEnd } from '../support/jobs.ts';
import { ask, openSocket, openStream, send, startServer } from '../support/server.ts';

/** Each is planted in places of its own. */
const planted = {
  jwt: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqYW5lQHBsYW50ZWQifQ.c2lnbmF0dXJlLXBsYW50ZWQ',
  opaque: 'planted-opaque-bearer-0123456789',
  cookie: 'planted-session-cookie',
  hub: 'hf_plantedPLANTEDplanted0123',
  lmstudio: 'planted-lm-studio-token-0123',
  cloud: 'AKIAPLANTED012345678',
  password: 'planted-password',
  gateway: 'planted-gateway-token-0123456789',
  secret: 'planted-secret-value',
} as const;

const found = (text: string) =>
  Object.entries(planted).flatMap(([name, value]) => {
    const ways = [value, encodeURIComponent(value), Buffer.from(value).toString('base64').replace(/=+$/, '')];
    const at = ways.map(way => text.indexOf(way)).find(index => index >= 0);
    return at === undefined ? [] : [`${name}: …${text.slice(Math.max(0, at - 60), at + 60)}…`];
  });

/** Loggers of both formats at their most talkative, the audit file, and all that any of them wrote. */
function everyLog(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'audit.jsonl');
  const lines: string[] = [];
  const stream = { write: (line: string) => lines.push(line) };
  return {
    json: createLogger({ format: 'json', verbose: true, stream, audit: openAuditFile(path) }),
    text: createLogger({ format: 'text', verbose: true, stream }),
    all: () => lines.join('') + readFileSync(path, 'utf8'),
  };
}

/** What a server says that has been shown secrets, and has some of its own. */
const upstream = {
  status: 500,
  body: JSON.stringify({
    error:
      `cannot: Authorization: Bearer ${planted.jwt}; https://me:${planted.password}@cdn.example/x?token=${planted.opaque} ` +
      `with ${planted.hub}, aws ${planted.cloud}`,
  }),
};

const headers = {
  authorization: `Bearer ${planted.jwt}`,
  cookie: `session=${planted.cookie}`,
  'x-api-key': planted.opaque,
  'proxy-authorization': `Basic ${Buffer.from(`me:${planted.password}`).toString('base64')}`,
};

describe('check 48: planted secrets', () => {
  for (const format of ['json', 'text'] as const) {
    test(`come out nowhere where servers repeat them, with lines of ${format}`, async t => {
      const logs = everyLog(t);
      const log = logs[format];
      await using world = await startEmulated({ models: [{ name: 'a:1b' }], gateway: { log } });
      await using server = await startServer({ gateway: world.gateway, log });
      const answers: unknown[] = [];
      for (const path of ['/api/pull', '/api/generate', '/api/delete', '/api/show'])
        world.ollama.fault({ kind: 'answer', path, ...upstream });
      for (const face of allFaces) {
        for (const name of ['loadModel', 'unloadModel', 'deleteModel'])
          answers.push(await through(face, server, name, { model: 'a:1b' }));
        const { job } = await through(face, server, 'pullModel', { model: 'new:1b' });
        const [newest] = world.gateway.jobs.store.list();
        if (newest) answers.push(await jobEnd(world.gateway, newest.id));
        assert.ok(job);
      }
      for (const path of ['/api/tags', '/api/ps', '/api/version'])
        world.ollama.fault({ kind: 'answer', path, ...upstream });
      world.gateway.registry.backends[0]?.changed();
      for (const face of allFaces) {
        for (const name of ['listModels', 'listBackends', 'listJobs']) answers.push(await through(face, server, name));
      }
      answers.push((await send(`${server.url}/backendz`)).text);
      assert.match(JSON.stringify(answers), /\[redacted\]/, 'servers were heard');
      assert.deepEqual(found(JSON.stringify(answers)), []);
      assert.deepEqual(found(logs.all()), []);
    });

    test(`come out nowhere where clients send them, with lines of ${format}`, async t => {
      const logs = everyLog(t);
      const log = logs[format];
      await using server = await startServer({ log });
      await send(`${server.url}/api/v1/models?access_token=${planted.jwt}`, undefined, { headers });
      await send(`${server.url}/api/v1/models/load`, { model: planted.hub, token: planted.opaque }, { headers });
      await send(`${server.url}/api/v1/models/load`, `{"password":"${planted.password}"`, { headers });
      await send(`${server.url}/mcp`, { jsonrpc: '2.0', id: 1, method: planted.jwt, params: headers }, { headers });
      const query = 'mutation ($m: String!, $s: String) { wireModel(model: $m, apiKeySecret: $s) { model } }';
      await send(server.graphqlUrl, { query, variables: { m: 'x', s: planted.hub } }, { headers });
      await send(server.graphqlUrl, { query: `{ jobs(backend: "${planted.jwt}") { nodes { id } } }` }, { headers });
      const socket = await openSocket(server.socketUrl, { init: false, headers });
      socket.send({ type: 'connection_init', payload: { ...headers, authorization: `Bearer ${planted.opaque}` } });
      await socket.next('the acknowledgement');
      socket.send({ type: 'subscribe', id: '1', payload: { query: `{ job(id: "${planted.hub}") { id } }` } });
      await socket.next('an answer');
      socket.raw.terminate();
      const stream = await openStream(server.graphqlUrl, { query: 'subscription { jobs { revision } }' }, headers);
      await stream.next('an event');
      stream.leave();
      const answers = await Promise.all([
        send(`${server.url}/api/v1/jobs`),
        ask(server, '{ jobs { nodes { id model error } } info { version } }'),
      ]);
      assert.deepEqual(found(answers.map(({ text }) => text).join('')), []);
      assert.ok(logs.all().length > 0);
      assert.deepEqual(found(logs.all()), []);
    });
  }

  test('come out nowhere where they are the gateway’s own', async t => {
    const logs = everyLog(t);
    const log = logs.json;
    await using hosts = await startHosts();
    for (const path of ['/api/v1/models', '/api/v0/models', '/v1/models'])
      hosts.lmstudio.fault({ kind: 'answer', path, status: 401, body: `{"error":"bad key ${planted.lmstudio}"}` });
    const driver = createLmstudioDriver({ endpoint: hosts.lmstudio.url, apiToken: planted.lmstudio });
    const users = { gateway: { token: planted.gateway, rules: [] } };
    await using world = await startOnCluster({
      drivers: [fakeDriver({ models: ['a:1b'] })],
      cluster: { users },
      user: 'gateway',
      log,
    });
    const gateway = { ...world.gateway, registry: registryOf([driver, fakeDriver({ models: ['a:1b'] })]) };
    await using server = await startServer({ gateway, log });
    const answers: unknown[] = [];
    for (const face of allFaces) {
      answers.push(await through(face, server, 'listModels'), await through(face, server, 'listBackends'));
      answers.push(await through(face, server, 'wireModel', { model: 'a:1b', backend: 'ollama' }));
    }
    assert.ok(hosts.lmstudio.requests.some(({ headers: sent }) => sent.authorization === `Bearer ${planted.lmstudio}`));
    assert.deepEqual(found(JSON.stringify(answers)), []);
    assert.deepEqual(found(logs.all()), []);
  });
});

describe('check 48: words', () => {
  test('a secret goes from them when an error is made of them, and from errors that others make', () => {
    for (const secret of [
      planted.jwt,
      planted.hub,
      planted.cloud,
      `https://a:${planted.password}@h/`,
      `?token=${planted.opaque}`,
      `Bearer ${planted.opaque}`,
      `Authorization: ${planted.opaque}`,
      `{"apiKey":"${planted.opaque}"}`,
      `{"password": "${planted.password}"}`,
    ]) {
      const words = `no: ${secret}`;
      for (const said of [
        redacted(words),
        new GatewayError('backend_error', words).message,
        messageOf(new Error(words)),
      ]) {
        assert.deepEqual(found(said), [], said);
        assert.match(said, /\[redacted\]/);
        assert.equal(redacted(said), said, 'once is enough');
      }
    }
  });

  test('ordinary ones stay', () => {
    for (const words of [
      'no answer from http://127.0.0.1:11434 within 8 s',
      'spec.endpoint: must not carry a user name or password, got "http://…@host"',
      'apiKeySecretKey: must be a key of a Secret (letters, digits, -, _ and .), got "a b"',
      'x is gated or private; configure a hub token with access (HTTP 401)',
      'the API token for lmstudio has a blank in it',
      'hf.co/org/repo:Q4_K_M is not on the hub',
      'kserve-hf_token_secret',
    ])
      assert.equal(redacted(words), words);
  });
});

test('check 49: the value of a Secret is never answered, only its name', async t => {
  const logs = everyLog(t);
  await using world = await startOnCluster({ drivers: [fakeDriver({ models: ['a:1b'] })], log: logs.json });
  await using server = await startServer({ gateway: world.gateway, log: logs.json });
  const data = { OPENAI_API_KEY: Buffer.from(planted.secret).toString('base64') };
  world.cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: kagentNamespace }, data });
  const answers: unknown[] = [];
  for (const face of allFaces) {
    const wired = await through(face, server, 'wireModel', { model: 'a:1b', backend: 'ollama', apiKeySecret: 'key' });
    assert.equal(wired.modelConfig?.name !== undefined, true, JSON.stringify(wired));
    answers.push(wired);
    for (const name of ['listModels', 'listLoaded', 'listBackends', 'listJobs'])
      answers.push(await through(face, server, name));
    const dry = { model: 'a:1b', backend: 'ollama', dryRun: true };
    answers.push((await send(`${server.url}/api/v1/models/load`, dry)).text);
    answers.push(await through(face, server, 'unwireModel', { model: 'a:1b' }));
  }
  assert.deepEqual(found(JSON.stringify(answers)), []);
  assert.deepEqual(found(logs.all()), []);
});
