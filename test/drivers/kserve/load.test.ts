import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServePlan } from '../../../src/drivers/driver.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { failure } from '../scripted.ts';
import {
  type DriverLab,
  nova,
  novaOnHub,
  scriptedHub,
  served,
  startDriver,
  tenSeconds,
  weighing,
  worldOf,
} from './driverLab.ts';
import { clusterNodes, objectsOf } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const services = 'llminferenceservices.serving.kserve.io';
const ours = { 'app.kubernetes.io/managed-by': 'model-manager', 'agent-platform.giantswarm.io/preset': 'nova-4b' };

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape
type Any = any;

const made = ({ cluster }: DriverLab) => cluster.list<Any>(services, 'model-serving');
/** The same where the API may not be there at all. */
const countMade = (lab: DriverLab) =>
  lab.cluster.get('customresourcedefinitions.apiextensions.k8s.io', services) ? made(lab).length : 0;
const plan = async ({ driver }: DriverLab, request: object, call = tenSeconds()) =>
  (await driver.planServe?.(call, request)) as ServePlan;
const load = async (lab: DriverLab, request: object) => {
  const planned = await plan(lab, request);
  return lab.driver.serve?.(tenSeconds(), planned);
};

/** How a plan is refused; nothing is created, and nothing else is written. */
async function refusal(lab: DriverLab, request: object) {
  const before = countMade(lab);
  const { code, message, details } = (await failure(plan(lab, request))) as GatewayError;
  assert.equal(countMade(lab), before);
  assert.deepEqual(lab.requested(services, 'create'), []);
  return { code, message, details };
}

/** The object of a name, with other labels or more of everything. */
function standing(name: string, labels: object, more: object = {}) {
  const [object, pod] = served(name, node, more) as Any[];
  return [{ ...object, metadata: { ...object.metadata, labels } }, pod];
}

const withoutKind = (objects: readonly object[], kind: string) => objects.filter((each: Any) => each.kind !== kind);

test('a preset is created as it is composed, listed at once, and takes its memory from the next', async () => {
  await using lab = await startDriver();
  const planned = await plan(lab, { model: nova });
  assert.equal(planned.preset, 'nova-4b');
  assert.deepEqual([planned.model.name, planned.model.preset, planned.fit.fits], [nova, 'nova-4b', true]);
  assert.equal(planned.serving, undefined);
  assert.equal(planned.access.object, 'nova-4b');
  assert.deepEqual(made(lab), [], 'a plan is but a plan');

  const running = await lab.driver.serve?.(tenSeconds(), planned);
  const [object] = made(lab);
  assert.equal(object.metadata.name, 'nova-4b');
  assert.equal(object.metadata.labels['app.kubernetes.io/managed-by'], 'model-manager');
  assert.equal(object.spec.template.nodeSelector?.['kubernetes.io/hostname'], undefined);
  assert.equal(object.metadata.managedFields?.[0]?.manager ?? 'model-manager', 'model-manager');
  assert.deepEqual(
    [running?.name, running?.status, running?.resource, running?.kind, running?.phase, running?.managedBy],
    [nova, 'Pending', 'nova-4b', 'LLMInferenceService', 'scheduling', 'model-manager'],
  );
  assert.equal(running?.steps?.length, 7);
  assert.deepEqual(
    (await lab.driver.loaded?.(tenSeconds()))?.map(({ resource }) => resource),
    ['nova-4b'],
  );
});

test('only a node that the request names is the one it is bound to', async () => {
  await using lab = await startDriver();
  const { fit } = await plan(lab, { preset: 'nova-4b' });
  await load(lab, { preset: 'nova-4b', node: fit.node });
  assert.equal(made(lab)[0].spec.template.nodeSelector['kubernetes.io/hostname'], fit.node);
});

test('without anything that is named nothing is asked', async () => {
  await using lab = await startDriver();
  assert.deepEqual(await refusal(lab, {}), {
    code: 'invalid_request',
    message: 'invalid request: model or preset is required',
    details: undefined,
  });
});

const installHint = 'install the llm-d control plane — the platform';
const landingHint = "the serving layer's discovery document is published, so its slice is most likely still landing";

