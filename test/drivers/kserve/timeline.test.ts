import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { suite, test } from 'node:test';
import { parseDuration } from '../../../src/config/values.ts';
import { addressOf } from '../../../src/drivers/kserve/address.ts';
import { cacheLocation, volumeOf } from '../../../src/drivers/kserve/nodes/cacheLocation.ts';
import { presetsIn } from '../../../src/drivers/kserve/presets.ts';
import { servedModels } from '../../../src/drivers/kserve/served.ts';
import { type ServeFacts, timeline } from '../../../src/drivers/kserve/timeline.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { jsonOf, objectsOf, overhead, settingsWith, textOf } from './world.ts';

interface Denied {
  readonly resource: string;
  readonly namespace: string | null;
  readonly message: string;
}

interface Instant {
  readonly file: string;
  readonly now: string;
  readonly deniedReads?: readonly Denied[];
  readonly containerLog?: { readonly file: string };
  readonly expect: object;
}

interface Scenario {
  readonly object: string;
  readonly settings: {
    readonly servingNamespace: string;
    readonly gpuResourceName: string;
    readonly cacheClaim: string;
    readonly gatewayEndpoint?: string;
    readonly scaleUpTimeout: string;
  };
  readonly instants: readonly Instant[];
}

const scenarios = readdirSync(new URL('../../fixtures/kserve/scenarios/', import.meta.url)).toSorted();

for (const name of scenarios) {
  const folder = `scenarios/${name}`;
  const scenario: Scenario = jsonOf(`${folder}/expected.json`);
  suite(`timeline: ${name}`, () => {
    for (const instant of scenario.instants) {
      test(instant.file, () => {
        assert.deepEqual(answered(folder, scenario, instant), instant.expect);
      });
    }
  });
}

/** The facts of one instant, and its time. */
function instantOf(name: string, file: string): { readonly facts: ServeFacts; readonly now: number } {
  const scenario: Scenario = jsonOf(`scenarios/${name}/expected.json`);
  const instant = scenario.instants.find(each => each.file === file);
  assert.ok(instant);
  return { facts: factsOf(`scenarios/${name}`, scenario, instant), now: Date.parse(instant.now) };
}

const known = <T>(read: { readonly value: T } | { readonly problem: string }): T => {
  assert.ok('value' in read);
  return read.value;
};

test('a runtime that came back and is ready has loaded the model, whatever it went through', () => {
  const { facts, now } = instantOf('serve-from-zero', '11-ready.yaml');
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
  const { facts, now } = instantOf('capacity-refused-pinned-zone', '02-claim-gone-one-refusal.yaml');
  const events = known(facts.karpenterEvents);
  assert.ok(events.length > 0);
  const again = { ...facts, karpenterEvents: { value: [...events, ...events] } };
  assert.match(timeline(again, now).message ?? '', /: 1 NodeClaim refused, the last \(gpu-l40s-b4t9q\)/);
});

test('nothing that can be read beside the pod takes the steps from it', () => {
  const { facts, now } = instantOf('capacity-refused-pinned-zone', '01-claim-refused-standing.yaml');
  const problem = { problem: 'no answer' };
  const blind = { ...facts, events: problem, nodes: problem, nodeClaims: problem, karpenterEvents: problem };
  const { phase, reason } = timeline({ ...blind, nodePools: problem, nodeClasses: problem, cache: problem }, now);
  assert.deepEqual({ phase, reason }, { phase: 'scheduling', reason: 'Unschedulable' });
});

/** What is answered of the scenario's object, as JSON has it. */
function answered(folder: string, scenario: Scenario, instant: Instant): unknown {
  const facts = factsOf(folder, scenario, instant);
  const { settings } = scenario;
  const [served] = servedModels({
    objects: [facts.object],
    pods: 'value' in facts.pods ? facts.pods.value : [],
    presets: [],
    gpuResource: settings.gpuResourceName,
  });
  assert.ok(served);
  const endpoint = addressOf({ ...served, gatewayEndpoint: settings.gatewayEndpoint });
  const told = { ...timeline(facts, Date.parse(instant.now)), endpoint };
  // Times have whole seconds, and what is absent is no key.
  return JSON.parse(JSON.stringify(told), (_, value) =>
    typeof value === 'string' ? value.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$/, '$1Z') : value,
  );
}

function factsOf(folder: string, { object, settings }: Scenario, instant: Instant): ServeFacts {
  const { file, deniedReads = [], containerLog } = instant;
  const world = [`${folder}/00-static.yaml`, `${folder}/${file}`].flatMap(objectsOf);
  const kinds = (kind: string) => world.filter(each => each.kind === kind);
  const denied = (resource: string, namespace?: string) =>
    deniedReads.find(each => each.resource === resource && (!namespace || each.namespace === namespace));
  const read = <T>(value: T, resource: string, namespace?: string) => {
    const refused = denied(resource, namespace);
    return refused ? { problem: refused.message } : { value };
  };
  const within = (namespace: string) => kinds('Event').filter(({ metadata }) => metadata.namespace === namespace);
  const named = (kind: string, name: string | undefined): KubernetesObject | undefined =>
    kinds(kind).find(({ metadata }) => metadata.name === name);
  const claim = named('PersistentVolumeClaim', settings.cacheClaim);
  const volume = denied('persistentvolumes') ? undefined : named('PersistentVolume', volumeOf(claim));
  const scaleUpTimeout = parseDuration(settings.scaleUpTimeout);
  assert.ok(scaleUpTimeout !== undefined);
  const subject = named('LLMInferenceService', object);
  assert.ok(subject);
  const { presets } = presetsIn(kinds('ConfigMap'), overhead);
  return {
    object: subject,
    pods: read(kinds('Pod'), 'pods'),
    events: read(within(settings.servingNamespace), 'events', settings.servingNamespace),
    nodes: read(kinds('Node'), 'nodes'),
    log: containerLog ? { value: textOf(`${folder}/${containerLog.file}`) } : read('', 'pods/log'),
    nodeClaims: read(kinds('NodeClaim'), 'nodeclaims'),
    karpenterEvents: read(within('default'), 'events', 'default'),
    nodePools: read(kinds('NodePool'), 'nodepools'),
    nodeClasses: read(kinds('EC2NodeClass'), 'ec2nodeclasses'),
    cache: read(
      cacheLocation(settingsWith({ cache: { enabled: true, claimName: settings.cacheClaim } }), claim, volume),
      'persistentvolumeclaims',
    ),
    settings: { gpuResource: settings.gpuResourceName, scaleUpTimeout },
    weightsBytes: presets.find(({ name }) => name === subject.metadata.labels?.['agent-platform.giantswarm.io/preset'])
      ?.weightsBytes,
  };
}
