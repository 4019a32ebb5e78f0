/** The gateway on a cluster that misbehaves; numbers are those of the list of chaos cases. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import type { BackendDocument } from '../../src/backends/documents/document.ts';
import { connect } from '../../src/commands/kubernetes.ts';
import { parseServe } from '../../src/config/parse.ts';
import { kagentDefinition, startKagent } from '../../src/demo/kagent.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { type Permission, permissions } from '../../src/kubernetes/permissions.ts';
import { documentMap, documentText, kagentNamespace, namespace, startOnCluster } from '../support/cluster.ts';
import { facesOf } from '../support/faces.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';
import { rulesOf } from '../support/permitted.ts';
import { ask, eventually, openStream, textOf, within } from '../support/server.ts';

const modelConfigs = 'modelconfigs.kagent.dev';
/** A backend whose agents need a key, and so a Secret. */
const withKeys = ({ spec: { kind, agentEndpoint = '' } }: BackendDocument): Driver => ({
  ...fakeDriver({ kind, name: kind, models: ['a:1b', 'c:1b'] }),
  agentAccess: ({ name }) => ({ protocol: 'openai', url: `${agentEndpoint}/v1`, model: name, key: 'placeholder' }),
});
const host = () => fakeDriver({ models: ['a:1b', 'b:1b'] });
const lemonade = { kind: 'lemonade', endpoint: 'http://gpu-host:13305' };

test('a gateway that nobody asks anything lists and watches documents, and after one look at what is wired nothing else', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  const { cluster } = world;
  await within(cluster.requested({ verb: 'watch', resource: 'configmaps' }), 'documents are watched');
  await within(cluster.requested({ verb: 'list', resource: modelConfigs }), 'what is wired is looked at once');
  const asked = cluster.requests.map(({ verb, resource }) => `${verb} ${resource}`);
  assert.equal(asked.filter(each => each === 'list configmaps').length, 1);
  assert.equal(asked.filter(each => each === 'watch configmaps').length, 1);
  assert.equal(asked.filter(each => each === `list ${modelConfigs}`).length, 1);
});

test('without wiring nothing but documents is asked for', async () => {
  await using world = await startOnCluster({ drivers: [host()], flags: ['--disable-wiring'] });
  await within(world.cluster.requested({ verb: 'watch', resource: 'configmaps' }), 'documents are watched');
  assert.deepEqual(
    world.cluster.requests.map(({ verb, resource }) => `${verb} ${resource}`),
    ['list configmaps', 'watch configmaps'],
  );
});

test('a hundred subscribers cost one watch of each resource', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  await using faces = await facesOf(world.gateway);
  const { graphqlUrl } = faces.rest.server;
  // Questions of their own, so that they share no group.
  const streams = await Promise.all(
    Array.from({ length: 100 }, (_, index) => {
      const name = `s${index}`;
      const query =
        index % 2 === 0
          ? `subscription { models { items { ${name}: name modelConfig { ready } } } }`
          : `subscription { backends { items { ${name}: name capabilities { wire } } } }`;
      return openStream(graphqlUrl, { query });
    }),
  );
  await Promise.all(streams.map(stream => stream.nextPayload()));
  const count = (verb: string, resource: string) =>
    world.cluster.requests.filter(each => each.verb === verb && each.resource === resource).length;
  assert.equal(count('watch', modelConfigs), 1);
  assert.equal(count('list', modelConfigs), 1);
  assert.equal(count('watch', 'configmaps'), 1);
  assert.equal(count('list', 'configmaps'), 1);
  for (const stream of streams) stream.leave();
});

