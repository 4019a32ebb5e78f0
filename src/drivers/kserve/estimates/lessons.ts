/** What is remembered of finished serves: the newest of each preset in each pool, and the newest such groups. */
import type { Lesson } from './lesson.ts';

/** Lessons of one preset in one pool, at most. */
export const maxSamples = 20;
/** Presets in pools, at most. */
export const maxGroups = 100;

export interface Lessons {
  /** By uid, newest first. */
  readonly kept: ReadonlyMap<string, Lesson>;
  /** The newest lesson of all groups that had to go. What is not newer is not kept, whenever it comes. */
  readonly horizon: Lesson | undefined;
}

export const noLessons: Lessons = { kept: new Map(), horizon: undefined };

/**
 * The lessons with one more. What is kept is the same in whichever order lessons come: the oldest go by when their serve was
 * ready, not by when it was seen, and a group that went leaves a horizon. A uid teaches once.
 */
export function withLesson(lessons: Lessons, lesson: Lesson): Lessons {
  const { kept, horizon } = lessons;
  if (kept.has(lesson.uid) || (horizon && !isNewer(lesson, horizon))) return lessons;
  const all = [...kept.values(), lesson].toSorted((a, b) => (isNewer(a, b) ? -1 : 1));
  const groups = [...Map.groupBy(all, groupOf).values()].map(group => group.slice(0, maxSamples));
  // Groups come by their newest lesson, as the lessons do.
  const gone = groups[maxGroups]?.[0] ?? horizon;
  const left = groups.flat().filter(each => !gone || isNewer(each, gone));
  return { kept: new Map(left.map(each => [each.uid, each])), horizon: gone };
}

const groupOf = ({ preset, pool }: Lesson) => JSON.stringify([preset, pool]);

/** Two that were ready at the same moment have an order, too. */
const isNewer = (a: Lesson, b: Lesson) => a.at > b.at || (a.at === b.at && a.uid > b.uid);
