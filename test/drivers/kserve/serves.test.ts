/** Timelines of the driver, on an emulated cluster: what changes there reaches who listens. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realClock } from '../../../src/demo/host/clock.ts';
import type { Step } from '../../../src/domain.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { eventually } from '../../support/server.ts';
import { served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const serving = 'model-serving';
const second = 1_000;

type Options = NonNullable<Parameters<typeof startDriver>[0]>;

/** The driver with somebody who listens to what is served. */
async function listening(options: Options = {}) {
  const lab = await startDriver({ objects: worldOf(), ...options });
  const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
  let told = 0;
  loaded.subscribe(() => told++);
  const row = (name = 'nova-4b') => loaded.current?.value?.find(({ resource }) => resource === name);
  const step = (name: Step['name'], object?: string) => row(object)?.steps?.find(each => each.name === name);
  return { ...lab, row, step, told: () => told, [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose]() };
}

const at = (ago: number) => new Date(Date.now() - ago).toISOString().replace(/\.\d+Z$/, 'Z');
const isTrue = (type: string, ago: number) => ({ type, status: 'True', lastTransitionTime: at(ago) });

interface Status {
  readonly init?: object;
  readonly main?: object;
  readonly restarts?: number;
}

/** Status of a pod that has its node. */
const podStatus = ({ init, main, restarts = 0 }: Status) => ({
  phase: restarts > 0 ? 'Running' : 'Pending',
  conditions: [isTrue('PodScheduled', 60 * second)],
  ...(init && { initContainerStatuses: [{ name: 'storage-initializer', restartCount: 0, state: init }] }),
  ...(main && { containerStatuses: [{ name: 'main', ready: false, restartCount: restarts, ...main }] }),
});

const setStatus = ({ cluster }: Pick<Awaited<ReturnType<typeof startDriver>>, 'cluster'>, status: object) =>
  cluster.update<KubernetesObject>('pods', 'nova-4b-1', serving, pod => Object.assign(pod, { status }));

const put = ({ cluster }: Pick<Awaited<ReturnType<typeof startDriver>>, 'cluster'>, objects: readonly object[]) =>
  objects.map(object => cluster.put(object));

test('each change of the object, its pod and its events is told', async () => {
  await using lab = await listening();
  const { row, step } = lab;
  const [object, pod] = served('nova-4b', node) as [object, object];
  put(lab, [object]);
  await eventually(() => row()?.reason === 'WaitingForPod' || step('scheduling')?.reason === 'WaitingForPod', 'no pod');
  const made = lab.cluster.put(pod) as KubernetesObject;
  setStatus(lab, podStatus({ init: { running: { startedAt: at(20 * second) } } }));
  await eventually(() => row()?.phase === 'downloadingWeights', 'the download');
  assert.equal(step('downloadingWeights')?.reason, 'DownloadingWeights');
  setStatus(
    lab,
    podStatus({
      init: { terminated: { exitCode: 0, startedAt: at(20 * second), finishedAt: at(2 * second) } },
      main: { state: { waiting: { reason: 'ContainerCreating' } } },
    }),
  );
  await eventually(() => row()?.phase === 'pullingImage', 'the image');
  const pulling = (message: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'nova-4b-1.pulling', namespace: serving },
    involvedObject: {
      kind: 'Pod',
      name: 'nova-4b-1',
      namespace: serving,
      uid: made.metadata.uid,
      fieldPath: 'spec.containers{main}',
    },
    reason: 'Pulling',
    type: 'Normal',
    message,
    firstTimestamp: at(second),
    lastTimestamp: at(second),
  });
  put(lab, [pulling('Pulling image "x"')]);
  await eventually(() => step('pullingImage')?.message === 'Pulling image "x"', 'what the event says');
  lab.cluster.remove('llminferenceservices.serving.kserve.io', 'nova-4b', serving);
  await eventually(() => row() === undefined, 'that it is gone');
});

test('the log of a runtime that died is read once for each death', async () => {
  await using lab = await listening({ objects: worldOf({ more: served('nova-4b', node) }) });
  const { row, cluster } = lab;
  const dead = (restarts: number) => ({
    restarts,
    main: {
      state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' } },
      lastState: { terminated: { exitCode: 1, reason: 'Error' } },
    },
  });
  cluster.logs.set(serving, 'nova-4b-1', 'main', { previous: 'ValueError: no such dtype\n' });
  setStatus(lab, podStatus(dead(1)));
  await eventually(
    () => /crashed 2× \(exit 1\): ValueError: no such dtype/.test(row()?.message ?? ''),
    'its last words',
  );
  assert.equal(row()?.phase, 'failed');
  await lab.driver.loaded?.(tenSeconds());
  assert.equal(lab.requested('pods/log').length, 1);
  cluster.logs.set(serving, 'nova-4b-1', 'main', { previous: 'RuntimeError: out of luck\n' });
  setStatus(lab, podStatus(dead(2)));
  await eventually(
    () => /crashed 3× \(exit 1\): RuntimeError: out of luck/.test(row()?.message ?? ''),
    'the next ones',
  );
  assert.equal(lab.requested('pods/log').length, 2);
});

