import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordOf } from '../../src/demo/cluster/store/object.ts';
import { objectsAt } from '../drivers/kserve/recordings.ts';
import { kubectlWith, skip } from '../support/kubectl.ts';
import {
  gpuPool,
  namespace,
  type PodEvent,
  pace,
  type ServedPod,
  service,
  startLab,
  stepOf,
  weights,
} from './servingLab.ts';

const ways = ['scheduling', 'downloadingWeights', 'pullingImage', 'loading', 'routing', 'ready'];

test('what somebody serves comes up step by step, and each takes its time', async t => {
  const { cluster, told, phases, object, content, log, reasons, pods } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  assert.deepEqual([stepOf(told('nova'), 'scheduling')?.message, pods('nova')], ['waiting for the predictor pod', []]);
  assert.deepEqual(await phases('nova', 'ready'), ways);
  const { steps, node, status } = told('nova');
  assert.deepEqual([status, node], ['Ready', 'gpu-l4-a']);
  const took = steps.map(({ name, since, finishedAt }) => [name, (Number(finishedAt) - Number(since)) / 1000]);
  assert.deepEqual(took, [
    ['scheduling', 0],
    ['nodeStarting', 0],
    ['downloadingWeights', weights / pace.bytesPerSecond],
    ['pullingImage', 6],
    ['loading', 5],
    ['routing', (pace.controllerMs + pace.routeMs) / 1000],
    ['ready', 0],
  ]);
  assert.equal(stepOf(told('nova'), 'downloadingWeights')?.cached, false);
  assert.deepEqual(
    [content('nova')?.bytes, content('nova')?.files, content('nova')?.hasModel, content('nova')?.marker],
    [weights, 2, true, undefined],
  );
  const { url, addresses } = recordOf(object('nova')?.status);
  const address = `https://models.example.com/${namespace}/nova`;
  assert.deepEqual([url, addresses], [address, [{ url: address }]]);
  assert.match(await log('nova', 'storage-initializer'), /^Initializing.*\nSuccessfully copied hf:\/\/acme\/nova/);
  assert.match(await log('nova', 'main'), /Starting to load model[\s\S]*Application startup complete/);
  const said = reasons('nova');
  assert.deepEqual(
    said.filter(reason => ['Scheduled', 'Pulling', 'Unhealthy'].includes(reason)),
    ['Scheduled', 'Pulling', 'Unhealthy'],
  );
});

test('while weights come, the cache has that much of them', async t => {
  const { cluster, clock, content, told } = await startLab(t);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await clock.advance(pace.controllerMs + pace.startMs + 7_000);
  assert.equal(content('nova')?.bytes, 7_000_000);
  assert.equal(stepOf(told('nova'), 'downloadingWeights')?.state, 'inProgress');
});

/** Every path that an object has, with places in lists as one: `status.conditions.Ready.reason`. */
function pathsOf(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(each => pathsOf(each, `${prefix}.${recordOf(each).type ?? recordOf(each).name ?? ''}`));
  }
  const fields = Object.entries(recordOf(value));
  if (fields.length === 0) return [prefix];
  return fields.flatMap(([name, each]) => pathsOf(each, prefix ? `${prefix}.${name}` : name));
}

/** Instants as a real cluster has them, and the phase that each is in. */
const instants = [
  ['02-unschedulable', 'scheduling'],
  ['07-downloading', 'downloadingWeights'],
  ['08-pulling', 'pullingImage'],
  ['09-loading', 'loading'],
  ['10-routing', 'routing'],
  ['11-ready', 'ready'],
] as const;