test('a ModelConfig that becomes ready reaches who watches, without another list', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  await using faces = await facesOf(world.gateway);
  const stream = await openStream(faces.rest.server.graphqlUrl, { query: textOf('watchModels') });
  await stream.nextPayload();
  const kagent = startKagent(world.cluster, { delayMs: 20 });
  await faces.rest.send('POST models/load', { model: 'a:1b' });
  const seen: unknown[] = [];
  while (seen.at(-1) !== true) {
    const { items } = (await stream.nextPayload()).data.models;
    seen.push(items.find(({ name }: { name: string }) => name === 'a:1b')?.modelConfig?.ready);
  }
  kagent.stop();
  assert.ok(seen.includes(false), 'not reconciled at first');
  assert.equal(
    world.cluster.requests.filter(({ verb, resource }) => verb === 'watch' && resource === modelConfigs).length,
    1,
  );
  stream.leave();
});

/** What the gateway needs with its jobs in memory. */
const needed = permissions.filter(({ only }) => !only);

/** The rights of the table but one verb of one row. */
const rulesWithout = (row?: Permission, left?: string) =>
  rulesOf({ own: namespace, kagent: kagentNamespace }).map((rule, index) =>
    needed[index] === row ? { ...rule, verbs: rule.verbs.filter(verb => verb !== left) } : rule,
  );

// What a backend in the cluster needs is its driver's to try.
for (const row of needed.filter(({ scope }) => scope === 'own' || scope === 'kagent')) {
  for (const verb of row.verbs) {
    test(`without the right to ${verb} ${row.resource} in ${row.scope}, what needs it says so and the rest works`, async () => {
      const users = { gateway: { rules: rulesWithout(row, verb) } };
      const driver = fakeDriver({ models: ['a:1b', 'b:1b'] });
      await using world = await startOnCluster({
        drivers: [driver],
        cluster: { users },
        user: 'gateway',
        flags: ['--reconcile-interval', '0'],
        build: withKeys,
      });
      await using faces = await facesOf(world.gateway);
      const { send, server } = faces.rest;
      const refusals: string[] = [];
      const attempt = async (text: Promise<string | undefined>) => {
        const words = await text;
        if (words) refusals.push(words);
      };
      const wireLike = async (path: string, body: object) => {
        const { status, json } = await send(path, body);
        assert.ok(status < 500 || status === 502, `${path} ${status}`);
        return json.error ? `${json.error.code}: ${json.error.message}` : undefined;
      };
      const registering = async (name: string, asks: object) => {
        const { json } = await ask(server, textOf(name), asks);
        const [error] = json.errors ?? [];
        return error ? `${error.extensions.code}: ${error.message}` : undefined;
      };
      world.cluster.put(documentMap('lmstudio', documentText('lmstudio')));
      const canRead = !(row.scope === 'own' && ['list', 'watch'].includes(verb));
      if (canRead) await eventually(() => world.gateway.registry.backends.length === 2, 'lmstudio is registered');
      if (canRead) {
        const wired = { model: 'c:1b', backend: 'lmstudio' };
        for (const key of [{}, { apiKeySecret: 'mine' }, {}]) {
          await attempt(wireLike('POST models/wire', { ...wired, ...key }));
        }
        await attempt(wireLike('POST models/unwire', wired));
        await attempt(registering('addBackend', lemonade));
        await attempt(registering('addBackend', { ...lemonade, source: 'cluster-manager' }));
        await attempt(registering('removeBackend', { kind: 'lemonade' }));
      }
      const models = await send('GET models?backend=ollama');
      assert.equal(models.status, 200, 'models are listed whatever is forbidden');
      assert.equal((await send('POST models/load', { model: 'b:1b', backend: 'ollama' })).json.loaded, true);

      const name = row.group ? `${row.resource}.${row.group}` : row.resource;
      const told =
        verb === 'watch' || !canRead
          ? []
          : refusals.filter(words => words.startsWith('forbidden: ') && words.includes(`cannot ${verb} ${name}`));
      if (verb !== 'watch' && canRead) assert.ok(told.length > 0, `refusals: ${JSON.stringify(refusals)}`);
      assert.deepEqual(
        refusals.filter(words => !words.startsWith('forbidden: ') && !words.startsWith('not_found: ')),
        [],
      );
    });
  }
}