test('where the API is not served a load is refused before the Hub is asked', async () => {
  for (const [discovery, hint] of [
    [[], installHint],
    [objectsOf('cluster/discovery.yaml'), landingHint],
  ] as const) {
    const { hub, asked } = scriptedHub(novaOnHub);
    const objects = withoutKind(
      withoutKind(worldOf({ discovery }), 'CustomResourceDefinition'),
      'LLMInferenceServiceConfig',
    );
    await using lab = await startDriver({ objects, hub });
    const { code, message } = await refusal(lab, { model: nova });
    assert.equal(code, 'unavailable');
    assert.ok(
      message.startsWith(
        `backend unavailable: the LLMInferenceService API (serving.kserve.io/v1alpha2) is not served on this cluster; ${hint}`,
      ),
      message,
    );
    assert.match(message, /kserve-llmisvc-crd, kserve-llmisvc-resources and kserve-runtime-configs components/);
    assert.deepEqual(asked, []);
  }
});

test('without its controller, too; and as soon as it is there the load goes on, whatever was seen before', async () => {
  const objects = withoutKind(worldOf(), 'LLMInferenceServiceConfig');
  const { hub, asked } = scriptedHub(novaOnHub);
  await using lab = await startDriver({ objects, hub });
  const { code, message } = await refusal(lab, { model: nova });
  assert.equal(code, 'unavailable');
  assert.ok(
    message.startsWith(
      'backend unavailable: the LLMInferenceService API is served but the llm-d controller is not installed: no LLMInferenceServiceConfig kserve-config-llm-template in any namespace, so nothing would reconcile a created object; the serving layer',
    ),
    message,
  );
  assert.deepEqual(asked, []);
  const thaw = lab.cluster.freezeWatches();
  for (const object of objectsOf('cluster/control-plane.yaml')) lab.cluster.put(object as Any);
  assert.equal((await plan(lab, { model: nova })).preset, 'nova-4b');
  thaw();
});

test('where it cannot be told, that is why', async () => {
  await using lab = await startDriver({
    users: { gateway: { rules: [{ apiGroups: ['', 'batch'], resources: ['*'], verbs: ['*'] }] } },
    user: 'gateway',
  });
  const { code, message } = await refusal(lab, { model: nova });
  assert.equal(code, 'unavailable');
  assert.match(
    message,
    /^backend unavailable: cannot tell whether the llm-d control plane serves this cluster: cannot list llminferenceserviceconfigs.+; the driver needs to read the serving\.kserve\.io\/v1alpha2 API and list llminferenceserviceconfigs cluster-wide$/,
  );
});

test('the preset has to be known, and one', async () => {
  const hub = scriptedHub({ ...novaOnHub, 'acme-labs/Plain': weighing('acme-labs/Plain', 1_000) }).hub;
  const [twin] = objectsOf('cluster/preset-nova-4b.yaml') as Any[];
  const other = {
    ...twin,
    metadata: { ...twin.metadata, name: 'twin' },
    data: { 'preset.yaml': twin.data['preset.yaml'].replace('name: nova-4b', 'name: nova-4b-twin') },
  };
  await using lab = await startDriver({ hub, objects: worldOf({ more: [other] }) });
  const table: [request: object, refused: string][] = [
    [
      { model: 'acme-labs/Plain' },
      'invalid_request: invalid request: no serving preset serves acme-labs/Plain; presets are curated in the platform chart (components.modelServing.presets)',
    ],
    [
      { model: nova },
      `invalid_request: invalid request: 2 presets serve ${nova} (nova-4b, nova-4b-twin); pass preset to choose one`,
    ],
    [
      { preset: 'nope' },
      'not_found: model not found: preset "nope" not found (available: atlas-70b-x4, lyra-20b-oci, nova-4b, nova-4b-twin, pico-1b-cpu)',
    ],
    [
      { model: 'acme-labs/Plain', preset: 'nova-4b' },
      `invalid_request: invalid request: preset "nova-4b" serves ${nova}, not acme-labs/Plain`,
    ],
  ];
  for (const [request, refused] of table) {
    const { code, message } = await refusal(lab, request);
    assert.equal(`${code}: ${message}`, refused);
  }
  assert.equal((await plan(lab, { model: nova, preset: 'nova-4b-twin' })).preset, 'nova-4b-twin');
});

test('what does not fit what running models leave is refused with the whole fit', async () => {
  const hub = scriptedHub({ [nova]: weighing(nova, 900_000_000_000) }).hub;
  await using lab = await startDriver({ hub });
  const { code, message, details } = await refusal(lab, { model: nova });
  const fit = details?.fit as Any;
  assert.deepEqual([code, message], ['does_not_fit', `model does not fit: ${fit.reason}`]);
  assert.deepEqual([fit.fits, fit.model, fit.preset], [false, nova, 'nova-4b']);
  const ineligible = await refusal(lab, { model: nova, node: 'nope' });
  assert.equal(ineligible.code, 'does_not_fit');
});