test('at every stage objects have what those of a real cluster have', async t => {
  const { cluster, clock, phases, pods, object, events } = await startLab(t);
  const node = cluster.get<{ status: object }>('nodes', 'gpu-l4-a');
  cluster.update<{ status: object }>('nodes', 'gpu-l4-a', undefined, each => {
    each.status = { ...each.status, allocatable: { cpu: '8' } };
  });
  cluster.put(service({ name: 'nova-4b', nodeSelector: { ...gpuPool, 'kubernetes.io/hostname': 'gpu-l4-a' } }));
  for (const [file, phase] of instants) {
    if (phase === 'downloadingWeights') {
      cluster.update<{ status: unknown }>('nodes', 'gpu-l4-a', undefined, each => {
        each.status = node?.status;
      });
    }
    await phases('nova-4b', phase);
    // So far into it that all of it was said.
    await clock.advance(2_500);
    const real = objectsAt('serve-from-zero', file) as readonly unknown[] as readonly PodEvent[];
    const of = (kind: string) => real.filter(each => each.kind === kind);
    const [pod] = pods('nova-4b');
    const has = new Set(pathsOf({ metadata: pod?.metadata, spec: pod?.spec, status: pod?.status }));
    const [realPod] = of('Pod');
    const ignored = /chatTemplate|containers\.main\.args|env\.|limits\.memory|nodeSelector/;
    const missing = (paths: readonly string[], there: ReadonlySet<string>) =>
      paths.filter(path => !ignored.test(path) && !there.has(path));
    assert.deepEqual(
      missing(pathsOf(realPod), has).filter(path => !/^(apiVersion|kind)$/.test(path)),
      [],
      `pod of ${file}`,
    );
    const conditions = (value: unknown) => pathsOf(recordOf(value).status).sort();
    assert.deepEqual(conditions(object('nova-4b')), conditions(of('LLMInferenceService')[0]), `object of ${file}`);
    for (const event of of('Event').filter(({ reason }) => reason !== 'Nominated')) {
      const ours = events('nova-4b').find(({ reason, involvedObject }) => {
        return reason === event.reason && involvedObject.fieldPath === recordOf(event.involvedObject).fieldPath;
      });
      assert.ok(ours, `${event.reason} of ${file}`);
      assert.deepEqual(missing(pathsOf(event), new Set(pathsOf(ours))), [], `${event.reason} of ${file}`);
    }
  }
});

test('weights that are there, and an image that is, are not fetched again', async t => {
  const directory = { dir: 'nova', bytes: weights, files: 2, mtime: 0, hasModel: true };
  const { cluster, clock, told, phases, events } = await startLab(t, { content: [directory] });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'ready');
  const first = stepOf(told('nova'), 'downloadingWeights');
  assert.deepEqual([first?.cached, Number(first?.finishedAt) - Number(first?.since)], [true, pace.cachedMs]);
  cluster.remove('llminferenceservices.serving.kserve.io', 'nova', namespace, { propagationPolicy: 'Foreground' });
  await clock.advance(10_000);
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'ready');
  const pulled = events('nova').find(
    ({ reason, involvedObject }) => reason === 'Pulled' && involvedObject.fieldPath === 'spec.containers{main}',
  );
  assert.match(pulled?.message ?? '', /already present on machine$/);
});

test('a model image is pulled and nothing downloaded, and a model without GPUs is on a node without', async t => {
  const { cluster, phases, pods, told, content } = await startLab(t);
  cluster.put(service({ name: 'lyra', uri: 'oci://registry.example.com/models/lyra:1', nodeSelector: gpuPool }));
  cluster.put(service({ name: 'pico', gpus: 0 }));
  assert.deepEqual(
    await phases('lyra', 'ready'),
    ways.filter(way => way !== 'downloadingWeights'),
  );
  const names = (all: ServedPod['spec']['containers'] = []) => all.map(({ name }) => name);
  const [lyra] = pods('lyra');
  assert.deepEqual(
    [names(lyra?.spec.initContainers), names(lyra?.spec.containers), content('lyra')],
    [['modelcar-init'], ['main', 'modelcar'], undefined],
  );
  await phases('pico', 'ready');
  assert.equal(told('pico').node, 'worker-a');
});

test('kubectl shows it', { skip }, async t => {
  const { cluster, phases } = await startLab(t, { tls: true });
  await using kubectl = await kubectlWith(cluster.kubeconfig());
  await kubectl.ok(['apply', '-f', '-'], service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'ready');
  const listed = await kubectl.ok(['-n', namespace, 'get', 'llminferenceservices']);
  assert.match(
    listed,
    /^NAME +URL +READY +REASON +AGE\nnova +https:\/\/models\.example\.com\/model-serving\/nova +True/,
  );
  const pods = await kubectl.ok(['-n', namespace, 'get', 'pods']);
  assert.match(pods, /^nova-kserve-[a-z0-9]{10}-[a-z0-9]{5} +1\/1 +Running +0 /m);
  const events = await kubectl.ok(['-n', namespace, 'get', 'events']);
  assert.match(events, /Warning +Unhealthy +pod\/nova-kserve\S+ +Startup probe failed: Get "http:\/\/10\./);
  const described = await kubectl.ok(['-n', namespace, 'describe', 'pods']);
  assert.match(described, /Successfully pulled image "ghcr\.io\/llm-d\/llm-d-cuda:v0\.4\.0" in 6s/);
});
