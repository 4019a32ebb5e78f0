import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Step, stepNames } from '../../../src/domain.ts';
import { type Lesson, lessonOf, type Serve } from '../../../src/drivers/kserve/estimates/lesson.ts';
import { maxGroups, maxSamples, noLessons, withLesson } from '../../../src/drivers/kserve/estimates/lessons.ts';
import { createEstimates, withTypicals } from '../../../src/drivers/kserve/estimates.ts';
import { restartsOf } from '../../../src/drivers/kserve/timeline/pod.ts';
import { gib } from '../../../src/drivers/kserve/units.ts';
import { instantAt, objectsAt, recordingOf } from './recordings.ts';

const epoch = Date.parse('2026-10-05T08:00:00Z');
const bytes = 8 * gib;
const cold = [33, 210, 72, 240, 62, 9];

/** Steps of so many seconds one after the other, up to `readyAt`; the weights were downloaded unless told otherwise. */
function stepsOf(
  seconds: readonly number[],
  { cached = false, readyAt = epoch }: { cached?: boolean | 'unknown'; readyAt?: number } = {},
): Step[] {
  let at = readyAt - seconds.reduce((sum, each) => sum + each, 0) * 1000;
  return stepNames.map((name, index) => {
    const since = new Date(at);
    at += (seconds[index] ?? 0) * 1000;
    return {
      name,
      state: 'done',
      since,
      finishedAt: new Date(at),
      ...(name === 'downloadingWeights' && cached !== 'unknown' && { cached }),
    };
  });
}

const serve = (uid: string, steps: readonly Step[], more: Partial<Serve> = {}): Serve => ({
  uid,
  preset: 'nova',
  pool: 'gpu',
  weightsBytes: bytes,
  status: 'Ready',
  restarts: 0,
  steps,
  ...more,
});

/** The steps of an instant of a recorded serve. */
function recorded(name: string, instant: string): Step[] {
  const recording = recordingOf(name);
  const found = recording.instants[instantAt(recording, instant)]?.expect as { readonly steps: Step[] } | undefined;
  assert.ok(found);
  const dateOf = (text: Date | undefined) => (text ? new Date(text) : undefined);
  return found.steps.map(each => ({
    ...each,
    since: dateOf(each.since),
    finishedAt: dateOf(each.finishedAt),
  }));
}

const knowing = (...serves: readonly Serve[]) => {
  const estimates = createEstimates();
  for (const each of serves) estimates.observe(each);
  return estimates;
};

const question = { preset: 'nova', pool: 'gpu', weightsBytes: bytes };
/** `35 published`, `33 learned 1`: how a test reads estimates. */
const told = (estimates: ReturnType<typeof createEstimates>, asked: object = {}) =>
  Object.values(estimates.typicalFor({ ...question, ...asked })).map(({ seconds, basis, samples }) =>
    [seconds, basis, ...(samples > 0 ? [samples] : [])].join(' '),
  );
const published = ['35 published', '270 published', '72 published', '240 published', '60 published', '5 published'];
const learned = ['33 learned 1', '210 learned 1', '72 learned 1', '240 learned 1', '62 learned 1', '9 learned 1'];

suite('what is told before anything is learned', () => {
  const none = createEstimates();
  const weights = (asked: object) => told(none, asked)[2];
  test('the published figures', () => assert.deepEqual(told(none), published));
  test('weights by their size', () => assert.equal(weights({ weightsBytes: 20 * gib }), '180 published'));
  test('weights of an unknown size', () => assert.equal(weights({ weightsBytes: undefined }), '72 published'));
  test('weights that are there', () => assert.equal(weights({ cached: true }), '15 published'));
  test('a node that is there does not start', () => assert.equal(told(none, { pool: 'warm' })[1], '0 published'));
});