test('time alone fails a download that stalls', async t => {
  t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() });
  await using lab = await listening({ objects: worldOf({ more: served('nova-4b', node) }) });
  setStatus(lab, podStatus({ init: { running: { startedAt: at(0) } } }));
  await eventually(() => lab.step('downloadingWeights')?.state === 'inProgress', 'the download');
  const before = lab.told();
  t.mock.timers.tick(29 * 60 * second);
  assert.equal(lab.told(), before, 'that it goes on is no news');
  t.mock.timers.tick(62 * second);
  await eventually(() => lab.step('downloadingWeights')?.state === 'failed', 'it stalls');
  assert.equal(lab.step('downloadingWeights')?.reason, 'DownloadStalled');
});

test('who may not read a part is told which, and the rest of the timeline stands', async () => {
  const rules = ['llminferenceservices', 'nodes', 'pods', 'configmaps', 'llminferenceserviceconfigs'].map(resource => ({
    verbs: ['get', 'list', 'watch'],
    apiGroups: ['', 'serving.kserve.io'],
    resources: [resource],
  }));
  await using lab = await listening({
    objects: worldOf({ more: served('nova-4b', node) }),
    user: 'reader',
    users: { reader: { rules } },
  });
  setStatus(
    lab,
    podStatus({
      restarts: 1,
      main: { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 2 } } },
    }),
  );
  await eventually(() => lab.row()?.phase === 'failed', 'it crashed', 8_000);
  await eventually(
    () => /log could not be read \(.*pods\/log.*\)/.test(lab.row()?.message ?? ''),
    'why its last words are not known',
  );
});

test('the same requests for three and for three hundred, none while somebody listens, and the same after a restart', async () => {
  const crowd = (count: number) => Array.from({ length: count }, (_, at) => served(`m-${at}`, node)).flat();
  const asked = async (count: number) => {
    await using lab = await listening({ objects: worldOf({ more: crowd(count) }) });
    // Who may not write Events gives it up: none is left to be written when the test is over.
    lab.cluster.fault({ kind: 'answer', status: 403, resource: 'events', verb: 'create' });
    const first = await lab.driver.loaded?.(tenSeconds());
    assert.equal(first?.length, count);
    const made = () => lab.cluster.requests.filter(({ resource, verb }) => resource !== 'events' || verb !== 'create');
    const before = made();
    for (let each = 0; each < 20; each++) await lab.driver.loaded?.(tenSeconds());
    assert.equal(made().length, before.length);
    const again = await lab.restarted().loaded?.(tenSeconds());
    assert.deepEqual(again, first, 'another process tells the same');
    return before.filter(({ resource }) => resource !== 'jobs.batch').length;
  };
  assert.equal(await asked(300), await asked(3));
});

test('weights that are all in the cache are not expected to take a download', async () => {
  const typical = async (bytes: number | undefined) => {
    await using lab = await listening();
    lab.ends('mm-scan-', bytes === undefined ? 'END\n' : `DIR\tnova-4b\t${bytes}\t5\t1789000000\t1\nEND\n`);
    const { nodes } = lab.driver.observed ?? assert.fail('nothing is observed');
    nodes.subscribe(() => {});
    await lab.driver.nodes?.(tenSeconds());
    await eventually(
      () => nodes.current?.value?.some(({ cache }) => cache?.scannedAt) === true,
      'the cache is counted',
    );
    put(lab, served('nova-4b', node));
    await eventually(() => lab.step('downloadingWeights')?.typical !== undefined, 'an estimate');
    return lab.step('downloadingWeights')?.typical?.seconds;
  };
  assert.equal(await typical(8_054_072_104), 15);
  assert.equal(await typical(4_000_000_000), 72);
  assert.equal(await typical(undefined), 72);
});

test('14: a clock that is ten minutes off the cluster fails nothing that has just begun', async () => {
  for (const skewMs of [-600 * second, 600 * second]) {
    const clock = { ...realClock, now: () => Date.now() + skewMs };
    const [object, pod] = served('nova-4b', '') as [object, { metadata: object; spec: object }];
    const about = (kind: string, name: string, more: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${kind.toLowerCase()}`, namespace: kind === 'Pod' ? serving : 'default' },
      involvedObject: { kind, name, ...more },
      lastTimestamp: new Date(clock.now()).toISOString(),
    });
    const { nodeName: _, ...spec } = pod.spec as { nodeName: string };
    await using lab = await listening({ clock, objects: worldOf({ more: [object, { ...pod, spec }] }) });
    const { uid } = lab.cluster.get<KubernetesObject>('pods', 'nova-4b-1', serving)?.metadata ?? {};
    setStatus(lab, { phase: 'Pending' });
    put(lab, [
      {
        ...about('Pod', 'nova-4b-1', { uid }),
        reason: 'Nominated',
        message: 'Pod should schedule on: nodeclaim/gpu-l4-k7x2m',
      },
      {
        ...about('NodeClaim', 'gpu-l4-k7x2m'),
        ...{
          type: 'Warning',
          reason: 'InsufficientCapacityError',
          message: 'do not have sufficient g6.xlarge capacity',
        },
      },
    ]);
    await eventually(() => lab.row()?.reason === 'CapacityUnavailable', 'the refusal');
    assert.equal(lab.row()?.phase, 'scheduling');
    assert.equal(lab.step('scheduling')?.state, 'inProgress');
  }
});
