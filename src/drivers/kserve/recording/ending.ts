/** When a serve that is recorded is over. Pure: the times are told to it. */
import type { Timeline } from '../timeline.ts';

/** How far it came, and since when. Times in milliseconds since the epoch. */
export interface Course {
  /** Number of the last step that was begun; -1 for none. */
  readonly furthest: number;
  readonly furthestSince: number;
  /** Undefined while it is not ready. */
  readonly readySince: number | undefined;
  /** When it failed first; undefined once it became ready. */
  readonly failedSince: number | undefined;
}

/** Ready for this long is the end of it, in milliseconds: the last changes come in. */
const readyMs = 2_000;
/** So is a failure after which it came no further for this long. What crashes is started anew all the time. */
const failedMs = 10 * 60_000;

/** @param before undefined at the beginning */
export function courseAfter(before: Course | undefined, { phase, steps }: Timeline, at: number): Course {
  const reached = steps.findLastIndex(({ state }) => state !== 'pending');
  const isFurther = before === undefined || reached > before.furthest;
  return {
    furthest: isFurther ? reached : before.furthest,
    furthestSince: isFurther ? at : before.furthestSince,
    readySince: phase === 'ready' ? (before?.readySince ?? at) : undefined,
    failedSince: phase === 'ready' ? undefined : (before?.failedSince ?? (phase === 'failed' ? at : undefined)),
  };
}

export function endingOf(
  { furthestSince, readySince, failedSince }: Course,
  at: number,
): 'ready' | 'failed' | undefined {
  if (readySince !== undefined) return at - readySince >= readyMs ? 'ready' : undefined;
  if (failedSince === undefined) return undefined;
  return at - Math.max(failedSince, furthestSince) >= failedMs ? 'failed' : undefined;
}
