/**
 * How long the steps of a serve take, learned from serves that finished. Nothing of it is stored: objects that are served tell
 * it again after a restart, in whichever order they are seen. Times of scheduling and of node starts come from events, which
 * Kubernetes forgets after an hour, so a gateway that starts later does not learn those from them again.
 */
import type { Step } from '../../domain.ts';
import { lessonOf, poolOf, type Serve } from './estimates/lesson.ts';
import { type Lessons, noLessons, withLesson } from './estimates/lessons.ts';
import { type Question, type Typicals, typical } from './estimates/typical.ts';

export interface Estimates {
  /** Another one whenever something was learned. */
  readonly lessons: object;
  /** Of a serve in any state; those that finished teach, each uid once. */
  observe(serve: Serve): void;
  typicalFor(question: Question): Typicals;
}

/** Serves that were told, at most; those that were told first are forgotten first. */
const maxTold = 1000;

/** `onServed` is told the steps of each serve that becomes ready from now on, once: an accident on the way is no reason not to. */
export function createEstimates(onServed?: (steps: readonly Step[]) => void, now: () => number = Date.now): Estimates {
  const began = now();
  const told = new Set<string>();

  function tell({ uid, steps }: Serve) {
    if (!onServed || !uid || told.has(uid) || !steps.every(({ state }) => state === 'done')) return;
    // What was ready before somebody else has counted, or nobody.
    if (!steps.some(({ name, finishedAt }) => name === 'ready' && finishedAt && finishedAt.getTime() >= began)) return;
    told.add(uid);
    for (const first of told) if (told.size > maxTold) told.delete(first);
    onServed(steps);
  }

  let lessons: Lessons = noLessons;
  return {
    get lessons() {
      return lessons;
    },
    observe(serve) {
      tell(serve);
      if (lessons.kept.has(serve.uid)) return;
      const lesson = lessonOf(serve);
      if (lesson) lessons = withLesson(lessons, lesson);
    },
    typicalFor: question => typical(lessons, question),
  };
}

interface UnderWay extends Pick<Serve, 'preset' | 'pool' | 'weightsBytes' | 'steps'> {
  /** Whether its weights were found in the cache, while its own steps do not tell; absent = unknown. */
  readonly cached?: boolean | undefined;
}

/**
 * The steps of a serve, with what is typical of each while there is one to wait for. Observe all serves before, so that every
 * row of a list knows the same. A serve that is over keeps its steps: its row must not change with every other serve.
 */
export function withTypicals(serve: UnderWay, estimates: Estimates): readonly Step[] {
  const { preset, weightsBytes, steps } = serve;
  if (steps.every(({ state }) => state === 'done')) return steps;
  const cached = steps.find(({ name }) => name === 'downloadingWeights')?.cached ?? serve.cached;
  const typicals = estimates.typicalFor({ preset, pool: poolOf(serve), weightsBytes, cached });
  return steps.map(step => (step.name === 'ready' ? step : { ...step, typical: typicals[step.name] }));
}
