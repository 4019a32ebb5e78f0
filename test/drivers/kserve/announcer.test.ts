/** What is written at served objects, and what is left out: by a client that keeps what it is given. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { type Caller, createCall } from '../../../src/call.ts';
import type { Step } from '../../../src/domain.ts';
import type { Announced } from '../../../src/drivers/kserve/serving/announcer/announcement.ts';
import { type AnnouncerOptions, createAnnouncer, mostInMinute } from '../../../src/drivers/kserve/serving/announcer.ts';
import { GatewayError } from '../../../src/errors.ts';
import { requestsBeyond, rulesOf } from '../../support/permitted.ts';
import { eventually, turn } from '../../support/server.ts';
import { served, startDriver, worldOf } from './driverLab.ts';
import { clusterNodes } from './world.ts';

const began = Date.parse('2026-10-05T08:00:00Z');

interface Written {
  readonly verb: 'create' | 'patch';
  readonly caller: string;
  // biome-ignore lint/suspicious/noExplicitAny: an Event or a part of one
  readonly body: any;
}

/** An announcer whose clock and API server the test plays. */
function lab({ caller }: { readonly caller?: Caller } = {}) {
  const written: Written[] = [];
  const logged: string[] = [];
  const world = { now: began, refusal: undefined as GatewayError | undefined };
  const log = pino({ level: 'debug' }, { write: line => logged.push(JSON.parse(line).msg) });
  async function answer(verb: Written['verb'], who: Caller, body: object) {
    written.push({ verb, caller: who.name, body });
    if (world.refusal) throw world.refusal;
    return body as never;
  }
  const client: AnnouncerOptions['client'] = {
    now: () => world.now,
    create: (call, _resource, object) => answer('create', call.caller, object),
    patch: (call, _resource, _name, _namespace, patch) => answer('patch', call.caller, patch),
  };
  const announce = createAnnouncer({ client, call: createCall({ log, ...(caller && { caller }) }) });
  const say = (serve: Partial<Announced & { isWhole: boolean }>, name = 'nova-4b') => {
    const usual = { ...at('loading'), uid: `uid of ${name}`, pod: 'a pod', deaths: 0, isWhole: true };
    announce({ namespace: 'model-serving', serves: new Map([[name, { ...usual, ...serve }]]) });
  };
  return { world, written, logged, say, reasons: () => written.map(({ body }) => body.reason) };
}

/** A serve at a phase that began so many seconds after the test. */
function at(name: Step['name'], seconds = 0, more: Partial<Step> = {}): Pick<Announced, 'timeline'> {
  const step: Step = { name, state: 'inProgress', since: new Date(began + seconds * 1_000), ...more };
  return { timeline: { phase: step.state === 'failed' ? 'failed' : name, steps: [step] } };
}

const crashed = (deaths: number) => ({
  ...at('loading', 0, { state: 'failed', reason: 'CrashLoopBackOff', message: `runtime crashed ${deaths}×` }),
  deaths,
});

/** Until all that was given to be written has been tried. */
const settled = async () => {
  for (let turns = 0; turns < 50; turns++) await turn();
};

test('what stays the same is said once, whatever else changes', async () => {
  const { say, reasons } = lab();
  say(at('loading', 0, { message: 'a' }));
  say(at('loading', 0, { message: 'b' }));
  say(at('loading', 5));
  say(at('ready', 9, { state: 'done' }));
  await settled();
  assert.deepEqual(reasons(), ['Loading', 'Ready']);
});

test('a flood leaves a bounded number of Events a minute for each object, and goes on after it', async () => {
  const { say, reasons, world } = lab();
  for (let second = 0; second < 59; second++) {
    world.now = began + second * 1_000;
    say(at(second % 2 ? 'loading' : 'routing', second));
    say(crashed(second));
  }
  await settled();
  assert.equal(reasons().length, mostInMinute);
  world.now = began + 120_000;
  say(at('ready', 120, { state: 'done' }));
  await settled();
  assert.equal(reasons().length, mostInMinute + 1);
  assert.equal(reasons().at(-1), 'Ready');
});

test('many objects that change while nothing is written leave a bounded number to write', async () => {
  const { say, written } = lab();
  for (let each = 0; each < 1_000; each++) say(at('loading'), `model-${each}`);
  await eventually(() => written.length > 0, 'a write');
  await settled();
  await settled();
  await settled();
  assert.ok(written.length <= 200, String(written.length));
});

test('who may not write Events is not asked again for a while, and it is logged once', async () => {
  const { say, written, logged, world } = lab();
  world.refusal = new GatewayError('forbidden', 'cannot create events');
  say(at('loading'));
  await settled();
  say(at('routing', 1));
  say(crashed(1));
  await settled();
  assert.equal(written.length, 1);
  world.now += 11 * 60_000;
  say(at('routing', 660));
  await settled();
  assert.equal(written.length, 2);
  assert.deepEqual(logged, ['Events of served models cannot be written']);
  world.now += 11 * 60_000;
  world.refusal = undefined;
  say(at('ready', 1_320, { state: 'done' }));
  await settled();
  assert.equal(written.at(-1)?.body.reason, 'Ready');
});

