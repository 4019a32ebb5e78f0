/** Work at Kubernetes is done as the caller, with their own token, and nothing there with the gateway's. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { manualClock, startCluster } from '../../src/demo/cluster.ts';
import { startKubelet } from '../../src/demo/kubelet.ts';
import { nova, served, worldOf } from '../drivers/kserve/driverLab.ts';
import { clusterNodes } from '../drivers/kserve/world.ts';
import { namespace } from '../support/cluster.ts';
import { freePort } from '../support/ports.ts';
import { eventually, type Stream, send, textOf, within } from '../support/server.ts';
import {
  allRights,
  type DownstreamLab,
  type DownstreamOptions,
  gatewayUser,
  rightsWithout,
  startDownstream,
} from './downstreamLab.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const services = 'llminferenceservices.serving.kserve.io';

/** The authority in a kubeconfig, in PEM. */
function authorityOf(kubeconfig: string): string {
  const [, data = ''] = /certificate-authority-data: "?([\w+/=]+)/.exec(kubeconfig) ?? [];
  return Buffer.from(data, 'base64').toString();
}

/** Reads a stream to its end, and has all that it said. */
function listen(stream: Stream) {
  let text = '';
  const done = (async () => {
    for (;;) text += JSON.stringify(await stream.next());
  })();
  done.catch(() => {});
  return { text: () => text };
}

/** What the API server was asked as the gateway that is not reading backend documents; and by nobody it knows. */
const asGateway = ({ cluster }: DownstreamLab) =>
  cluster.requests
    .filter(({ user }) => user === gatewayUser || user === '')
    .map(each => `${each.user} ${each.verb} ${each.resource} in ${each.namespace}`)
    .filter(each => !/^gateway (list|watch) configmaps in model-manager$/.test(each));

async function start(t: TestContext, options?: DownstreamOptions) {
  const lab = await startDownstream(t, options);
  t.after(() => assert.deepEqual(asGateway(lab), [], 'done with the identity of the gateway'));
  return lab;
}

/** Waits until a job of somebody is over; resolves to it. */
async function ended(lab: DownstreamLab, person: string, id: string) {
  for (;;) {
    const { json } = await lab.as(person).rest(`GET jobs/${id}`);
    if (!['pending', 'running'].includes(json.phase)) return json;
  }
}

test('before anybody signs in nothing is done but reading backend documents', async t => {
  const lab = await start(t);
  assert.deepEqual(lab.asked(), ['gateway list configmaps', 'gateway watch configmaps']);
  const { status, text } = await send(`${lab.url}/backendz`);
  assert.deepEqual([status, text], [200, 'ok'], 'what is only worked with as somebody is not asked for nobody');
  assert.equal(lab.asked().length, 2);
});

test('check 21: nobody is shown, on any face or stream, what only another person may read', async t => {
  const lab = await start(t, { people: { ann: rightsWithout('llminferenceservices'), ben: allRights } });
  const [ann, ben] = [lab.as('ann'), lab.as('ben')];
  const questions = [textOf('watchModels'), textOf('watchLoaded'), textOf('watchJobs')];
  const hers = await Promise.all(questions.map(ann.stream));
  const his = await Promise.all(questions.map(ben.stream));
  const [heard, seen] = [hers.map(listen), his.map(listen)];

  const loaded = await ben.rest('POST models/load', { preset: 'nova-4b', backend: 'kserve' });
  assert.equal(loaded.status, 200, loaded.text);
  await eventually(() => seen.every(({ text }) => text().includes('nova-4b')), 'that his streams show it');
  const { json: jobs } = await ben.rest('GET jobs');
  assert.equal(jobs.jobs.length, 1);

  const { id } = jobs.jobs[0];
  const answers = [
    ...(await Promise.all(['models', 'models/loaded', 'jobs'].map(path => ann.rest(`GET ${path}`)))),
    await ann.graphql(textOf('listModels')),
    await ann.graphql(textOf('listLoaded')),
    await ann.tool('list_models'),
    await ann.tool('list_jobs'),
  ];
  for (const { text } of answers) assert.doesNotMatch(text, /Nova|nova-4b/);
  assert.deepEqual((await ann.rest('GET jobs')).json, { jobs: [] });
  for (const route of [`GET jobs/${id}`, `DELETE jobs/${id}`]) {
    const { status, json } = await ann.rest(route);
    assert.deepEqual([status, json.error], [404, { code: 'not_found', message: `job not found: ${id}` }]);
  }
  assert.equal((await ben.rest(`GET jobs/${id}`)).json.requestedBy, 'ben@example.com');
  for (const { text } of heard) assert.doesNotMatch(text(), /Nova|nova-4b/);
  assert.match(heard[1]?.text() ?? '', /User \\+"ann\\+" cannot list resource/, 'she is told what she may not see');
  for (const stream of [...hers, ...his]) stream.leave();
});