suite('what a finished serve teaches', () => {
  const table: Record<
    string,
    { readonly serve: Serve; readonly samples: Lesson['samples'] | undefined; pool?: string }
  > = {
    'one from zero': {
      serve: serve('a', recorded('serve-from-zero', '11-ready')),
      samples: {
        scheduling: 33,
        nodeStarting: 210,
        pullingImage: 240,
        download: 72 / bytes,
        loading: 62,
        routing: 9,
      },
      pool: 'gpu',
    },
    'one whose events are forgotten: nobody saw the node start': {
      serve: serve('a', recorded('serve-from-zero', '12-ready-events-expired')),
      samples: { download: 72 / bytes, loading: 62, routing: 9 },
      pool: 'gpu',
    },
    'one whose pod nobody could read': {
      serve: serve('a', recorded('serve-from-zero', '13-ready-pod-not-visible')),
      samples: undefined,
    },
    'one on a node that was there, with weights in its image': {
      serve: serve('a', recorded('oci-serve', '02-ready-cluster-local-https')),
      samples: { scheduling: 1, nodeStarting: 0, pullingImage: 43, unneeded: 0, loading: 75, routing: 10 },
      pool: 'warm',
    },
    'one with weights that were there': {
      serve: serve('a', stepsOf([1, 0, 3, 2, 60, 5], { cached: true })),
      samples: { scheduling: 1, nodeStarting: 0, pullingImage: 2, cached: 3, loading: 60, routing: 5 },
      pool: 'warm',
    },
    'one that was nominated to a node that was there': {
      serve: serve('a', stepsOf([1, 2, 3, 2, 60, 5], { cached: true })),
      samples: { scheduling: 1, nodeStarting: 2, pullingImage: 2, cached: 3, loading: 60, routing: 5 },
      pool: 'warm',
    },
    'one that is told to have had its node': {
      serve: serve('a', stepsOf([90, 0, 3, 2, 60, 5], { cached: true }), { pool: 'warm' }),
      samples: { scheduling: 90, nodeStarting: 0, pullingImage: 2, cached: 3, loading: 60, routing: 5 },
      pool: 'warm',
    },
    'one with weights of an unknown size': {
      serve: serve('a', stepsOf(cold), { weightsBytes: undefined }),
      samples: { scheduling: 33, nodeStarting: 210, pullingImage: 240, loading: 62, routing: 9 },
      pool: 'gpu',
    },
    'one that waited for hours': {
      serve: serve('a', stepsOf([7200, ...cold.slice(1)])),
      samples: { nodeStarting: 210, pullingImage: 240, download: 72 / bytes, loading: 62, routing: 9 },
      pool: 'gpu',
    },
    'one whose pod was replaced while it stayed ready': {
      serve: serve('a', stepsOf([33, 210, 72, 240, 62, -50])),
      samples: { scheduling: 33, nodeStarting: 210, pullingImage: 240, download: 72 / bytes, loading: 62 },
      pool: 'gpu',
    },
    'one that was started again': { serve: serve('a', stepsOf(cold), { restarts: 1 }), samples: undefined },
    'one that goes': { serve: serve('a', stepsOf(cold), { status: 'Terminating' }), samples: undefined },
    'one that is not ready': { serve: serve('a', stepsOf(cold), { status: 'NotReady' }), samples: undefined },
    'one that failed': {
      serve: serve('a', recorded('crash-loop', '03-back-off')),
      samples: undefined,
    },
    'one without times': {
      serve: serve(
        'a',
        stepsOf(cold).map(({ name }) => ({ name, state: 'done' })),
      ),
      samples: undefined,
    },
  };
  for (const [name, { serve: given, samples, pool }] of Object.entries(table)) {
    test(name, () => {
      const lesson = lessonOf(given);
      const known = lesson && Object.entries(lesson.samples).filter(([, each]) => each !== undefined);
      assert.deepEqual(known && Object.fromEntries(known), samples);
      assert.equal(lesson?.pool, pool);
    });
  }
});

test('restarts are those of all containers of a pod', () => {
  const of = (name: string, instant: string) =>
    objectsAt(name, instant)
      .filter(({ kind }) => kind === 'Pod')
      .map(restartsOf);
  assert.deepEqual(
    of('crash-loop', '02-restarted-running').map(count => count > 0),
    [true],
  );
  assert.deepEqual(of('serve-from-zero', '11-ready'), [0]);
});

