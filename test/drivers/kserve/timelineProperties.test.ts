/** What is true of every timeline, whatever it is told from and in whichever order that came. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Step, stepNames } from '../../../src/domain.ts';
import { factsAt } from '../../../src/drivers/kserve/recording.ts';
import { type ServeFacts, type Timeline, timeline } from '../../../src/drivers/kserve/timeline.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { eventually, turn } from '../../support/server.ts';
import { tenSeconds } from './driverLab.ts';
import { instantsOf, startPlayed } from './playedLab.ts';
import { recordingNames, recordingOf } from './recordings.ts';

/** The same numbers every time, from 0 up to 1. */
function randomFrom(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    chance: (part: number) => next() < part,
    one: <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T,
    shuffled: <T>(list: readonly T[]): T[] =>
      list
        .map(each => ({ each, at: next() }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ each }) => each),
  };
}
type Random = ReturnType<typeof randomFrom>;

const instants = recordingNames.flatMap(name => {
  const recording = recordingOf(name);
  return recording.instants.map(({ at, name: instant }, index) => ({
    what: `${name} ${instant}`,
    now: at,
    facts: factsAt(recording, index),
  }));
});

/** Steps come one after the other, and none begins before the one that came before. */
function assertOrder({ steps, phase, status }: Timeline, what: string): void {
  assert.deepEqual(
    steps.map(({ name }) => name),
    stepNames,
    what,
  );
  const states = steps.map(({ state }) => state);
  const current = states.findIndex(state => state !== 'done');
  const later = current < 0 ? [] : states.slice(current + 1);
  assert.ok(
    later.every(state => state === 'pending'),
    `${what}: ${states}`,
  );
  const times = steps.flatMap(({ since, finishedAt }) => [since, finishedAt]).flatMap(time => time?.getTime() ?? []);
  assert.ok(times.every(Number.isFinite), `${what}: times are times`);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    `${what}: times do not go back`,
  );
  const expected =
    status === 'Terminating' ? 'terminating' : states.includes('failed') ? 'failed' : (stepNames[current] ?? 'ready');
  assert.ok(phase === expected || states[current] === 'pending', `${what}: ${phase} of ${states}`);
}

/** Something else in the place of anything, or nothing. */
function spoilt(value: unknown, random: Random, part: number): unknown {
  if (random.chance(part))
    return random.one([undefined, null, '', 0, -1, 'x', [], {}, true, 'Unknown', '2026-13-01', 1e20]);
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) && random.chance(part * 5)) {
    return new Date(Date.parse(value) + (random.next() - 0.5) * 20 * 60_000).toISOString();
  }
  if (Array.isArray(value)) return value.map(each => spoilt(each, random, part));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spoilt(each, random, part)]));
}

/** Objects keep what every object has: whatever sends them checks that. */
function spoiltObject(object: KubernetesObject, random: Random, part: number): KubernetesObject {
  const { metadata, ...rest } = object;
  const { name, namespace, uid, labels } = metadata;
  const kept = { name, namespace, uid, labels };
  return {
    ...(spoilt(rest, random, part) as object),
    metadata: { ...(spoilt(metadata, random, part) as object), ...kept },
  };
}

function spoiltFacts(facts: ServeFacts, random: Random): ServeFacts {
  const part = random.next() * 0.08;
  const list = (read: ServeFacts['pods']): ServeFacts['pods'] => {
    if (random.chance(0.1)) return { problem: 'no answer' };
    if ('problem' in read) return read;
    const some = read.value.filter(() => random.chance(0.9));
    return { value: random.shuffled(some).map(each => spoiltObject(each, random, part)) };
  };
  return {
    ...facts,
    object: spoiltObject(facts.object, random, part),
    pods: list(facts.pods),
    events: list(facts.events),
    nodes: list(facts.nodes),
    nodeClaims: list(facts.nodeClaims),
    karpenterEvents: list(facts.karpenterEvents),
    nodePools: list(facts.nodePools),
    nodeClasses: list(facts.nodeClasses),
    bytesOnNode: random.chance(0.2) ? Math.floor(random.next() * 1e11) : undefined,
  };
}

suite('timelines', () => {
  test('steps are in order and times do not go back, at every recorded instant', () => {
    for (const { what, facts, now } of instants) assertOrder(timeline(facts, now), what);
  });

  test('nor whatever objects are made of', () => {
    for (let seed = 1; seed <= 3_000; seed++) {
      const random = randomFrom(seed);
      const { what, facts, now } = random.one(instants);
      assertOrder(timeline(spoiltFacts(facts, random), now), `seed ${seed}: ${what}`);
    }
  });

  test('the order in which events are listed does not count', () => {
    for (const { what, facts, now } of instants) {
      const random = randomFrom(what.length);
      const events = 'value' in facts.events ? { value: random.shuffled(facts.events.value) } : facts.events;
      assert.deepEqual(timeline({ ...facts, events }, now), timeline(facts, now), what);
    }
  });
});

test('whatever was seen on the way, and whatever was missed, in the end it is what the last objects say', async t => {
  for (const [at, name] of recordingNames.entries()) {
    const random = randomFrom(at + 1);
    const recording = recordingOf(name);
    const instants = instantsOf(recording).map(each => ({ ...each, denied: [] }));
    const last = instants.length - 1;
    const now = instants[last]?.at as number;
    await using lab = await startPlayed(t, recording, now);
    const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
    loaded.subscribe(() => {});
    // Some of what happened, more than once and in no order, and then what it came to.
    const final = instants[last] as (typeof instants)[0];
    const isService = ({ kind }: { readonly kind?: string }) => kind === 'LLMInferenceService';
    const half = { ...final, objects: final.objects.filter(each => isService(each) || random.chance(0.5)) };
    const walk = [...Array.from({ length: 12 }, () => random.one(instants)), half, final];
    const played = walk.map(instant => ({ ...instant, objects: random.shuffled(instant.objects) }));
    await lab.play(played, {
      async sleep() {
        if (random.chance(0.3)) lab.cluster.cutWatches();
        if (random.chance(0.1)) lab.cluster.compact();
        if (random.chance(0.5)) await turn();
      },
    });
    const allowed = { ...recording, instants: recording.instants.map(each => ({ ...each, denied: [] })) };
    const { phase, steps } = timeline(factsAt(allowed, last), now);
    const plain = (each: readonly Step[] | undefined) => JSON.stringify(each);
    const live = () => lab.rowIn(loaded.current?.value);
    const isSame = () => live()?.phase === phase && plain(live()?.steps) === plain(steps);
    await eventually(isSame, name, 15_000).catch(() => assert.equal(plain(live()?.steps), plain(steps), name));
    const again = lab.rowIn(await lab.restarted().loaded?.(tenSeconds()));
    assert.equal(plain(again?.steps), plain(live()?.steps), `${name}: another process`);
    t.mock.timers.reset();
  }
});
