import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../src/call.ts';
import { unavailable } from '../../src/errors.ts';
import { createVersions } from '../../src/wiring/kagent/versions.ts';
import { callOf, mockTime } from '../live/clock.ts';
import { silent } from '../support/gateway.ts';
import { definition, startLab } from './lab.ts';
import { ollamaModel } from './modelConfigs.ts';

/** Discovery that says what a test tells it: by version whether it has ModelConfigs, the preferred one first. */
function scripted(served: Readonly<Record<string, boolean>> | undefined) {
  const script = { served, asked: 0, fails: false, resourcesFail: false, hold: undefined as Promise<void> | undefined };
  return {
    script,
    async versions() {
      script.asked++;
      await script.hold;
      if (script.fails) throw unavailable('no');
      return script.served && { group: 'kagent.dev', versions: Object.keys(script.served) };
    },
    async resources(_call: unknown, _group: string, version: string) {
      if (script.resourcesFail) throw unavailable('no');
      return script.served?.[version] ? ['agents', 'modelconfigs'] : ['agents'];
    },
  };
}

test('auto is the preferred version that has ModelConfigs, or the first other that has', async () => {
  const table: [served: Readonly<Record<string, boolean>> | undefined, version: string][] = [
    [{ v1alpha3: true, v1alpha2: true }, 'v1alpha3'],
    [{ v1alpha2: true, v1alpha3: true }, 'v1alpha2'],
    [{ v1: false, v1alpha2: true, v1alpha3: true }, 'v1alpha2'],
    [{ v1: false, v1beta1: false }, 'v1alpha3'],
    [{}, 'v1alpha3'],
    [undefined, 'v1alpha3'],
  ];
  for (const [served, version] of table)
    assert.equal((await createVersions(scripted(served), 'auto').find(callOf())).version, version);
});

test('a given version is used without asking', async () => {
  const client = scripted({ v1alpha3: true });
  const versions = createVersions(client, 'v1alpha2');
  assert.equal(versions.current.version, 'v1alpha2');
  assert.equal((await versions.find(callOf())).version, 'v1alpha2');
  versions.outdated();
  assert.equal((await versions.locate(callOf())).version, 'v1alpha2');
  assert.equal(client.script.asked, 0);
});

test('it is asked on first use, after a minute, and after it was not there', async t => {
  const time = mockTime(t);
  const client = scripted({ v1alpha2: true });
  const versions = createVersions(client, 'auto');
  const found = async () => [(await versions.find(callOf())).version, client.script.asked];
  assert.equal(client.script.asked, 0);
  assert.deepEqual(await found(), ['v1alpha2', 1]);
  client.script.served = { v1alpha3: true };
  await time.pass(59_999);
  assert.deepEqual(await found(), ['v1alpha2', 1]);
  await time.pass(1);
  assert.deepEqual(await found(), ['v1alpha3', 2]);
  client.script.served = { v1alpha2: true };
  versions.outdated();
  assert.deepEqual(await found(), ['v1alpha2', 3]);
  client.script.served = { v1alpha3: true };
  assert.equal((await versions.locate(callOf())).version, 'v1alpha3', 'who locates it was told that it is not there');
});

test('while it cannot be asked for, what was known stands', async t => {
  const time = mockTime(t);
  for (const failure of ['fails', 'resourcesFail'] as const) {
    const client = scripted({ v1alpha2: true });
    client.script[failure] = true;
    const versions = createVersions(client, 'auto');
    const found = async () => [(await versions.find(callOf())).version, client.script.asked];
    assert.deepEqual(await found(), ['v1alpha3', 1]);
    assert.deepEqual(await found(), ['v1alpha3', 1]);
    client.script[failure] = false;
    versions.outdated();
    assert.deepEqual(await found(), ['v1alpha2', 2]);
    client.script[failure] = true;
    await time.pass(60_000);
    assert.deepEqual(await found(), ['v1alpha2', 3]);
    client.script[failure] = false;
    client.script.served = undefined;
    await time.pass(60_000);
    assert.deepEqual(await found(), ['v1alpha2', 4]);
  }
});

test('many who need it at once ask once, and one that leaves takes nothing from the others', async () => {
  const client = scripted({ v1alpha2: true });
  const held = Promise.withResolvers<void>();
  client.script.hold = held.promise;
  const versions = createVersions(client, 'auto');
  const leaving = new AbortController();
  const left = versions.find(createCall({ log: silent, signal: leaving.signal }));
  const others = [versions.find(callOf()), versions.find(callOf()), versions.find(callOf())];
  const rejected = assert.rejects(left, { name: 'AbortError' });
  leaving.abort();
  await rejected;
  client.script.fails = true;
  held.resolve();
  client.script.hold = Promise.resolve().then(() => {
    client.script.fails = false;
  });
  assert.deepEqual(
    (await Promise.all(others)).map(({ version }) => version),
    ['v1alpha2', 'v1alpha2', 'v1alpha2'],
  );
  assert.ok(client.script.asked <= 2, `${client.script.asked}`);
});

test('a cluster that moves to another version is followed at the next request', async t => {
  const { kagent, callOf: calling, cluster, modelConfigs } = await startLab(t, { versions: ['v1alpha3'] });
  assert.equal((await kagent.wire(calling(), ollamaModel('a:1'))).apiVersion, 'kagent.dev/v1alpha3');
  assert.equal(kagent.info.apiVersion, 'v1alpha3');
  cluster.put(definition(['v1alpha2']));
  assert.equal((await kagent.wire(calling(), ollamaModel('b:1'))).apiVersion, 'kagent.dev/v1alpha2');
  assert.equal(kagent.info.apiVersion, 'v1alpha2');
  cluster.put(definition(['v1alpha3']));
  await kagent.unwire(calling(), 'ollama', 'a:1');
  assert.deepEqual(modelConfigs(), ['b-1']);
  assert.deepEqual(await kagent.wiredOn(calling(), 'ollama'), ['b:1']);
});

test('the given version is what is spoken, whatever is preferred', async t => {
  const { kagent, callOf: calling, asked } = await startLab(t, { apiVersion: 'v1alpha2' });
  assert.equal((await kagent.wire(calling(), ollamaModel())).apiVersion, 'kagent.dev/v1alpha2');
  assert.deepEqual(kagent.info, { namespace: 'kagent', apiVersion: 'v1alpha2', autoWire: true });
  assert.deepEqual(asked(), ['list modelconfigs.kagent.dev', 'create modelconfigs.kagent.dev']);
});
