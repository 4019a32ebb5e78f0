/** How much of the weights is on the node, told while they are downloaded: real agents, and others that answer as they like. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import { startCacheAgent } from '../../../src/commands/cacheAgent.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, turn } from '../../support/server.ts';
import { answer, type Script, serve } from '../scripted.ts';
import { served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { serving } from './jobLab.ts';
import { clusterNodes } from './world.ts';

const GiB = 2 ** 30;
const [node = '', other = ''] = clusterNodes.map(({ metadata }) => metadata.name);

const agentPod = (on: string, podIP = '127.0.0.1') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `agent-${on}`,
    namespace: serving,
    labels: { 'model-manager.giantswarm.io/component': 'cache-agent' },
  },
  spec: { nodeName: on, containers: [{ name: 'agent', image: 'x' }] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], podIP },
});

const now = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z');

const statusWith = (init: object) => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: now() }],
  initContainerStatuses: [{ name: 'storage-initializer', restartCount: 0, state: init }],
});

interface Options {
  readonly port: number | string;
  /** Objects that are served, by the node of their pod. */
  readonly models?: Readonly<Record<string, string>>;
  /** The addresses of the agents, by node. */
  readonly agents?: Readonly<Record<string, string>>;
  readonly pollInterval?: string;
}

/** Models whose weights are being downloaded, in front of a driver that asks agents. */
async function downloading({
  port,
  models = { 'nova-4b': node },
  agents = { [node]: '127.0.0.1' },
  pollInterval = '20ms',
}: Options) {
  const more = [
    ...Object.entries(models).flatMap(([name, on]) => served(name, on)),
    ...Object.entries(agents).map(([on, ip]) => agentPod(on, ip)),
  ];
  const flags = { inventoryMode: 'daemonset', inventoryAgentPort: String(port), pollInterval };
  const lab = await startDriver({ objects: worldOf({ more }), flags });
  const setInit = (init: object, name = 'nova-4b') =>
    lab.cluster.update<KubernetesObject>('pods', `${name}-1`, serving, pod =>
      Object.assign(pod, { status: statusWith(init) }),
    );
  for (const name of Object.keys(models)) setInit({ running: { startedAt: now() } }, name);
  const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
  const step = (name = 'nova-4b') =>
    loaded.current?.value
      ?.find(({ resource }) => resource === name)
      ?.steps?.find(each => each.name === 'downloadingWeights');
  const leave: (() => void)[] = [];
  return {
    ...lab,
    loaded,
    step,
    setInit,
    /** Returns what ends it; it ends with the lab at the latest. */
    listen(listener = () => {}) {
      const stop = loaded.subscribe(listener);
      leave.push(stop);
      return stop;
    },
    async [Symbol.asyncDispose]() {
      for (const stop of leave) stop();
      await lab[Symbol.asyncDispose]();
    },
  };
}

const inventory = (sizes: Readonly<Record<string, number>>) => ({
  entries: Object.entries(sizes).map(([dir, bytes]) => ({ dir, bytes, files: 1, mtime: now() })),
  warnings: [],
});

/** Agents that say of `nova-4b` what they are told to, and count the questions. */
async function saying(t: TestContext, first: number) {
  let bytes = first;
  const { endpoint, requests, server } = await serve(t, (_, response) =>
    answer(response, 200, inventory({ 'nova-4b': bytes })),
  );
  return {
    port: new URL(endpoint).port,
    requests,
    server,
    say(next: number) {
      bytes = next;
    },
    /** Until what it says from now on is known. */
    async heard() {
      const asked = requests.length;
      await eventually(() => requests.length >= asked + 2, 'two more questions');
    },
  };
}

/** Lets what is under way happen: a question and its answer, too. */
async function settled() {
  for (let turns = 0; turns < 200; turns++) await turn();
}

