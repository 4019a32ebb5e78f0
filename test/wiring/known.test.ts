import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import type { Observation, Source } from '../../src/live/source.ts';
import { watch } from '../../src/live/watch.ts';
import { watchKnown, watchState } from '../../src/wiring/kagent/known.ts';
import type { ModelConfig } from '../../src/wiring/kagent/modelConfig.ts';
import { createVersions } from '../../src/wiring/kagent/versions.ts';
import type { Known, WiringState } from '../../src/wiring/wiring.ts';
import { definition, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel } from './modelConfigs.ts';

/** Objects that are what a test says. */
function scripted() {
  const listeners = new Set<() => void>();
  let current: Observation<readonly ModelConfig[]> | undefined;
  let revision = 0;
  const source: Source<readonly ModelConfig[]> = {
    get current() {
      return current;
    },
    read: async () => current as Observation<readonly ModelConfig[]>,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    source,
    show(value: readonly ModelConfig[] | undefined, error?: GatewayError) {
      current = { revision: ++revision, observedAt: new Date(), value, error };
      for (const listener of listeners) listener();
    },
  };
}

const noVersions = {
  versions: () => assert.fail('nobody asks'),
  resources: () => assert.fail('nobody asks'),
};
const knownOf = (source: Source<readonly ModelConfig[]>) =>
  watchKnown(source, { versions: createVersions(noVersions, 'auto'), namespace: 'kagent', prefix: '' });

test('what agents know is computed from the objects, and is the same while that does not change', () => {
  const { source, show } = scripted();
  const known = knownOf(source);
  assert.equal(known.current === undefined, true, 'nothing was seen yet');
  const [a, b] = [modelConfig({ name: 'a', backend: 'ollama', model: 'm:a' }), modelConfig({ name: 'b' })];
  show([a, b]);
  const first = known.current?.value;
  assert.deepEqual(
    first?.refs.map(({ name }) => name),
    ['a', 'b'],
  );
  assert.equal(first?.of(ollamaModel('m:a')), first?.refs[0]);
  assert.equal(known.current?.value, first, 'computed once');

  // Kubernetes counts it as a change, and agents see none.
  show([{ ...a, metadata: { ...a.metadata, resourceVersion: '8' } }, structuredClone(b)]);
  assert.equal(known.current?.value, first);

  show([modelConfig({ name: 'a', backend: 'ollama', model: 'm:a', spec: { model: 'other' } }), b]);
  const second = known.current?.value;
  assert.notEqual(second, first);
  assert.equal(second?.refs[0]?.providerModel, 'other');
  assert.equal(second?.refs[1], first?.refs[1], 'the other one is the same');
  show([b]);
  assert.equal(known.current?.value?.of(ollamaModel('m:a')), undefined);
});

test('who listens is told of what agents see, and of nothing else', () => {
  const { source, show } = scripted();
  const known = knownOf(source);
  const a = modelConfig({ name: 'a', backend: 'ollama', model: 'm:a' });
  show([a]);
  let told = 0;
  const stop = known.subscribe(() => told++);
  const { revision = 0 } = known.current ?? {};
  show([{ ...a, metadata: { ...a.metadata, resourceVersion: '8' } }]);
  assert.deepEqual([told, known.current?.revision], [0, revision]);
  show([]);
  assert.equal(told, 1);
  assert.ok((known.current?.revision ?? 0) > revision);
  stop();
  show([a]);
  assert.equal(told, 1);
});

test('a failure stands beside what was last known', () => {
  const { source, show } = scripted();
  const known = knownOf(source);
  const failure = new GatewayError('unavailable', 'away');
  show(undefined, failure);
  assert.deepEqual([known.current?.value, known.current?.error], [undefined, failure]);
  const a = [modelConfig({ name: 'a' })];
  show(a);
  const { value } = known.current ?? {};
  assert.deepEqual([value?.refs.length, known.current?.error], [1, undefined]);
  show(a, failure);
  assert.equal(known.current?.value, value);
  assert.equal(known.current?.error, failure);
  show(a);
  assert.deepEqual([known.current?.value === value, known.current?.error], [true, undefined]);
});

test('a broken object costs its own row', () => {
  const { source, show } = scripted();
  const known = knownOf(source);
  const broken = [
    { metadata: { name: 'b1' } },
    { metadata: { name: 'b2', labels: 7, annotations: [1] }, spec: 'text', status: [] },
    { metadata: { name: 'b3' }, spec: { model: {}, openAI: 5 }, status: { conditions: [null, 5, { type: {} }] } },
  ] as unknown as ModelConfig[];
  show([...broken, modelConfig({ name: 'good', backend: 'ollama', model: 'm:a' })]);
  const { refs = [] } = known.current?.value ?? {};
  assert.deepEqual(
    refs.map(({ name, ready }) => [name, ready]),
    [
      ['b1', false],
      ['b2', false],
      ['b3', false],
      ['good', false],
    ],
  );
  for (const { message } of refs.slice(0, 3)) assert.match(message ?? '', /^malformed: /);
  assert.equal(known.current?.value?.of(ollamaModel('m:a'))?.name, 'good');
});

