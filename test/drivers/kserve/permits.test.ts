import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import type { ActedOn, ModelAction } from '../../../src/drivers/driver.ts';
import { needsOf } from '../../../src/kubernetes/permissions.ts';
import { silent } from '../../support/gateway.ts';
import { failure } from '../scripted.ts';
import { type DriverLab, nova, served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const model = { name: nova, preset: 'nova-4b', path: 'nova-4b' };

const permit = async ({ driver }: DriverLab, action: ModelAction, of?: ActedOn) =>
  (await driver.permit?.(tenSeconds(), action, of)) ?? assert.fail('it says nothing');

/** The verdict, and that the action itself is refused with the same words. */
async function refusedAlike(lab: DriverLab, action: ModelAction, of: ActedOn, act: () => Promise<unknown> | undefined) {
  const { allowed, reason } = await permit(lab, action, of);
  assert.equal(allowed, false, `${action} ${of.name}`);
  assert.equal(reason, (await failure(act() as Promise<unknown>)).message);
  return reason;
}

test('what is served can be unloaded and not deleted; what is not, the other way about', async () => {
  await using idle = await startDriver();
  assert.match(
    (await refusedAlike(idle, 'unload', model, () => idle.driver.planUnserve?.(tenSeconds(), nova))) ?? '',
    /no LLMInferenceService serves/,
  );
  for (const action of ['pull', 'load', 'delete'] as const)
    assert.deepEqual(await permit(idle, action, model), { allowed: true }, action);

  await using busy = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
  assert.deepEqual(await permit(busy, 'unload', model), { allowed: true });
  assert.match(
    (await permit(busy, 'delete', model)).reason ?? '',
    /is served by LLMInferenceService nova-4b; unload it/,
  );
});

test("somebody's own object is in the way of a load and an unload, in the words of both", async () => {
  const [object, pod] = served('nova-4b', node) as { metadata: object }[];
  const own = { ...object, metadata: { ...object?.metadata, labels: { 'app.kubernetes.io/managed-by': 'Helm' } } };
  await using lab = await startDriver({ objects: worldOf({ more: [own, pod as object] }) });
  await refusedAlike(lab, 'load', model, () => lab.driver.planServe?.(tenSeconds(), { model: nova }));
  await refusedAlike(lab, 'unload', model, () => lab.driver.planUnserve?.(tenSeconds(), nova));
});

test('what no preset serves cannot be loaded, and an image of the platform not be pulled', async () => {
  await using lab = await startDriver();
  const other = { name: 'acme-labs/Other' };
  assert.match((await permit(lab, 'load', other)).reason ?? '', /no serving preset serves acme-labs\/Other/);
  const { presets } = lab.driver;
  const image = (await presets?.(tenSeconds()))?.find(({ storageUri }) => storageUri?.startsWith('oci://'));
  const brought = { name: image?.model ?? '', preset: image?.name };
  const pull = () => lab.driver.planPull?.(tenSeconds(), { model: brought.name, preset: brought.preset });
  await refusedAlike(lab, 'pull', brought, pull);
  assert.deepEqual(await permit(lab, 'load', brought), { allowed: true });
});

test('two people are told what each of them may do', async () => {
  const jane = { rules: [{ verbs: ['get', 'create'], apiGroups: ['serving.kserve.io'], resources: ['*'] }] };
  await using lab = await startDriver({ users: { jane, john: {} }, user: 'admin' });
  const may = async (name: string) => {
    const caller = { name, anonymous: false, scope: name, token: () => lab.cluster.tokenOf(name) };
    return (await lab.driver.permit?.(createCall({ log: silent, caller, timeoutMs: 10_000 }), 'load', model))?.allowed;
  };
  assert.deepEqual([await may('jane'), await may('john'), await may('jane')], [true, false, true]);
});

test('the rights are asked of the API server that the backend is on, as the one who calls', async () => {
  const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }];
  await using lab = await startDriver({ users: { gateway: { rules } }, user: 'gateway' });
  for (const action of ['load', 'pull'] as const) {
    const { allowed, reason } = await permit(lab, action);
    assert.equal(allowed, false);
    const lacking = needsOf(action).find(({ verb }) => verb === 'create');
    assert.match(reason ?? '', new RegExp(`^cannot create ${lacking?.resource}[a-z.]* in namespace model-serving: `));
  }
});
