import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playedOf } from '../../src/commands/recording/played.ts';
import { type KubernetesObject, manualClock, startCluster } from '../../src/demo/cluster.ts';
import { moved } from '../../src/demo/playing/times.ts';
import { playingMs, playRecording, usualSpeed } from '../../src/demo/playing.ts';
import { factsOf } from '../../src/drivers/kserve/recording/facts.ts';
import { factsAt, keyOf, type Recording, stateAt } from '../../src/drivers/kserve/recording.ts';
import { type Timeline, timeline } from '../../src/drivers/kserve/timeline.ts';
import { recordingNames, recordingOf } from '../drivers/kserve/recordings.ts';

const kinds = [
  'LLMInferenceService',
  'Pod',
  'Event',
  'Node',
  'NodeClaim',
  'NodePool',
  'EC2NodeClass',
  'PersistentVolumeClaim',
  'PersistentVolume',
];

const places = { presetNamespace: 'agent-platform', discovery: 'agent-platform-model-serving' };

/** What is told, but for times: those in words are of when it happened. */
const told = ({ phase, status, node, reason, message, steps }: Timeline) => ({
  ...{ phase, status, node, reason, message: timeless(message) },
  steps: steps.map(({ since, finishedAt, ...step }) => ({ ...step, message: timeless(step.message) })),
});
const timeless = (words: string | undefined) => words?.replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'then');

/** Plays it at that speed, and compares what the cluster's objects tell at each instant with what is expected. */
async function play(recording: Recording, speed: number) {
  const clock = manualClock();
  const cluster = await startCluster({ clock });
  let shown = 0;
  try {
    const playing = playRecording(cluster, playedOf(recording, places), {
      speed,
      clock,
      shown(index) {
        const objects = kinds.flatMap(kind => {
          try {
            return cluster.list<KubernetesObject>(kind);
          } catch {
            return []; // Nobody defined it.
          }
        });
        const { denied, log, objects: recorded } = stateAt(recording, index);
        const names = recorded.filter(({ kind }) => kinds.includes(kind ?? '')).map(keyOf);
        assert.deepEqual(objects.map(keyOf).toSorted(), names.toSorted(), `objects of instant ${index}`);
        const facts = factsOf(recording, { objects, denied, log });
        const at = recording.instants[index]?.at as number;
        assert.deepEqual(told(timeline(facts, clock.now())), told(timeline(factsAt(recording, index), at)));
        shown++;
      },
    });
    const length = (recording.instants.at(-1)?.at ?? 0) - (recording.instants[0]?.at ?? 0);
    await clock.advance(Math.ceil(length / speed));
    await playing;
  } finally {
    await cluster.close();
  }
  assert.equal(shown, recording.instants.length);
}

for (const name of recordingNames) {
  test(`the cluster has ${name} as it was recorded, however fast`, async () => {
    for (const speed of [1, 20, Number.POSITIVE_INFINITY]) await play(recordingOf(name), speed);
  });
}

test('a recording that is stopped plays no further', async () => {
  const clock = manualClock();
  const cluster = await startCluster({ clock });
  const stop = new AbortController();
  const shown: number[] = [];
  const playing = playRecording(cluster, playedOf(recordingOf('serve-from-zero'), places), {
    speed: 1,
    clock,
    signal: stop.signal,
    shown: index => shown.push(index),
  });
  await clock.sleeping();
  stop.abort();
  await assert.rejects(playing);
  assert.deepEqual(shown, [0]);
  await cluster.close();
});

test('reads are refused as they were, and allowed again', async () => {
  const cluster = await startCluster({ clock: manualClock() });
  const nodes = () =>
    fetch(`${cluster.url}/api/v1/nodes`).then(async each => [each.status, await each.text()] as const);
  const instant = (denied: readonly { resource: string; message: string }[]) => ({ at: 0, objects: [], denied });
  const options = { speed: 1, clock: manualClock() };
  await playRecording(cluster, { instants: [instant([{ resource: 'nodes', message: 'not for you' }])] }, options);
  const [status, text] = await nodes();
  assert.equal(status, 403);
  assert.match(text, /not for you/);
  const both = { instants: [instant([{ resource: 'pods', message: 'no' }]), instant([])] };
  await playRecording(cluster, both, options);
  assert.equal((await fetch(`${cluster.url}/api/v1/pods`)).status, 200);
  await cluster.close();
});

test('every time of an object is moved, as precise as it is written, and nothing else', () => {
  const object = {
    metadata: { creationTimestamp: '2026-10-05T08:00:02Z', name: '2026-10-05T08:00:02Z' },
    eventTime: '2026-10-05T08:00:02.214551Z',
    firstTimestamp: null,
    status: { conditions: [{ lastTransitionTime: '2026-10-05T08:00:02Z', message: 'at 2026-10-05T08:00:02Z' }] },
  };
  assert.deepEqual(moved(object, 61_000), {
    metadata: { creationTimestamp: '2026-10-05T08:01:03Z', name: '2026-10-05T08:00:02Z' },
    eventTime: '2026-10-05T08:01:03.214551Z',
    firstTimestamp: null,
    status: { conditions: [{ lastTransitionTime: '2026-10-05T08:01:03Z', message: 'at 2026-10-05T08:00:02Z' }] },
  });
});

test('a recording plays within a minute, quiet spans cut, and never slower than it happened', () => {
  const after = (...seconds: number[]) => [0, ...seconds].map(each => ({ at: each * 1000 }));
  const table: [seconds: number[], speed: number, playing: number][] = [
    [[], 1, 0],
    [[9, 18, 30, 39], 1, 37_000],
    [[5, 3600], 1, 15_000],
    [[300, 600], 1, 20_000],
    [Array.from({ length: 100 }, (_, index) => (index + 1) * 6), 10, 60_000],
    [Array.from({ length: 24 }, (_, index) => (index + 1) * 3600), 1440, 60_000],
  ];
  for (const [seconds, speed, playing] of table) {
    assert.deepEqual([usualSpeed(after(...seconds)), playingMs(after(...seconds), speed)], [speed, playing]);
  }
  assert.equal(playingMs(after(5, 10), Number.POSITIVE_INFINITY), 0);
});
