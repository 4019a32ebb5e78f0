/** Events at served objects, as the driver writes them while somebody follows recorded serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadedModel } from '../../../src/domain.ts';
import type { Recording } from '../../../src/drivers/kserve/recording.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { eventually } from '../../support/server.ts';
import { type DriverLab, tenSeconds } from './driverLab.ts';
import { startShow } from './playedLab.ts';
import { recordingOf } from './recordings.ts';

interface ServedEvent extends KubernetesObject {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly reportingComponent: string;
  readonly source: object;
  readonly involvedObject: Readonly<Record<string, string>>;
}

const services = 'llminferenceservices.serving.kserve.io';

/** Plays a recording, each instant until the driver tells it, with somebody who follows. */
async function follow(lab: Awaited<ReturnType<typeof startShow>>, { instants }: Pick<Recording, 'instants'>) {
  const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
  loaded.subscribe(() => {});
  for (const [index, { expect, at, name = '' }] of instants.entries()) {
    await lab.show(index);
    if (at === instants[index - 1]?.at) continue;
    const { phase, message } = (expect ?? {}) as Partial<LoadedModel>;
    const isTold = (row: LoadedModel | undefined) => row?.phase === phase && row?.message === message;
    await eventually(() => isTold(lab.rowIn(loaded.current?.value)), name);
  }
}

const eventsIn = ({ cluster }: Pick<DriverLab, 'cluster'>, namespace: string) =>
  cluster
    .list<ServedEvent>('events', namespace)
    .filter(({ involvedObject }) => involvedObject.kind === 'LLMInferenceService')
    .toSorted((a, b) => (a.lastTimestamp < b.lastTimestamp ? -1 : 1));

const writesOf = ({ requested }: Pick<DriverLab, 'requested'>) =>
  requested('events').flatMap(({ verb }) => (verb === 'list' || verb === 'watch' ? [] : [verb]));

test('each phase of a cold serve is one Event, with the time at which it began', async t => {
  const recording = recordingOf('serve-from-zero');
  await using lab = await startShow(t, recording);
  await follow(lab, recording);
  const events = () => eventsIn(lab, recording.namespace);
  await eventually(() => events().some(({ reason }) => reason === 'Ready'), 'the last Event');
  assert.deepEqual(
    events().map(({ lastTimestamp, type, reason, message }) => `${lastTimestamp} ${type} ${reason}: ${message}`),
    [
      '2026-10-05T08:00:00Z Normal Scheduling: WaitingForPod: waiting for the predictor pod',
      '2026-10-05T08:01:02Z Normal NodeStarting: NodeClaim gpu-l4-k7x2m launched an instance; the node is registering',
      '2026-10-05T08:04:05Z Normal DownloadingWeights: the weights are on their way to the node',
      '2026-10-05T08:05:36Z Normal PullingImage: PodInitializing: Pulling image "ghcr.io/llm-d/llm-d-cuda:v0.4.0"',
      '2026-10-05T08:09:36Z Normal Loading: the runtime loads the model',
      '2026-10-05T08:10:40Z Normal Routing: MinimumReplicasUnavailable Deployment does not have minimum availability.',
      '2026-10-05T08:10:49Z Normal Ready: the model is ready for requests',
    ],
  );
  assert.deepEqual(writesOf(lab), Array(7).fill('create'));
  const object = lab.cluster.get<KubernetesObject>(services, recording.object, recording.namespace);
  for (const { involvedObject, count, firstTimestamp, lastTimestamp, reportingComponent, source } of events()) {
    assert.deepEqual(involvedObject, {
      apiVersion: 'serving.kserve.io/v1alpha2',
      kind: 'LLMInferenceService',
      namespace: recording.namespace,
      name: recording.object,
      uid: object?.metadata.uid,
    });
    assert.deepEqual([count, reportingComponent, source], [1, 'model-manager', { component: 'model-manager' }]);
    assert.equal(firstTimestamp, lastTimestamp);
  }
});

test('a crash loop is one Warning that counts, and says why as soon as that is known', async t => {
  const recording = recordingOf('crash-loop');
  await using lab = await startShow(t, recording);
  await follow(lab, recording);
  await eventually(() => eventsIn(lab, recording.namespace)[0]?.count === 4, 'the count');
  const [event, ...others] = eventsIn(lab, recording.namespace);
  assert.deepEqual(others, []);
  assert.equal(event?.type, 'Warning');
  assert.equal(event?.reason, 'CrashLoopBackOff');
  assert.match(event?.message ?? '', /^runtime crashed 4× \(exit 137, OOMKilled\); no error line/);
  assert.ok((event?.firstTimestamp ?? '') < (event?.lastTimestamp ?? ''));
});

test('another gateway that follows the same says it once more, which changes nothing', async t => {
  const recording = recordingOf('serve-from-zero');
  await using lab = await startShow(t, recording);
  const soon = recording.instants.filter(({ at }) => at < Date.parse('2026-10-05T09:00:00Z'));
  await follow(lab, { instants: soon });
  const events = () => eventsIn(lab, recording.namespace);
  await eventually(() => events().length === 7, 'the Events');
  const before = events();
  const { loaded } = lab.restarted().observed ?? assert.fail('nothing is observed');
  const stop = loaded.subscribe(() => {});
  await eventually(() => writesOf(lab).length === 8, 'that it was said again');
  stop();
  assert.deepEqual(events(), before);
});

test('who only reads what is served writes nothing', async t => {
  const recording = recordingOf('serve-from-zero');
  await using lab = await startShow(t, recording);
  await lab.show(0);
  const rows = await lab.driver.loaded?.(tenSeconds());
  assert.equal(lab.rowIn(rows)?.phase, 'scheduling');
  assert.deepEqual(writesOf(lab), []);
});