test('1: an API server that is down at the start: hosts work, and it recovers alone', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  await using _faces = await facesOf(world.gateway);
  await world.cluster.stop();
  await using second = await startOnCluster({ drivers: [host()], cluster: world.cluster });
  await using late = await facesOf(second.gateway);
  assert.equal((await late.rest.send('GET models')).json.models.length, 2);
  assert.equal((await late.rest.send('POST models/load', { model: 'a:1b' })).json.loaded, true);
  assert.match(await late.refusal('wireModel', { model: 'a:1b' }), /^unavailable: .*cannot be reached/);
  const { json } = await ask(late.rest.server, '{ backend { capabilities { wire } wiringMessage } }');
  assert.equal(json.data.backend.capabilities.wire, true, 'it can be wired again any moment');
  assert.match(json.data.backend.wiringMessage, /cannot list modelconfigs\.kagent\.dev in namespace kagent/);
  world.cluster.put(documentMap('lmstudio', documentText('lmstudio')));
  await world.cluster.start();
  await eventually(() => second.gateway.registry.backends.length === 2, 'documents are read again', 35_000);
  assert.equal((await late.rest.send('POST models/wire', { model: 'a:1b', backend: 'ollama' })).status, 200);
});

test('2: an API server that restarts ends no subscription', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  await using faces = await facesOf(world.gateway);
  const stream = await openStream(faces.rest.server.graphqlUrl, { query: textOf('watchModels') });
  await stream.nextPayload();
  await world.cluster.stop();
  await world.cluster.start();
  const wired = async () => (await faces.rest.send('POST models/wire', { model: 'a:1b' })).status === 200;
  assert.ok(await wired());
  const { items } = (await within(stream.nextPayload(), 'the change after the restart', 35_000)).data.models;
  assert.equal(items[0].modelConfig.name, 'a-1b');
  stream.leave();
});

test('12: kagent that is not installed, comes and goes', async () => {
  await using world = await startOnCluster({ drivers: [host()], withoutKagent: true });
  await using faces = await facesOf(world.gateway);
  const state = async () => {
    const { json } = await ask(faces.rest.server, '{ backend { capabilities { wire } wiringMessage } }');
    return [json.data.backend.capabilities.wire, json.data.backend.wiringMessage];
  };
  const [can, why] = await state();
  assert.equal(can, false);
  assert.match(why, /modelconfigs\.kagent\.dev.*not installed|not installed.*modelconfigs\.kagent\.dev/i);
  assert.match(await faces.refusal('wireModel', { model: 'a:1b' }), /^unsupported: .*not installed/i);
  assert.equal((await faces.rest.send('POST models/load', { model: 'a:1b' })).json.loaded, true);
  assert.equal(
    (await faces.rest.send('DELETE models/b:1b')).json.unwired,
    true,
    'where nothing is wired nothing is to be unwired',
  );

  world.cluster.put(kagentDefinition());
  assert.equal((await faces.rest.send('POST models/wire', { model: 'a:1b' })).status, 200);
  const stream = await openStream(faces.rest.server.graphqlUrl, {
    query: 'subscription { backends { items { capabilities { wire } } } }',
  });
  const next = async () =>
    (await within(stream.nextPayload(), 'the capability', 35_000)).data.backends.items[0].capabilities.wire;
  if (!(await next())) assert.equal(await next(), true);
  world.cluster.remove('customresourcedefinitions.apiextensions.k8s.io', modelConfigs);
  assert.equal(await next(), false);
  stream.leave();
});