test('check 22: who may read something no longer is told nothing more of it within a minute', async t => {
  const clock = manualClock(Date.now());
  const lab = await start(t, { cluster: { clock }, more: served('nova-4b', node) });
  const [ann, ben] = [lab.as('ann'), lab.as('ben')];
  const [hers, his] = await Promise.all([ann.stream(textOf('watchLoaded')), ben.stream(textOf('watchLoaded'))]);
  const names = (payload: { data: { loadedModels: { items: { name: string }[] } } }) =>
    payload.data.loadedModels.items.map(({ name }) => name);
  assert.deepEqual([names(await hers.nextPayload()), names(await his.nextPayload())], [[nova], [nova]]);
  await lab.cluster.requested({ verb: 'watch', resource: services, user: 'ann' });

  for (const rule of allRights) if (rule.resources.includes('llminferenceservices')) lab.cluster.revoke('ann', rule);
  await clock.advance(46_000);
  const last = await hers.nextPayload('that she may not read it any more');
  assert.match(JSON.stringify(last), /User \\"ann\\" cannot (list|watch) resource \\"llminferenceservices\\"/);
  assert.deepEqual((await ann.rest('GET models/loaded')).json.models ?? [], []);

  const late = listen(hers);
  const shown = listen(his);
  lab.cluster.put(served('pico-1b-cpu', node)[0] as never);
  await eventually(() => shown.text().includes('pico-1b-cpu'), 'that he sees another');
  assert.doesNotMatch(late.text(), /pico/);
  const ends = lab.cluster.requests.filter(({ verb, user }) => verb === 'watch' && user !== gatewayUser);
  assert.ok(ends.every(({ query }) => Number(query.get('timeoutSeconds')) <= 45));
  hers.leave();
  his.leave();
});

test('check 23: all that is done for a person is done with their token: requests, jobs, what goes on, reconnects', async t => {
  const lab = await start(t);
  const ben = lab.as('ben');
  const stream = await ben.stream(textOf('watchModels'));
  const heard = listen(stream);

  const pulled = await ben.rest('POST models/pull', { model: nova, preset: 'nova-4b', backend: 'kserve' });
  assert.equal(pulled.status, 202, pulled.text);
  const job = await within(ended(lab, 'ben', pulled.json.job.id), 'the end of the download', 20_000);
  assert.deepEqual([job.phase, job.requestedBy], ['succeeded', 'ben@example.com'], job.error);
  const loaded = await ben.graphql('mutation { loadModel(preset: "nova-4b", backend: "kserve") { name } }');
  assert.equal(loaded.json.errors, undefined, loaded.text);
  await eventually(() => heard.text().includes('nova-4b'), 'that the stream shows it');

  // The API server goes and comes: watches are made anew.
  const watches = () => lab.cluster.requests.filter(({ verb, user }) => verb === 'watch' && user === 'ben').length;
  const before = watches();
  await lab.cluster.stop();
  await lab.cluster.start();
  await eventually(() => watches() > before, 'a watch after the break', 20_000);

  const registered = await ben.tool('add_backend', { kind: 'lemonade', endpoint: 'http://127.0.0.1:9' });
  assert.equal(registered.isError, false, registered.text);
  await lab.cluster.requested({ verb: 'create', resource: 'configmaps', namespace, user: 'ben' });
  const wired = await ben.rest('POST models/wire', { model: 'qwen3:0.6b', backend: 'ollama' });
  assert.equal(wired.status, 200, wired.text);
  assert.equal((await lab.as('ann').rest('GET models')).status, 200);
  const unwired = await ben.tool('unwire_model', { model: 'qwen3:0.6b', backend: 'ollama' });
  assert.equal(unwired.isError, false, unwired.text);
  const unloaded = await ben.tool('unload_model', { model: nova, backend: 'kserve' });
  assert.equal(unloaded.isError, false, unloaded.text);
  stream.leave();

  const written = new Set(
    lab.cluster.requests
      .filter(({ verb, user }) => verb === 'create' && user === 'ben')
      .map(({ resource }) => resource),
  );
  for (const resource of ['jobs.batch', services, 'modelconfigs.kagent.dev', 'configmaps']) {
    assert.ok(written.has(resource), resource);
  }
});