suite('what is told of what was learned', () => {
  test('of the preset in the pool, before other presets there', () => {
    const estimates = knowing(
      serve('a', stepsOf(cold)),
      serve('b', stepsOf([10, 100, 144, 100, 600, 1]), { preset: 'mega' }),
    );
    assert.deepEqual(told(estimates), learned);
  });
  test('of any preset in the pool, with weights by their size', () => {
    const estimates = knowing(serve('a', stepsOf(cold)));
    assert.deepEqual(told(estimates, { preset: 'mega', weightsBytes: 2 * bytes }), learned.with(2, '144 learned 1'));
    assert.deepEqual(told(estimates, { preset: undefined }), learned);
  });
  test('the published figures in another pool', () => {
    assert.deepEqual(told(knowing(serve('a', stepsOf(cold))), { pool: 'other' }), published);
  });
  test('the median, of an even number that in the middle', () => {
    const loads = (...seconds: readonly number[]) =>
      told(knowing(...seconds.map((each, index) => serve(`${index}`, stepsOf([33, 210, 72, 240, each, 9])))))[4];
    assert.equal(loads(10, 3000, 50), '50 learned 3');
    assert.equal(loads(10, 3000, 50, 61), '55.5 learned 4');
  });
  test('a warm serve teaches warm ones only, and weights that were there no speed', () => {
    const estimates = knowing(serve('a', stepsOf([1, 0, 3, 2, 60, 5], { cached: true })));
    assert.deepEqual(told(estimates), published);
    const told1 = ['1 learned 1', '0 learned 1', '72 published', '2 learned 1', '60 learned 1', '5 learned 1'];
    assert.deepEqual(told(estimates, { pool: 'warm' }), told1);
    assert.deepEqual(told(estimates, { pool: 'warm', cached: true }), told1.with(2, '3 learned 1'));
  });
  test('weights that no step fetches take nothing, for that preset', () => {
    const estimates = knowing(serve('a', stepsOf([1, 0, 0, 43, 75, 10], { cached: 'unknown' })));
    assert.equal(told(estimates, { pool: 'warm' })[2], '0 learned 1');
    assert.equal(told(estimates, { pool: 'warm', preset: 'mega' })[2], '72 published');
  });
  test('a serve teaches once, however often it is seen', () => {
    const given = serve('a', stepsOf(cold));
    assert.deepEqual(told(knowing(given, given, { ...given, steps: stepsOf([1, 200, 1, 1, 1, 1]) })), learned);
  });
});

suite('steps with what is typical of them', () => {
  const estimates = knowing(serve('a', stepsOf(cold)), serve('b', stepsOf([1, 0, 3, 2, 50, 5], { cached: true })));
  const shown = (steps: readonly Step[], more: object = {}) =>
    withTypicals({ ...serve('c', steps), ...more }, estimates).map(({ typical }) => typical?.seconds);
  const underWay = (seconds: readonly number[], cached: boolean): Step[] =>
    stepsOf(seconds, { cached }).map(step => (step.name === 'ready' ? { name: 'ready', state: 'pending' } : step));
  const waiting: readonly Step[] = stepNames.map(name => ({ name, state: 'pending' }));

  test('each step but the last, while one is to come', () => {
    assert.deepEqual(shown(waiting), [...cold, undefined]);
  });
  test('those of a warm serve once its node is known to have been there', () => {
    assert.deepEqual(shown(underWay([2, 0, 4, 1, 40, 1], true)), [1, 0, 3, 2, 50, 5, undefined]);
  });
  test('weights that are known to be there, from elsewhere or from the step, which knows better', () => {
    assert.equal(shown(waiting, { cached: true })[2], 15);
    assert.equal(shown(underWay(cold, false), { cached: true })[2], 72);
  });
  test('nothing once it is over, and the same as long as nothing is learned', () => {
    const steps = stepsOf(cold);
    assert.equal(withTypicals(serve('c', steps), estimates), steps);
    assert.deepEqual(withTypicals(serve('c', waiting), estimates), withTypicals(serve('c', waiting), estimates));
  });
});