test('13: a right that is taken away and given back', async () => {
  const users = { gateway: { rules: rulesWithout() } };
  await using world = await startOnCluster({ drivers: [host()], cluster: { users }, user: 'gateway' });
  await using faces = await facesOf(world.gateway);
  const wire = async (asks: object = {}) =>
    (await faces.rest.send('POST models/wire', { model: 'a:1b', ...asks })).text;
  assert.match(await wire(), /a-1b/);
  const right = {
    verbs: ['update'],
    apiGroups: ['kagent.dev'],
    resources: ['modelconfigs'],
    namespaces: [kagentNamespace],
  };
  world.cluster.revoke('gateway', right);
  const refused = await wire({ apiKeySecret: 'mine' });
  assert.match(refused, /forbidden/);
  assert.match(refused, /cannot update modelconfigs\.kagent\.dev/);
  world.cluster.grant('gateway', right);
  assert.match(await wire({ apiKeySecret: 'mine' }), /"apiKeySecret": "mine"/);
});

test('25: a gateway that ends in the middle of wiring: the next one completes it', async () => {
  await using world = await startOnCluster({ build: withKeys });
  await using faces = await facesOf(world.gateway);
  await ask(faces.rest.server, textOf('addBackend'), lemonade);
  const undo = world.cluster.fault({ kind: 'hang', verb: 'create', resource: modelConfigs });
  const wiring = new AbortController();
  const half = fetch(`${faces.rest.url}/api/v1/models/wire`, {
    method: 'POST',
    body: JSON.stringify({ model: 'a:1b' }),
    signal: wiring.signal,
  }).catch(() => undefined);
  await within(world.cluster.requested({ verb: 'create', resource: modelConfigs }), 'the ModelConfig is being written');
  assert.equal(world.cluster.list('secrets', kagentNamespace).length, 1);
  undo();
  await using next = await startOnCluster({ cluster: world.cluster, build: withKeys });
  await using after = await facesOf(next.gateway);
  await eventually(() => next.gateway.registry.backends.length === 1, 'the document is read');
  assert.equal((await after.rest.send('POST models/wire', { model: 'a:1b' })).status, 200);
  wiring.abort();
  await half;
  assert.equal(world.cluster.list(modelConfigs).length, 1);
  assert.equal(world.cluster.list('secrets', kagentNamespace).length, 1);
  assert.equal((await after.rest.send('GET models/a:1b')).json.modelConfig.managed, true);
});

test('27: two gateways that wire one model at once end with one ModelConfig, and both know it', async () => {
  await using one = await startOnCluster({ drivers: [host()] });
  await using two = await startOnCluster({ drivers: [host()], cluster: one.cluster });
  await using first = await facesOf(one.gateway);
  await using second = await facesOf(two.gateway);
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      (index % 2 ? first : second).rest.send('POST models/wire', { model: 'a:1b' }),
    ),
  );
  for (const { status, text } of answers) assert.equal(status, 200, text);
  assert.equal(one.cluster.list(modelConfigs).length, 1);
  for (const { rest } of [first, second]) {
    assert.equal((await rest.send('GET models/a:1b')).json.modelConfig.name, 'a-1b');
  }
});

test('an API server that never answers keeps no list of models waiting', async () => {
  await using world = await startOnCluster({ drivers: [host()], flags: ['--reconcile-interval', '0'] });
  await using faces = await facesOf(world.gateway);
  world.cluster.fault({ kind: 'hang' });
  // Each waits two seconds for what may be wired, and not for the request's own time to be up.
  const { status, json } = await within(faces.rest.send('GET models'), 'the models', 8_000);
  assert.deepEqual([status, json.models.length], [200, 2]);
  const backends = await within(faces.rest.send('GET backends'), 'the backends', 8_000);
  assert.equal(backends.json.backends.length, 1);
});

test('an API server that answers a page of HTML is none', async () => {
  await using world = await startOnCluster({ drivers: [host()] });
  await using faces = await facesOf(world.gateway);
  world.cluster.fault({
    kind: 'answer',
    status: 200,
    headers: { 'content-type': 'text/html' },
    body: '<html>Sign in</html>',
  });
  const refusal = await faces.refusal('wireModel', { model: 'a:1b' });
  assert.match(
    refusal,
    /^backend_error: .* answered 200 with text\/html, which is no answer of a Kubernetes API server/,
  );
  assert.ok(!refusal.includes('Sign in'));
  assert.equal((await faces.rest.send('GET models')).status, 200);
});