test('check 24: the token of the caller is sent to the API server and to nothing else', async t => {
  const lab = await start(t);
  const ben = lab.as('ben');
  await ben.rest('GET models');
  await ben.rest('POST models/load', { model: 'qwen3:0.6b', backend: 'ollama' });
  const found = await ben.tool('search_models', { query: 'nova', backend: 'kserve' });
  assert.equal(found.isError, false, found.text);
  const others = [...lab.ollama.requests, ...lab.hub.requests];
  assert.ok(lab.ollama.requests.length > 0);
  assert.ok(lab.hub.requests.length > 0);
  assert.deepEqual(
    others.filter(({ headers }) => headers.authorization !== undefined),
    [],
  );
  const token = ben.headers.authorization.split(' ')[1] ?? '';
  assert.ok(lab.cluster.requests.some(({ headers }) => headers.authorization === `Bearer ${token}`));
  assert.ok(lab.logged.length > 0);
  assert.deepEqual(
    lab.logged.filter(line => line.includes(token)),
    [],
  );
});

test('check 26: who a client says that it is, beside its token, is passed on to nobody', async t => {
  const lab = await start(t);
  const headers = {
    ...lab.as('ben').headers,
    'impersonate-user': 'admin',
    'impersonate-group': 'system:masters',
    'x-remote-user': 'admin',
    cookie: 'session=1',
    'x-forwarded-for': '10.0.0.1',
  };
  assert.equal((await send(`${lab.url}/api/v1/models`, undefined, { headers })).status, 200);
  const sent = [...lab.cluster.requests, ...lab.ollama.requests].flatMap(request => Object.keys(request.headers));
  assert.deepEqual(
    sent.filter(name => /^(impersonate|x-|cookie)/.test(name)),
    [],
  );
});

test('check 27: what the rights of a person do not allow is 403 on every face, in the words of the API server', async t => {
  const readers = allRights.map(rule => ({
    ...rule,
    verbs: rule.verbs.filter(verb => ['get', 'list', 'watch'].includes(verb)),
  }));
  const lab = await start(t, { people: { ann: readers } });
  const ann = lab.as('ann');
  const words = /User "ann" cannot create resource "llminferenceservices" in API group "serving.kserve.io"/;
  const rest = await ann.rest('POST models/load', { preset: 'nova-4b', backend: 'kserve' });
  assert.deepEqual([rest.status, rest.json.error.code], [403, 'forbidden']);
  assert.match(rest.json.error.message, words);
  const graph = await ann.graphql('mutation { loadModel(preset: "nova-4b", backend: "kserve") { name } }');
  const [error] = graph.json.errors;
  assert.deepEqual(error.extensions, { code: 'forbidden', http: { status: 403 }, reason: 'Forbidden' });
  assert.match(error.message, words);
  const tool = await ann.tool('load_model', { preset: 'nova-4b', backend: 'kserve' });
  assert.equal(tool.isError, true);
  assert.match(tool.text, /^forbidden: /);
  assert.match(tool.text, words);
  assert.deepEqual(lab.cluster.list(services, 'model-serving'), []);
});

const seconds = () => Math.floor(Date.now() / 1000);
/** Slow enough to outlive a token of a few seconds. */
const slowly = { kubelet: { bytesPerSecond: 300_000, progressMs: 200 } };