/** Numbers from 0 to below 1, the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  return list
    .map(each => ({ each, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ each }) => each);
}

/** Serves of many presets, a few of them often; times go backwards, are missing, and are the same, too. */
function anyServes(count: number, presets: number, random: () => number): Serve[] {
  const upTo = (most: number) => Math.floor(random() * most);
  return Array.from({ length: count }, (_, index) => {
    const seconds = Array.from({ length: 6 }, () => upTo(500) - 20);
    const cached = ([true, false, 'unknown'] as const)[upTo(3)] ?? false;
    const steps = stepsOf(seconds, { cached, readyAt: epoch + upTo(count) * 1000 });
    const gap = upTo(12);
    const known = steps.map((step, at): Step => (at === gap ? { name: step.name, state: 'done' } : step));
    return serve(`uid-${index}`, known, {
      preset: `preset-${Math.floor(random() ** 2 * presets)}`,
      pool: ['gpu', 'warm', undefined][upTo(3)],
      weightsBytes: [0, 1, bytes, undefined][upTo(4)],
      restarts: upTo(10) === 0 ? 1 : 0,
    });
  });
}

const lessonsOf = (serves: readonly Serve[]) =>
  serves.flatMap(each => lessonOf(each) ?? []).reduce((all, each) => withLesson(all, each), noLessons);

test('what is learned does not depend on the order in which serves are seen', () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = randomOf(seed);
    // With few presets groups overflow, with many there are too many groups.
    const serves = anyServes(600, seed % 2 ? 3 : 300, random);
    const expected = lessonsOf(serves);
    for (let turn = 0; turn < 4; turn++) {
      assert.deepEqual(lessonsOf(shuffled([...serves, ...serves], random)), expected, `seed ${seed}`);
    }
  }
});

test('10,000 serves: bounded, never negative, never NaN', () => {
  const random = randomOf(7);
  const serves = anyServes(10_000, 400, random);
  const { kept, horizon } = lessonsOf(serves);
  const groups = Map.groupBy(kept.values(), ({ preset, pool }) => `${preset} ${pool}`);
  assert.equal(groups.size <= maxGroups && groups.size > maxGroups / 2, true, `${groups.size} groups`);
  assert.ok([...groups.values()].every(({ length }) => length <= maxSamples));
  assert.ok(horizon);
  const estimates = knowing(...serves);
  for (const { preset, pool, weightsBytes } of serves.slice(0, 300)) {
    for (const cached of [true, false, undefined]) {
      for (const estimate of Object.values(estimates.typicalFor({ preset, pool, weightsBytes, cached }))) {
        assert.ok(Number.isFinite(estimate.seconds) && estimate.seconds >= 0, JSON.stringify(estimate));
        assert.equal(estimate.basis === 'learned', estimate.samples > 0);
      }
    }
  }
});

test('the newest serves are those that count, and a preset that is served often does not push out another', () => {
  const often = Array.from({ length: 3 * maxSamples }, (_, index) =>
    serve(`often-${index}`, stepsOf([33, 210, 72, 240, index, 9], { readyAt: epoch + index * 60_000 })),
  );
  const estimates = knowing(serve('rare', stepsOf(cold, { readyAt: epoch - 60_000 }), { preset: 'rare' }), ...often);
  assert.equal(told(estimates)[4], `${3 * maxSamples - maxSamples / 2 - 0.5} learned ${maxSamples}`);
  assert.equal(told(estimates, { preset: 'rare' })[4], '62 learned 1');
});

test('steps are told once, of serves that become ready while somebody looks, also of those that teach nothing', () => {
  const heard: (readonly Step[])[] = [];
  const estimates = createEstimates(
    steps => heard.push(steps),
    () => epoch,
  );
  const late = stepsOf(cold, { readyAt: epoch + 1000 });
  estimates.observe(serve('before', stepsOf(cold, { readyAt: epoch - 1000 })));
  estimates.observe(serve('under way', late.with(6, { name: 'ready', state: 'pending' })));
  estimates.observe(serve('restarted', late, { restarts: 2 }));
  estimates.observe(serve('restarted', late, { restarts: 2 }));
  assert.deepEqual(heard, [late]);
});
