import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { factsAt, type Recording } from '../../../src/drivers/kserve/recording.ts';
import { addressOf } from '../../../src/drivers/kserve/serving/address.ts';
import { servedModels } from '../../../src/drivers/kserve/serving/served.ts';
import { type ServeFacts, timeline } from '../../../src/drivers/kserve/timeline.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { instantAt, recordingNames, recordingOf } from './recordings.ts';

const recordings = recordingNames.map(name => ({ name, recording: recordingOf(name) }));

for (const { name, recording } of recordings) {
  suite(`timeline: ${name}`, () => {
    for (const [index, instant] of recording.instants.entries()) {
      test(instant.name ?? String(index), () => {
        assert.deepEqual(answered(recording, index), instant.expect);
      });
    }
  });
}

test('every recorded instant says what is expected of it', () => {
  const instants = recordings.flatMap(({ recording }) => recording.instants);
  assert.equal(instants.length, 79);
  assert.ok(instants.every(({ expect }) => expect !== undefined));
});

/** The facts of one instant, and its time. */
function instantOf(name: string, instant: string): { readonly facts: ServeFacts; readonly now: number } {
  const recording = recordingOf(name);
  const index = instantAt(recording, instant);
  return { facts: factsAt(recording, index), now: recording.instants[index]?.at as number };
}

const known = <T>(read: { readonly value: T } | { readonly problem: string }): T => {
  assert.ok('value' in read);
  return read.value;
};

test('a runtime that came back and is ready has loaded the model, whatever it went through', () => {
  const { facts, now } = instantOf('serve-from-zero', '11-ready');
  const pods = structuredClone(known(facts.pods)) as unknown as { status: { containerStatuses: object[] } }[];
  for (const { status } of pods) {
    for (const each of status.containerStatuses) {
      Object.assign(each, { restartCount: 2, lastState: { terminated: { exitCode: 1, reason: 'Error' } } });
    }
  }
  const restarted = { ...facts, pods: { value: pods as unknown as KubernetesObject[] } };
  assert.equal(timeline(restarted, now).phase, 'ready');
});

test('a NodeClaim that is refused again is one NodeClaim', () => {
  const { facts, now } = instantOf('capacity-refused-pinned-zone', '02-claim-gone-one-refusal');
  const events = known(facts.karpenterEvents);
  assert.ok(events.length > 0);
  const again = { ...facts, karpenterEvents: { value: [...events, ...events] } };
  assert.match(timeline(again, now).message ?? '', /: 1 NodeClaim refused, the last \(gpu-l40s-b4t9q\)/);
});

test('nothing that can be read beside the pod takes the steps from it', () => {
  const { facts, now } = instantOf('capacity-refused-pinned-zone', '01-claim-refused-standing');
  const problem = { problem: 'no answer' };
  const blind = { ...facts, events: problem, nodes: problem, nodeClaims: problem, karpenterEvents: problem };
  const { phase, reason } = timeline({ ...blind, nodePools: problem, nodeClasses: problem, cache: problem }, now);
  assert.deepEqual({ phase, reason }, { phase: 'scheduling', reason: 'Unschedulable' });
});

/** What is answered of the object, as JSON has it. */
function answered(recording: Recording, index: number): unknown {
  const facts = factsAt(recording, index);
  const { gpuResource, gatewayEndpoint } = recording.settings;
  const [served] = servedModels({
    objects: [facts.object],
    pods: 'value' in facts.pods ? facts.pods.value : [],
    presets: [],
    gpuResource,
  });
  assert.ok(served);
  const endpoint = addressOf({ ...served, gatewayEndpoint });
  const told = { ...timeline(facts, recording.instants[index]?.at as number), endpoint };
  // Times have whole seconds, and what is absent is no key.
  return JSON.parse(JSON.stringify(told), (_, value) =>
    typeof value === 'string' ? value.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$/, '$1Z') : value,
  );
}

test('what an object without an address says of itself is read', () => {
  const { facts } = instantOf('crash-loop', '03-back-off');
  const [served] = servedModels({ objects: [facts.object], pods: [], presets: [], gpuResource: 'nvidia.com/gpu' });
  assert.deepEqual([served?.ready, served?.reason], ['False', 'MinimumReplicasUnavailable']);
});
