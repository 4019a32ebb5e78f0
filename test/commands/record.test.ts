import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newsLines } from '../../src/commands/recording/lines.ts';
import { playedOf } from '../../src/commands/recording/played.ts';
import { type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import { kserveDefinitions } from '../../src/demo/kserve.ts';
import { type PlayedRecording, playRecording } from '../../src/demo/playing.ts';
import { factsAt, parseRecording, type Recording } from '../../src/drivers/kserve/recording.ts';
import { type Timeline, timeline } from '../../src/drivers/kserve/timeline.ts';
import { recordingOf } from '../drivers/kserve/recordings.ts';
import { folder, start } from './running.ts';

const presetNamespace = 'agent-platform';
const places = { presetNamespace, discovery: 'agent-platform-model-serving' };

async function clusterOf(t: TestContext): Promise<EmulatedCluster> {
  const cluster = await startCluster();
  t.after(() => cluster.close());
  for (const name of ['model-serving', presetNamespace]) {
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  for (const object of kserveDefinitions('model-serving')) cluster.put(object);
  return cluster;
}

/** Plays in a cluster; the next instant comes when it is asked for. */
function stepping(cluster: EmulatedCluster, played: PlayedRecording) {
  let gate = Promise.withResolvers<void>();
  let shown = Promise.withResolvers<void>();
  const clock = { now: Date.now, sleep: () => gate.promise };
  const over = playRecording(cluster, played, { speed: 1, clock, shown: () => shown.resolve() });
  return async () => {
    const isShown = shown.promise;
    gate.resolve();
    gate = Promise.withResolvers();
    await Promise.race([isShown, over]);
    shown = Promise.withResolvers();
  };
}

const timelines = (recording: Recording) =>
  recording.instants.map(({ at }, index) => timeline(factsAt(recording, index), at));

function recordingIn(file: string): Recording {
  const read = parseRecording(readFileSync(file, 'utf8'));
  assert.ok('value' in read, 'problem' in read ? read.problem : '');
  return read.value;
}

/** The phases without repetitions. */
const phases = (told: readonly Timeline[]) =>
  told.map(({ phase }) => phase).filter((phase, index, all) => phase !== all[index - 1]);

const flagsFor = (cluster: EmulatedCluster, put: (name: string, text: string) => string) => [
  ...['--kubeconfig', put('kubeconfig', cluster.kubeconfig())],
  ...['--kserve-discovery-namespace', presetNamespace],
];

test('a serve from nothing to ready is on record, as it was told', async t => {
  const whole = recordingOf('serve-from-zero');
  const serve = { ...whole, instants: whole.instants.slice(0, 11) };
  const cluster = await clusterOf(t);
  // What is published is there before the model is served.
  for (const object of playedOf(serve, places).instants[0]?.objects ?? []) {
    if ((object as { kind: string }).kind === 'ConfigMap') cluster.put(object);
  }
  const { path, put } = folder(t);
  const file = join(path, 'out.yaml');
  const record = start(t, ['record', 'nova-4b', '--output', file, ...flagsFor(cluster, put)]);
  await record.wrote('waiting for nova-4b to be served in model-serving');
  const step = stepping(cluster, playedOf(serve, places));
  let before: Timeline | undefined;
  for (const next of timelines(serve)) {
    await step();
    for (const line of newsLines(before, next, 0, Number.POSITIVE_INFINITY)) {
      // All but how long ago it began.
      await record.wrote(line.replace(/^\S+ +/, ''));
    }
    before = next;
  }
  assert.equal(await record.ended, 0, record.err);
  assert.match(record.out, /it is ready: \d+ instants in \d+/);

  const recorded = recordingIn(file);
  const { about, ...expectedHead } = whole;
  assert.deepEqual({ ...recorded, instants: [] }, { ...expectedHead, instants: [] });
  assert.deepEqual(phases(timelines(recorded)), phases(timelines(serve)));
  const [last, expected] = [recorded, serve].map(each => timelines(each).at(-1));
  const took = ({ steps }: Timeline) =>
    steps.map(({ name, since, finishedAt }) => [name, (finishedAt?.getTime() ?? 0) - (since?.getTime() ?? 0)]);
  assert.deepEqual(took(last as Timeline), took(expected as Timeline));
  assert.deepEqual(readdirSync(path).toSorted(), ['kubeconfig', 'out.yaml'], 'nothing is left beside it');
});

test('Ctrl-C keeps all there is; what must not be read is on record; no secret is', async t => {
  const planted = 'p1anted';
  const crashed = recordingOf('crash-loop');
  const index = crashed.instants.findIndex(({ name }) => name === '03-back-off');
  const cluster = await clusterOf(t);
  const [instant] = playedOf({ ...crashed, instants: crashed.instants.slice(0, index + 1) }, places).instants.slice(-1);
  assert.ok(instant?.log);
  const log = { ...instant.log, text: `using HF_TOKEN=${planted}\n${instant.log.text}` };
  await playRecording(
    cluster,
    { instants: [{ ...instant, log }] },
    { speed: 1, clock: { now: Date.now, sleep: async () => {} } },
  );
  const [pod] = cluster.list<{ metadata: { name: string } }>('pods', 'model-serving');
  assert.ok(pod);
  type Spec = { spec: { containers: { env?: object[]; args?: string[] }[]; imagePullSecrets?: object[] } };
  cluster.update<Spec>('pods', pod.metadata.name, 'model-serving', ({ spec }) => {
    spec.imagePullSecrets = [{ name: `${planted}-pull` }];
    Object.assign(spec.containers[0] ?? {}, {
      env: [{ name: 'HF_TOKEN', value: planted }],
      args: ['--api-key', planted, `--x=https://u:${planted}@h.example`],
    });
  });
  cluster.update<{ metadata: { annotations?: object } }>('LLMInferenceService', 'nova-4b', 'model-serving', object => {
    object.metadata.annotations = {
      ...object.metadata.annotations,
      'kubectl.kubernetes.io/last-applied-configuration': planted,
    };
  });
  cluster.fault({ kind: 'answer', status: 403, resource: 'nodes' });

  const { path, put } = folder(t);
  // By the model that it serves, to a file in the folder where it is started.
  const record = start(t, ['record', 'acme-labs/nova-4b-instruct', ...flagsFor(cluster, put)], { cwd: path });
  await record.wrote('CrashLoopBackOff');
  record.kill('SIGINT');
  assert.equal(await record.ended, 0, record.err);
  assert.match(record.out, /stopped: \d+ instants? in .*, written to nova-4b-\d{8}T\d{6}Z\.yaml/);

  const [name = ''] = readdirSync(path).filter(each => each.startsWith('nova-4b-'));
  const text = readFileSync(join(path, name), 'utf8');
  assert.doesNotMatch(text + record.out, new RegExp(planted));
  assert.match(text, /HF_TOKEN/);
  const recorded = recordingIn(join(path, name));
  const [told] = timelines(recorded).slice(-1);
  assert.match(told?.message ?? '', /PermissionError: \[Errno 13\]/);
  assert.deepEqual(
    recorded.instants[0]?.denied?.map(({ resource }) => resource),
    ['nodes'],
  );
});

test('a serve that goes away ends the recording', async t => {
  const cluster = await clusterOf(t);
  const serve = recordingOf('cpu-serve');
  const step = stepping(cluster, {
    instants: [...playedOf(serve, places).instants, { at: 0, objects: [], denied: [] }],
  });
  await step();
  const { path, put } = folder(t);
  const file = join(path, 'out.yaml');
  const record = start(t, ['record', serve.object, '--output', file, ...flagsFor(cluster, put)]);
  await record.wrote('LoadingModel');
  await step();
  assert.equal(await record.ended, 0, record.err);
  assert.match(record.out, /the object is gone: 1 instant in 0s/);
  assert.deepEqual(phases(timelines(recordingIn(file))), ['loading']);
});

test('what cannot be recorded is a sentence, and no file is touched', async t => {
  const cluster = await clusterOf(t);
  const { path, put } = folder(t);
  const flags = flagsFor(cluster, put);
  const there = put('there.yaml', 'mine');
  const onto = start(t, ['record', 'nova-4b', '--output', there, ...flags]);
  assert.equal(await onto.ended, 2);
  assert.match(onto.err, /is there already; give --output another name/);
  assert.equal(readFileSync(there, 'utf8'), 'mine');

  const nobody = start(t, ['record', 'nova-4b', '--output', join(path, 'new.yaml'), ...flags]);
  await nobody.wrote('waiting for nova-4b');
  nobody.kill('SIGINT');
  assert.equal(await nobody.ended, 1);
  assert.match(nobody.out, /nothing was recorded: nova-4b was not served in model-serving/);
  assert.ok(!existsSync(join(path, 'new.yaml')));

  const twins = ['twin-a', 'twin-b'].map(name => ({
    apiVersion: 'serving.kserve.io/v1alpha2',
    kind: 'LLMInferenceService',
    metadata: { name, namespace: 'model-serving' },
    spec: { model: { name: 'acme/twin' } },
  }));
  for (const twin of twins) cluster.put(twin);
  const several = start(t, ['record', 'acme/twin', ...flags]);
  assert.equal(await several.ended, 2);
  assert.match(several.err, /^several objects serve acme\/twin; name one of twin-a, twin-b\n$/m);

  cluster.fault({ kind: 'answer', status: 403, resource: 'llminferenceservices.serving.kserve.io' });
  const refused = start(t, ['record', 'nova-4b', ...flags]);
  assert.equal(await refused.ended, 2);
  assert.match(
    refused.err,
    /^nothing can be recorded: cannot list llminferenceservices.serving.kserve.io in namespace/m,
  );
  assert.doesNotMatch(refused.err, /\n\s+at /);

  const missing = start(t, ['record', 'nova-4b', '--kubeconfig', join(path, 'none')]);
  assert.equal(await missing.ended, 2);
  assert.doesNotMatch(missing.err, /\n\s+at /);
});

test('without the discovery ConfigMap it says what is missing and which flag helps', async t => {
  const cluster = await clusterOf(t);
  const { path, put } = folder(t);
  const flags = ['--kubeconfig', put('kubeconfig', cluster.kubeconfig())];
  const without = start(t, ['record', 'nova-4b', ...flags], { cwd: path });
  await without.wrote('waiting for nova-4b');
  without.kill('SIGINT');
  await without.ended;
  assert.match(
    without.err,
    /^no discovery ConfigMap model-serving\/agent-platform-model-serving \(.+\): .*their cache.*; say in which namespace it is with --kserve-discovery-namespace\n$/,
  );
  assert.doesNotMatch(without.out, /discovery/);
});

test('a server that asks nobody who they are is given by its URL, whatever kubeconfig there is', async t => {
  const cluster = await clusterOf(t);
  const { path } = folder(t);
  const record = start(t, ['record', 'nova-4b', '--server', cluster.url, '--kubeconfig', join(path, 'none')]);
  await record.wrote('waiting for nova-4b');
  record.kill('SIGINT');
  assert.equal(await record.ended, 1);

  const odd = start(t, ['record', 'nova-4b', '--server', 'localhost:8001']);
  assert.equal(await odd.ended, 2);
  assert.match(
    odd.err,
    /^--server must be an http\(s\) URL, got "localhost:8001"; write it as in http:\/\/localhost:8001/,
  );
});