test('a job that outlives the token of its person fails, and says that they have to sign in again', async t => {
  const lab = await start(t);
  await lab.renew('ben', { exp: seconds() + 2 });
  const { status, text } = await lab.as('ben').rest('POST models/load', { preset: 'nova-4b', backend: 'kserve' });
  assert.equal(status, 200, text);
  await eventually(() => lab.logged.some(line => /load failed/.test(line)), 'the end of the job', 20_000);
  const line = lab.logged.find(each => /load failed/.test(each)) ?? '';
  assert.match(line, /the token of ben@example.com has expired; sign in again/);
  const watches = lab.cluster.requests.filter(({ verb, user }) => verb === 'watch' && user === 'ben');
  assert.ok(watches.length > 0);
  const longest = Math.max(...watches.map(({ query }) => Number(query.get('timeoutSeconds'))));
  assert.ok(longest <= 3, 'a watch ends with its token');
});

test('a job goes on with the newer token of its person', async t => {
  // To the cluster he is two people, so that it takes both tokens.
  const lab = await start(t, { ...slowly, people: { ben: allRights, renewed: allRights } });
  await lab.renew('ben', { exp: seconds() + 2 });
  const { json } = await lab.as('ben').rest('POST models/pull', { model: nova, preset: 'nova-4b', backend: 'kserve' });
  await lab.renew('ben', {}, 'renewed');
  assert.equal((await lab.as('ben').rest('GET jobs')).json.jobs.length, 1, 'they are who they were');
  const job = await within(ended(lab, 'ben', json.job.id), 'the end of the download', 30_000);
  assert.equal(job.phase, 'succeeded', job.error);
});

test('a pull of somebody else joins the download that runs, as themselves', async t => {
  const lab = await start(t, slowly);
  const downloads: string[] = [];
  lab.cluster.watch(({ type, resource, object }) => {
    const isNew = resource === 'jobs.batch' && type === 'ADDED' && object.metadata.name.startsWith('mm-pull');
    if (isNew) downloads.push(type);
  });
  const pull = { model: nova, preset: 'nova-4b', backend: 'kserve' };
  const first = await lab.as('ben').rest('POST models/pull', pull);
  await eventually(() => downloads.length > 0, 'that it downloads');
  const second = await lab.as('ann').rest('POST models/pull', pull);
  assert.notEqual(first.json.job.id, second.json.job.id, 'a job of her own');
  const jobs = await Promise.all([
    within(ended(lab, 'ben', first.json.job.id), 'his', 30_000),
    within(ended(lab, 'ann', second.json.job.id), 'hers', 30_000),
  ]);
  assert.deepEqual(
    jobs.map(({ phase, requestedBy }) => `${phase} ${requestedBy}`),
    ['succeeded ben@example.com', 'succeeded ann@example.com'],
  );
  assert.deepEqual(downloads, ['ADDED'], 'one download');
});

test('a remote target is worked with as the caller, with no other identity there', async t => {
  const far = await startCluster({
    tls: true,
    objects: worldOf({ more: served('nova-4b', node) }),
    users: { ben: { rules: allRights }, ann: {} },
  });
  const kubelet = startKubelet(far, { volumes: { 'pv-hf-cache': [] } });
  t.after(async () => {
    kubelet.stop();
    await far.close();
  });
  const metrics = `127.0.0.1:${await freePort()}`;
  const flags = ['--downstream-api-servers', `${far.url}/`, '--metrics-listen', metrics];
  const lab = await start(t, { backends: 'ollama', flags });
  for (const person of ['ann', 'ben']) far.setToken(person, lab.cluster.tokenOf(person));
  const caBundle = authorityOf(far.kubeconfig());
  const added = await lab.as('ben').tool('add_backend', {
    ...{ kind: 'kserve', cluster: 'far', organization: 'acme', apiServer: far.url, caBundle },
    ...{ servingNamespace: 'model-serving', discoveryNamespace: 'agent-platform' },
  });
  assert.equal(JSON.parse(added.text).registered, true, added.text);
  const { json } = await lab.as('ben').rest('GET models?backend=kserve');
  assert.deepEqual(
    json.models.map(({ name, target }: { name: string; target: object }) => [name, target]),
    [[nova, { cluster: 'far', organization: 'acme' }]],
  );
  const refused = await lab.as('ann').rest('GET models?backend=kserve');
  assert.deepEqual([refused.status, refused.json.error?.code], [403, 'forbidden'], refused.text);
  assert.deepEqual([...new Set(far.requests.map(({ user }) => user))].sort(), ['ann', 'ben']);

  const counted = async () => (await send(`http://${metrics}/metrics`)).text;
  const requests = `model_manager_backend_requests_total{backend="kserve",op="list ${services}"`;
  const text = await counted();
  for (const outcome of ['ok', 'refused']) assert.ok(text.includes(`${requests},outcome="${outcome}"}`), text);
  assert.match(text, /_total\{backend="kubernetes",op="list configmaps",outcome="ok"\}/, 'the cluster of the gateway');
  far.cutWatches(services);
  const restarts = `model_manager_watch_restarts_total{resource="${services}",reason="broken"}`;
  await within(
    (async () => {
      while (!(await counted()).includes(restarts));
    })(),
    'a watch in that cluster is begun anew',
  );
});

