import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Course, courseAfter, endingOf } from '../../../src/drivers/kserve/recording/ending.ts';
import { factsAt } from '../../../src/drivers/kserve/recording.ts';
import { type Timeline, timeline } from '../../../src/drivers/kserve/timeline.ts';
import { instantAt, recordingOf } from './recordings.ts';

const minute = 60_000;

/** What a recorded serve says at an instant. */
function toldAt(name: string, instant: string): Timeline {
  const recording = recordingOf(name);
  const index = instantAt(recording, instant);
  return timeline(factsAt(recording, index), recording.instants[index]?.at ?? 0);
}

/** Looks each second at what is told at a time; when it ends, in milliseconds, and how. */
function endOf(toldWhen: (at: number) => Timeline, untilMs: number) {
  let course: Course | undefined;
  for (let at = 0; at <= untilMs; at += 1_000) {
    course = courseAfter(course, toldWhen(at), at);
    const ending = endingOf(course, at);
    if (ending) return { at, ending };
  }
  return undefined;
}

const [backOff, restarted] = recordingOf('crash-loop').instants.reduce<[Timeline?, Timeline?]>(
  (found, { name = '' }) => {
    const told = toldAt('crash-loop', name);
    return [found[0] ?? (told.phase === 'failed' ? told : undefined), told.phase === 'loading' ? told : found[1]];
  },
  [],
) as [Timeline, Timeline];
const routing = { ...restarted, phase: 'routing' } as Timeline;
const further: Timeline = {
  ...routing,
  steps: restarted.steps.map(step => (step.name === 'routing' ? { ...step, state: 'inProgress' } : step)),
};
const ready = toldAt('serve-from-zero', recordingOf('serve-from-zero').instants.at(-1)?.name ?? '');

test('a crash loop ends ten minutes after the first failure, however often it is started anew', () => {
  assert.deepEqual([backOff.phase, restarted.phase], ['failed', 'loading']);
  const loop = (at: number) => (at < minute || at % 30_000 < 10_000 ? restarted : backOff);
  assert.deepEqual(endOf(loop, 60 * minute), { at: minute + 10_000 + 10 * minute, ending: 'failed' });
});

test('what gets further after a failure has ten minutes more', () => {
  const mended = (at: number) => (at < minute ? backOff : at < 5 * minute ? restarted : further);
  assert.deepEqual(endOf(mended, 60 * minute), { at: 15 * minute, ending: 'failed' });
});

test('what is slow but never failed does not end; what is ready does, also after a failure', () => {
  assert.equal(
    endOf(() => restarted, 60 * minute),
    undefined,
  );
  assert.equal(ready.phase, 'ready');
  const recovered = (at: number) => (at < minute ? backOff : ready);
  assert.deepEqual(endOf(recovered, 60 * minute), { at: minute + 2_000, ending: 'ready' });
});
