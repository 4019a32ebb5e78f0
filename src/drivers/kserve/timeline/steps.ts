/** Steps as they are put together: one after the other, until one is not done. */
import { type Step, stepNames } from '../../../domain.ts';
import { dateOf } from './fields.ts';
import type { Reason } from './pod.ts';

export type Name = Step['name'];
/** What a step is but its name. */
export type Stage = Omit<Step, 'name'>;

export const done = (since: number | undefined, finishedAt: number | undefined, message?: string): Stage => ({
  state: 'done',
  since: dateOf(since),
  finishedAt: dateOf(finishedAt),
  message,
});
export const inProgress = (since: number | undefined, { reason, message }: Reason = {}): Stage => ({
  state: 'inProgress',
  since: dateOf(since),
  reason,
  message,
});
export const failed = (since: number | undefined, { reason, message }: Reason): Stage => ({
  state: 'failed',
  since: dateOf(since),
  reason,
  message,
});

/** When a stage that is done was over, in milliseconds. */
export const endOf = ({ finishedAt }: Stage): number | undefined => finishedAt?.getTime();

/** All steps in their order; those of which nothing is told have not begun. */
export const allSteps = (told: Readonly<Partial<Record<Name, Stage>>>): Step[] =>
  inOrder(stepNames.map(name => ({ name, ...(told[name] ?? { state: 'pending' }) })));

/** Clocks of nodes and of the API server differ: what came later is at no earlier time for that. */
function inOrder(steps: readonly Step[]): Step[] {
  let last = Number.NEGATIVE_INFINITY;
  const later = (time: Date | undefined) => {
    if (time === undefined) return undefined;
    last = Math.max(last, time.getTime());
    return new Date(last);
  };
  return steps.map(step => ({ ...step, since: later(step.since), finishedAt: later(step.finishedAt) }));
}