test('whether models can be wired', () => {
  const table: [GatewayError | undefined, WiringState][] = [
    [undefined, { available: true }],
    [new GatewayError('not_found', 'no kagent'), { available: false, reason: 'no kagent' }],
    [new GatewayError('forbidden', 'may not list'), { available: false, reason: 'may not list' }],
    [new GatewayError('unavailable', 'away'), { available: true, reason: 'away' }],
    [new GatewayError('unauthenticated', 'expired'), { available: true, reason: 'expired' }],
    [new GatewayError('rate_limited', 'too many'), { available: true, reason: 'too many' }],
  ];
  for (const [error, expected] of table) {
    const { source, show } = scripted();
    const state = watchState(source);
    show([], error);
    assert.deepEqual(state.current?.value, expected);
    const before = state.current?.value;
    show([modelConfig({ name: 'a' })], error);
    assert.equal(state.current?.value, before, 'the objects do not matter');
  }
});

/** The first state of a source that is as wanted. */
async function stateWhen<T>(source: Source<T>, isWanted: (state: Observation<T>) => boolean): Promise<Observation<T>> {
  const states = watch(source);
  try {
    for await (const state of states) if (isWanted(state)) return state;
    return assert.fail('it ended');
  } finally {
    await states.return();
  }
}

test('a write is read at once', async t => {
  const { kagent, callOf: calling } = await startLab(t);
  const read = async () => (await kagent.known.read(calling())).value as Known;
  t.after(kagent.known.subscribe(() => {}));
  assert.equal((await read()).of(lemonadeModel()), undefined);
  const ref = await kagent.wire(calling(), lemonadeModel());
  assert.deepEqual(kagent.known.current?.value?.of(lemonadeModel()), ref);
  await kagent.wire(calling(), lemonadeModel(), { passthrough: true });
  assert.equal(kagent.known.current?.value?.of(lemonadeModel())?.apiKeyPassthrough, true);
  await kagent.unwire(calling(), 'lemonade', 'qwen3-4b-FLM');
  assert.equal(kagent.known.current?.value?.of(lemonadeModel()), undefined);
});

test('what kagent makes of a ModelConfig is seen as it happens, without looking again', async t => {
  const { kagent, callOf: calling, cluster, asked } = await startLab(t);
  t.after(kagent.known.subscribe(() => {}));
  await kagent.known.read(calling());
  await kagent.wire(calling(), lemonadeModel());
  const say = (status: string, message: string) =>
    cluster.update<{ status: unknown }>('modelconfigs.kagent.dev', 'qwen3-4b-flm', 'kagent', object => {
      object.status = {
        conditions: [
          { type: 'Accepted', status: 'True', message: 'accepted' },
          { type: 'ResolvedRefs', status, message },
        ],
      };
    });
  const seen = (isWanted: boolean) =>
    stateWhen(kagent.known, ({ value }) => value?.of(lemonadeModel())?.ready === isWanted);
  asked();
  say('False', 'Secret kagent/qwen3-4b-flm-api-key not found');
  const missing = await stateWhen(
    kagent.known,
    ({ value }) => value?.of(lemonadeModel())?.message !== 'not yet reconciled',
  );
  const { ready, message } = missing.value?.of(lemonadeModel()) ?? {};
  assert.deepEqual([ready, message], [false, 'Secret kagent/qwen3-4b-flm-api-key not found']);
  say('True', 'resolved');
  assert.equal((await seen(true)).value?.of(lemonadeModel())?.message, 'accepted');
  assert.deepEqual(asked(), []);
});

test('kagent that is installed later is found', async t => {
  const { kagent, callOf: calling, cluster } = await startLab(t, { versions: [] });
  const { value } = await kagent.state.read(calling());
  assert.equal(value?.available, false);
  assert.match(value?.reason ?? '', /modelconfigs.kagent.dev .*not .*installed/);
  assert.match((await kagent.known.read(calling())).error?.message ?? '', /modelconfigs.kagent.dev/);
  cluster.put(definition(['v1alpha2']));
  const found = await stateWhen(kagent.state, state => state.value?.available === true);
  assert.deepEqual(found.value, { available: true });
  assert.equal(kagent.info.apiVersion, 'v1alpha2');
  await kagent.wire(calling(), ollamaModel());
  assert.equal((await kagent.known.read(calling())).value?.refs.length, 1);
});

test('kagent that is removed is missed', async t => {
  const { kagent, callOf: calling, cluster } = await startLab(t);
  assert.deepEqual((await kagent.state.read(calling())).value, { available: true });
  cluster.remove('CustomResourceDefinition', 'modelconfigs.kagent.dev');
  const missed = await stateWhen(kagent.state, state => state.value?.available === false);
  assert.match(missed.value?.reason ?? '', /not installed/);
});

test('what is forbidden is named, and available is what is allowed again', async t => {
  const { kagent, callOf: calling, cluster } = await startLab(t);
  const allow = cluster.fault({ kind: 'answer', status: 403, verb: 'list', resource: 'modelconfigs.kagent.dev' });
  const { value } = await kagent.state.read(calling());
  assert.equal(value?.available, false);
  assert.match(value?.reason ?? '', /^cannot list modelconfigs.kagent.dev in namespace kagent/);
  allow();
  await stateWhen(kagent.state, state => state.value?.available === true && state.value.reason === undefined);
});

test('nobody who does not listen is watched for', async t => {
  const { kagent, callOf: calling, asked } = await startLab(t);
  await kagent.wire(calling(), ollamaModel());
  assert.ok(asked().every(each => !each.startsWith('watch')));
});