test('a failure that happens again is counted at its Event, and written anew when that is gone', async () => {
  const { say, written, world } = lab();
  say(crashed(1));
  say(crashed(1));
  say(at('loading', 0, { reason: 'CrashLoop', message: 'runtime crashed 1×' }));
  say(crashed(2));
  await settled();
  assert.deepEqual(
    written.map(({ verb, body }) => [verb, body.reason, body.count, body.message]),
    [
      ['create', 'CrashLoopBackOff', 1, 'runtime crashed 1×'],
      ['patch', 'CrashLoopBackOff', 2, 'runtime crashed 2×'],
    ],
  );
  world.refusal = new GatewayError('not_found', 'gone', { details: { reason: 'NotFound' } });
  say(crashed(3));
  await settled();
  assert.deepEqual(
    written.slice(2).map(({ verb, body }) => [verb, body.count]),
    [
      ['patch', 3],
      ['create', 3],
    ],
  );
});

test('what is only guessed is not said, nor what began long before anybody looked', async () => {
  const { say, written } = lab();
  say({ ...at('loading'), isWhole: false });
  say(at('ready', -2 * 3_600, { state: 'done' }));
  await settled();
  assert.deepEqual(written, []);
});

test('it is written as the one whose work it is', async () => {
  const caller: Caller = { name: 'a person', anonymous: false, scope: 'theirs', token: () => 'x' };
  const { say, written } = lab({ caller });
  say(at('loading'));
  await settled();
  assert.deepEqual(
    written.map(({ caller }) => caller),
    ['a person'],
  );
});

test('notes are one line of at most 1,024 bytes without secrets, and reasons one word', async () => {
  const { say, written } = lab();
  const message = `401 for hf_abcdefghijklmnop\nthen ${'é'.repeat(900)}`;
  say({ ...at('loading', 0, { state: 'failed', reason: 'of two words', message }) });
  await settled();
  const { reason, message: note, type } = written[0]?.body ?? {};
  assert.deepEqual([type, reason], ['Warning', 'Failed']);
  assert.match(note, /^401 for \[redacted\] then é+…$/);
  assert.ok(Buffer.byteLength(note) <= 1_024);
});

/** A driver with somebody who follows, on a cluster where it has these rights; what it wrote of Events. */
async function following(rules: ReturnType<typeof rulesOf>) {
  const [object = {}] = served('nova-4b', clusterNodes[0]?.metadata.name ?? '', {
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Waiting', message: 'waits' }] },
  });
  const driverLab = await startDriver({
    objects: worldOf({ more: [object] }),
    users: { gateway: { rules } },
    user: 'gateway',
  });
  const { loaded } = driverLab.driver.observed ?? assert.fail('nothing is observed');
  loaded.subscribe(() => {});
  const row = () => loaded.current?.value?.find(({ resource }) => resource === 'nova-4b');
  return { ...driverLab, row, [Symbol.asyncDispose]: () => driverLab[Symbol.asyncDispose]() };
}

const places = { serving: 'model-serving', discovery: 'agent-platform', default: 'default' };
const services = 'llminferenceservices.serving.kserve.io';

test('the rights of the table are enough to write Events', async () => {
  await using driverLab = await following(rulesOf(places));
  const { cluster, requested } = driverLab;
  await eventually(() => cluster.list('events', places.serving).length === 1, 'the Event');
  assert.equal(requested('events', 'create').length, 1);
  assert.deepEqual(requestsBeyond(cluster.requests, places), []);
});

test('without the right to write Events everything else is told', async () => {
  const rules = rulesOf(places).filter(
    ({ resources, verbs }) => !(resources.includes('events') && verbs.includes('create')),
  );
  await using driverLab = await following(rules);
  const { cluster, requested, row } = driverLab;
  await eventually(() => requested('events', 'create').length === 1, 'an attempt');
  cluster.update<{ metadata: object; status?: object }>(services, 'nova-4b', places.serving, object => {
    object.status = { conditions: [{ type: 'Ready', status: 'True' }] };
  });
  await eventually(() => row()?.phase === 'ready', 'that it is ready');
  await settled();
  assert.equal(requested('events', 'create').length, 1);
  assert.deepEqual(cluster.list('events', places.serving), []);
});

test('a pod that its node has not spoken of yet is no step further', async () => {
  await using driverLab = await following(rulesOf(places));
  const { cluster, row, requested } = driverLab;
  await eventually(() => cluster.list('events', places.serving).length === 1, 'the first Event');
  const [, pod] = served('nova-4b', clusterNodes[0]?.metadata.name ?? '') as [object, { spec: object }];
  const initContainers = [{ name: 'storage-initializer', image: 'x' }];
  const conditions = [{ type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-10-05T08:00:00Z' }];
  cluster.put({ ...pod, spec: { ...pod.spec, initContainers }, status: { phase: 'Pending', conditions } });
  await eventually(() => row()?.phase === 'pullingImage', 'what it looks like');
  await settled();
  assert.equal(requested('events', 'create').length, 1);
  const state = { running: { startedAt: new Date().toISOString() } };
  cluster.update<{ metadata: object; status?: object }>('pods', 'nova-4b-1', places.serving, object => {
    const initContainerStatuses = [{ name: 'storage-initializer', restartCount: 0, state }];
    object.status = { phase: 'Pending', conditions, initContainerStatuses };
  });
  const reasons = () =>
    cluster.list<{ metadata: object; reason?: string }>('events', places.serving).map(({ reason }) => reason);
  await eventually(() => reasons().length === 2, 'the next Event');
  assert.deepEqual(reasons().toSorted(), ['DownloadingWeights', 'Scheduling']);
});