test('a document sends the tokens of callers to no API server that the flags do not name', async t => {
  const asked: string[] = [];
  const evil = createServer((req, res) => {
    asked.push(String(req.headers.authorization));
    res.end('{}');
  });
  await new Promise<void>(resolve => evil.listen(0, '127.0.0.1', resolve));
  t.after(() => evil.close());
  const apiServer = `https://127.0.0.1:${(evil.address() as AddressInfo).port}`;
  const lab = await start(t, { backends: 'ollama' });
  const added = await lab.as('ben').tool('add_backend', {
    ...{ kind: 'kserve', cluster: 'other', apiServer, caBundle: 'PEM', servingNamespace: 'model-serving' },
  });
  const { registered, error } = JSON.parse(added.text);
  assert.equal(registered, false);
  assert.match(error, /the tokens of callers are not sent to https:.*; name it with --downstream-api-servers$/);
  assert.equal((await lab.as('ann').rest('GET models')).status, 200);
  assert.deepEqual(asked, []);
});

test('a request is done with the token it came with, whatever else the person has', async t => {
  const lab = await start(t, { people: { ben: allRights, weak: [] } });
  const strong = lab.as('ben');
  assert.equal((await strong.rest('GET models')).status, 200);
  await lab.renew('ben', { exp: seconds() + 600 }, 'weak');
  const weak = await lab.as('ben').rest('POST models/load', { preset: 'nova-4b', backend: 'kserve' });
  assert.notEqual(weak.status, 200);
  const wired = await lab.as('ben').rest('POST models/wire', { model: 'qwen3:0.6b', backend: 'ollama' });
  assert.deepEqual([wired.status, wired.json.error.code], [403, 'forbidden'], wired.text);
  assert.match(wired.json.error.message, /User "weak" cannot/);
  const writes = lab.cluster.requests.filter(({ verb, user }) => verb === 'create' && user === 'ben');
  assert.deepEqual(
    writes.filter(({ resource }) => resource !== 'jobs.batch' && resource !== 'configmaps'),
    [],
  );
});

test('a token is worked with until its expiry, and not a moment longer', async t => {
  const lab = await start(t);
  await lab.renew('ben', { exp: seconds() - 5, iat: seconds() - 60 });
  const { status, json, headers } = await lab.as('ben').rest('GET models');
  assert.deepEqual([status, json.error], [401, 'invalid_token']);
  assert.match(headers.get('www-authenticate') ?? '', /the token has expired/);
});

test('jobs on hosts are of one person, too: their wiring is', async t => {
  const lab = await start(t, { people: { ann: [], ben: allRights } });
  const [ann, ben] = [lab.as('ann'), lab.as('ben')];
  const pull = { model: 'qwen3:0.6b', backend: 'ollama' };
  const his = (await ben.rest('POST models/pull', pull)).json.job;
  const hers = (await ann.rest('POST models/pull', { ...pull, wire: false })).json.job;
  assert.notEqual(his.id, hers.id);
  const [wired, plain] = [await ended(lab, 'ben', his.id), await ended(lab, 'ann', hers.id)];
  assert.deepEqual([wired.phase, wired.result?.managed ?? wired.result !== undefined], ['succeeded', true]);
  assert.deepEqual([plain.phase, plain.result], ['succeeded', undefined]);
  assert.equal((await ann.rest(`GET jobs/${his.id}`)).status, 404);
});
