/** Checks 24 to 27 and 46: where the gateway goes, and what it takes along. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { parseServe } from '../../src/config/parse.ts';
import { createHttp } from '../../src/drivers/http.ts';
import { createHub } from '../../src/drivers/kserve/hub.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { configMaps } from '../../src/kubernetes/resource.ts';
import { callOf } from '../support/backends.ts';
import { documentMap, documentText, startOnCluster } from '../support/cluster.ts';
import { allFaces, through } from '../support/facts.ts';
import { fakeDriver } from '../support/gateway.ts';
import { startHosts } from '../support/hosts.ts';
import { ask, eventually, send, startServer } from '../support/server.ts';

const silent = pino({ level: 'silent' });
const token = 'operators-own-token-0123456789';

/** A server on loopback that answers every request with a status and headers, and keeps what it was asked. */
async function stub(t: TestContext, status: number, headers: Record<string, string>, body = '{}') {
  const requests: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    requests.push(req);
    req.resume();
    res.writeHead(status, headers).end(body);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** What goes out, by client; each asks an endpoint once and answers the words of its failure. */
const clients: Readonly<Record<string, (endpoint: string) => Promise<string>>> = {
  host: endpoint =>
    createHttp({ kind: 'ollama', product: 'Ollama', endpoint, apiToken: token })
      .document(callOf(), { method: 'GET', path: '/api/tags' })
      .then(({ status }) => `status ${status}`, wordsOf),
  stream: endpoint =>
    createHttp({ kind: 'ollama', product: 'Ollama', endpoint, apiToken: token })
      .stream(callOf(), { method: 'POST', path: '/api/pull', body: {} })
      .then(({ answer }) => `status ${answer.status}`, wordsOf),
  Hub: endpoint =>
    createHub({ endpoint, token: async () => token, timeoutMs: 4_000, log: silent })
      .repository(callOf(), 'acme/x')
      .then(({ miss }) => miss?.words ?? 'answered', wordsOf),
  Kubernetes: endpoint =>
    createKubernetesClient({
      ...openServer(endpoint),
      identity: async () => ({ headers: { authorization: `Bearer ${token}` } }),
    })
      .get(callOf(), configMaps, 'a', 'b')
      .then(() => 'answered', wordsOf),
};
const wordsOf = (error: Error) => error.message;

describe('check 25: a redirect to another host', () => {
  for (const [name, askIt] of Object.entries(clients)) {
    test(`is not followed by the client of the ${name}`, async t => {
      const other = await stub(t, 200, { 'content-type': 'application/json' });
      const location = `${other.url}/api?token=one-time-secret`;
      const { url, requests } = await stub(t, 302, { location });
      const words = await askIt(url);
      assert.equal(other.requests.length, 0, 'nobody asked there');
      assert.equal(requests.length, 1);
      assert.equal(requests[0]?.headers.authorization, `Bearer ${token}`, 'its own token went to its own server');
      assert.match(words, /302|redirect/);
      assert.doesNotMatch(words, /one-time-secret|operators-own/);
    });
  }
});

describe('check 46: link-local and metadata addresses', () => {
  const refused = [
    'http://169.254.169.254',
    'http://[fe80::1]:80',
    'http://[fd00:ec2::254]',
    'http://[64:ff9b::a9fe:a9fe]',
  ];
  const others = ['file:///etc/passwd', 'gopher://h', 'ftp://h', 'http://me:pass@h', 'javascript:alert(1)'];

  test('are refused as flags, and so is what is no http(s) and what carries a password', () => {
    for (const flag of ['ollama-endpoint', 'lemonade-endpoint', 'lmstudio-endpoint', 'kserve-hf-endpoint']) {
      for (const endpoint of [...refused, ...others]) {
        const parsing = () => parseServe([`--${flag}=${endpoint}`], {}, { buildable: [] });
        assert.throws(
          parsing,
          (error: Error) => error.message.includes(`--${flag}`) && !error.message.includes('pass@'),
        );
      }
    }
  });

  test('are refused in documents, which are listed as invalid with the field', async () => {
    await using world = await startOnCluster();
    await using server = await startServer({ gateway: world.gateway });
    const kinds = ['ollama', 'lemonade', 'lmstudio'] as const;
    const endpoints = [...refused, ...others].filter(each => !each.includes('"'));
    for (const [index, endpoint] of endpoints.entries()) {
      const kind = kinds[index % kinds.length] as string;
      world.cluster.put(documentMap(kind, documentText(kind, endpoint), `document-${index}`));
    }
    const remote =
      'apiVersion: agent-platform.giantswarm.io/v1alpha1\nkind: ModelBackend\nspec: {kind: kserve, kserve: {target: ' +
      '{cluster: far, servingNamespace: x, caBundle: x, apiServer: "https://169.254.169.254"}}}\n';
    world.cluster.put(documentMap('kserve', remote, 'document-remote'));
    // biome-ignore lint/suspicious/noExplicitAny: the answer of the graph
    const read = async (): Promise<any[]> => {
      const { json } = await ask(server, '{ backends { invalid { configMap error } } }');
      return json.data.backends.invalid ?? [];
    };
    let invalid = await read();
    for (let tries = 0; invalid.length <= endpoints.length && tries < 200; tries++) invalid = await read();
    assert.equal(invalid.length, endpoints.length + 1);
    for (const { configMap, error } of invalid) {
      const field = configMap === 'document-remote' ? 'spec.kserve.target.apiServer' : 'spec.endpoint';
      assert.ok(error.startsWith(`${field}: must `), `${configMap}: ${error}`);
      assert.doesNotMatch(error, /pass@/);
    }
    assert.equal(world.gateway.registry.backends.length, 0);
  });

  for (const [name, askIt] of Object.entries(clients)) {
    test(`are not connected to by the client of the ${name}, by number or behind a name`, async t => {
      for (const endpoint of refused) assert.match(await askIt(endpoint), /link-local/, endpoint);
      for (const addresses of [
        [{ address: '169.254.169.254', family: 4 }],
        [
          { address: '127.0.0.1', family: 4 },
          { address: 'fd00:ec2::254', family: 6 },
        ],
      ]) {
        const lookup = t.mock.method(dns, 'lookup', (_name: string, { all }: dns.LookupOptions, done: unknown) => {
          const [first] = addresses;
          const answer = done as (error: null, ...found: unknown[]) => void;
          if (all) answer(null, addresses);
          else answer(null, first?.address, first?.family);
        });
        assert.match(await askIt('http://innocent.example:9'), /link-local/);
        assert.ok(lookup.mock.callCount() > 0, 'the name was looked up');
        lookup.mock.restore();
      }
    });
  }

  test('other names are connected to as ever', async t => {
    const { url, requests } = await stub(t, 200, { 'content-type': 'application/json' });
    assert.equal(await clients.host?.(url.replace('127.0.0.1', 'localhost')), 'status 200');
    assert.equal(requests.length, 1);
  });
});

describe('the answers of servers', () => {
  test('have a bound each', async t => {
    const endless = 'x'.repeat(33 * 1024 * 1024);
    const { url } = await stub(t, 200, { 'content-type': 'application/json' }, endless);
    for (const [name, askIt] of Object.entries(clients)) {
      // A stream is read while it comes, line by line, with a bound for each.
      if (name !== 'stream') assert.match(await askIt(url), /larger than \d+ MiB/, name);
    }
  });
});

describe('24 and 26: nothing of a client travels', () => {
  const headers = {
    authorization: 'Bearer callers-own-token',
    cookie: 'session=callers-cookie',
    'proxy-authorization': 'Basic Y2FsbGVyOnNlY3JldA==',
    'impersonate-user': 'system:admin',
    'impersonate-group': 'system:masters',
    'x-forwarded-for': '203.0.113.9',
    'x-api-key': 'callers-key',
  };
  const foreign = /callers|impersonate|forwarded|system:|203\.0\.113|session=/i;

  test('to a host', async () => {
    await using hosts = await startHosts({ ollama: { models: [{ name: 'a:1b' }] } });
    await using server = await startServer({ gateway: hosts.gateway });
    await send(`${server.url}/api/v1/models`, undefined, { headers });
    await send(`${server.url}/api/v1/models/load`, { model: 'a:1b', backend: 'ollama' }, { headers });
    await send(server.graphqlUrl, { query: '{ loadedModels { nodes { name } } }' }, { headers });
    for (const { requests } of [hosts.ollama, hosts.lemonade, hosts.lmstudio]) {
      assert.ok(requests.length > 0);
      for (const { headers: sent, raw } of requests) assert.doesNotMatch(JSON.stringify([sent, raw]), foreign);
    }
  });

  test('to the API server', async () => {
    await using world = await startOnCluster({ drivers: [fakeDriver({ models: ['a:1b'] })] });
    await using server = await startServer({ gateway: world.gateway });
    const wired = await send(`${server.url}/api/v1/wirings`, { model: 'a:1b' }, { headers });
    await send(server.graphqlUrl, { query: 'mutation { wireModel(model: "a:1b") { model } }' }, { headers });
    await eventually(() => world.cluster.requests.some(({ method }) => method === 'POST'), `a write (${wired.status})`);
    for (const { headers: sent, body } of world.cluster.requests)
      assert.doesNotMatch(JSON.stringify([sent, body ?? null]), foreign);
  });
});

test('27: what the API server forbids is forbidden with its reason, on every face', async () => {
  const users = {
    gateway: { rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }] },
  };
  const drivers = [fakeDriver({ models: ['a:1b'] })];
  await using world = await startOnCluster({ drivers, cluster: { users }, user: 'gateway' });
  await using server = await startServer({ gateway: world.gateway });
  for (const face of allFaces) {
    const refusal = await through(face, server, 'wireModel', { model: 'a:1b', backend: 'ollama' });
    assert.match(String(refusal), /^forbidden: .*modelconfigs/, face);
  }
});