test('a backend that moves takes its ModelConfigs along', async () => {
  await using world = await startOnCluster({
    build: ({ spec }) => ({
      ...fakeDriver({ name: spec.kind, kind: spec.kind, models: ['a:1b'] }),
      agentAccess: model => ({ protocol: 'ollama', url: spec.agentEndpoint ?? '', model: model.name, key: 'none' }),
    }),
  });
  await using faces = await facesOf(world.gateway);
  await ask(faces.rest.server, textOf('addBackend'), { kind: 'ollama', endpoint: 'http://here:1' });
  await faces.rest.send('POST models/wire', { model: 'a:1b' });
  const hostOf = () =>
    world.cluster.get<{ spec: { ollama: { host: string } } }>(modelConfigs, 'a-1b', kagentNamespace)?.spec.ollama.host;
  assert.equal(hostOf(), 'http://here:1');
  await ask(faces.rest.server, textOf('addBackend'), { kind: 'ollama', endpoint: 'http://there:1' });
  await eventually(() => hostOf() === 'http://there:1', 'the ModelConfig names the new address');
  // Somebody changed the address while no gateway ran.
  world.cluster.update<{ spec: { ollama: { host: string } } }>(modelConfigs, 'a-1b', kagentNamespace, object => {
    object.spec.ollama.host = 'http://old:1';
  });
  await using restarted = await startOnCluster({
    cluster: world.cluster,
    build: ({ spec }) => ({
      ...fakeDriver({ name: spec.kind, kind: spec.kind, models: ['a:1b'] }),
      agentAccess: model => ({ protocol: 'ollama', url: spec.agentEndpoint ?? '', model: model.name, key: 'none' }),
    }),
  });
  await eventually(() => hostOf() === 'http://there:1', 'the ModelConfig is mended at the start');
  assert.ok(restarted.gateway.wiring);
});

/** What the log says while the settings are connected. */
async function connecting(argv: readonly string[]) {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: line => lines.push(line) });
  const { settings } = parseServe(argv, {}, { buildable: [] });
  return { connected: await connect(settings, log, {}), lines };
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(process.env.TMPDIR ?? '/tmp', 'model-manager-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test('a kubeconfig that cannot be used is a warning, and why models cannot be wired', async t => {
  const broken = join(folder(t), 'config');
  writeFileSync(broken, 'clusters: [');
  for (const path of [broken, '/nonexistent/kubeconfig']) {
    const { connected, lines } = await connecting(['--kubeconfig', path, '--namespace', namespace]);
    assert.equal(lines.length, 1);
    assert.match(lines[0] as string, /"level":40/);
    assert.match(lines[0] as string, new RegExp(path));
    assert.match(connected.wiringOff ?? '', new RegExp(`^no Kubernetes access: .*${path}`));
    const { wiringOff = '' } = connected;
    await using faces = await facesOf(testGateway({ drivers: [host()], wiringOff }));
    assert.equal((await faces.rest.send('POST models/load', { model: 'a:1b' })).json.loaded, true);
    assert.match(
      await faces.refusal('wireModel', { model: 'a:1b' }),
      /^unsupported: .*agent wiring is disabled \(no Kubernetes access: /,
    );
    const { json } = await ask(faces.rest.server, '{ backend { capabilities { wire } wiringMessage } }');
    assert.deepEqual(json.data.backend, { capabilities: { wire: false }, wiringMessage: wiringOff });
  }
});

test('without a cluster in the settings there is none', async () => {
  assert.deepEqual(await connecting([]), { connected: {}, lines: [] });
  await using faces = await facesOf(testGateway({ log: silent }));
  const { json } = await ask(faces.rest.server, '{ backend { wiringMessage } }');
  assert.equal(json.data.backend.wiringMessage, 'no Kubernetes access');
});