test('bytes move while no object changes, as a real agent counts them', async t => {
  const root = await mkdtemp(join(tmpdir(), 'bytes-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'nova-4b'));
  const file = join(root, 'nova-4b', 'model.safetensors.incomplete');
  await writeFile(file, '');
  const grow = (bytes: number) => truncate(file, Math.floor(bytes));
  const { port, stop } = await startCacheAgent({ root, listen: { host: '127.0.0.1', port: 0 }, node }, silent);
  t.after(stop);
  await using lab = await downloading({ port });
  let told = 0;
  lab.listen(() => told++);
  await eventually(() => lab.step()?.bytesCompleted === 0, 'the first count');
  const version = () => lab.cluster.list<KubernetesObject>('pods').map(({ metadata }) => metadata.resourceVersion);
  const before = { told, version: version() };
  await grow(3.2 * GiB);
  await eventually(() => lab.step()?.message?.endsWith(': 3.2 GiB of 8.0 GiB') ?? false, 'what is there by now');
  assert.equal(lab.step()?.bytesCompleted, Math.floor(3.2 * GiB));
  await grow(8.5 * GiB);
  await eventually(() => lab.step()?.bytesCompleted === 8 * GiB, 'all of it, and no more than that');
  assert.ok(lab.step()?.message?.endsWith(': 8.0 GiB of 8.0 GiB'), lab.step()?.message);
  assert.ok(told >= before.told + 2);
  assert.deepEqual(version(), before.version);
});

test('who reads without listening is told, too', async t => {
  const agent = await saying(t, GiB);
  await using lab = await downloading({ port: agent.port });
  await lab.driver.loaded?.(tenSeconds());
  assert.equal(lab.step()?.bytesCompleted, GiB);
});

test('bytes do not go back within one download, and begin anew with the next', async t => {
  const agent = await saying(t, 3 * GiB);
  await using lab = await downloading({ port: agent.port });
  const seen: (number | undefined)[] = [];
  lab.listen(() => seen.push(lab.step()?.bytesCompleted));
  await eventually(() => lab.step()?.bytesCompleted === 3 * GiB, 'what it says');
  seen.length = 0;
  agent.say(2 * GiB);
  await agent.heard();
  assert.equal(lab.step()?.bytesCompleted, 3 * GiB);
  agent.say(4 * GiB);
  await eventually(() => lab.step()?.bytesCompleted === 4 * GiB, 'that there is more');
  assert.deepEqual(seen, [4 * GiB], 'nothing between');
  lab.cluster.remove('pods', 'nova-4b-1', serving);
  await eventually(() => lab.step()?.bytesCompleted === undefined, 'its pod is gone');
  agent.say(GiB);
  const [, pod] = served('nova-4b', node) as [object, object];
  lab.cluster.put({ ...pod, status: statusWith({ running: { startedAt: now() } }) });
  await eventually(() => lab.step()?.bytesCompleted === GiB, 'what there is of the next one');
});

test('an agent that fails costs the bytes and nothing else, and what it said before stands', async t => {
  let script: Script = (_, response) => answer(response, 500, 'no root', 'text/plain');
  const { endpoint, requests } = await serve(t, (...args) => script(...args));
  await using lab = await downloading({ port: new URL(endpoint).port });
  lab.listen();
  await eventually(() => requests.length >= 3, 'it is asked again');
  assert.deepEqual([lab.step()?.state, lab.step()?.bytesCompleted], ['inProgress', undefined]);
  assert.equal(lab.loaded.current?.error, undefined);
  assert.equal((await lab.driver.loaded?.(tenSeconds()))?.length, 1);
  script = (_, response) => answer(response, 200, inventory({ 'nova-4b': GiB }));
  await eventually(() => lab.step()?.bytesCompleted === GiB, 'it answers');
  script = (_, response) => response.destroy();
  const asked = requests.length;
  await eventually(() => requests.length >= asked + 3, 'it is gone');
  assert.equal(lab.step()?.bytesCompleted, GiB);
});

test('a node without an agent is one without bytes', async t => {
  const agent = await saying(t, GiB);
  await using lab = await downloading({ port: agent.port, agents: { [other]: '127.0.0.1' } });
  const rows = await lab.driver.loaded?.(tenSeconds());
  assert.deepEqual([rows?.length, lab.step()?.state, lab.step()?.bytesCompleted], [1, 'inProgress', undefined]);
  assert.equal(agent.requests.length, 0);
});

test('an agent that takes its time is given three seconds, and keeps no other from being asked', async t => {
  const hosts = new Set<string>();
  let isCut = 0;
  let fast = 0;
  const { endpoint } = await serve(t, ({ headers }, response) => {
    hosts.add(headers.host ?? '');
    if (headers.host?.startsWith('localhost')) return void response.once('close', () => isCut++);
    answer(response, 200, inventory({ 'nova-4b': ++fast }));
  });
  await using lab = await downloading({
    port: new URL(endpoint).port,
    models: { 'nova-4b': node, 'atlas-70b-x4': other },
    agents: { [node]: '127.0.0.1', [other]: 'localhost' },
  });
  const began = performance.now();
  lab.listen();
  await eventually(() => (lab.step()?.bytesCompleted ?? 0) >= 5, 'what the fast one says, again and again');
  assert.equal(isCut, 0);
  await eventually(() => isCut > 0, 'the slow one is given up');
  const took = performance.now() - began;
  assert.ok(took > 2_500, `${took} ms`);
  assert.deepEqual(
    [lab.step('atlas-70b-x4')?.state, lab.step('atlas-70b-x4')?.bytesCompleted],
    ['inProgress', undefined],
  );
  assert.equal(hosts.size, 2);
});

test('a reader who has little time does not wait for a slow agent', async t => {
  const { endpoint, requests } = await serve(t, () => {});
  await using lab = await downloading({ port: new URL(endpoint).port });
  const call = createCall({ log: silent, timeoutMs: 4_000 });
  const rows = await lab.driver.loaded?.(call);
  assert.equal(call.signal.aborted, false, 'there is time left to answer');
  assert.deepEqual([rows?.length, rows?.[0]?.phase, requests.length], [1, 'downloadingWeights', 1]);
});

test('nobody is asked when nothing downloads, or nobody listens', async t => {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
  const agent = await saying(t, GiB);
  await using lab = await downloading({ port: agent.port, pollInterval: '10s' });
  /** Lets six polls go by. Returns how often it was asked. */
  async function aMinute() {
    const asked = agent.requests.length;
    for (let polls = 0; polls < 6; polls++) {
      t.mock.timers.tick(10_000);
      await settled();
    }
    return agent.requests.length - asked;
  }
  assert.equal(await aMinute(), 0, 'nobody listens');
  const leave = lab.listen();
  await eventually(() => lab.step()?.bytesCompleted === GiB, 'it is asked');
  assert.equal(await aMinute(), 6);
  lab.setInit({ terminated: { exitCode: 0, startedAt: now(), finishedAt: now() } });
  await eventually(() => lab.step()?.state === 'done', 'the weights are there');
  assert.equal(await aMinute(), 0, 'nothing downloads');
  lab.setInit({ running: { startedAt: now() } });
  await eventually(() => lab.step()?.bytesCompleted === GiB, 'it is asked again');
  leave();
  assert.equal(await aMinute(), 0, 'nobody listens any more');
});

test('a node is asked one question at a time, on one connection, however many models download there', async t => {
  const names = Array.from({ length: 12 }, (_, at) => `m-${at}`);
  let open = 0;
  let most = 0;
  let asked = 0;
  let connections = 0;
  const { endpoint, server } = await serve(t, async (_, response) => {
    most = Math.max(most, ++open);
    asked++;
    await turn();
    open--;
    answer(response, 200, inventory(Object.fromEntries(names.map(name => [name, asked]))));
  });
  server.on('connection', () => connections++);
  await using lab = await downloading({
    port: new URL(endpoint).port,
    models: Object.fromEntries(names.map(name => [name, node])),
  });
  lab.listen();
  await eventually(() => names.every(name => (lab.step(name)?.bytesCompleted ?? 0) >= 5), 'five answers');
  assert.deepEqual([most, connections], [1, 1]);
});
