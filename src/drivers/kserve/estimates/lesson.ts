/** What a finished serve teaches of how long its steps take. */
import type { Step } from '../../../domain.ts';

/** A served model, as far as times are concerned. */
export interface Serve {
  /** Of its object. */
  readonly uid: string;
  /** Absent = none, or unknown. */
  readonly preset: string | undefined;
  /** The NodePool of its node, or `warm` when no node was started for it; absent = unknown. */
  readonly pool: string | undefined;
  /** Absent = unknown. */
  readonly weightsBytes: number | undefined;
  /** As `timeline` tells it: `Ready`. */
  readonly status: string;
  /** How often containers of its pod were started again. */
  readonly restarts: number;
  readonly steps: readonly Step[];
}

/** What is learned apart. Of weights: the time of a byte, of finding them there, and of not being fetched by a step at all. */
export const kinds = [
  'scheduling',
  'nodeStarting',
  'download',
  'cached',
  'unneeded',
  'pullingImage',
  'loading',
  'routing',
] as const;
export type Kind = (typeof kinds)[number];

export interface Lesson {
  readonly uid: string;
  /** When it was ready, in milliseconds since the epoch. */
  readonly at: number;
  readonly preset: string | undefined;
  readonly pool: string | undefined;
  /** Seconds; of a `download` seconds a byte. */
  readonly samples: Readonly<Partial<Record<Kind, number>>>;
}

/** The pool of what runs on nodes that were there. */
export const warm = 'warm';
/** No machine starts in so few seconds: the node was there, and the pod was only told so before it was bound. */
const thereWithin = 5;
/** Who waits longer for a node that was there, in seconds, waited for something else, or its node started unseen. */
const placedWithin = 60;
/** A step that took more seconds was held up by something that is not typical, such as a cloud without machines. */
const longest = 3600;

type Seconds = Readonly<Partial<Record<Step['name'], number>>>;

/** Nothing when it has not finished, or not without an accident, or when nobody saw how. */
export function lessonOf({ uid, preset, pool, weightsBytes, status, restarts, steps }: Serve): Lesson | undefined {
  if (status !== 'Ready' || restarts > 0 || !uid || !steps.every(({ state }) => state === 'done')) return undefined;
  const at = Math.max(...steps.map(({ finishedAt }) => finishedAt?.getTime() ?? 0));
  const seconds: Seconds = Object.fromEntries(steps.map(step => [step.name, secondsOf(step)]));
  // One whose pod nobody could read was ready all at once.
  if (!Number.isFinite(at) || !Object.values(seconds).some(each => each > 0)) return undefined;
  const place = placeOf(pool, seconds);
  const weights = steps.find(({ name }) => name === 'downloadingWeights');
  const samples = {
    ...(place.isSeen && {
      scheduling: seconds.scheduling,
      nodeStarting: seconds.nodeStarting,
      pullingImage: seconds.pullingImage,
    }),
    ...(weights && weightsSample(weights, weightsBytes ?? weights.bytesTotal)),
    loading: seconds.loading,
    routing: seconds.routing,
  };
  return { uid, at, preset, pool: place.pool, samples };
}

/** Undefined when a time is unknown, out of order, or beyond what is typical. */
function secondsOf({ since, finishedAt }: Step): number | undefined {
  if (!since || !finishedAt) return undefined;
  const seconds = (finishedAt.getTime() - since.getTime()) / 1000;
  return seconds >= 0 && seconds <= longest ? seconds : undefined;
}

function weightsSample(step: Step, bytes: number | undefined): Lesson['samples'] {
  const seconds = secondsOf(step);
  if (seconds === undefined) return {};
  if (step.cached === true) return { cached: seconds };
  if (step.cached === undefined) return seconds === 0 ? { unneeded: 0 } : {};
  return seconds > 0 && bytes !== undefined && bytes > 0 ? { download: seconds / bytes } : {};
}

interface Place {
  readonly pool: string | undefined;
  /** Whether it was seen how the pod came to its node. */
  readonly isSeen: boolean;
}

/**
 * Where it is to be counted. That a node was started is told by events, which Kubernetes forgets after an hour; after that all
 * the time until the pod was bound looks like scheduling, and the node as if it had been there.
 */
function placeOf(pool: string | undefined, { scheduling, nodeStarting }: Seconds): Place {
  if (pool === warm) return { pool, isSeen: true };
  if (nodeStarting === undefined || nodeStarting > thereWithin) return { pool, isSeen: true };
  if (scheduling !== undefined && scheduling <= placedWithin) return { pool: warm, isSeen: true };
  return { pool, isSeen: false };
}

/** The pool to ask of for a serve that is under way: `warm` once it turned out that its node was there. */
export function poolOf({ pool, steps }: Pick<Serve, 'pool' | 'steps'>): string | undefined {
  const isPlaced = steps.some(({ name, state }) => name === 'nodeStarting' && state === 'done');
  return isPlaced ? placeOf(pool, Object.fromEntries(steps.map(step => [step.name, secondsOf(step)]))).pool : pool;
}