test('memory that a served model has reserved is not there for the next, though a check of the fit does not mind', async () => {
  const [atlas] = objectsOf('cluster/preset-nova-4b.yaml') as Any[];
  const big = {
    ...atlas,
    metadata: { ...atlas.metadata, name: 'big' },
    data: { 'preset.yaml': atlas.data['preset.yaml'].replace('name: nova-4b', 'name: nova-4b-big') },
  };
  const only = clusterNodes.filter(({ metadata }) => metadata.name === node);
  await using lab = await startDriver({ objects: worldOf({ nodes: only, more: [big, ...served('nova-4b', node)] }) });
  const request = { preset: 'nova-4b-big' };
  const { code, message } = await refusal(lab, request);
  assert.equal(code, 'does_not_fit');
  assert.match(message, /reserved by running models/);
  assert.equal((await lab.driver.checkFit?.(tenSeconds(), request))?.fits, true);
});

test('what is served already is left as it is, also when it would not fit now', async () => {
  const status = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  for (const labels of [ours, { 'agent-platform.giantswarm.io/preset': 'nova-4b' }]) {
    const hub = scriptedHub({ [nova]: weighing(nova, 900_000_000_000) }).hub;
    await using lab = await startDriver({ hub, objects: worldOf({ more: standing('nova-4b', labels, status) }) });
    const planned = await plan(lab, { model: nova });

    assert.deepEqual([planned.fit.fits, planned.manifests, planned.serving?.status], [false, [], 'Ready']);
    const running = await lab.driver.serve?.(tenSeconds(), planned);
    assert.equal(running?.resource, 'nova-4b');
    for (const verb of ['create', 'update', 'patch', 'delete']) assert.deepEqual(lab.requested(services, verb), []);
  }
});

test("an object of that name that is another model's, somebody's own, or going, is in the way", async () => {
  const other = { spec: { model: { name: 'acme-labs/Other', uri: 'hf://acme-labs/Other' } } };
  const table: [more: Any[], message: string][] = [
    [standing('nova-4b', ours, other), 'exists (model acme-labs/Other, managed by "model-manager")'],
    [standing('nova-4b', { 'app.kubernetes.io/managed-by': 'Helm' }), `exists (model ${nova}, managed by "Helm")`],
    [standing('nova-4b', {}), `exists (model ${nova}, managed by "")`],
  ];
  for (const [more, message] of table) {
    await using lab = await startDriver({ objects: worldOf({ more }) });
    const refused = await refusal(lab, { model: nova });
    assert.deepEqual(
      [refused.code, refused.message],
      ['conflict', `conflict: LLMInferenceService model-serving/nova-4b ${message}`],
    );
  }
});

test('an object that is going is in the way, too', async () => {
  const [object, pod] = standing('nova-4b', ours) as Any[];
  const held = { ...object, metadata: { ...object.metadata, finalizers: ['example.com/held'] } };
  await using lab = await startDriver({ objects: worldOf({ more: [held, pod] }) });
  lab.cluster.remove(services, 'nova-4b', 'model-serving');
  const { code, message } = await refusal(lab, { model: nova });
  assert.equal(
    `${code}: ${message}`,
    `conflict: conflict: LLMInferenceService model-serving/nova-4b is still being deleted (model ${nova}); load it when it is gone`,
  );
});

test('who is overtaken takes what is there for its own, if it may', async () => {
  await using lab = await startDriver();
  const [one, other, third] = [
    await plan(lab, { model: nova }),
    await plan(lab, { model: nova }),
    await plan(lab, { model: nova }),
  ];
  await lab.driver.serve?.(tenSeconds(), one);
  const running = await lab.driver.serve?.(tenSeconds(), other);
  assert.deepEqual([running?.resource, running?.managedBy, made(lab).length], ['nova-4b', 'model-manager', 1]);
  lab.cluster.update<Any>(services, 'nova-4b', 'model-serving', object => {
    object.metadata.labels = { 'app.kubernetes.io/managed-by': 'Helm' };
  });
  const { code, message } = await failure(lab.driver.serve?.(tenSeconds(), third) as Promise<unknown>);
  assert.equal(
    `${code}: ${message}`,
    `conflict: conflict: LLMInferenceService model-serving/nova-4b exists (model ${nova}, managed by "Helm")`,
  );
});

test('when the API server refuses the object, so is the load', async () => {
  await using lab = await startDriver();
  const planned = await plan(lab, { model: nova });
  lab.cluster.fault({ kind: 'answer', status: 403, verb: 'create', resource: services });
  const { code } = await failure(lab.driver.serve?.(tenSeconds(), planned) as Promise<unknown>);
  assert.equal(code, 'forbidden');
  assert.deepEqual(made(lab), []);
});
